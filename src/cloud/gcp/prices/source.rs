//! One catalogue: where it is, how it is read, and the copy of it that is kept.
//!
//! It is fetched at most once an hour. A copy that is not what it should be (another header, half of the last good
//! one or less, prices far off the list) is refused, and then, as when none comes, the last good one is used for up to seven days.

use std::collections::HashMap;
use std::sync::{self, Arc, LazyLock, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::table::Table;
use super::{archive, gpuhunt, guard, skypilot};
use crate::http::cache::Cache;
use crate::http::retry::http_date;
use crate::http::{Answer, Client, Method};
use crate::model::words::one_line;

/// How long a copy is used without asking again.
const FRESH: SignedDuration = SignedDuration::from_hours(1);

/// How long the last good copy is used when no new one comes.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// How long after a failure no other try is made, where there is a copy: the re-checks of one command follow one another.
const PAUSE: Duration = Duration::from_secs(60);

/// The version of what is kept; another one is not read.
const VERSION: u32 = 1;

/// Which catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// gpuhunt's: GPU machines first of all.
    Gpuhunt,
    /// SkyPilot's: machines without a GPU first of all.
    Skypilot,
}

impl Which {
    /// Returns whose it is.
    pub(super) fn title(self) -> &'static str {
        match self {
            Which::Gpuhunt => "gpuhunt",
            Which::Skypilot => "SkyPilot",
        }
    }

    /// Returns its address; `base` is that of the emulator.
    fn url(self, base: Option<&str>) -> String {
        match (self, base) {
            (Which::Gpuhunt, None) => {
                "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3/gcp/latest/catalog.zip".to_owned()
            }
            (Which::Skypilot, None) => {
                "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8/gcp/vms.csv"
                    .to_owned()
            }
            (Which::Gpuhunt, Some(base)) => format!("{base}/prices/gpuhunt/catalog.zip"),
            (Which::Skypilot, Some(base)) => format!("{base}/prices/skypilot/vms.csv"),
        }
    }

    /// Reads what came: its size before it was cut, and its prices.
    fn read(self, body: &[u8]) -> Result<(u64, Table), String> {
        match self {
            Which::Gpuhunt => {
                let text = archive::unpack(body, "gcp.csv")?;
                Ok((text.len() as u64, gpuhunt::parse(&text)?))
            }
            Which::Skypilot => Ok((body.len() as u64, skypilot::parse(body)?)),
        }
    }
}

/// A copy that was good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Copy {
    version: u32,
    fetched_at: Timestamp,
    /// How old its prices are, as far as the source tells; else when it was fetched.
    pub(super) as_of: Timestamp,
    bytes: u64,
    pub(super) table: Table,
}

impl Copy {
    /// A copy made just now.
    #[cfg(test)]
    pub(super) fn of(table: Table) -> Self {
        let now = Timestamp::now();
        Copy { version: VERSION, fetched_at: now, as_of: now, bytes: 1, table }
    }

    fn age(&self) -> SignedDuration {
        Timestamp::now().duration_since(self.fetched_at)
    }

    fn is_fresh(&self) -> bool {
        // A time to come is of a clock that was set back: nothing is known of the age.
        !self.age().is_negative() && self.age() < FRESH
    }

    fn is_usable(&self) -> bool {
        let kept = SignedDuration::try_from(KEPT).unwrap_or(FRESH);
        self.version == VERSION && !self.age().is_negative() && self.age() < kept
    }
}

/// A copy, and why it is not a new one.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) copy: Arc<Copy>,
    pub(super) stale: Option<String>,
}

/// One catalogue of one account.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) which: Which,
    url: String,
    http: Client,
    cache: Cache,
    within: Duration,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    copy: Option<Arc<Copy>>,
    failed: Option<(Instant, String)>,
}

impl Source {
    /// Returns the source; nothing is read yet. One answer may take `within`.
    pub(super) fn new(
        which: Which,
        base: Option<&str>,
        http: Client,
        cache: Cache,
        within: Duration,
    ) -> Self {
        Source { which, url: which.url(base), http, cache, within, held: Mutex::default() }
    }

