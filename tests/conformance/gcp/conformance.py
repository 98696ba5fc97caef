"""Google's official Python clients against the sandbox: google-auth for all three kinds of credentials, google-cloud-compute
for a machine's life, google-api-python-client for everything around it.

Every answer is checked, and at the end what the sandbox saw: nothing of ours left, machine, disk, rule or operation, and
no request that the real service would call malformed.

usage: conformance.py GPUPROV
"""

import json
import os
import sys
import time
import uuid

import google.auth.exceptions
import google.auth.transport.requests
from google.api_core.exceptions import BadRequest, Conflict, Forbidden, NotFound
from google.auth import identity_pool
from google.cloud import compute_v1
from google.oauth2 import service_account
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from served import Served, check, home, key_pair, main, ssh

LIMIT = 120
CLIENT = r"# Google's official clients: api_endpoint '(.*)'$"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ZONE = "us-central1-a"
IMAGES, FAMILY = "deeplearning-platform-release", "common-cu129-ubuntu-2204-nvidia-580"
gpuprov = sys.argv[1]


def refused(work, kind, text):
    """The client must raise its own error of this kind, with the service's words."""
    try:
        work()
    except kind as error:
        check(text in str(error), f"{text}: {error}")
        return
    raise AssertionError(f"not refused: {text}")


def credentials(served):
    """A key that is exchanged, a key that signs by itself, and a token of an outside issuer."""
    with open(served.variables["GOOGLE_APPLICATION_CREDENTIALS"], encoding="utf-8") as file:
        key = json.load(file)
    request = google.auth.transport.requests.Request()
    exchanged = service_account.Credentials.from_service_account_info(key, scopes=[SCOPE])
    exchanged.refresh(request)
    check(exchanged.token.startswith("ya29."), "a key is exchanged for a token")
    stranger = service_account.Credentials.from_service_account_info({**key, "private_key_id": "0" * 40}, scopes=[SCOPE])
    refused(lambda: stranger.refresh(request), google.auth.exceptions.RefreshError, "Invalid JWT Signature")
    signed = service_account.Credentials.from_service_account_info(key, scopes=[SCOPE]).with_always_use_jwt_access(True)
    signed.refresh(request)
    check(signed.token.count(".") == 2, "a key signs its own token")

    outside = served.ask("gcp/oidc", "POST", {})
    token_file = os.path.join(home, "token.jwt")
    config = {
        "type": "external_account", "audience": outside["audience"],
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": f"{served.client}/sts/v1/token",
        "service_account_impersonation_url":
            f"{served.client}/iamcredentials/v1/projects/-/serviceAccounts/{outside['service_account']}:generateAccessToken",
        "credential_source": {"file": token_file, "format": {"type": "text"}},
    }

    def federated(flaw=None):
        with open(token_file, "w", encoding="utf-8") as file:
            file.write(served.ask("gcp/oidc", "POST", {"flaw": flaw} if flaw else {})["token"])
        made = identity_pool.Credentials.from_info(config, scopes=[SCOPE])
        made.refresh(request)
        return made

    check(federated().token.startswith("ya29."), "a token of an outside issuer is exchanged and impersonates")
    for flaw, word in [("expired", "invalid_grant"), ("audience", "audience"), ("signature", "invalid_grant"), ("subject", "attribute condition")]:
        refused(lambda: federated(flaw), google.auth.exceptions.OAuthError, word)
    return exchanged, signed, federated()


