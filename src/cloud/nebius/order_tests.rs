use super::*;

fn mark() -> Mark {
    Mark::from_text("v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1800000000:ana").unwrap()
}

fn spec() -> MachineSpec {
    MachineSpec {
        name: "dev".parse().unwrap(),
        public_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIp2 ana@laptop".to_owned(),
        image: None,
        env: Vec::new(),
        ports: Vec::new(),
        cluster: crate::model::want::Cluster::Off,
    }
}

fn order(platform: &str, preset: &str, spot: bool) -> Order {
    Order {
        project: "project-e00a".to_owned(),
        region: "eu-north1".to_owned(),
        disk_gb: 100,
        platform: platform.to_owned(),
        preset: preset.to_owned(),
        has_gpu: platform.starts_with("gpu-"),
        spot,
        instance_type: format!("{platform} {preset}"),
    }
}

fn request(order: &Order) -> CreateInstanceRequest {
    let host_key = HostKey::random().unwrap();
    let with = With {
        name: "gpuprov-dev-00ff00",
        subnet: "vpcsubnet-e00s",
        spec: &spec(),
        mark: &mark(),
        host_key: Some(&host_key),
    };
    order.request(with)
}

#[test]
fn spot_names_its_pricing_model_and_on_demand_no_reservation() {
    let spot = request(&order("gpu-h100-sxm", "1gpu-16vcpu-200gb", true)).spec.unwrap();
    assert_eq!(spot.preemptible.as_ref().unwrap().on_preemption(), PreemptionPolicy::Stop);
    assert!(
        spot.follows_spot_price.is_some() && spot.spot_pricing_policy.is_none() && spot.on_demand.is_none()
    );
    assert!(spot.reservation_policy.is_none());
    assert_eq!(spot.recovery_policy(), RecoveryPolicy::Fail);
    let on_demand = request(&order("gpu-h100-sxm", "1gpu-16vcpu-200gb", false)).spec.unwrap();
    assert!(on_demand.preemptible.is_none() && on_demand.follows_spot_price.is_none());
    assert_eq!(on_demand.reservation_policy.unwrap().policy(), Reservations::Forbid);
    assert_eq!(on_demand.recovery_policy, 0);
}

#[test]
fn the_disk_has_an_image_a_size_and_our_marks() {
    for (platform, preset, family) in [
        ("gpu-h100-sxm", "1gpu-16vcpu-200gb", "ubuntu24.04-cuda13.0"),
        ("cpu-d3", "4vcpu-16gb", "ubuntu24.04-driverless"),
    ] {
        let request = request(&order(platform, preset, false));
        let (metadata, spec) = (request.metadata.unwrap(), request.spec.unwrap());
        let boot = spec.boot_disk.unwrap();
        assert_eq!(boot.attach_mode(), AttachMode::ReadWrite);
        let managed = boot.managed_disk.unwrap();
        assert_eq!(managed.labels, metadata.labels);
        assert_eq!(super::super::marks::read_labels(&managed.labels), Some(mark()));
        let disk = managed.spec.unwrap();
        assert_eq!((disk.size_gibibytes, disk.r#type()), (Some(100), DiskType::NetworkSsd));
        assert_eq!(disk.source_image_family.unwrap().image_family, family);
        assert_eq!(metadata.parent_id, "project-e00a");
        assert_eq!(spec.service_account_id, "", "machines get no rights in the cloud");
        assert_eq!(spec.hostname, "dev");
    }
}

#[test]
fn both_addresses_are_on_the_wire_though_empty() {
    use prost::Message;
    let spec = request(&order("cpu-d3", "4vcpu-16gb", false)).spec.unwrap();
    let [card] = spec.network_interfaces.as_slice() else { panic!("one card") };
    let again = NetworkInterfaceSpec::decode(card.encode_to_vec().as_slice()).unwrap();
    assert!(again.ip_address.is_some() && again.public_ip_address.is_some());
    assert_eq!(again.subnet_id, "vpcsubnet-e00s");
}

#[test]
fn what_is_shown_has_no_private_key() {
    let with = With { name: "n", subnet: "default", spec: &spec(), mark: &mark(), host_key: None };
    let shown = as_json(&order("gpu-h100-sxm", "1gpu-16vcpu-200gb", true).request(with));
    let text = shown.to_string();
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    assert_eq!(shown["spec"]["resources"]["platform"], "gpu-h100-sxm");
    assert_eq!(shown["spec"]["follows_spot_price"], json!({}));
    assert_eq!(shown["spec"]["boot_disk"]["managed_disk"]["spec"]["size_gibibytes"], 100);
    assert_eq!(shown["metadata"]["labels"]["gpuprov-claim"], "00ff00ff00ff00ff");
}