    /// Returns a copy that is good: the one that is held, the one on disk, a new one, or the last good one.
    pub(super) async fn get(&self) -> Result<Got, String> {
        let mut held = self.held.lock().await;
        if held.copy.is_none() {
            held.copy = self.load().await.map(Arc::new);
        }
        if let Some(copy) = held.copy.as_ref().filter(|copy| copy.is_fresh()) {
            return Ok(Got { copy: Arc::clone(copy), stale: None });
        }
        let last = held.copy.clone().filter(|copy| copy.is_usable());
        let paused = held.failed.as_ref().filter(|(at, _)| last.is_some() && at.elapsed() < PAUSE);
        let fetched = match paused {
            Some((_, why)) => Err(why.clone()),
            None => {
                let fetched = self.fetch_in_turn(last.clone()).await;
                held.failed = fetched.as_ref().err().map(|why| (Instant::now(), why.clone()));
                fetched
            }
        };
        match (fetched, last) {
            (Ok(copy), _) => {
                let copy = Arc::new(copy);
                held.copy = Some(Arc::clone(&copy));
                Ok(Got { copy, stale: None })
            }
            (Err(why), Some(copy)) => Ok(Got { copy, stale: Some(why) }),
            (Err(why), None) => Err(why),
        }
    }

    /// Fetches, or takes what another account of this process has just fetched, or failed to.
    async fn fetch_in_turn(&self, last: Option<Arc<Copy>>) -> Result<Copy, String> {
        let turn = turn(&self.url);
        let (mut failed, has_waited) = match turn.try_lock() {
            Ok(failed) => (failed, false),
            Err(_) => (turn.lock().await, true),
        };
        if let Some(why) = failed.as_ref().filter(|_| has_waited) {
            return Err(why.clone());
        }
        // It may have come while this one looked for it on disk.
        if let Some(copy) = self.load().await.filter(Copy::is_fresh) {
            return Ok(copy);
        }
        let fetched = self.fetch(last).await;
        *failed = fetched.as_ref().err().cloned();
        fetched
    }

    async fn fetch(&self, last: Option<Arc<Copy>>) -> Result<Copy, String> {
        let asked = self.http.request(Method::GET, &self.url).within(self.within);
        let answer = asked.send().await.map_err(|error| one_line(&error.to_string(), 200))?;
        let (which, cache, question) = (self.which, self.cache.clone(), self.question());
        let read = move || {
            let copy = accept(which, &answer, last.as_deref())?;
            cache.put(&question, &copy);
            Ok(copy)
        };
        // Megabytes are unpacked and read: not on the threads that answer everything else.
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err("it cannot be read".to_owned()))
    }

    async fn load(&self) -> Option<Copy> {
        let (cache, question) = (self.cache.clone(), self.question());
        let read = move || cache.get::<Copy>(&question).filter(Copy::is_usable);
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    fn question(&self) -> String {
        format!("prices {VERSION} {}", self.url)
    }
}

/// Why the last fetch from an address failed, held while one is under way: all accounts use the same catalogues.
type Turn = Arc<Mutex<Option<String>>>;

fn turn(url: &str) -> Turn {
    static TURNS: LazyLock<sync::Mutex<HashMap<String, Turn>>> = LazyLock::new(sync::Mutex::default);
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(turns.entry(url.to_owned()).or_default())
}

/// Whether a size is about half of another one or less: a file that stops in the middle is rarely a byte below.
fn is_half(size: u64, of: u64) -> bool {
    size.saturating_mul(100) < of.saturating_mul(55)
}

/// Reads an answer; an error says why it is no catalogue to go by.
fn accept(which: Which, answer: &Answer, last: Option<&Copy>) -> Result<Copy, String> {
    if answer.status != 200 {
        return Err(format!("its server answered with status {}", answer.status));
    }
    let (bytes, table) = which.read(&answer.body)?;
    if table.len() == 0 {
        return Err("it has no price of any machine that is offered".to_owned());
    }
    if let Some(last) = last
        && (is_half(bytes, last.bytes) || is_half(table.len() as u64, last.table.len() as u64))
    {
        return Err("it is only half of the last good copy".to_owned());
    }
    guard::refuse(&table)?;
    let now = Timestamp::now();
    let told = answer.header("last-modified").and_then(http_date);
    let as_of = told.filter(|at| *at <= now).unwrap_or(now);
    Ok(Copy { version: VERSION, fetched_at: now, as_of, bytes, table })
}