def order(public, image, name="dev"):
    disk = compute_v1.AttachedDisk(
        boot=True, auto_delete=True,
        initialize_params=compute_v1.AttachedDiskInitializeParams(
            source_image=image, disk_size_gb=50, disk_type=f"zones/{ZONE}/diskTypes/pd-balanced", labels={"gpuprov": "1"}
        ),
    )
    nic = compute_v1.NetworkInterface(
        network="global/networks/default",
        access_configs=[compute_v1.AccessConfig(type_="ONE_TO_ONE_NAT", name="External NAT", network_tier="PREMIUM")],
    )
    items = {"ssh-keys": f"ubuntu:{public}", "block-project-ssh-keys": "TRUE", "enable-oslogin": "FALSE", "enable-guest-attributes": "TRUE"}
    return compute_v1.Instance(
        name=name, machine_type=f"zones/{ZONE}/machineTypes/g2-standard-4", labels={"gpuprov": "1", "gpuprov-name": name},
        disks=[disk], network_interfaces=[nic], tags=compute_v1.Tags(items=["gpuprov-conformance"]),
        scheduling=compute_v1.Scheduling(
            provisioning_model="SPOT", instance_termination_action="DELETE", automatic_restart=False, on_host_maintenance="TERMINATE"
        ),
        metadata=compute_v1.Metadata(items=[compute_v1.Items(key=key, value=value) for key, value in items.items()]),
    )


