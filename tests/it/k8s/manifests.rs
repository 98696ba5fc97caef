//! What is applied and loaded: the manifests against the Kubernetes schemas of 1.36, and the rules of the firewall.

use std::path::Path;

use serde_json::Value;

fn asset(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cluster/assets").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn schemas() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubernetes-1.36.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn errors(manifest: &Value) -> Vec<String> {
    let kind = manifest["kind"].as_str().unwrap();
    let schemas = schemas();
    let schema = serde_json::json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": format!("#/definitions/{kind}"),
        "definitions": schemas["definitions"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(manifest).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

fn parsed(name: &str) -> Value {
    serde_norway::from_str(&asset(name)).unwrap()
}

#[test]
fn manifests_are_what_kubernetes_takes() {
    for (name, kind) in
        [("gpuprov-runtime-class.yaml", "RuntimeClass"), ("gpuprov-device-plugin.yaml", "DaemonSet")]
    {
        let manifest = parsed(name);
        assert_eq!(manifest["kind"], kind);
        assert_eq!(errors(&manifest), Vec::<String>::new(), "{name}");
    }
    // The schemas are strict: a misspelt key is found.
    let mut misspelt = parsed("gpuprov-device-plugin.yaml");
    misspelt["spec"]["template"]["spec"]["runtimeClasName"] = "x".into();
    assert!(!errors(&misspelt).is_empty());
    let mut wrong = parsed("gpuprov-device-plugin.yaml");
    wrong["spec"]["template"]["spec"]["containers"] = "x".into();
    assert!(!errors(&wrong).is_empty());
}

#[test]
fn the_plugin_can_load_its_library_and_stays_off_nodes_without_a_gpu() {
    let pod = &parsed("gpuprov-device-plugin.yaml")["spec"]["template"]["spec"];
    let class = parsed("gpuprov-runtime-class.yaml");
    assert_eq!(pod["runtimeClassName"], class["metadata"]["name"]);
    assert_eq!(class["handler"], "nvidia");
    assert_eq!(pod["nodeSelector"]["nvidia.com/gpu.present"], "true");
    let image = pod["containers"][0]["image"].as_str().unwrap();
    assert!(image.starts_with("nvcr.io/nvidia/k8s-device-plugin:v0."), "{image}");
}

/// Fails if the rules do not keep the cluster's ports to the machine, its cluster and its nodes.
pub(super) fn closes_the_cluster(rules: &str) {
    let lines: Vec<&str> = rules.lines().map(str::trim).collect();
    let at =
        |line: &str| lines.iter().position(|have| *have == line).unwrap_or_else(|| panic!("{line}: {rules}"));
    // Loading it again replaces the table as a whole.
    assert_eq!(at("delete table inet gpuprov"), at("table inet gpuprov") + 1);
    let chain = at("type filter hook input priority filter - 10; policy accept;");
    let admitted = [
        "iifname \"lo\" accept",
        "iifname { \"cni0\", \"flannel.1\", \"flannel-wg\" } ip saddr { 10.42.0.0/16, 10.43.0.0/16 } accept",
        "ip saddr @nodes4 accept",
        "ip6 saddr @nodes6 accept",
    ];
    let dropped = ["tcp dport { 6443, 10250 } drop", "udp dport 8472 drop"];
    for line in admitted {
        assert!(chain < at(line) && dropped.iter().all(|drop| at(line) < at(drop)), "{line}");
    }
    // Nothing else is let through before, and no node is known yet.
    assert_eq!(lines.iter().filter(|line| line.ends_with("accept")).count(), admitted.len());
    assert!(!rules.contains("elements"));
}

#[test]
fn the_rules_close_the_cluster() {
    closes_the_cluster(&asset("firewall.nft"));
}
