"""Verda's official Python client against the sandbox: offers, keys, create, wait, ssh, list, volumes, trash, delete.

Every answer is checked, and at the end what the sandbox saw: nothing of ours left, machine, volume, key or script, and
no request that the real service would call malformed.

usage: conformance.py GPUPROV
"""

import json
import sys
import time

from verda import VerdaClient
from verda.exceptions import APIException

from served import Served, check, key_pair, main, ssh

LIMIT = 120
CLIENT = r"# Verda's official clients: base_url '(.*)'$"
gpuprov = sys.argv[1]


def refused(work, code, text):
    """The client must raise its own error, with the service's code and words."""
    try:
        work()
    except APIException as error:
        check(error.code == code and text in error.message, f"{error.code}: {error.message}")
        return
    raise AssertionError(f"not refused: {text}")


def run(served):
    check(served.client == served.variables["GPUPROV_VERDA_ENDPOINT"] + "/v1", "the sandbox names the client's URL")
    key_file, public = key_pair()
    client_id, secret = served.variables["VERDA_CLIENT_ID"], served.variables["VERDA_CLIENT_SECRET"]
    refused(lambda: VerdaClient(client_id, "wrong", served.client), "unauthorized_request", "Invalid client id")
    verda = VerdaClient(client_id, secret, served.client)

    check(verda.balance.get().currency == "usd", "the balance")
    kinds = {kind.instance_type: kind for kind in verda.instance_types.get()}
    check(kinds["1H100.80S.32V"].price_per_hour == 2.29 and kinds["1H100.80S.32V"].gpu["number_of_gpus"] == 1, "a price")
    check(kinds["1H100.80S.32V"].spot_price_per_hour == 0.8015 and kinds["CPU.4V.16G"].display_name, "a spot price")
    places = [place["code"] for place in verda.locations.get()]
    check(places == ["FIN-01", "FIN-02", "FIN-03"], "locations")
    stock = {place["location_code"]: place["availabilities"] for place in verda.instances.get_availabilities(is_spot=True)}
    check("1B200.30V" in stock["FIN-03"], "stock for spot")
    check(verda.instances.is_available("1B200.30V", is_spot=True, location_code="FIN-03") is True, "one in stock")
    check(verda.instances.is_available("1B200.30V") is False, "and on demand it is not")
    images = verda.images.get("1H100.80S.32V")
    check(images[0].image_type == "24.04.cuda13.2.docker" and "Docker" in images[0].details, "images of a type")
    disk = next(kind for kind in verda.volume_types.get() if kind.type == "NVMe")
    check(disk.price_per_month_per_gb == 0.2, "the price of a disk")

    key = verda.ssh_keys.create("gpuprov-conformance", public)
    check(verda.ssh_keys.get_by_id(key.id).public_key == public, "the key is on file")
    check(sorted(known.name for known in verda.ssh_keys.get()) == ["gpuprov-conformance", "laptop"], "beside another one")
    script = verda.startup_scripts.create("hello", "#!/bin/sh\necho hello\n")
    check(verda.startup_scripts.get_by_id(script.id).script.startswith("#!/bin/sh"), "a script")

    order = {
        "instance_type": "1H100.80S.32V", "image": images[0].image_type, "hostname": "dev", "description": "conformance",
        "ssh_key_ids": [key.id], "location": "FIN-01",
    }
    refused(lambda: verda.instances.create(**{**order, "image": "24.04.base.none"}), "invalid_request", "Operating system")
    refused(lambda: verda.instances.create(**{**order, "location": "FIN-02"}), "service_unavailable", "No capacity")
    one = verda.instances.create(
        **order, startup_script_id=script.id, is_spot=True, contract="SPOT",
        os_volume={"name": "os", "size": 80, "on_spot_discontinue": "delete_permanently"},
        volumes=[{"name": "data", "size": 20, "type": "NVMe"}],
    )
    check(one.is_spot and one.price_per_hour == 0.8015 and one.startup_script_id == script.id, "made as ordered")
    until = time.monotonic() + 30
    while (one := verda.instances.get_by_id(one.id)).status != "running":
        if one.status == "provisioning":
            refused(lambda: verda.instances.action(one.id, "delete"), "forbidden_action", "provisioning")
        check(time.monotonic() < until, f"it runs in time: {one.status}")
        time.sleep(0.3)
    done = ssh(key_file, "root", one.ip, served.ssh_port("verda"), "nvidia-smi -L")
    check(done.returncode == 0 and "H100 SXM5 80GB" in done.stdout, f"ssh: {done}")

    time.sleep(2)
    names = sorted(machine.hostname for machine in verda.instances.get())
    check(names == ["dev", "jupyter-team"], f"the list: {names}")
    check([machine.hostname for machine in verda.instances.get(status="provisioning")] == [], "the list by status")
    volumes = {volume.name: volume for volume in verda.volumes.get(status="attached")}
    check(volumes["os"].is_os_volume and volumes["os"].id == one.os_volume_id, "the OS volume")
    check(volumes["data"].instance_id == one.id and volumes["data"].size == 20, "the other one")

    verda.instances.action(one.id, "shutdown")
    check(verda.instances.get_by_id(one.id).status == "offline", "off, and billed")
    verda.instances.action(one.id, "start")
    until = time.monotonic() + 30
    while verda.instances.get_by_id(one.id).status != "running":
        check(time.monotonic() < until, "it runs again")
        time.sleep(0.3)
    verda.instances.action(one.id, "delete", [one.os_volume_id], delete_permanently=True)
    check(verda.volumes.get(status="detached")[0].name == "data", "what was not named stays")
    verda.volumes.delete(volumes["data"].id)
    check(verda.volumes.get_in_trash()[0].id == volumes["data"].id, "in the trash")
    verda.volumes.delete_by_id(volumes["data"].id, is_permanent=True)
    check(verda.volumes.get_in_trash() == [], "and out of it")
    extra = verda.volumes.create("NVMe", "extra", 10, location="FIN-01")
    verda.volumes.increase_size(extra.id, 12)
    check(verda.volumes.get_by_id(extra.id).size == 12, "a bigger one")
    verda.volumes.delete_by_id(extra.id, is_permanent=True)
    until = time.monotonic() + 10
    while verda.instances.get_by_id(one.id).status != "discontinued":
        check(time.monotonic() < until, "it ends")
        time.sleep(0.3)
    refused(lambda: verda.instances.action(one.id, "delete"), "forbidden_action", "discontinued instance")

    # An evicted machine takes its OS volume along. Wait for the journal's word.
    served.ask("verda/tokens", "POST", {"life_ms": 1000})
    verda = VerdaClient(client_id, secret, served.client)
    spot = verda.instances.create(**order, is_spot=True, os_volume={"name": "os", "size": 50, "on_spot_discontinue": "delete_permanently"})
    served.ask(f"verda/instances/{spot.id}/evict", "POST")
    time.sleep(1.2)
    check(verda.instances.get_by_id(spot.id).status == "discontinued", "evicted, and the token renewed")
    verda.startup_scripts.delete_by_id(script.id)
    verda.ssh_keys.delete([key.id])
    check([known.name for known in verda.ssh_keys.get()] == ["laptop"], "the other key stays")

    left = served.ask("verda/left")
    check(left == [], f"left: {left}")
    ours = [entry for entry in served.ask("ledger") if entry["cloud"] == "verda" and entry["name"] == "dev"]
    check(len(ours) == 2 and not any(entry["alive"] for entry in ours), f"two were made and none is left: {ours}")
    rejected = [request for request in served.ask("requests?rejected=1") if "list" not in request["rejected"]]
    check(rejected == [], f"what the real service would refuse: {json.dumps(rejected)[:2000]}")


main("verda", Served(gpuprov, CLIENT), run, LIMIT)
