//! Rows and machines with fields of any type.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::cloud::vast::samples::*;
use crate::model::machine::MachineState;

/// Values that no field should have, and some that it may.
fn odd() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}|stopped|running|exited|10\\.0\\.0\\.1|22".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([["GPUPROV_MARK", "v1:lab:default:dev:00ff00ff00ff00ff::"], 7, "A=b"])),
        Just(json!({"22/tcp": [{"HostPort": "99999"}]})),
    ]
}

proptest::proptest! {
    #[test]
    fn any_machine_is_survived_and_never_shown_running_without_an_address(
        fields in proptest::collection::vec((0_usize..30, odd()), 0..8),
    ) {
        let mut machine = machine();
        let names: Vec<String> = machine.as_object().unwrap().keys().cloned().collect();
        for (at, value) in fields {
            machine[&names[at % names.len()]] = value;
        }
        let instance: crate::cloud::vast::wire::Instance = serde_json::from_value(machine).unwrap();
        let account = "vast/default".parse().unwrap();
        let look = crate::cloud::vast::states::look(&instance, &crate::cloud::vast::states::Frame { account: &account, loopback: false });
        proptest::prop_assert_eq!(look.state == MachineState::Running, !look.ssh.is_empty());
        proptest::prop_assert!(look.costs_now.is_none_or(|price| price.micros() >= 0));
        let _ = instance.variable("GPUPROV_MARK");
    }

    #[test]
    fn any_row_is_survived(fields in proptest::collection::vec((0_usize..60, odd()), 0..8)) {
        use crate::cloud::vast::rows::{Frame, Row, row};
        let mut ask = ask();
        let names: Vec<String> = ask.as_object().unwrap().keys().cloned().collect();
        for (at, value) in fields {
            ask[&names[at % names.len()]] = value;
        }
        let cloud = cloud("http://127.0.0.1:1");
        let choice = cloud.choose(None, None, None);
        for class in [crate::cloud::vast::search::Class::OnDemand, crate::cloud::vast::search::Class::Bid] {
            let frame = Frame {
                account: cloud.account(),
                sandbox: false,
                settings: &cloud.settings,
                choice: &choice,
                class,
                count: 1,
                disk_gb: 100,
                cuda: None,
            };
            if let Row::Offer(offer, _) = row(&serde_json::from_value(ask.clone()).unwrap(), None, &frame) {
                proptest::prop_assert!(offer.price_per_hour.is_positive() && offer.price_per_hour == offer.price_parts.total());
                proptest::prop_assert!(offer.id.len() <= 200 || offer.zone.is_none());
            }
        }
    }
}
