//! Walking a parsed TOML file: takes the known keys out of a table, and reports the others and the wrong values with their
//! lines.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::error::{ConfigError, Problem};
use crate::model::account::AccountId;
use crate::model::duration;
use crate::model::mark::{Installation, Owner};
use crate::model::money::Usd;
use crate::model::secret::Secret;
use crate::model::want::{Cuda, Spot};

/// Collects the mistakes of one file.
pub(super) struct Report<'a> {
    text: &'a str,
    path: &'a Path,
    found: RefCell<Vec<(usize, Problem)>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(text: &'a str, path: &'a Path) -> Self {
        Report { text, path, found: RefCell::default() }
    }

    /// The parser's own text is not used: it may quote.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let what = match error.message() {
            "duplicate key" => "this key or table is there twice",
            message if message.starts_with("string values must be quoted") => "text must stand in quotes",
            _ => "this is not TOML",
        };
        self.error(error.span().map(|span| span.start), Problem::Syntax(what))
    }

    pub(super) fn add(&self, span: &Range<usize>, problem: Problem) {
        self.found.borrow_mut().push((span.start, problem));
    }

    pub(super) fn first(&self) -> Option<ConfigError> {
        let found = self.found.borrow();
        let (start, problem) = found.iter().min_by_key(|(start, _)| *start)?;
        Some(self.error(Some(*start), problem.clone()))
    }

    fn error(&self, start: Option<usize>, problem: Problem) -> ConfigError {
        let line = start.map(|start| {
            let before = &self.text.as_bytes()[..start.min(self.text.len())];
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        ConfigError { path: self.path.to_owned(), line, problem }
    }
}

/// One table on the walk. Every key that is asked for becomes a known one.
pub(super) struct Table<'a> {
    name: String,
    entries: &'a DeTable<'a>,
    report: &'a Report<'a>,
    known: BTreeSet<&'static str>,
    taken: BTreeSet<String>,
}

impl<'a> Table<'a> {
    pub(super) fn root(entries: &'a DeTable<'a>, report: &'a Report<'a>) -> Self {
        Table::new(String::new(), entries, report)
    }

    fn new(name: String, entries: &'a DeTable<'a>, report: &'a Report<'a>) -> Self {
        Table { name, entries, report, known: BTreeSet::new(), taken: BTreeSet::new() }
    }

    fn path_of(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn entry(&self, wanted: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.get(wanted)
    }

    /// Returns the key's value as `read` reads it; none, with a report, if it does not.
    pub(super) fn get<T>(&mut self, key: &'static str, read: Read<T>) -> Option<T> {
        self.known.insert(key);
        let value = self.entry(key)?;
        self.taken.insert(key.to_owned());
        match read(value.get_ref()) {
            Ok(value) => Some(value),
            Err(expected) => {
                let problem = Problem::Wrong { key: self.path_of(key), expected };
                self.report.add(&value.span(), problem);
                None
            }
        }
    }

    /// Reads a table below this one; none if there is none.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Table<'a>) -> T,
    ) -> Option<T> {
        self.known.insert(key);
        self.taken.insert(key.to_owned());
        self.below(key, read)
    }

