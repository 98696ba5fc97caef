//! `GET /api/v1/instances/`: pages of at most 25, with filters on what is stored of a contract.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::instance::Phase;
use super::search::{compare, holds};
use super::{VastCloud, refusal};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};

/// Default and largest page (`docs.vast.ai/api-reference`, show instances).
const PAGE: usize = 25;

/// What can be filtered and sorted by; what is computed cannot.
const COLUMNS: [&str; 14] = [
    "id",
    "label",
    "actual_status",
    "cur_state",
    "next_state",
    "intended_status",
    "gpu_name",
    "verification",
    "machine_id",
    "host_id",
    "start_date",
    "end_date",
    "image_uuid",
    "is_bid",
];

/// What a list was asked for.
struct Asked {
    filters: Map<String, Value>,
    /// Columns, and whether each goes down.
    order: Vec<(String, bool)>,
    columns: Value,
    size: usize,
    /// The sort columns of the last instance of the page before.
    after: Option<Value>,
}

/// Why a query is refused: slug and text.
type Wrong = (&'static str, String);

fn wrong(text: impl std::fmt::Display) -> Wrong {
    ("invalid_request", format!("Error in query parameters: {text}"))
}

impl Asked {
    fn read(pairs: &[(String, String)]) -> Result<Asked, Wrong> {
        let get = |name: &str| {
            let found = pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
            found.filter(|text| !text.is_empty())
        };
        let json = |name: &str, default: Value| match get(name) {
            None => Ok(default),
            Some(text) => serde_json::from_str(text).map_err(|_| wrong(format!("{name} is not JSON"))),
        };
        let Value::Object(filters) = json("select_filters", json!({}))? else {
            return Err(wrong("select_filters is not an object"));
        };
        if let Some(why) = filters.iter().find_map(|(name, operators)| check(name, operators)) {
            return Err(wrong(why));
        }
        let size = match get("limit").map(str::parse::<i64>) {
            None => PAGE,
            Some(Ok(..=0)) => 5,
            Some(Ok(limit)) => usize::try_from(limit).unwrap_or(PAGE).min(PAGE),
            Some(Err(_)) => return Err(wrong("limit is not a number")),
        };
        let after = match get("after_token") {
            None => None,
            Some(text) => {
                Some(token(text).ok_or_else(|| ("invalid_token", "after_token is not valid".to_owned()))?)
            }
        };
        Ok(Asked {
            filters,
            order: order_of(&json("order_by", json!([]))?).map_err(wrong)?,
            columns: json("select_cols", json!(["*"]))?,
            size,
            after,
        })
    }

    /// Which of two instances comes first.
    fn place(&self, left: &Value, right: &Value) -> Ordering {
        self.order
            .iter()
            .map(|(name, down)| {
                let order = compare(&left[name], &right[name]);
                if *down { order.reverse() } else { order }
            })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The token of the page that begins after an instance.
    fn token_after(&self, last: &Value) -> String {
        let values: Map<String, Value> =
            self.order.iter().map(|(name, _)| (name.clone(), last[name].clone())).collect();
        STANDARD.encode(json!({"values": values}).to_string())
    }
}

impl VastCloud {
    /// One page.
    pub(super) fn list(&self, call: &Call, account: &str) -> Answer {
        let asked = match Asked::read(&call.pairs()) {
            Ok(asked) => asked,
            Err((error, msg)) => return refusal(400, error, &msg).rejecting(msg),
        };
        let mut size = asked.size;
        for fault in &call.faults {
            if let FaultKind::PageSize { size: small } = fault {
                size = (*small).clamp(1, size);
            }
        }
        let mut all = self.matching(account, &asked.filters, &call.faults);
        all.sort_by(|left, right| asked.place(left, right));
        let total = all.len();
        let mut labels: BTreeMap<String, usize> = BTreeMap::new();
        for one in &all {
            *labels.entry(one["label"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        if let Some(after) = &asked.after {
            all.retain(|one| asked.place(one, after).is_gt());
        }
        let more = all.len() > size;
        all.truncate(size);
        let next = all.last().filter(|_| more).map(|last| asked.token_after(last));
        let shown: Vec<Value> = all.into_iter().map(|one| narrow(one, &asked.columns)).collect();
        Answer::json(
            200,
            json!({"success": true, "instances_found": shown.len(), "total_instances": total,
                   "label_counts": labels, "next_token": next, "instances": shown}),
        )
    }

    fn matching(&self, account: &str, filters: &Map<String, Value>, faults: &[FaultKind]) -> Vec<Value> {
        let now = self.shared.clock.now();
        let mut state = lock(&self.state);
        let slow = state.slow;
        let mut all = Vec::new();
        for one in state.instances.iter_mut().filter(|one| one.account == account) {
            let phase = one.phase(now, slow);
            if phase == Phase::Gone || now < one.listed_from {
                continue;
            }
            one.looks = one.looks.saturating_add(1);
            let shown = self.show(one, phase, faults);
            let fits = filters.iter().all(|(name, operators)| {
                let mut operators = operators.as_object().into_iter().flatten();
                operators.all(|(operator, wanted)| holds(&shown[name], operator, wanted))
            });
            if fits {
                all.push(shown);
            }
        }
        all
    }
}

fn check(name: &str, operators: &Value) -> Option<String> {
    if !COLUMNS.contains(&name) {
        return Some(format!("{name} is not a valid search key"));
    }
    let Some(operators) = operators.as_object() else {
        return Some(format!("{operators} is not a valid search op"));
    };
    operators.keys().find_map(|operator| {
        let known = ["eq", "neq", "gt", "gte", "lt", "lte", "in", "notin"].contains(&operator.as_str());
        (!known).then(|| format!("{operator} is not a valid search op"))
    })
}

/// `[{"col": "id", "dir": "asc"}]`; the id always decides at last.
fn order_of(order: &Value) -> Result<Vec<(String, bool)>, String> {
    let wrong = || "order_by must be a list of {col, dir}".to_owned();
    let mut all = Vec::new();
    for one in order.as_array().ok_or_else(wrong)? {
        let name = one.get("col").and_then(Value::as_str).ok_or_else(wrong)?;
        if !COLUMNS.contains(&name) {
            return Err(format!("{name} is not a valid column"));
        }
        all.push((name.to_owned(), one.get("dir").and_then(Value::as_str) == Some("desc")));
    }
    if !all.iter().any(|(name, _)| name == "id") {
        all.push(("id".into(), false));
    }
    Ok(all)
}

/// What a token says.
fn token(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_slice(&STANDARD.decode(text).ok()?).ok()?;
    let values = value.get("values").filter(|values| values.get("id").is_some_and(Value::is_number))?;
    Some(values.clone())
}

fn narrow(one: Value, columns: &Value) -> Value {
    let names: Vec<&str> = columns.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() || names.contains(&"*") {
        return one;
    }
    Value::Object(
        names
            .into_iter()
            .map(|name| (name.to_owned(), one.get(name).cloned().unwrap_or(Value::Null)))
            .collect(),
    )
}
