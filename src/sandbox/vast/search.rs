//! `POST /api/v0/bundles/`: filters over the rows of the catalogue.
//!
//! Every filter is an object of operators; all of them must hold. What is no filter: `type`, `order`, `limit`,
//! `allocated_storage`. A filter on `id` matches nothing: an offer is found by `ask_contract_id`
//! (`docs.vast.ai/api-reference`, search offers; the rest as seen in public records).

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::VastCloud;
use super::catalog::{Catalog, Host, LEAST_DISK, View, country};
use super::trouble::VastFault;
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// Most rows in an answer, whatever was asked.
const MOST_ROWS: usize = 64;

/// Fields of a query that are no filters.
const WORDS: [&str; 8] = [
    "type",
    "order",
    "limit",
    "allocated_storage",
    "select_cols",
    "disable_bundling",
    "georegion",
    "sort_option",
];

/// Filters that are no fields of a row.
const VIRTUAL: [&str; 7] =
    ["verified", "datacenter", "duration", "allocated_storage", "id", "gpu_totalram", "ubuntu_version"];

/// A query that has been read.
struct Query {
    bid: bool,
    storage: f64,
    limit: usize,
    order: Vec<(String, bool)>,
    filters: Map<String, Value>,
}

impl VastCloud {
    /// Carries a search out.
    pub(super) fn search(&self, call: &Call, asked: Value) -> Answer {
        let query = match Query::read(asked, &self.catalog) {
            Ok(query) => query,
            Err(why) => return super::refusal(400, "invalid_request", &why).rejecting(why),
        };
        let offers: Vec<Value> = self.rows(&query, &call.faults).into_iter().map(Value::Object).collect();
        Answer::json(200, json!({"offers": offers}))
    }

    fn rows(&self, query: &Query, faults: &[FaultKind]) -> Vec<Map<String, Value>> {
        if faults.contains(&FaultKind::StaleOffer) {
            return Vec::new();
        }
        let mut factor = 1.0;
        let mut leaks: Vec<&str> = Vec::new();
        let mut storage = query.storage;
        for fault in faults {
            match fault {
                FaultKind::PriceFactor { factor: more } => factor *= more,
                FaultKind::Vast(VastFault::LeakyFilter { field }) => leaks.push(field),
                FaultKind::Vast(VastFault::StorageIgnored) => storage = LEAST_DISK,
                _ => {}
            }
        }
        let state = lock(&self.state);
        let mut rows = Vec::new();
        for host in &self.catalog.hosts {
            for ask in &host.asks {
                let rentable = state.rentable(host, ask, query.bid);
                let row = host.show(ask, View { storage, bid: query.bid, rentable, factor });
                if query.takes(&row, host, &leaks) {
                    rows.push(row);
                }
            }
        }
        rows.sort_by(|left, right| query.compare(left, right));
        rows.truncate(query.limit);
        rows
    }
}

impl Query {
    fn read(asked: Value, catalog: &Catalog) -> Result<Query, String> {
        let Value::Object(mut filters) = asked else { return Err("the query is not an object".into()) };
        let mut word = |name: &str| filters.remove(name).filter(|value| !value.is_null());
        let bid = match word("type").as_ref().map(|value| value.as_str()) {
            None | Some(Some("on-demand" | "ondemand" | "ask" | "reserved")) => false,
            Some(Some("bid")) => true,
            Some(_) => return Err("type is not valid".into()),
        };
        let storage = match word("allocated_storage") {
            None => LEAST_DISK,
            Some(value) => {
                number(&value).filter(|gb| *gb >= 0.0).ok_or("allocated_storage is not a number")?
            }
        };
        let limit = match word("limit") {
            None => MOST_ROWS,
            Some(value) => match number(&value) {
                Some(limit) if limit >= 1.0 => limit.min(64.0) as usize,
                _ => return Err("limit is not a positive number".into()),
            },
        };
        let order = order(&word("order").unwrap_or(json!([["score", "desc"]])))?;
        for name in WORDS {
            filters.remove(name);
        }
        for (name, operators) in &filters {
            if !VIRTUAL.contains(&name.as_str()) && !catalog.fields.contains(name) {
                return Err(format!("{name} is not a valid search key"));
            }
            check(name, operators)?;
        }
        Ok(Query { bid, storage, limit, order, filters })
    }

