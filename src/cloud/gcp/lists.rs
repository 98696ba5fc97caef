//! Lists, all their pages. A list that is silently short would make machines disappear.

use serde_json::Value;

use super::client::{Api, read};
use super::errors::{Asked, unreadable};
use super::wire::ListPage;
use crate::cloud::lenient::object;
use crate::cloud::{Error, ErrorKind, Reached, Result};
use crate::http::Method;
use crate::http::address::query;
use crate::http::pages::{self, Page, PagesError};
use crate::model::words::one_line;

/// No list of ours has so many pages of 500.
const MOST_PAGES: usize = 200;

impl Api {
    /// Lists what a filter lets through, all pages: entries of a list, or the entries called `member` over all zones. A zone
    /// that did not answer is an error: what is in it would not be seen.
    pub(super) async fn list(
        &self,
        path: &str,
        filter: &str,
        member: &str,
        doing: &'static str,
    ) -> Result<Vec<Value>> {
        let asked = self.asked(doing);
        let page = async |token: Option<String>| -> Result<Page<Value>> {
            let mut pairs = vec![("maxResults", "500")];
            if !filter.is_empty() {
                pairs.insert(0, ("filter", filter));
            }
            if let Some(token) = &token {
                pairs.push(("pageToken", token));
            }
            let path = self.in_project(&format!("{path}?{}", query(pairs)));
            let answer = self.send(&asked, || self.request(Method::GET, &path)).await?;
            let page: ListPage = object(read(&answer, &asked)?)
                .ok_or_else(|| unreadable(&asked, "it is no list", Reached::No))?;
            let silent = page.unreachables.unwrap_or_default();
            if !silent.is_empty() {
                return Err(unreached(&asked, &silent.join(", ")));
            }
            let items = entries(page.items, member, &asked)?;
            Ok(Page { items, next: page.next_page_token.filter(|token| !token.is_empty()) })
        };
        match pages::all(MOST_PAGES, page).await {
            Ok(entries) => Ok(entries),
            Err(PagesError::Page(error)) => Err(error),
            Err(PagesError::Repeated) => Err(unreadable(&asked, "the list repeats itself", Reached::No)),
            Err(PagesError::TooMany(_)) => Err(unreadable(&asked, "the list has no end", Reached::No)),
        }
    }
}

fn entries(items: Value, member: &str, asked: &Asked<'_>) -> Result<Vec<Value>> {
    let scopes = match items {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => return Ok(list),
        Value::Object(scopes) => scopes,
        _ => return Err(unreadable(asked, "its items are none", Reached::No)),
    };
    let mut all = Vec::new();
    for (scope, mut held) in scopes {
        match held.get_mut(member).map(Value::take) {
            Some(Value::Array(list)) => all.extend(list),
            Some(Value::Null) | None => {}
            Some(_) => return Err(unreadable(asked, "a zone's items are none", Reached::No)),
        }
        let warning = held.pointer("/warning/code").and_then(Value::as_str).unwrap_or_default();
        if !matches!(warning, "" | "NO_RESULTS_ON_PAGE") {
            return Err(unreached(asked, &format!("{scope} ({warning})")));
        }
    }
    Ok(all)
}

fn unreached(asked: &Asked<'_>, which: &str) -> Box<Error> {
    let message = format!("Google could not reach {}: what is there is not known", one_line(which, 200));
    asked.error(ErrorKind::Unavailable, message, Reached::No)
}