    fn below<T>(&self, key: &str, read: impl FnOnce(&mut Table<'a>) -> T) -> Option<T> {
        let value = self.entry(key)?;
        let DeValue::Table(entries) = value.get_ref() else {
            let problem = Problem::Wrong { key: self.path_of(key), expected: "a table" };
            self.report.add(&value.span(), problem);
            return None;
        };
        let mut table = Table::new(self.path_of(key), entries, self.report);
        let read = read(&mut table);
        table.finish();
        Some(read)
    }

    /// Reads the tables below this one whose keys are the ids of accounts that `admits` lets through. The shown name of
    /// such a table is built from the id, never from the file.
    pub(super) fn accounts<T>(
        &mut self,
        admits: impl Fn(&AccountId) -> bool,
        read: impl Fn(&mut Table<'a>) -> T,
    ) -> Vec<(AccountId, T)> {
        let mut found = Vec::new();
        for key in self.entries.keys() {
            let key = key.get_ref().as_ref();
            // `runpod` alone would be an account id elsewhere; here it is a slip.
            let id = key.contains('/').then(|| key.parse::<AccountId>().ok()).flatten();
            let Some(id) = id.filter(|id| admits(id)) else { continue };
            self.taken.insert(key.to_owned());
            let value = &self.entries[key];
            let name = format!("account.\"{id}\"");
            if let DeValue::Table(entries) = value.get_ref() {
                let mut table = Table::new(name, entries, self.report);
                found.push((id, read(&mut table)));
                table.finish();
            } else {
                self.report.add(&value.span(), Problem::Wrong { key: name, expected: "a table" });
            }
        }
        found
    }

    /// Reports what was not taken as names of no accounts.
    pub(super) fn reject_rest_as_accounts(&mut self) {
        for key in self.entries.keys() {
            if self.taken.insert(key.get_ref().to_string()) {
                self.report.add(&key.span(), Problem::NoAccount);
            }
        }
    }

    pub(super) fn contradiction(&self, key: &'static str, other: &'static str) {
        if let Some(value) = self.entry(key) {
            self.report.add(&value.span(), Problem::Both { key: self.path_of(key), other });
        }
    }

    /// Reports what was not taken as unknown keys.
    pub(super) fn finish(self) {
        for key in self.entries.keys() {
            let text = key.get_ref().as_ref();
            if self.taken.contains(text) {
                continue;
            }
            let distance = |known: &str| strsim::osa_distance(&text.to_ascii_lowercase(), known);
            let nearest = self.known.iter().copied().min_by_key(|known| distance(known)).unwrap_or_default();
            // A key that is far from all known ones may be anything, also a secret that was pasted there.
            let slip = text.len() <= 40 && distance(nearest) <= 2.min(nearest.len() / 2);
            self.report.add(
                &key.span(),
                Problem::UnknownKey {
                    table: self.name.clone(),
                    key: slip.then(|| text.to_owned()),
                    nearest: nearest.to_owned(),
                },
            );
        }
    }
}

/// Reads one value; the error says what it should be, as it stands after "must be".
pub(super) type Read<T> = fn(&DeValue<'_>) -> Result<T, &'static str>;

pub(super) fn text(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        _ => Err("text in quotes"),
    }
}

pub(super) fn secret(value: &DeValue<'_>) -> Result<Secret, &'static str> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() => Ok(Secret::trimmed(text)),
        _ => Err("text in quotes"),
    }
}

pub(super) fn yes_or_no(value: &DeValue<'_>) -> Result<bool, &'static str> {
    match value {
        DeValue::Boolean(value) => Ok(*value),
        _ => Err("true or false"),
    }
}

fn integer(value: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(value.as_str(), value.radix()).ok()
}

pub(super) fn whole(value: &DeValue<'_>) -> Result<u32, &'static str> {
    let number = if let DeValue::Integer(number) = value { integer(number) } else { None };
    number
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or("a whole number of 1 or more")
}

pub(super) fn ssh_port(value: &DeValue<'_>) -> Result<u16, &'static str> {
    whole(value).ok().and_then(|port| u16::try_from(port).ok()).ok_or("a port, 1 to 65535")
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) => integer(number).map(|number| number as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

pub(super) fn price(value: &DeValue<'_>) -> Result<Usd, &'static str> {
    number(value)
        .filter(|dollars| *dollars > 0.0)
        .and_then(Usd::from_f64)
        .ok_or("a number of dollars per hour, such as 2.5")
}

pub(super) fn share(value: &DeValue<'_>) -> Result<f64, &'static str> {
    number(value).filter(|share| (0.0..=1.0).contains(share)).ok_or("a number from 0 to 1")
}

pub(super) fn span(value: &DeValue<'_>) -> Result<Duration, &'static str> {
    let parsed = match value {
        DeValue::String(text) => duration::parse(text).ok(),
        DeValue::Integer(number) => {
            integer(number).and_then(|number| duration::parse(&number.to_string()).ok())
        }
        _ => None,
    };
    parsed
        .ok_or("a duration, such as \"200ms\", \"90s\", \"15m\", \"2h\", \"1d\" or a whole number of seconds")
}

pub(super) fn some_span(value: &DeValue<'_>) -> Result<Duration, &'static str> {
    let more =
        "more than 0, such as \"200ms\", \"90s\", \"15m\", \"2h\", \"1d\" or a whole number of seconds";
    let span = span(value)?;
    if span.is_zero() { Err(more) } else { Ok(span) }
}

pub(super) fn list(value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    let wrong = "text in quotes, or a list of such texts";
    match value {
        DeValue::Array(values) => {
            values.iter().map(|value| text(value.get_ref()).map_err(|_| wrong)).collect()
        }
        value => text(value).map(|text| vec![text]).map_err(|_| wrong),
    }
}

pub(super) fn secrets(value: &DeValue<'_>) -> Result<Vec<Secret>, &'static str> {
    let wrong = "\"NAME=VALUE\" or \"NAME\", or a list of such texts";
    let one = |value: &DeValue<'_>| value.as_str().map(|text| Secret::new(text.to_owned())).ok_or(wrong);
    match value {
        DeValue::Array(values) => values.iter().map(|value| one(value.get_ref())).collect(),
        value => one(value).map(|text| vec![text]),
    }
}

/// Ports are numbers to most people, and texts when they carry an address range.
pub(super) fn ports(value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    let wrong = "a port such as 8080 or \"8080@203.0.113.0/24\", or a list of ports";
    let one = |value: &DeValue<'_>| match value {
        DeValue::Integer(_) => ssh_port(value).map(|port| port.to_string()).map_err(|_| wrong),
        value => text(value).map_err(|_| wrong),
    };
    match value {
        DeValue::Array(values) => values.iter().map(|value| one(value.get_ref())).collect(),
        value => one(value).map(|port| vec![port]),
    }
}

/// `12.10` as a number would be `12.1`, so the digits are taken as they were written.
pub(super) fn cuda(value: &DeValue<'_>) -> Result<Cuda, &'static str> {
    let digits = match value {
        DeValue::String(text) => text.trim(),
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        _ => "",
    };
    digits.parse().map_err(|_| "a CUDA version, such as \"12.8\"")
}

pub(super) fn spot(value: &DeValue<'_>) -> Result<Spot, &'static str> {
    match (value, value.as_str()) {
        (DeValue::Boolean(true), _) | (_, Some("only")) => Ok(Spot::Only),
        (DeValue::Boolean(false), _) | (_, Some("no")) => Ok(Spot::No),
        (_, Some("any")) => Ok(Spot::Any),
        _ => Err("true, false, \"any\" or \"no\""),
    }
}

pub(super) fn owner(value: &DeValue<'_>) -> Result<Owner, &'static str> {
    label(value).ok_or("1 to 40 of a-z, 0-9 and dash, in quotes")
}

pub(super) fn installation(value: &DeValue<'_>) -> Result<Installation, &'static str> {
    label(value).ok_or("1 to 40 of a-z, 0-9 and dash, in quotes")
}

fn label<T: std::str::FromStr>(value: &DeValue<'_>) -> Option<T> {
    value.as_str()?.trim().parse().ok()
}
