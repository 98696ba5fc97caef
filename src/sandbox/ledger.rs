//! What the sandbox remembers: every machine ever made, and every request that came in.
//!
//! The ledger is the pass mark of the failure tests: it is written when something takes effect, whatever
//! answer the client got. No request header is ever stored, so no key can be in here.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::lock;

/// One machine that was ever made, by whom and for how long.
#[derive(Debug, Clone, Serialize)]
pub struct LedgerEntry {
    /// The cloud that made it, such as `runpod`.
    pub cloud: &'static str,
    /// The cloud's own id.
    pub id: String,
    /// The cloud-side name.
    pub name: String,
    /// Label of the account, such as `account-1`; never its key.
    pub account: String,
    /// When billing began.
    pub created_at: Timestamp,
    /// When billing ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// US dollars per hour for the whole machine, as billed.
    pub price_per_hour: f64,
    /// GPU id as the cloud spells it.
    pub gpu: String,
    /// GPUs in the machine.
    pub count: u32,
    /// Environment given at create, where a mark may be. It can hold whatever the client sent.
    pub env: BTreeMap<String, String>,
    /// Whether it still exists, and costs money.
    pub alive: bool,
    /// Index into [`Sandbox::requests`](super::Sandbox::requests); absent for machines that were put there.
    pub created_by_request: Option<usize>,
}

/// One request as it came in, and the status that it was answered with.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Position in the order of arrival.
    pub index: usize,
    /// The emulator that got it, such as `runpod`.
    pub cloud: &'static str,
    /// Operation name, such as `create_pod`; `unknown` where no path fits.
    pub operation: &'static str,
    /// HTTP method.
    pub method: String,
    /// Path as sent, still percent-encoded.
    pub path: String,
    /// Query as sent, without the question mark.
    pub query: String,
    /// Body, when it was JSON.
    pub body: Option<Value>,
    /// Label of the account whose key was sent, when one was known.
    pub account: Option<String>,
    /// Status answered; 0 when the connection was cut, or while the answer is still open.
    pub status: u16,
    /// Why the real service would call this request malformed, or what it must never do.
    pub rejected: Option<String>,
    /// Kinds of the faults that were played on it.
    pub faults: Vec<&'static str>,
    /// When it came in.
    pub at: Timestamp,
}

/// All requests of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Vec<Recorded>>);

impl Records {
    /// Stores a request and returns its index.
    pub(super) fn open(&self, mut record: Recorded) -> usize {
        let mut all = lock(&self.0);
        record.index = all.len();
        let index = record.index;
        all.push(record);
        index
    }

    /// Changes a stored request.
    pub(super) fn update(&self, index: usize, change: impl FnOnce(&mut Recorded)) {
        if let Some(record) = lock(&self.0).get_mut(index) {
            change(record);
        }
    }

    /// When the last one came in.
    pub(super) fn last(&self) -> Option<Timestamp> {
        lock(&self.0).last().map(|record| record.at)
    }

    /// All of them so far.
    pub(super) fn all(&self) -> Vec<Recorded> {
        lock(&self.0).clone()
    }
}

/// All machines of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Vec<LedgerEntry>>);

impl Ledger {
    /// Enters a machine that has just come into being.
    pub(super) fn made(&self, entry: LedgerEntry) {
        lock(&self.0).push(entry);
    }

    /// Notes that a machine is gone; the first time counts.
    pub(super) fn ended(&self, cloud: &str, id: &str, at: Timestamp) {
        if let Some(entry) =
            lock(&self.0).iter_mut().find(|entry| entry.cloud == cloud && entry.id == id && entry.alive)
        {
            entry.alive = false;
            entry.ended_at = Some(at);
        }
    }

    /// All of them so far.
    pub(super) fn all(&self) -> Vec<LedgerEntry> {
        lock(&self.0).clone()
    }
}
