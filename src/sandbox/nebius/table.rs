//! The wire table: methods, messages and enums of Nebius's API, as far as they are played.
//!
//! `catalog/nebius-wire.json` was cut from the descriptors inside the official Python client `nebius` 0.6.29
//! (<https://github.com/nebius/pysdk>). A field is `"NUMBER TYPE [repeated|optional] [one=GROUP] [RULE...]"`, a type is a
//! scalar's, a message's or an enum's name, or `map<string,string>`. `one!=` means that one of the group must be set,
//! other rules are in `rules.rs`. Fields that the emulator neither reads nor answers are left out; sent, they are
//! unknown.

use std::collections::HashMap;
use std::io;

use serde::Deserialize;

/// One method.
#[derive(Debug)]
pub(super) struct Method {
    /// Name of the operation, for faults and records.
    pub(super) operation: &'static str,
    pub(super) request: &'static str,
    pub(super) response: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    Bytes,
    /// By its full name.
    Message(&'static str),
    /// By its full name.
    Enum(&'static str),
    /// From text to text.
    Map,
}

/// How often a field is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Singular,
    /// With a presence of its own.
    Optional,
    Repeated,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) kind: Type,
    pub(super) label: Label,
    pub(super) one_of: Option<&'static str>,
    /// Whether one of its group must be set.
    pub(super) one_required: bool,
    pub(super) rules: Vec<&'static str>,
}

impl Field {
    /// Whether it has this rule.
    pub(super) fn is(&self, rule: &str) -> bool {
        self.rules.contains(&rule)
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    methods: HashMap<&'static str, Method>,
    messages: HashMap<&'static str, Vec<Field>>,
    enums: HashMap<&'static str, HashMap<&'static str, i32>>,
}

#[derive(Deserialize)]
struct Rows {
    #[serde(borrow)]
    methods: HashMap<&'static str, [&'static str; 3]>,
    #[serde(borrow)]
    messages: HashMap<&'static str, HashMap<&'static str, &'static str>>,
    #[serde(borrow)]
    enums: HashMap<&'static str, HashMap<&'static str, i32>>,
}

const TEXT: &str = include_str!("../catalog/nebius-wire.json");

impl Table {
    /// Reads it.
    pub(super) fn load() -> io::Result<Table> {
        let rows: Rows = serde_json::from_str(TEXT)?;
        let mut messages = HashMap::new();
        let names: Vec<&'static str> = rows.messages.keys().copied().collect();
        for (message, fields) in &rows.messages {
            let read = fields.iter().map(|(name, text)| {
                let bad = || io::Error::other(format!("wire table: {message}.{name}"));
                field(name, text, &names, &rows.enums).ok_or_else(bad)
            });
            let mut fields = read.collect::<io::Result<Vec<Field>>>()?;
            fields.sort_by_key(|field| field.number);
            messages.insert(*message, fields);
        }
        let method =
            |[operation, request, response]: [&'static str; 3]| Method { operation, request, response };
        let methods = rows.methods.into_iter().map(|(path, row)| (path, method(row))).collect();
        Ok(Table { methods, messages, enums: rows.enums })
    }

    /// The method at a path.
    pub(super) fn method(&self, path: &str) -> Option<&Method> {
        self.methods.get(path)
    }

    /// The fields of a message.
    pub(super) fn message(&self, name: &str) -> &[Field] {
        self.messages.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The word of an enum's number.
    pub(super) fn word(&self, name: &str, number: i32) -> Option<&'static str> {
        let found = self.enums.get(name)?.iter().find(|(_, value)| **value == number);
        found.map(|(word, _)| *word)
    }

    /// The number of an enum's word.
    pub(super) fn number(&self, name: &str, word: &str) -> Option<i32> {
        self.enums.get(name)?.get(word).copied()
    }
}

fn field(
    name: &'static str,
    text: &'static str,
    messages: &[&'static str],
    enums: &HashMap<&'static str, HashMap<&'static str, i32>>,
) -> Option<Field> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let kind = match words.next()? {
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "uint32" => Type::Uint32,
        "uint64" => Type::Uint64,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "map<string,string>" => Type::Map,
        other => match messages.iter().find(|message| **message == other) {
            Some(message) => Type::Message(message),
            None => Type::Enum(enums.get_key_value(other)?.0),
        },
    };
    let mut one = Field {
        name,
        number,
        kind,
        label: Label::Singular,
        one_of: None,
        one_required: false,
        rules: Vec::new(),
    };
    for word in words {
        match word {
            "repeated" => one.label = Label::Repeated,
            "optional" => one.label = Label::Optional,
            _ => match word.split_once('=') {
                Some(("one", group)) => one.one_of = Some(group),
                Some(("one!", group)) => (one.one_of, one.one_required) = (Some(group), true),
                _ => one.rules.push(word),
            },
        }
    }
    Some(one)
}
