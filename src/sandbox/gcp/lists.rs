//! Lists: filter, order, pages; of one zone, and over all zones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::filter::Filter;
use super::operation::LINKS;
use super::trouble::GcpFault;
use super::{GcpCloud, invalid};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::server::{Answer, Call};

/// Resources on a page where the query does not say.
const PAGE: usize = 500;

/// What the query asks of a list.
struct Asked {
    filter: Option<Filter>,
    most: usize,
    from: usize,
    newest: bool,
}

fn asked(call: &Call) -> Result<Asked, Box<Answer>> {
    let pairs = call.pairs();
    let find = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let filter = match find("filter").filter(|text| !text.is_empty()) {
        Some(text) => Some(Filter::read(text).map_err(|why| Box::new(invalid(&why)))?),
        None => None,
    };
    let most = match find("maxResults").map(str::parse::<usize>) {
        None => PAGE,
        Some(Ok(most)) if (1..=PAGE).contains(&most) => most,
        Some(_) => {
            return Err(Box::new(invalid(
                "Invalid value for field 'maxResults'. Values must be within the range: [0, 500]",
            )));
        }
    };
    let pages = call.faults.iter().filter_map(|fault| match fault {
        FaultKind::PageSize { size } => Some(*size),
        _ => None,
    });
    let most = pages.fold(most, usize::min).max(1);
    let from = match find("pageToken").filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => match token.strip_prefix("sandbox-page-").and_then(|rest| rest.parse().ok()) {
            Some(from) => from,
            None => {
                return Err(Box::new(invalid(&format!("Invalid value for field 'pageToken': '{token}'."))));
            }
        },
    };
    let newest = match find("orderBy") {
        None | Some("" | "name") => false,
        Some("creationTimestamp desc") => true,
        Some(other) => {
            return Err(Box::new(invalid(&format!("Invalid value for field 'orderBy': '{other}'."))));
        }
    };
    if newest && filter.is_some() {
        return Err(Box::new(invalid("orderBy and filter cannot be used together")));
    }
    Ok(Asked { filter, most, from, newest })
}

impl Asked {
    /// The page, and the token of the next one.
    fn page<T>(&self, mut all: Vec<T>, shown: impl Fn(&T) -> &Value) -> (Vec<T>, Option<String>) {
        all.retain(|one| self.filter.as_ref().is_none_or(|filter| filter.fits(shown(one))));
        if self.newest {
            all.reverse();
        }
        let end = self.from.saturating_add(self.most);
        let next = (end < all.len()).then(|| format!("sandbox-page-{end}"));
        (all.into_iter().skip(self.from).take(self.most).collect(), next)
    }
}

/// The name that a kind has in `kind` of its list, and its field in a list over all zones.
fn field(kind: &str) -> String {
    format!("{kind}s")
}

impl GcpCloud {
    /// A list in one place; `at` is its path below the project.
    pub(super) fn list(&self, call: &Call, kind: &str, shown: Vec<Value>, at: &str, account: &str) -> Answer {
        let asked = match asked(call) {
            Ok(asked) => asked,
            Err(refused) => return *refused,
        };
        let (items, next) = asked.page(shown, |one| one);
        let project = self.project_of(account);
        let mut answer = json!({"kind": format!("compute#{kind}List"), "id": format!("projects/{project}/{at}"),
                                "selfLink": format!("{LINKS}/{project}/{at}")});
        // An empty list has no items at all.
        if !items.is_empty() {
            answer["items"] = json!(items);
        }
        if let Some(next) = next {
            answer["nextPageToken"] = json!(next);
        }
        Answer::json(200, answer)
    }

    /// A list over all zones, each resource with its zone.
    pub(super) fn list_everywhere(
        &self,
        call: &Call,
        kind: &str,
        all: Vec<(String, Value)>,
        account: &str,
    ) -> Answer {
        let asked = match asked(call) {
            Ok(asked) => asked,
            Err(refused) => return *refused,
        };
        let silent: Vec<&String> = call
            .faults
            .iter()
            .filter_map(|fault| match fault {
                FaultKind::Gcp(GcpFault::Unreachable { zone }) => Some(zone),
                _ => None,
            })
            .collect();
        let told = all.into_iter().filter(|(zone, _)| !silent.contains(&zone)).collect();
        let (items, next) = asked.page(told, |(_, shown)| shown);
        let mut by_zone: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (zone, shown) in items {
            by_zone.entry(zone).or_default().push(shown);
        }
        let scope = |zone: &String| {
            let name = format!("zones/{zone}");
            let inner = match by_zone.get(zone) {
                Some(items) => json!({field(kind): items}),
                None => json!({"warning": {"code": "NO_RESULTS_ON_PAGE",
                    "message": format!("There are no results for scope '{name}' on this page."),
                    "data": [{"key": "scope", "value": name}]}}),
            };
            (name, inner)
        };
        let project = self.project_of(account);
        let at = format!("projects/{project}/aggregated/{}", field(kind));
        let zones = self.shapes.zones.iter().filter(|zone| !silent.contains(zone));
        let mut answer = json!({"kind": format!("compute#{kind}AggregatedList"), "id": at,
                                "items": zones.map(scope).collect::<serde_json::Map<_, _>>(),
                                "selfLink": format!("https://www.googleapis.com/compute/v1/{at}")});
        if let Some(next) = next {
            answer["nextPageToken"] = json!(next);
        }
        if !silent.is_empty() {
            let names: Vec<String> = silent.iter().map(|zone| format!("zones/{zone}")).collect();
            answer["unreachables"] = json!(names);
        }
        Answer::json(200, answer)
    }
}
