"""Nebius's official Python client against the sandbox: tokens, offers, create, wait, ssh, list, preempt, delete.

Every answer is checked, and at the end what the sandbox saw: nothing of ours left, machine or disk, and no request that
the real service would call malformed.

usage: conformance.py GPUPROV
"""

import json
import os
import sys
import time

from grpc import StatusCode
from nebius.aio.service_error import RequestError
from nebius.api.nebius.billing.v1alpha1 import (
    CalculatorServiceClient,
    EstimateRequest,
    ListSpotPricesRequest,
    ResourceSpec,
    SpotPriceServiceClient,
)
from nebius.api.nebius.capacity.v1 import ListResourceAdviceRequest, ResourceAdviceServiceClient
from nebius.api.nebius.common.v1 import GetByNameRequest, ResourceMetadata
from nebius.api.nebius.compute.v1 import (
    AttachedDiskSpec,
    CreateInstanceRequest,
    DeleteInstanceRequest,
    DiskServiceClient,
    DiskSpec,
    FollowsSpotPriceSpec,
    GetImageLatestByFamilyRequest,
    GetInstanceRequest,
    ImageServiceClient,
    InstanceRecoveryPolicy,
    InstanceServiceClient,
    InstanceSpec,
    InstanceStatus,
    IPAddress,
    ListDisksRequest,
    ListInstancesRequest,
    ListPlatformsRequest,
    ManagedDisk,
    NetworkInterfaceSpec,
    PlatformServiceClient,
    PreemptibleSpec,
    PublicIPAddress,
    ResourcesSpec,
    SourceImageFamily,
)
from nebius.api.nebius.iam.v2 import (
    ListProjectsRequest,
    ListTenantsRequest,
    ProjectServiceClient,
    TenantServiceClient,
)
from nebius.api.nebius.quotas.v1 import ListQuotaAllowancesRequest, QuotaAllowanceServiceClient
from nebius.api.nebius.vpc.v1 import ListSubnetsRequest, SubnetServiceClient
from nebius.base.options import INSECURE
from nebius.base.resolver import Constant
from nebius.sdk import SDK

from served import Served, check, home, key_pair, main, ssh

LIMIT = 120
CLIENT = r"# Nebius's official Python client: .*Constant\('(.*)'\)$"
gpuprov = sys.argv[1]


def refused(work, code, text):
    """The client must raise its own error, with the service's code, and words that it has read out of the details."""
    try:
        work()
    except RequestError as error:
        check(error.status.code == code and text in str(error), f"{error.status.code}: {error}")
        return
    raise AssertionError(f"not refused: {text}")


def client(served, **credentials):
    resolver, options = Constant(served.client), [(INSECURE, True)]
    return SDK(resolver=resolver, options=options, user_agent_prefix="gpuprov-conformance/1", **credentials)


def finished(operation, limit=30):
    until = time.monotonic() + limit
    while not operation.done():
        check(time.monotonic() < until, "the operation ends in time")
        time.sleep(0.2)
        operation.sync_update()
    return operation


