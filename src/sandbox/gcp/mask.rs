//! The query parameter `fields`: which parts of an answer are sent, such as `name,quotas(metric,limit)` or `items/name`.
//!
//! Grammar: <https://cloud.google.com/compute/docs/api/how-tos/performance#partial>.

use serde_json::{Map, Value};

/// A tree of what is wanted; no branches means everything below.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Mask(Vec<(String, Mask)>);

/// Cuts an answer to what `fields` names.
///
/// # Errors
///
/// The sentence that refuses a selection that cannot be read.
pub(super) fn cut(fields: &str, answer: &Value) -> Result<Value, String> {
    let mut rest = fields;
    let mask = read(&mut rest, 0).filter(|mask| rest.is_empty() && !mask.0.is_empty());
    match mask {
        Some(mask) => Ok(mask.keep(answer)),
        None => Err(format!("Invalid field selection {fields}")),
    }
}

fn read(rest: &mut &str, depth: usize) -> Option<Mask> {
    let mut mask = Mask::default();
    if depth > 16 {
        return None;
    }
    loop {
        let mut path = Vec::new();
        loop {
            let end = rest.find([',', '/', '(', ')']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty()
                || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "*_-".contains(letter))
            {
                return None;
            }
            path.push(name.to_owned());
            *rest = after;
            match rest.strip_prefix('/') {
                Some(after) => *rest = after,
                None => break,
            }
        }
        let mut inner = Mask::default();
        if let Some(after) = rest.strip_prefix('(') {
            *rest = after;
            inner = read(rest, depth + 1)?;
            *rest = rest.strip_prefix(')')?;
        }
        let first = path.remove(0);
        let inner = path.into_iter().rev().fold(inner, |inner, name| Mask(vec![(name, inner)]));
        mask.0.push((first, inner));
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None => return Some(mask),
        }
    }
}

impl Mask {
    fn keep(&self, value: &Value) -> Value {
        if self.0.is_empty() {
            return value.clone();
        }
        match value {
            Value::Array(items) => items.iter().map(|item| self.keep(item)).collect(),
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (name, inner) in fields {
                    for (_, mask) in self.0.iter().filter(|(wanted, _)| wanted == name || wanted == "*") {
                        kept.insert(name.clone(), mask.keep(inner));
                    }
                }
                Value::Object(kept)
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selections() {
        let answer = json!({"name": "r", "quotas": [{"metric": "CPUS", "limit": 2.0}], "zones": ["a"],
                            "items": {"zones/a": {"instances": [{"name": "x", "id": "1"}]}}});
        for (fields, kept) in [
            ("name", json!({"name": "r"})),
            ("name,quotas", json!({"name": "r", "quotas": [{"metric": "CPUS", "limit": 2.0}]})),
            ("quotas/metric", json!({"quotas": [{"metric": "CPUS"}]})),
            ("quotas(limit),name", json!({"name": "r", "quotas": [{"limit": 2.0}]})),
            ("items/*/instances(name)", json!({"items": {"zones/a": {"instances": [{"name": "x"}]}}})),
            ("nothing", json!({})),
        ] {
            assert_eq!(cut(fields, &answer), Ok(kept), "{fields}");
        }
        for bad in ["", ",", "a,", "a(", "a()", "a)b", "a//b", "a b"] {
            assert!(cut(bad, &answer).is_err(), "{bad}");
        }
    }
}
