//! Protobuf to JSON by the wire table: proto field names, enums as words, times as text. What the table does not have
//! is refused, where the service skips it, so that no misspelt field stays unnoticed.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::table::{Field, Label, Table, Type};

/// Deepest nesting that is read.
const DEEPEST: usize = 20;

/// What is wrong with a message's bytes, in words.
type Bad = String;

/// Reads a message.
pub(super) fn decode(table: &Table, message: &str, bytes: &[u8]) -> Result<Value, Bad> {
    read(table, message, bytes, 0).map(Value::Object)
}

fn read(table: &Table, message: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, Bad> {
    if depth > DEEPEST {
        return Err(format!("{message} is nested too deep"));
    }
    let fields = table.message(message);
    let mut out = Map::new();
    let mut rest = Rest(bytes);
    while !rest.0.is_empty() {
        let tag = rest.varint()?;
        let number = tag >> 3;
        let raw = match tag & 7 {
            0 => Raw::Varint(rest.varint()?),
            1 => {
                rest.take(8)?;
                Raw::Fixed
            }
            2 => {
                let length = rest.varint()?;
                Raw::Bytes(rest.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                rest.take(4)?;
                Raw::Fixed
            }
            other => return Err(format!("{message}: wire type {other}")),
        };
        let field = fields.iter().find(|field| u64::from(field.number) == number);
        let field = field.ok_or_else(|| format!("{message} has no field {number}"))?;
        if let Some(group) = field.one_of {
            // The last one counts.
            for other in fields.iter().filter(|other| other.one_of == Some(group) && other.name != field.name)
            {
                out.shift_remove(other.name);
            }
        }
        put(table, message, field, &raw, depth, &mut out)?;
    }
    Ok(out)
}

fn put(
    table: &Table,
    message: &str,
    field: &Field,
    raw: &Raw<'_>,
    depth: usize,
    out: &mut Map<String, Value>,
) -> Result<(), Bad> {
    let place = || format!("{message}.{}", field.name);
    if field.kind == Type::Map {
        let Raw::Bytes(bytes) = raw else { return Err(format!("{}: wire type", place())) };
        let (key, value) = entry(bytes).map_err(|bad| format!("{}: {bad}", place()))?;
        if let Value::Object(map) = out.entry(field.name).or_insert_with(|| json!({})) {
            map.insert(key, json!(value));
        }
        return Ok(());
    }
    if field.label == Label::Repeated {
        let list = out.entry(field.name).or_insert_with(|| json!([]));
        let Value::Array(list) = list else { return Ok(()) };
        // Numbers come packed, and may come one by one.
        if let (Raw::Bytes(bytes), true) = (raw, numeric(field.kind)) {
            let mut rest = Rest(bytes);
            while !rest.0.is_empty() {
                list.push(one(table, field, &Raw::Varint(rest.varint()?), depth, &place)?);
            }
        } else {
            list.push(one(table, field, raw, depth, &place)?);
        }
        return Ok(());
    }
    let value = one(table, field, raw, depth, &place)?;
    match (out.get_mut(field.name), value) {
        // A message that comes in parts is merged.
        (Some(Value::Object(before)), Value::Object(more)) => before.extend(more),
        (_, value) => {
            out.insert(field.name.to_owned(), value);
        }
    }
    Ok(())
}

fn numeric(kind: Type) -> bool {
    !matches!(kind, Type::String | Type::Bytes | Type::Message(_) | Type::Map)
}

fn one(
    table: &Table,
    field: &Field,
    raw: &Raw<'_>,
    depth: usize,
    place: &dyn Fn() -> String,
) -> Result<Value, Bad> {
    let value = match (field.kind, raw) {
        (Type::Bool, Raw::Varint(number)) => json!(*number != 0),
        (Type::Int32, Raw::Varint(number)) => json!(signed(*number) as i32),
        (Type::Int64, Raw::Varint(number)) => json!(signed(*number)),
        (Type::Uint32, Raw::Varint(number)) => json!(u32::try_from(*number & 0xffff_ffff).unwrap_or(0)),
        (Type::Uint64, Raw::Varint(number)) => json!(number),
        (Type::Enum(name), Raw::Varint(number)) => {
            let number = signed(*number) as i32;
            let word = table.word(name, number);
            json!(word.ok_or_else(|| format!("{}: {name} has no value {number}", place()))?)
        }
        (Type::String, Raw::Bytes(bytes)) => {
            json!(std::str::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", place()))?)
        }
        (Type::Bytes, Raw::Bytes(bytes)) => json!(bytes),
        (Type::Message("google.protobuf.Timestamp"), Raw::Bytes(bytes)) => {
            let parts = read(table, "google.protobuf.Timestamp", bytes, depth + 1)?;
            let part = |name| parts.get(name).and_then(Value::as_i64).unwrap_or(0);
            let time = Timestamp::new(part("seconds"), i32::try_from(part("nanos")).unwrap_or(0));
            json!(time.map_err(|_| format!("{}: no time", place()))?.to_string())
        }
        (Type::Message(name), Raw::Bytes(bytes)) => Value::Object(read(table, name, bytes, depth + 1)?),
        _ => return Err(format!("{}: wire type", place())),
    };
    Ok(value)
}

#[expect(clippy::cast_possible_wrap, reason = "protobuf keeps negative numbers as their two's complement")]
fn signed(number: u64) -> i64 {
    number as i64
}

/// One entry of a map from text to text.
fn entry(bytes: &[u8]) -> Result<(String, String), Bad> {
    let mut rest = Rest(bytes);
    let (mut key, mut value) = (String::new(), String::new());
    while !rest.0.is_empty() {
        let tag = rest.varint()?;
        if tag & 7 != 2 {
            return Err("wire type".into());
        }
        let length = rest.varint()?;
        let text = std::str::from_utf8(rest.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            .map_err(|_| "not UTF-8")?;
        match tag >> 3 {
            1 => key = text.to_owned(),
            2 => value = text.to_owned(),
            other => return Err(format!("a map entry has no field {other}")),
        }
    }
    Ok((key, value))
}

/// What stands behind a tag.
enum Raw<'a> {
    Varint(u64),
    /// Four or eight bytes, which no field here is.
    Fixed,
    Bytes(&'a [u8]),
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn varint(&mut self) -> Result<u64, Bad> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.take(1)? else { break };
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number is too long".into())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends in the middle of a field")?;
        self.0 = rest;
        Ok(taken)
    }
}
