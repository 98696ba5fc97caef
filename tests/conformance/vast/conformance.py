"""Vast's official client against the sandbox: search, create, wait, ssh, attach, show, label, bid, logs, destroy.

Every answer is checked, and at the end what the sandbox saw: no machine of ours left, no request that the real
service would call malformed. The client ends with 0 also when the service refuses, so only its output counts.

usage: conformance.py GPUPROV VASTAI
"""

import json
import os
import re
import subprocess
import sys
import time

from served import Served, check, home, key_pair, main, ssh

LIMIT = 300
CLIENT = r"# Vast's official client: VAST_URL='(.*)'$"
gpuprov, vastai = sys.argv[1:3]
last = {}


def pace(kind, seconds):
    """Keeps the service's shortest time between two calls of a kind."""
    wait = last.get(kind, -1e9) + seconds - time.monotonic()
    if wait > 0:
        time.sleep(wait)
    last[kind] = time.monotonic()


def environment(**more):
    base = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "VASTAI_NO_UPDATE_CHECK": "1", "NO_COLOR": "1", "COLUMNS": "250"}
    return {**base, **more}


def client(served, *words, key=None):
    """Runs the official client; what it printed, and what it complained of."""
    variables = environment(VAST_URL=served.client, VAST_API_KEY=key or served.variables["VAST_API_KEY"])
    done = subprocess.run(
        [vastai, *map(str, words)], env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip(), done.stderr.strip()


def data(served, *words, key=None):
    out, err = client(served, *words, "--raw", key=key)
    try:
        return json.loads(out)
    except ValueError:
        raise AssertionError(f"vastai {' '.join(map(str, words))}: {out}\n{err}") from None


def instance(served, number):
    pace("get_instance", 2.1)
    return data(served, "show", "instance", number)


def run(served):
    check(served.client.startswith("http://127.0.0.1:"), "the sandbox names the client's URL")
    check(served.variables["GPUPROV_VAST_ENDPOINT"] == served.client, "and it is gpuprov's endpoint")
    key, public = key_pair()

    user = data(served, "show", "user")
    check(user["credit"] == 25.0 and user["email"], "the account")
    out, err = client(served, "show", "user", "--raw", key="wrong")
    check("Invalid user key" in out + err, "a wrong key is called so")
    keys = data(served, "show", "ssh-keys")
    check(keys[0]["key"].startswith("ssh-ed25519 "), "the account's keys")

    query = "gpu_name=RTX_5090 num_gpus=1 gpu_ram>=20 geolocation in [US,CA]"
    offers = data(served, "search", "offers", query, "-o", "dph_total", "--storage", 100, "--limit", 5)
    prices = [offer["dph_total"] for offer in offers]
    check(len(offers) == 2 and prices == sorted(prices), "two offers in the order of their price")
    offer = offers[0]
    check(abs(offer["dph_total"] - 0.3808333333) < 1e-6 and offer["gpu_name"] == "RTX 5090", "price with the disk")
    check(data(served, "search", "offers", "gpu_name=RTX_5090 num_gpus=3") == [], "none is an empty list")
    out, err = client(served, "search", "offers", "gpu_name=RTX_5090 num_gpus=1")
    check("RTX_5090" in out.replace(" ", "_"), f"a table for people: {out} {err}")
    bids = data(served, "search", "offers", "--type", "bid", "gpu_name=RTX_3060 driver_version>=580.65.06")
    check(bids and all(bid["is_bid"] for bid in bids), "offers to bid on")

    words = ["--image", "vastai/base-image:@vastai-automatic-tag", "--disk", 50, "--ssh", "--direct", "--label", "dev",
             "--env", "-e A=b -p 8000:8000", "--onstart-cmd", "touch ~/.no_auto_tmux", "--cancel-unavail"]
    pace("create", 4.6)
    made = data(served, "create", "instance", offer["id"], *words)
    check(made["success"] is True, "created")
    number = made["new_contract"]
    time.sleep(1.1)
    out, err = client(served, "attach", "ssh", number, public)
    check("attached successfully" in out, f"attached: {out} {err}")
    until = time.monotonic() + 30
    while (one := instance(served, number))["actual_status"] != "running":
        check(time.monotonic() < until, "it runs in time")
    check(one["label"] == "dev" and one["extra_env"] == {"A": "b", "-p 8000:8000": "1"}, f"label and env: {one}")
    check(one["image_runtype"] == "ssh_direc ssh_proxy" and one["disk_space"] == 50.0, "runtype and disk")

    pace("list", 1.1)
    url, err = client(served, "ssh-url", number)
    found = re.match(r"ssh://root@(\S+)\s*:(\d+)$", url)
    check(found, f"ssh-url: {url} {err}")
    check(int(found[2]) == int(one["ports"]["22/tcp"][0]["HostPort"]), "the direct port")
    for port in (found[2], one["ssh_port"]):
        done = ssh(key, "root", found[1], port, "nvidia-smi -L && cat onstart.sh")
        check(done.returncode == 0 and "RTX 5090" in done.stdout and "no_auto_tmux" in done.stdout, f"ssh {port}: {done}")
        check("Welcome to vast.ai" in done.stderr, "the banner")

    pace("list", 1.1)
    listed = data(served, "show", "instances")
    check(sorted(row["label"] for row in listed) == ["dev", "jupyter-team"], "the list has ours and the foreign one")
    pace("list", 1.1)
    out, err = client(served, "show", "instances")
    check("1x RTX 5090" in out and "dev" in out, f"a table of instances: {out} {err}")
    pace("put", 1.1)
    client(served, "label", "instance", number, "other")
    check(instance(served, number)["label"] == "other", "another label")
    out, err = client(served, "logs", number, "--tail", 10)
    check("Server listening" in out, f"the log: {out} {err}")

    pace("create", 4.6)
    out, err = client(served, "create", "instance", offer["id"], *words, "--raw")
    check("no_such_ask" in out + err, f"the same offer once more: {out} {err}")
    pace("create", 17)
    bid = min(bids, key=lambda row: row["machine_id"] != 55003)
    spot = data(served, "create", "instance", bid["id"], *words, "--bid_price", bid["min_bid"] * 1.15)
    check(spot["success"] is True, f"a bid: {spot}")
    one = instance(served, spot["new_contract"])
    check(one["is_bid"] is True and abs(one["dph_base"] - bid["min_bid"] * 1.15) < 1e-6, "the bid is what it costs")
    client(served, "change", "bid", spot["new_contract"], "--price", 0.2)
    check(instance(served, spot["new_contract"])["dph_base"] == 0.2, "another bid")
    pace("put", 1.1)
    client(served, "stop", "instance", spot["new_contract"])
    check(instance(served, spot["new_contract"])["cur_state"] == "stopped", "stopped")

    pace("delete", 3.1)
    client(served, "destroy", "instance", number, "-y")
    client(served, "destroy", "instances", spot["new_contract"], "-y")
    ours = [entry for entry in served.ask("ledger") if entry["cloud"] == "vast" and entry["name"] != "jupyter-team"]
    check(len(ours) == 2 and not any(entry["alive"] for entry in ours), f"two were made and none is left: {ours}")
    check(any(entry["alive"] and entry["name"] == "jupyter-team" for entry in served.ask("ledger")), "the foreign one is")
    pace("delete", 3.1)
    out, err = client(served, "destroy", "instance", number, "-y", "--raw")
    check("not found" in (out + err).lower() or "no_such_instance" in out + err, f"gone: {out} {err}")
    rejected = served.ask("requests?rejected=1")
    check(rejected == [], f"what the real service would refuse: {json.dumps(rejected)[:2000]}")


main("vast", Served(gpuprov, CLIENT), run, LIMIT)
