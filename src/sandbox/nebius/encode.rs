//! JSON to protobuf by the wire table. An `Any` is an object with `@type`; a word of an enum that is a number is sent
//! as that number, known or not.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::table::{Field, Label, Table, Type};

/// Field numbers that no message has, for what newer versions of the service may send.
const EXTRA: [u32; 2] = [18_001, 18_002];

/// Writes a message; with `extra`, fields that nobody knows stand in every one.
///
/// # Errors
///
/// When the JSON has what the message has not: a mistake of the emulator's.
pub(super) fn encode(table: &Table, message: &str, value: &Value, extra: bool) -> Result<Vec<u8>, String> {
    let empty = Map::new();
    let object = value.as_object().unwrap_or(&empty);
    let fields = table.message(message);
    if let Some(key) = object.keys().find(|key| !fields.iter().any(|field| field.name == key.as_str())) {
        return Err(format!("{message} has no field {key}"));
    }
    let mut out = Vec::new();
    for field in fields {
        if let Some(value) = object.get(field.name) {
            put(table, field, value, extra, &mut out)
                .map_err(|bad| format!("{message}.{}: {bad}", field.name))?;
        }
    }
    if extra {
        tag(EXTRA[0], 0, &mut out);
        varint(7, &mut out);
        chunk(EXTRA[1], b"since tomorrow", &mut out);
    }
    Ok(out)
}

fn put(table: &Table, field: &Field, value: &Value, extra: bool, out: &mut Vec<u8>) -> Result<(), String> {
    match (field.kind, field.label, value) {
        (_, _, Value::Null) => Ok(()),
        (Type::Map, _, Value::Object(map)) => {
            for (key, value) in map {
                let mut entry = Vec::new();
                chunk(1, key.as_bytes(), &mut entry);
                chunk(2, value.as_str().ok_or("want text")?.as_bytes(), &mut entry);
                chunk(field.number, &entry, out);
            }
            Ok(())
        }
        (_, Label::Repeated, Value::Array(list)) if numeric(field.kind) => {
            let mut packed = Vec::new();
            for item in list {
                varint(number(table, field.kind, item)?, &mut packed);
            }
            if !packed.is_empty() {
                chunk(field.number, &packed, out);
            }
            Ok(())
        }
        (_, Label::Repeated, Value::Array(list)) => {
            list.iter().try_for_each(|item| single(table, field, item, extra, true, out))
        }
        (_, Label::Repeated, _) => Err("want a list".into()),
        _ => {
            let present = field.label == Label::Optional || field.one_of.is_some();
            single(table, field, value, extra, present, out)
        }
    }
}

fn numeric(kind: Type) -> bool {
    !matches!(kind, Type::String | Type::Bytes | Type::Message(_) | Type::Map)
}

fn single(
    table: &Table,
    field: &Field,
    value: &Value,
    extra: bool,
    present: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    match field.kind {
        Type::String => {
            let text = value.as_str().ok_or("want text")?;
            if present || !text.is_empty() {
                chunk(field.number, text.as_bytes(), out);
            }
        }
        Type::Message("google.protobuf.Timestamp") => {
            let time: Timestamp = value.as_str().and_then(|text| text.parse().ok()).ok_or("want a time")?;
            let parts = json!({"seconds": time.as_second(), "nanos": time.subsec_nanosecond()});
            chunk(field.number, &encode(table, "google.protobuf.Timestamp", &parts, false)?, out);
        }
        Type::Message("google.protobuf.Any") => {
            let mut parts = value.as_object().cloned().ok_or("want an object")?;
            let name = parts.shift_remove("@type").ok_or("want @type")?;
            let name = name.as_str().ok_or("want @type")?;
            let mut any = Vec::new();
            chunk(1, format!("type.googleapis.com/{name}").as_bytes(), &mut any);
            chunk(2, &encode(table, name, &Value::Object(parts), extra)?, &mut any);
            chunk(field.number, &any, out);
        }
        Type::Message(name) => {
            if !value.is_object() {
                return Err("want an object".into());
            }
            chunk(field.number, &encode(table, name, value, extra)?, out);
        }
        Type::Bytes | Type::Map => return Err("is not written".into()),
        kind => {
            let number = number(table, kind, value)?;
            if present || number != 0 {
                tag(field.number, 0, out);
                varint(number, out);
            }
        }
    }
    Ok(())
}

fn number(table: &Table, kind: Type, value: &Value) -> Result<u64, String> {
    let signed = |number: i64| u64::from_ne_bytes(number.to_ne_bytes());
    match (kind, value) {
        (Type::Bool, Value::Bool(on)) => Ok(u64::from(*on)),
        (Type::Enum(name), Value::String(word)) => {
            let number = table.number(name, word).or_else(|| word.parse().ok());
            number.map(|number| signed(number.into())).ok_or_else(|| format!("{name} has no value {word}"))
        }
        (Type::Int32 | Type::Int64, Value::Number(number)) => {
            number.as_i64().map(signed).ok_or_else(|| "out of range".into())
        }
        (Type::Uint32 | Type::Uint64, Value::Number(number)) => {
            number.as_u64().ok_or_else(|| "out of range".into())
        }
        _ => Err("of another type".into()),
    }
}

fn tag(number: u32, wire: u64, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | wire, out);
}

fn chunk(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    tag(number, 2, out);
    varint(bytes.len() as u64, out);
    out.extend(bytes);
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let low = (number & 0x7f).to_le_bytes()[0];
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