def life(served, creds, public, key_file):
    """A machine by google-cloud-compute, whose own waiting goes to Google whatever the endpoint: an operations client waits."""
    project = served.variables["GOOGLE_CLOUD_PROJECT"]
    options = {"api_endpoint": served.client}
    make = lambda kind: kind(credentials=creds, client_options=options)
    instances, waiter, rules, everywhere = (
        make(compute_v1.InstancesClient), make(compute_v1.ZoneOperationsClient), make(compute_v1.FirewallsClient),
        make(compute_v1.GlobalOperationsClient),
    )
    where = {"project": project, "zone": ZONE}

    def done(operation):
        until = time.monotonic() + 30
        while operation.status != compute_v1.Operation.Status.DONE:
            check(time.monotonic() < until, "an operation ends")
            if operation.zone:
                operation = waiter.wait(operation=operation.name, **where)
            else:
                operation = everywhere.wait(project=project, operation=operation.name)
        return operation

    image = make(compute_v1.ImagesClient).get_from_family(project=IMAGES, family=FAMILY)
    check(image.disk_size_gb == 50 and image.status == "READY", "an image by its family")
    source = image.self_link.split("/compute/v1/")[1]
    rule = compute_v1.Firewall(
        name="gpuprov-conformance", network="global/networks/default", direction="INGRESS", source_ranges=["0.0.0.0/0"],
        target_tags=["gpuprov-conformance"], allowed=[compute_v1.Allowed(I_p_protocol="tcp", ports=["8080", "9000-9010"])],
    )
    done(rules.insert_unary(project=project, firewall_resource=rule))
    check(rules.get(project=project, firewall="gpuprov-conformance").allowed[0].ports[1] == "9000-9010", "a rule")

    insert = lambda body, id=None: instances.insert_unary(
        request=compute_v1.InsertInstanceRequest(instance_resource=body, request_id=id or str(uuid.uuid4()), **where)
    )
    one = str(uuid.uuid4())
    first = insert(order(public, source), one)
    check(first.client_operation_id == one and first.operation_type == "insert", "an operation")
    check(insert(order(public, source), one).name == first.name, "the same one for the same request")
    refused(lambda: insert(order(public, source)), Conflict, "already exists")
    small = order(public, source, "small")
    small.disks[0].initialize_params.disk_size_gb = 20
    refused(lambda: insert(small), BadRequest, "smaller than the image")
    check(not done(first).error.errors, "it is made")
    until = time.monotonic() + 30
    while (machine := instances.get(instance="dev", **where)).status != "RUNNING":
        check(time.monotonic() < until, f"it runs in time: {machine.status}")
        time.sleep(0.3)
    check(machine.id == first.target_id and machine.labels["gpuprov-name"] == "dev", "made as ordered")
    check(machine.scheduling.provisioning_model == "SPOT" and machine.guest_accelerators[0].accelerator_count == 1, "spot, with a GPU")
    until = time.monotonic() + 30
    while True:
        try:
            ask = compute_v1.GetGuestAttributesInstanceRequest(instance="dev", query_path="hostkeys/", **where)
            keys = instances.get_guest_attributes(request=ask)
            break
        except NotFound:
            check(time.monotonic() < until, "host keys are published")
            time.sleep(0.3)
    known = os.path.join(home, "known_hosts")
    with open(known, "w", encoding="utf-8") as file:
        for item in keys.query_value.items:
            file.write(f"dev {item.key} {item.value}\n")
    address = machine.network_interfaces[0].access_configs[0].nat_i_p
    ran = ssh(key_file, "ubuntu", address, served.ssh_port("gcp"), "nvidia-smi -L && sudo -n true && id -un", known)
    check(ran.returncode == 0 and "NVIDIA L4" in ran.stdout, f"ssh with the host key that was published: {ran}")
    serial = instances.get_serial_port_output(instance="dev", **where).contents
    check("BEGIN SSH HOST KEY KEYS" in serial, "the serial console")

    found = instances.aggregated_list(request=compute_v1.AggregatedListInstancesRequest(project=project, filter="labels.gpuprov = 1"))
    names = [machine.name for _, scope in found for machine in scope.instances]
    check(names == ["dev"], f"the list: {names}")
    machine.labels["team"] = "a"
    change = compute_v1.InstancesSetLabelsRequest(labels=dict(machine.labels), label_fingerprint=machine.label_fingerprint)
    done(instances.set_labels_unary(instance="dev", instances_set_labels_request_resource=change, **where))
    check(instances.get(instance="dev", **where).labels["team"] == "a", "another label")
    served.ask(f"gcp/instances/{machine.id}/preempt", "POST")
    refused(lambda: instances.get(instance="dev", **where), NotFound, "was not found")
    events = waiter.list(request=compute_v1.ListZoneOperationsRequest(filter='operationType = "compute.instances.preempted"', **where))
    check([event.target_id for event in events] == [machine.id], "the preemption is told")

    # Out of capacity comes late, with a hint.
    late = {"status": 503, "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "message": "{zone} is full", "zones_available": ["us-central1-f"]}
    served.ask("faults", "POST", {"on": {"operation": "insert_instance", "cloud": "gcp"}, "what": {"kind": "gcp", "gcp": "late", "error": late}})
    ended = done(insert(order(public, source)))
    check(ended.http_error_status_code == 503 and ended.error.errors[0].code.startswith("ZONE_RESOURCE"), "out of capacity")
    check(ended.error.errors[0].error_details[2].error_info.metadatas["zonesAvailable"] == "us-central1-f", "and where there is some")
    served.ask("gcp/accounts/gcp-1", "POST", {"quota": {"metric": "GPUS_ALL_REGIONS", "limit": 0}})
    ended = done(insert(order(public, source)))
    check(ended.error.errors[0].code == "QUOTA_EXCEEDED" and "GPUS_ALL_REGIONS" in ended.error.errors[0].message, "no quota")
    served.ask("gcp/accounts/gcp-1", "POST", {"quota": {"metric": "GPUS_ALL_REGIONS", "limit": 8}})

    done(insert(order(public, source)))
    done(instances.delete_unary(request=compute_v1.DeleteInstanceRequest(instance="dev", request_id=str(uuid.uuid4()), **where)))
    refused(lambda: instances.get(instance="dev", **where), NotFound, "was not found")
    done(rules.delete_unary(project=project, firewall="gpuprov-conformance"))
    served.ask("gcp/accounts/gcp-1", "POST", {"deny": ["compute.firewalls.create"]})
    refused(lambda: rules.insert_unary(project=project, firewall_resource=rule), Forbidden, "compute.firewalls.create")
    served.ask("gcp/accounts/gcp-1", "POST", {"allow_all": True})


def around(served, creds):
    """Everything around a machine, by google-api-python-client, which checks its parameters against its own discovery document."""
    project = served.variables["GOOGLE_CLOUD_PROJECT"]
    compute = build(
        "compute", "v1", static_discovery=True, credentials=creds, cache_discovery=False,
        client_options={"api_endpoint": f"{served.client}/compute/v1/"},
    )
    own = compute.projects().get(project=project).execute()
    check(own["name"] == project and any(quota["metric"] == "GPUS_ALL_REGIONS" for quota in own["quotas"]), "the project")
    region = compute.regions().get(project=project, region="us-central1", fields="quotas,name").execute()
    check(set(region) == {"quotas", "name"} and region["quotas"][0]["limit"] > 0, "a region, in parts")
    check(len(compute.zones().list(project=project).execute()["items"]) > 12, "zones")
    kind = compute.machineTypes().get(project=project, zone=ZONE, machineType="a3-highgpu-1g").execute()
    check(kind["accelerators"][0]["guestAcceleratorType"] == "nvidia-h100-80gb", "a machine type")
    names, request = [], compute.machineTypes().list(project=project, zone=ZONE, filter='name eq "(g2|a2)-.*"', maxResults=4)
    while request is not None:
        page = request.execute()
        names += [kind["name"] for kind in page.get("items", [])]
        request = compute.machineTypes().list_next(request, page)
    check("g2-standard-96" in names and len(names) == len(set(names)) > 8, f"machine types on pages: {names}")
    t4 = compute.acceleratorTypes().get(project=project, zone=ZONE, acceleratorType="nvidia-tesla-t4").execute()
    check(t4["maximumCardsPerInstance"] == 4, "an accelerator type")
    rules = compute.firewalls().list(project=project, filter="network eq .*/default").execute()["items"]
    check(any(rule["name"] == "default-allow-ssh" for rule in rules), "the usual rules")
    check(compute.networks().get(project=project, network="default").execute()["autoCreateSubnetworks"], "the network")
    check(compute.subnetworks().list(project=project, region="us-central1").execute()["items"][0]["name"] == "default", "subnetworks")
    disks = compute.disks().aggregatedList(project=project).execute()["items"]
    check([disk["name"] for disk in disks[f"zones/{ZONE}"]["disks"]] == ["jupyter-team"], "disks of others")
    ask = {"types": ["PRICE"], "instanceProperties": {"machineType": "g2-standard-4", "scheduling": {"provisioningModel": "SPOT"}},
           "locationPolicy": {"location": f"zones/{ZONE}"}}
    told = compute.advice().capacityHistory(project=project, region="us-central1", body=ask).execute()
    check(told["priceHistory"][0]["listPrice"]["nanos"] > 0, "a spot price")
    look = compute.instances().get(project=project, zone=ZONE, instance="none")
    refused(look.execute, HttpError, "was not found")
    served.ask("gcp/accounts/gcp-1", "POST", {"api": False})
    refused(compute.projects().get(project=project).execute, HttpError, "has not been used in project")
    served.ask("gcp/accounts/gcp-1", "POST", {"api": True})


def run(served):
    check(served.client == served.variables["GPUPROV_GCP_ENDPOINT"], "the sandbox names the client's URL")
    key_file, public = key_pair()
    exchanged, signed, federated = credentials(served)
    around(served, federated)
    around(served, exchanged)
    life(served, signed, public, key_file)

    left = served.ask("gcp/left")
    check(left == [], f"left: {left}")
    ours = [entry for entry in served.ask("ledger") if entry["cloud"] == "gcp" and entry["name"] == "dev"]
    check(len(ours) == 4 and not any(entry["alive"] for entry in ours), f"four were made and none is left: {ours}")
    meant = ("smaller than the image",)
    rejected = [request for request in served.ask("requests?rejected=1") if not any(word in request["rejected"] for word in meant)]
    check(rejected == [], f"what the real service would refuse: {json.dumps(rejected)[:2000]}")


main("gcp", Served(gpuprov, CLIENT), run, LIMIT)
