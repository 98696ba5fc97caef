//! Holds the messages against the table of the API: the text of the files, because the attributes in it are what goes on the wire.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const TABLE: &str = include_str!("../../../../tests/data/nebius-wire.json");

const FILES: [&str; 6] = [
    include_str!("common.rs"),
    include_str!("compute.rs"),
    include_str!("iam.rs"),
    include_str!("instance.rs"),
    include_str!("market.rs"),
    include_str!("service_error.rs"),
];

/// A type as the source writes it.
#[derive(Debug)]
struct Written {
    /// Its name in the API.
    full: String,
    /// Its name here.
    name: String,
    is_enum: bool,
    /// Fields: name, attribute, type. Variants: name, number.
    members: Vec<[String; 3]>,
}

fn table() -> Value {
    serde_json::from_str(TABLE).unwrap()
}

/// Reads the types out of the source.
fn written() -> Vec<Written> {
    let mut all: Vec<Written> = Vec::new();
    for file in FILES {
        let (mut full, mut attribute, mut inside) = (String::new(), String::new(), false);
        for line in file.lines() {
            let code = line.trim();
            if let Some(name) = line.strip_prefix("/// `").and_then(|rest| rest.split_once("`: ")) {
                full = name.0.to_owned();
            } else if let Some(rest) = line.strip_prefix("pub(crate) ") {
                let mut words = rest.split([' ', '{']);
                let is_enum = words.next() == Some("enum");
                let name = words.next().unwrap().to_owned();
                all.push(Written { full: full.clone(), name, is_enum, members: Vec::new() });
                inside = !line.ends_with('}');
            } else if line == "}" {
                inside = false;
            } else if let Some(rest) = code.strip_prefix("#[prost(").filter(|_| inside) {
                attribute = rest.strip_suffix(")]").unwrap().to_owned();
            } else if let Some(field) = code.strip_prefix("pub(crate) ").filter(|_| inside) {
                let (name, kind) = field.trim_end_matches(',').split_once(": ").unwrap();
                let member = [name.trim_start_matches("r#").to_owned(), attribute.clone(), kind.to_owned()];
                all.last_mut().unwrap().members.push(member);
            } else if let Some((name, number)) = code.split_once(" = ").filter(|_| inside) {
                let number = number.trim_end_matches(',').to_owned();
                all.last_mut().unwrap().members.push([name.to_owned(), number, String::new()]);
            }
        }
    }
    all
}

/// Returns the attribute and the type that a field of the table must have here.
fn expected(field: &Value, names: &BTreeMap<String, String>) -> (String, String) {
    let text = |key: &str| field[key].as_str().unwrap_or_default();
    let repeated = text("label") == "repeated";
    // A member of a one-of has explicit presence, like a field that says `optional`.
    let optional = text("label") == "optional" || field.get("oneof").is_some();
    let named = || match text("type_name") {
        "google.protobuf.Timestamp" => "prost_types::Timestamp".to_owned(),
        "google.protobuf.Any" => "prost_types::Any".to_owned(),
        other => names.get(other).unwrap_or_else(|| panic!("{other} is not written down")).clone(),
    };
    let (kind, rust, optional) = match text("type") {
        "map" => {
            assert_eq!((text("key_type"), text("value_type")), ("string", "string"));
            ("btree_map = \"string, string\"".to_owned(), "BTreeMap<String, String>".to_owned(), false)
        }
        "message" => ("message".to_owned(), named(), !repeated),
        "enum" => (format!("enumeration = \"{}\"", named()), "i32".to_owned(), optional),
        scalar => {
            let rust = match scalar {
                "string" => "String",
                "bool" => "bool",
                "int32" => "i32",
                "int64" => "i64",
                "uint32" => "u32",
                "uint64" => "u64",
                other => panic!("{other}"),
            };
            (scalar.to_owned(), rust.to_owned(), optional)
        }
    };
    let (label, rust) = match (repeated, optional) {
        (true, _) => (", repeated", format!("Vec<{rust}>")),
        (_, true) => (", optional", format!("Option<{rust}>")),
        _ => ("", rust),
    };
    (format!("{kind}{label}, tag = \"{}\"", field["number"]), rust)
}

