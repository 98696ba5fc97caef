//! Messages for the tests, by the same wire table.

use serde_json::Value;

use super::{decode, encode, table};

/// The bytes of a request.
pub(in crate::sandbox) fn write(path: &str, message: &Value) -> Vec<u8> {
    let table = table().unwrap();
    encode::encode(table, table.method(path).unwrap().request, message, false).unwrap()
}

/// The JSON of an answer.
pub(in crate::sandbox) fn read(path: &str, bytes: &[u8]) -> Result<Value, String> {
    let table = table().unwrap();
    decode::decode(table, table.method(path).unwrap().response, bytes)
}

/// The `ServiceError` of a `google.rpc.Status`; null when there is none.
pub(in crate::sandbox) fn detail(status: &[u8]) -> Value {
    let status = decode::decode(table().unwrap(), "google.rpc.Status", status).unwrap();
    status.pointer("/details/0").map(any).unwrap_or_default()
}

/// What is in an `Any` that was read as bytes.
pub(in crate::sandbox) fn any(any: &Value) -> Value {
    let name = any["type_url"].as_str().unwrap().strip_prefix("type.googleapis.com/").unwrap();
    let list = any["value"].as_array().unwrap();
    let bytes: Vec<u8> = list.iter().map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap()).collect();
    decode::decode(table().unwrap(), name, &bytes).unwrap()
}
