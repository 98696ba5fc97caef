use super::super::wire::{
    AttachedDiskSpec, InstanceSpec, InstanceStatus, ManagedDisk, NetworkInterfaceStatus, PreemptibleSpec,
    PublicIpAddressStatus, ResourceMetadata, ResourcesSpec,
};
use super::*;
use crate::cloud::HostKeys;

/// A machine with one GPU and a disk of 100 GiB.
fn machine(state: InstanceState, reconciling: bool, spot: bool) -> Instance {
    let disk = DiskSpec { size_gibibytes: Some(100), ..DiskSpec::default() };
    let managed = ManagedDisk { spec: Some(disk), ..ManagedDisk::default() };
    let resources =
        ResourcesSpec { platform: "gpu-h100-sxm".to_owned(), preset: Some("1gpu-16vcpu-200gb".to_owned()) };
    Instance {
        metadata: Some(ResourceMetadata::default()),
        spec: Some(InstanceSpec {
            resources: Some(resources),
            boot_disk: Some(AttachedDiskSpec { managed_disk: Some(managed), ..AttachedDiskSpec::default() }),
            preemptible: spot.then(PreemptibleSpec::default),
            ..InstanceSpec::default()
        }),
        status: Some(InstanceStatus { state: state as i32, reconciling, ..InstanceStatus::default() }),
    }
}

fn with_address(mut instance: Instance, address: &str) -> Instance {
    let public = PublicIpAddressStatus { address: address.to_owned(), ..PublicIpAddressStatus::default() };
    let card =
        NetworkInterfaceStatus { public_ip_address: Some(public), ..NetworkInterfaceStatus::default() };
    instance.status.as_mut().unwrap().network_interfaces = vec![card];
    instance
}

fn frame(was_up: bool) -> Frame<'static> {
    Frame { loopback: false, ssh_port: 22, handle: None, was_up }
}

fn failed() -> Course {
    Course::Failed(Status { code: 8, ..Status::default() })
}

#[test]
fn what_a_state_means_depends_on_the_create() {
    use InstanceState::{Creating, Deleting, Error, Running, Starting, Stopped, Stopping};
    use MachineState as M;
    let cases = [
        (Creating, false, Course::Running, false, M::Booting),
        (Stopped, true, Course::Running, false, M::Booting),
        (Stopped, false, Course::Running, false, M::Booting),
        (Stopped, true, Course::Untold, false, M::Booting),
        (Starting, true, Course::Untold, false, M::Booting),
        (Stopping, false, Course::Untold, false, M::Booting),
        (Stopped, false, failed(), false, M::Failed),
        (Stopped, true, failed(), false, M::Failed),
        (Starting, false, failed(), false, M::Failed),
        (Error, false, Course::Untold, false, M::Failed),
        (Deleting, false, failed(), false, M::Deleting),
        (Deleting, false, Course::Done, true, M::Deleting),
    ];
    for (state, reconciling, course, was_up, expected) in cases {
        for spot in [false, true] {
            let look = look(&machine(state, reconciling, spot), &course, &frame(was_up));
            assert_eq!(look.state, expected, "{state:?} {reconciling} {course:?} {was_up} {spot}");
            assert_eq!(look.costs_now, None);
        }
    }
    // It came up once and stands still now, or nobody knows better.
    for (state, reconciling, course, was_up) in [
        (Stopped, false, Course::Done, false),
        (Stopped, false, Course::Untold, false),
        (Stopped, true, Course::Running, true),
        (Stopping, false, Course::Done, false),
        (Stopping, true, Course::Untold, true),
    ] {
        for (spot, expected) in [(false, M::Stopped), (true, M::Preempted)] {
            let look = look(&machine(state, reconciling, spot), &course, &frame(was_up));
            assert_eq!(look.state, expected, "{state:?} {reconciling} {course:?} {was_up}");
            // 100 GiB at $0.071 for a month.
            assert_eq!(look.costs_now.unwrap().micros(), 9727);
            assert!(look.words.unwrap().contains("disk"));
        }
    }
    let mut on_purpose = machine(Stopped, false, true);
    on_purpose.spec.as_mut().unwrap().stopped = true;
    assert_eq!(look(&on_purpose, &Course::Done, &frame(true)).state, M::Stopped);
    let running = with_address(machine(Running, false, true), "203.0.113.7/32");
    assert_eq!(look(&running, &Course::Untold, &frame(false)).state, M::Running);
}