#[test]
fn every_field_is_as_in_the_table() {
    let table = table();
    let written = written();
    let names: BTreeMap<String, String> =
        written.iter().map(|one| (one.full.clone(), one.name.clone())).collect();
    assert_eq!(names.len(), written.len(), "one type for each name");
    for one in written.iter().filter(|one| !one.is_enum) {
        let fields = table["messages"][&one.full].as_array();
        let fields = fields.unwrap_or_else(|| panic!("{} is not in the table", one.full));
        let seen: BTreeSet<&String> = one.members.iter().map(|member| &member[0]).collect();
        assert_eq!(seen.len(), one.members.len(), "{}", one.full);
        for [name, attribute, kind] in &one.members {
            let field = fields.iter().find(|field| field["name"] == **name);
            let field = field.unwrap_or_else(|| panic!("{}.{name} is not in the table", one.full));
            let wanted = expected(field, &names);
            assert_eq!((attribute.clone(), kind.clone()), wanted, "{}.{name}", one.full);
        }
    }
    let messages = table["messages"].as_object().unwrap();
    let unwritten: Vec<&String> = messages.keys().filter(|name| !names.contains_key(*name)).collect();
    assert!(unwritten.is_empty(), "in the table alone: {unwritten:?}");
    assert!(written.iter().map(|one| one.members.len()).sum::<usize>() > 300, "the source was read");
}

#[test]
fn every_value_is_as_in_the_table() {
    let table = table();
    let written = written();
    let enums: Vec<&Written> = written.iter().filter(|one| one.is_enum).collect();
    assert_eq!(enums.len(), table["enums"].as_object().unwrap().len());
    for one in enums {
        let values = table["enums"][&one.full].as_object();
        let values = values.unwrap_or_else(|| panic!("{} is not in the table", one.full));
        assert_eq!(one.members.len(), values.len(), "{}", one.full);
        for [name, number, _] in &one.members {
            let known = values.iter().find(|(_, known)| known.to_string() == *number);
            let (known, _) = known.unwrap_or_else(|| panic!("{}: no {number}", one.full));
            let screaming = known.replace('_', "").to_lowercase();
            assert!(screaming.ends_with(&name.to_lowercase()), "{}: {name} is {known}", one.full);
        }
    }
}

#[test]
fn every_call_is_as_in_the_table() {
    let table = table();
    let names: BTreeMap<String, String> = written().into_iter().map(|one| (one.full, one.name)).collect();
    let source = include_str!("methods.rs").split("\n/// `").skip(1);
    let mut calls = 0;
    for call in source {
        let (service, rest) = call.split_once("`: ").unwrap();
        let strings: Vec<&str> = rest.split('"').skip(1).step_by(2).collect();
        let [host, path] = strings[..] else { panic!("{call}") };
        let types = rest.split_once("Method<").unwrap().1.split_once('>').unwrap().0;
        let known = &table["services"][service];
        // Operations are asked for where they were made: of all services that are used only those of compute make any.
        let known_host = known["api_service_name"].as_str().unwrap_or("compute");
        assert_eq!(host, known_host, "{service}");
        let method = known["methods"].as_array().unwrap().iter().find(|method| method["path"] == path);
        let method = method.unwrap_or_else(|| panic!("{path} is not in the table"));
        let named = |key: &str| names[method[key].as_str().unwrap()].clone();
        assert_eq!(types, format!("{}, {}", named("request"), named("response")), "{path}");
        calls += 1;
    }
    let known: usize = table["services"]
        .as_object()
        .unwrap()
        .values()
        .map(|service| service["methods"].as_array().unwrap().len())
        .sum();
    assert_eq!(calls, known);
}