def order(project, subnet, name, public, spot):
    user = {"name": "ubuntu", "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "ssh_authorized_keys": [public]}
    family = "ubuntu24.04-cuda13.0" if spot else "ubuntu24.04-driverless"
    spec = InstanceSpec(
        resources=ResourcesSpec(
            platform="gpu-h100-sxm" if spot else "cpu-d3", preset="1gpu-16vcpu-200gb" if spot else "4vcpu-16gb"
        ),
        boot_disk=AttachedDiskSpec(
            attach_mode=AttachedDiskSpec.AttachMode.READ_WRITE,
            managed_disk=ManagedDisk(
                name=f"{name}-boot",
                spec=DiskSpec(
                    type=DiskSpec.DiskType.NETWORK_SSD, size_gibibytes=100,
                    source_image_family=SourceImageFamily(image_family=family),
                ),
            ),
        ),
        network_interfaces=[
            NetworkInterfaceSpec(
                name="eth0", subnet_id=subnet, ip_address=IPAddress(), public_ip_address=PublicIPAddress()
            )
        ],
        cloud_init_user_data="#cloud-config\n" + json.dumps({"users": [user]}),
        recovery_policy=InstanceRecoveryPolicy.FAIL,
    )
    if spot:
        spec.preemptible = PreemptibleSpec(on_preemption=PreemptibleSpec.PreemptionPolicy.STOP)
        spec.follows_spot_price = FollowsSpotPriceSpec()
    metadata = ResourceMetadata(parent_id=project, name=name, labels={"managed-by": "conformance"})
    return CreateInstanceRequest(metadata=metadata, spec=spec)


def run(served):
    check(served.variables["GPUPROV_NEBIUS_ENDPOINT"] == f"http://{served.client}", "the sandbox names the address")
    key_file, public = key_pair()
    credentials = os.path.join(home, "credentials.json")
    with open(credentials, "w", encoding="utf-8") as file:
        json.dump(served.ask("nebius/accounts/nebius-1/key-file"), file)

    # A person's token, and the service account's key, which is exchanged.
    person = client(served, credentials=served.variables["NEBIUS_IAM_TOKEN"])
    tenant = served.variables["NEBIUS_TENANT_ID"]
    check(person.whoami().wait().user_profile.tenants[0].tenant_id == tenant, "who the person is")
    sdk = client(served, credentials_file_name=credentials)
    me = sdk.whoami().wait().service_account_profile
    check(me.info.metadata.id == served.ask("nebius/accounts/nebius-1")["service_account"], "who the robot is")

    check(TenantServiceClient(sdk).list(ListTenantsRequest()).wait().items[0].metadata.id == tenant, "the tenant")
    projects, token = [], ""
    while True:
        page = ProjectServiceClient(sdk).list(ListProjectsRequest(parent_id=tenant, page_token=token)).wait()
        projects += page.items
        if not (token := page.next_page_token):
            break
    check(len(projects) == 11, f"projects over two pages: {len(projects)}")
    project = next(one.metadata.id for one in projects if one.spec.region == "eu-north1")
    subnets = SubnetServiceClient(sdk).list(ListSubnetsRequest(parent_id=project)).wait().items
    check(subnets[0].metadata.name.startswith("default-subnet") and subnets[0].status.ipv4_public_pools, "a subnet")
    subnet = subnets[0].metadata.id

    platforms = PlatformServiceClient(sdk).list(ListPlatformsRequest(parent_id=project, page_size=1000)).wait().items
    kinds = {one.metadata.name: one for one in platforms}
    h100 = kinds["gpu-h100-sxm"]
    check(h100.spec.gpu_memory_gigabytes == 80 and h100.status.allowed_for_preemptibles, "a platform")
    check([preset.resources.gpu_count for preset in h100.spec.presets] == [1, 8], "its presets")
    request = ListResourceAdviceRequest(parent_id=tenant, page_size=1000)
    advice = ResourceAdviceServiceClient(sdk).list(request).wait().items
    rows = [one for one in advice if one.spec.compute_instance.platform == "gpu-h100-sxm"]
    check(max(row.status.on_demand.available for row in rows) > 0, "what is to be had")
    prices = SpotPriceServiceClient(sdk).list(ListSpotPricesRequest(page_size=100)).wait().items
    spot = {(one.region, one.compute_instance.platform): one.price.value for one in prices}
    check(spot[("eu-north1", "gpu-h100-sxm")] == "1.87", "a spot price")
    check(not any("l40s" in platform for _, platform in spot), "and none for L40S")
    quotas = QuotaAllowanceServiceClient(sdk).list(ListQuotaAllowancesRequest(parent_id=tenant, page_size=1000)).wait()
    check(any(one.metadata.name == "compute.instance.gpu.h100" and one.spec.limit == 32 for one in quotas.items), "a quota")
    image = ImageServiceClient(sdk).get_latest_by_family(
        GetImageLatestByFamilyRequest(image_family="ubuntu24.04-cuda13.0")
    ).wait()
    check(image.status.min_disk_size_bytes == 40 << 30, "an image's smallest disk")
    estimate = EstimateRequest(resource_spec=ResourceSpec(compute_instance_spec=order(project, subnet, "x", public, False)))
    price = CalculatorServiceClient(sdk).estimate(estimate).wait()
    check(price.hourly_cost.general.total.cost == "0.132", "the calculator")

    instances = InstanceServiceClient(sdk)
    bad = order(project, subnet, "dev", public, True)
    bad.spec.follows_spot_price = None
    refused(lambda: instances.create(bad).wait(), StatusCode.INVALID_ARGUMENT, "pricing model must be specified")
    made = instances.create(order(project, subnet, "dev", public, True)).wait()
    refused(
        lambda: instances.create(order(project, subnet, "dev", public, True)).wait(),
        StatusCode.ALREADY_EXISTS, made.resource_id,
    )
    check(finished(made).successful(), "it was made")
    until = time.monotonic() + 30
    while True:
        one = instances.get(GetInstanceRequest(id=made.resource_id)).wait()
        told = one.status.network_interfaces[0].public_ip_address.address
        if one.status.state == InstanceStatus.InstanceState.RUNNING and told:
            break
        check(time.monotonic() < until, f"it runs in time: {one.status}")
        time.sleep(0.2)
    host = told.removesuffix("/32")
    done = ssh(key_file, "ubuntu", host, served.ssh_port("nebius"), "nvidia-smi -L")
    check(done.returncode == 0 and "H100" in done.stdout, f"ssh: {done}")

    time.sleep(2)
    here = instances.list(ListInstancesRequest(parent_id=project)).wait().items
    check(sorted(found.metadata.name for found in here) == ["dev", "jupyter-team"], "the list")
    named = instances.get_by_name(GetByNameRequest(parent_id=project, name="dev")).wait()
    check(named.metadata.id == made.resource_id and named.metadata.labels["managed-by"] == "conformance", "by its name")
    disks = DiskServiceClient(sdk).list(ListDisksRequest(parent_id=project)).wait().items
    mine = next(disk for disk in disks if disk.metadata.name == "dev-boot")
    check(mine.status.managed_by == made.resource_id and mine.status.size_bytes == 100 << 30, "its disk")

    served.ask(f"nebius/instances/{made.resource_id}/preempt", "POST")
    until = time.monotonic() + 10
    while (one := instances.get(GetInstanceRequest(id=made.resource_id)).wait()).status.state != (
        InstanceStatus.InstanceState.STOPPED
    ):
        check(time.monotonic() < until, "it is preempted")
        time.sleep(0.2)
    check(not one.status.network_interfaces[0].public_ip_address.address, "and has no address any more")
    check(finished(instances.delete(DeleteInstanceRequest(id=made.resource_id)).wait()).successful(), "it goes")
    refused(
        lambda: instances.get(GetInstanceRequest(id=made.resource_id)).wait(), StatusCode.NOT_FOUND, made.resource_id
    )

    # A start that fails late, and is told apart by its details.
    late = {"script": "nebius", "nebius": "late_failure", "ms": 300, "cause": "capacity"}
    fault = {"on": {"cloud": "nebius", "operation": "create_instance"}, "what": {"kind": "script", "script": late}}
    served.ask("faults", "POST", fault)
    failed = finished(instances.create(order(project, subnet, "late", public, True)).wait())
    check(failed.status().code == StatusCode.RESOURCE_EXHAUSTED, f"no room: {failed.status()}")
    check("NotEnoughResources" in str(failed.status()), f"and its details: {failed.status()}")
    finished(instances.delete(DeleteInstanceRequest(id=failed.resource_id)).wait())

    # On demand, with a token that is renewed in between.
    served.ask("nebius/tokens", "POST", {"revoke": True})
    plain = finished(instances.create(order(project, subnet, "plain", public, False)).wait())
    check(plain.successful(), "a machine without GPUs, after the token was renewed")
    finished(instances.delete(DeleteInstanceRequest(id=plain.resource_id)).wait())

    left = served.ask("nebius/left")
    check(left == [], f"left: {left}")
    ours = [entry for entry in served.ask("ledger") if entry["cloud"] == "nebius" and entry["name"] != "jupyter-team"]
    check(len(ours) == 3 and not any(entry["alive"] for entry in ours), f"three were made and none is left: {ours}")
    rejected = [one for one in served.ask("requests?rejected=1") if "pricing model" not in one["rejected"]]
    check(rejected == [], f"what the real service would refuse: {json.dumps(rejected)[:2000]}")
    person.sync_close()
    sdk.sync_close()


main("nebius", Served(gpuprov, CLIENT), run, LIMIT)
