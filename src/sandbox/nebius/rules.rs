//! The rules of the wire table: what must be there, how long it may be, what it must look like.
//!
//! They are the annotations of `buf.validate` in the official descriptors. In place of its regular expressions stand two
//! words: `word` is `^[0-9a-z][0-9a-z-]*$`, `hostname` is `^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$` or nothing at all.

use serde_json::{Map, Value, json};

use super::table::{Field, Label, Table, Type};

/// Everything that is against the rules, as `nebius.common.v1.BadRequest.Violation`.
pub(super) fn violations(table: &Table, message: &str, value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    if let Some(object) = value.as_object() {
        check(table, message, object, "", &mut found);
    }
    found
}

fn check(table: &Table, message: &str, object: &Map<String, Value>, path: &str, found: &mut Vec<Value>) {
    let fields = table.message(message);
    let mut groups: Vec<&str> = Vec::new();
    for field in fields {
        let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let place = at(field.name);
        let mut complain_at = |place: &str, text: &str| found.push(json!({"field": place, "message": text}));
        let value = object.get(field.name);
        if field.is("required") && value.is_none_or(|value| blank(field, value)) {
            complain_at(&place, "value is required");
        }
        if let Some(group) = field.one_of.filter(|group| field.one_required && !groups.contains(group)) {
            groups.push(group);
            let set = |other: &&Field| other.one_of == Some(group) && object.contains_key(other.name);
            if !fields.iter().any(|other| set(&other)) {
                complain_at(&at(group), "exactly one field is required in oneof");
            }
        }
        let Some(value) = value else { continue };
        if field.is("deprecated") {
            complain_at(&place, "field is deprecated");
        }
        for rule in &field.rules {
            if let Some(text) = broken(rule, value) {
                complain_at(&place, &text);
            }
        }
        let Type::Message(inner) = field.kind else { continue };
        match (field.label, value) {
            (Label::Repeated, Value::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    if let Some(item) = item.as_object() {
                        check(table, inner, item, &format!("{place}[{index}]"), found);
                    }
                }
            }
            (_, Value::Object(item)) => check(table, inner, item, &place, found),
            _ => {}
        }
    }
}

/// Whether a value counts as not there: for messages only absence does.
fn blank(field: &Field, value: &Value) -> bool {
    match (field.kind, value) {
        (_, Value::Array(list)) => list.is_empty(),
        (_, Value::String(text)) if text.is_empty() => true,
        (Type::Enum(_), Value::String(word)) => word.ends_with("UNSPECIFIED"),
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// What one rule has against a value.
fn broken(rule: &str, value: &Value) -> Option<String> {
    let text = value.as_str();
    let (name, bound) = rule.split_once('=').unwrap_or((rule, ""));
    let bound: i64 = bound.parse().unwrap_or(0);
    let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match name {
        "max_len" if length(text?.chars().count()) > bound => {
            Some(format!("value length must be at most {bound} characters"))
        }
        "min_len" if length(text?.chars().count()) < bound => {
            Some(format!("value length must be at least {bound} characters"))
        }
        "max_bytes" if length(text?.len()) > bound => {
            Some(format!("value length must be at most {bound} bytes"))
        }
        "max_items" if length(value.as_array()?.len()) > bound => {
            Some(format!("value must contain no more than {bound} item(s)"))
        }
        "gte" if value.as_i64()? < bound => Some(format!("value must be greater than or equal to {bound}")),
        "lte" if value.as_i64()? > bound => Some(format!("value must be less than or equal to {bound}")),
        "word" if !is_word(text?) => Some("value does not match regex pattern".to_owned()),
        "hostname" if !is_hostname(text?) => Some("value must be a valid hostname".to_owned()),
        _ => None,
    }
}

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(plain) && text.bytes().all(|byte| plain(byte) || byte == b'-')
}

fn is_hostname(text: &str) -> bool {
    text.is_empty() || ((2..=63).contains(&text.len()) && is_word(text) && !text.ends_with('-'))
}

/// Whether labels are as dstack has found that they must be: keys `^[a-z][_\-a-z0-9]{0,62}$`, values
/// `^[_\-a-z0-9]{0,63}$`
/// (<https://github.com/dstackai/dstack/blob/master/src/dstack/_internal/core/backends/nebius/resources.py>).
pub(super) fn bad_label(labels: &Map<String, Value>) -> Option<&str> {
    let plain = |text: &str| {
        text.len() <= 63
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    let good = |key: &str, value: &Value| {
        plain(key)
            && key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && value.as_str().is_some_and(plain)
    };
    labels.iter().find(|(key, value)| !good(key, value)).map(|(key, _)| key.as_str())
}