    fn takes(&self, row: &Map<String, Value>, host: &Host, leaks: &[&str]) -> bool {
        let leaky = |name: &str| leaks.contains(&name) || host.leaks.iter().any(|leak| leak == name);
        let roomy = row.get("disk_space").and_then(Value::as_f64).is_some_and(|gb| gb >= self.storage);
        let filters = self.filters.iter().filter(|(name, _)| !leaky(name));
        roomy
            && filters.into_iter().all(|(name, operators)| {
                let value = value(row, name);
                let mut operators = operators.as_object().into_iter().flatten();
                name != "id" && operators.all(|(operator, wanted)| holds(&value, operator, wanted))
            })
    }

    fn compare(&self, left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
        self.order
            .iter()
            .map(|(field, down)| {
                let (left, right) = (value(left, field), value(right, field));
                let order = match (left.is_null(), right.is_null()) {
                    (false, false) => compare(&left, &right),
                    // What is null comes last, in either direction.
                    (left, right) => return left.cmp(&right),
                };
                if *down { order.reverse() } else { order }
            })
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal)
    }
}

/// `[["dph_total", "asc"], ...]`.
fn order(asked: &Value) -> Result<Vec<(String, bool)>, String> {
    let wrong = || "order must be a list of [field, asc or desc]".to_owned();
    let pairs = asked.as_array().ok_or_else(wrong)?;
    pairs
        .iter()
        .map(|pair| match pair.as_array().map(Vec::as_slice) {
            Some([Value::String(field), Value::String(way)]) if matches!(way.as_str(), "asc" | "desc") => {
                Ok((field.clone(), way == "desc"))
            }
            _ => Err(wrong()),
        })
        .collect()
}

fn check(name: &str, operators: &Value) -> Result<(), String> {
    let Some(operators) = operators.as_object() else {
        return Err(format!("{operators} is not a valid search op"));
    };
    for (operator, wanted) in operators {
        let list = matches!(operator.as_str(), "in" | "notin");
        if !list && !matches!(operator.as_str(), "eq" | "neq" | "gt" | "gte" | "lt" | "lte") {
            return Err(format!("{operator} is not a valid search op"));
        }
        if list && !wanted.is_array() {
            return Err(format!("{operator} wants a list"));
        }
        let codes = if list { wanted.as_array().cloned().unwrap_or_default() } else { vec![wanted.clone()] };
        if name == "geolocation" && codes.iter().any(|code| code.as_str().and_then(country).is_none()) {
            return Err("geolocation wants ISO country codes".into());
        }
    }
    Ok(())
}

/// What a filter looks at.
fn value(row: &Map<String, Value>, name: &str) -> Value {
    let field = |name: &str| row.get(name).cloned().unwrap_or(Value::Null);
    match name {
        "verified" => json!(field("verification") == "verified"),
        "datacenter" => json!(field("hosting_type") == 1),
        "external" => json!(field("external") == true),
        "geolocation" => json!(row.get("geolocation").and_then(Value::as_str).and_then(country)),
        "driver_version" => field("driver_vers"),
        "gpu_totalram" => field("gpu_total_ram"),
        "ubuntu_version" => field("os_version"),
        "allocated_storage" => field("disk_space"),
        _ => field(name),
    }
}

/// Whether one operator holds; nothing holds for a null but being unlike something.
pub(super) fn holds(value: &Value, operator: &str, wanted: &Value) -> bool {
    let any = |wanted: &Value| wanted.as_array().into_iter().flatten().any(|one| same(value, one));
    let order = (!value.is_null()).then(|| compare(value, wanted));
    match operator {
        "eq" => same(value, wanted),
        "neq" => !same(value, wanted),
        "in" => any(wanted),
        "notin" => !any(wanted),
        "gt" => order == Some(Ordering::Greater),
        "gte" => order.is_some_and(|order| order != Ordering::Less),
        "lt" => order == Some(Ordering::Less),
        "lte" => order.is_some_and(|order| order != Ordering::Greater),
        _ => false,
    }
}

fn same(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Bool(left), _) => truth(wanted) == Some(*left),
        (Value::Number(_), _) => number(value).is_some() && number(value) == number(wanted),
        _ => value == wanted,
    }
}

/// By number where both are some, by text else.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        _ => text(left).cmp(&text(right)),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The official client sends numbers as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