#[test]
fn addresses_lose_their_prefix_and_are_checked() {
    let running = |address: &str| {
        look(
            &with_address(machine(InstanceState::Running, false, false), address),
            &Course::Done,
            &frame(false),
        )
    };
    let look_now = running("203.0.113.7/32");
    assert_eq!(look_now.state, MachineState::Running);
    let address = &look_now.ssh[0];
    assert_eq!((address.host(), address.port(), address.user()), ("203.0.113.7", 22, "ubuntu"));
    for none in ["", "/32", "  "] {
        let look = running(none);
        assert_eq!((look.state, look.ssh.len()), (MachineState::Booting, 0), "{none:?}");
    }
    for bad in ["10.0.0.5/32", "127.0.0.1/32", "-oProxyCommand=x.y/32", "1.2.3.4 x"] {
        let look = running(bad);
        assert_eq!((look.state, look.ssh.len()), (MachineState::Booting, 0), "{bad}");
        assert!(look.words.unwrap().starts_with("running: "), "{bad}");
    }
    // Before it runs an address is none.
    let starting = with_address(machine(InstanceState::Starting, false, false), "203.0.113.7/32");
    assert!(look(&starting, &Course::Running, &frame(false)).ssh.is_empty());
}

#[test]
fn unknown_states_and_empty_machines_are_waited_on_and_shown() {
    let mut odd = machine(InstanceState::Starting, false, false);
    odd.status.as_mut().unwrap().state = 42;
    let look_now = look(&odd, &Course::Running, &frame(false));
    assert_eq!((look_now.state, look_now.words.as_deref()), (MachineState::Booting, Some("state 42")));
    let empty = look(&Instance::default(), &Course::Untold, &frame(false));
    assert_eq!(empty.state, MachineState::Booting);
    assert_eq!(empty.host_keys, HostKeys::Unknown);
    assert_eq!(empty.sold.gpu_count, None);
}

#[test]
fn what_was_sold_is_what_the_machine_says() {
    let sold = look(&machine(InstanceState::Running, false, true), &Course::Done, &frame(false)).sold;
    assert_eq!(sold.instance_type.as_deref(), Some("gpu-h100-sxm 1gpu-16vcpu-200gb"));
    assert_eq!((sold.gpu_raw.as_deref(), sold.gpu_count, sold.spot), (Some("H100"), Some(1), Some(true)));
    assert_eq!((sold.vcpus, sold.ram_gb, sold.disk_gb), (Some(16.0), Some(200.0), Some(100)));
}

#[test]
fn sizes_in_every_unit() {
    let size = |spec: DiskSpec| gib(&spec);
    assert_eq!(size(DiskSpec { size_bytes: Some(64 << 30), ..DiskSpec::default() }), Some(64));
    assert_eq!(size(DiskSpec { size_mebibytes: Some((64 << 10) - 1), ..DiskSpec::default() }), Some(64));
    assert_eq!(size(DiskSpec { size_kibibytes: Some(1), ..DiskSpec::default() }), Some(1));
    for none in [None, Some(0), Some(-1), Some(i64::MAX)] {
        assert_eq!(size(DiskSpec { size_gibibytes: none, ..DiskSpec::default() }), None, "{none:?}");
    }
}

#[test]
fn an_empty_status_is_success_and_none_is_no_end() {
    assert_eq!(Course::of(&Operation::default()), Course::Running);
    let ended =
        |code| Operation { status: Some(Status { code, ..Status::default() }), ..Operation::default() };
    assert_eq!(Course::of(&ended(0)), Course::Done);
    assert_eq!(Course::of(&ended(8)), failed());
}
