//! Reading answers in which any field may be missing, null or of an unexpected type: such a field is read as none, so that
//! one odd row never hides the others. What may not be missing is decided where it is used.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a field, or none. For `#[serde(deserialize_with)]`.
pub fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Reads a field that holds an object, or none. serde would take a list for a struct too, the first entry for the first
/// field. For `#[serde(deserialize_with)]`.
pub fn lenient_object<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(object(Value::deserialize(deserializer)?))
}

/// Reads an object; none for anything else, a list above all.
pub fn object<T: DeserializeOwned>(value: Value) -> Option<T> {
    Some(value).filter(Value::is_object).and_then(|value| serde_json::from_value(value).ok())
}

/// Reads a list of objects; what is none is left out. For `#[serde(deserialize_with)]`.
pub fn lenient_objects<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = lenient::<D, Vec<Value>>(deserializer)?;
    Ok(list.map(|list| list.into_iter().filter_map(object).collect()))
}

/// Reads each entry of a list for itself; what cannot be read is left out.
pub fn each<T: DeserializeOwned>(list: Vec<Value>) -> Vec<T> {
    list.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect()
}

/// Reads a list whose odd entries are left out, or none. For `#[serde(deserialize_with)]`.
pub fn lenient_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Ok(lenient::<D, Vec<Value>>(deserializer)?.map(each))
}
