//! RunPod.

use crate::support::{CAP, Live};

#[test]
#[ignore = "rents a real machine; needs GPUPROV_LIVE=1 and a RunPod key"]
fn a_machine_from_offer_to_end() {
    let live = Live::new();
    let list = live.ok(&["offers", "--cloud", "runpod", "--gpus", "any:1", "--max-price", CAP, "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert!(list["offers"].as_array().is_some_and(|offers| !offers.is_empty()), "nothing under ${CAP}/h");

    let words =
        ["--cloud", "runpod", "--gpus", "any:1", "--max-price", CAP, "--disk", "20", "--attempts", "2"];
    let made = live.ok(&[&["provision", "--name", "live"][..], &words[..], &["--yes"][..]].concat());
    assert_eq!(made, "live\n");
    let smi = live.ok(&["ssh", "live", "--", "nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]);
    assert_eq!(smi.lines().count(), 1, "{smi}");
    assert!(live.ok(&["ls"]).contains("running"));

    live.ok(&["rm", "live", "--yes"]);
    let left: serde_json::Value = serde_json::from_str(&live.ok(&["ls", "--json"])).unwrap();
    assert_eq!(left["machines"], serde_json::json!([]));
}
