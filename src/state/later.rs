//! Fields of later versions: what this version does not know in a file stays there when it writes the file anew.

use serde_json::Value;

/// Members that say which thing an object is. Objects that differ in one are two things, and nothing is kept from one for
/// the other.
const WHICH: [&str; 3] = ["id", "claim", "name"];

/// Puts into `new` what stands in `old` and not in `known`, which is all that this version understands of `old`.
pub(super) fn keep(old: &Value, known: &Value, new: &mut Value) {
    match (old, known, new) {
        (Value::Object(old), Value::Object(known), Value::Object(new)) => {
            if WHICH.iter().any(|which| old.get(*which) != new.get(*which)) {
                return;
            }
            for (name, value) in old {
                match (known.get(name), new.get_mut(name)) {
                    (Some(known), Some(new)) => keep(value, known, new),
                    (None, None) => {
                        new.insert(name.clone(), value.clone());
                    }
                    _ => {}
                }
            }
        }
        (Value::Array(old), Value::Array(known), Value::Array(new)) if old.len() == known.len() => {
            for ((old, known), new) in old.iter().zip(known).zip(new) {
                keep(old, known, new);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(old: Value, known: Value, new: Value) -> Value {
        let mut new = new;
        keep(&old, &known, &mut new);
        new
    }

    #[test]
    fn unknown_members_stay_at_any_depth() {
        let old = json!({"a": 1, "later": [1], "ssh": {"host": "x", "later": null}, "list": [{"id": 1, "l": 2}, {"id": 2}]});
        let known = json!({"a": 1, "ssh": {"host": "x"}, "list": [{"id": 1}, {"id": 2}]});
        let new = json!({"a": 2, "ssh": {"host": "y"}, "list": [{"id": 1}, {"id": 2}, {"id": 3}]});
        let expected = json!({"a": 2, "ssh": {"host": "y", "later": null}, "list": [{"id": 1, "l": 2}, {"id": 2}, {"id": 3}], "later": [1]});
        assert_eq!(kept(old, known, new), expected);
    }

    #[test]
    fn nothing_known_comes_back_and_nothing_moves_to_another_thing() {
        let old = json!({"side": [{"id": "k"}], "handle": {"id": "m1", "later": 1}, "ssh": {"later": 1}});
        let known = json!({"side": [{"id": "k"}], "handle": {"id": "m1"}, "ssh": {}});
        let new = json!({"handle": {"id": "m2"}, "ssh": null});
        assert_eq!(kept(old, known, new.clone()), new);
        let shifted = kept(json!([{"id": 1, "later": 1}]), json!([{"id": 1}]), json!([{"id": 2}]));
        assert_eq!(shifted, json!([{"id": 2}]));
    }
}
