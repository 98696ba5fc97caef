//! What one `provision` is asked for, and what it reports.

use std::time::Duration;

use crate::cloud::Error;
use crate::model::machine::MachineName;
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::model::secret::Secret;
use crate::model::want::Want;
use crate::provision::failure::Failure;
use crate::provision::remove::Kept;
use crate::provision::run::Tried;
use crate::ssh::keys::KeyPair;
use crate::state::record::Record;

/// A request for one machine.
#[derive(Debug)]
pub struct Request {
    /// What is asked for.
    pub want: Want,
    /// The one offer to take as it is; nothing else is tried then.
    pub offer: Option<Offer>,
    /// The machine's name; one is made if none is given.
    pub name: Option<MachineName>,
    /// The key that must be able to log in.
    pub key: KeyPair,
    /// Environment for every login.
    pub env: Vec<(String, Secret)>,
    /// What runs once as root after the first login.
    pub startup_script: Option<Vec<u8>>,
    /// Whether a cluster that is begun is waited for.
    pub wait_cluster: bool,
    /// How many machines may be made and given up again.
    pub attempts: u32,
    /// How long after its create the machine is to end.
    pub ttl: Option<Duration>,
    /// Whether a machine that does not get ready is kept.
    pub keep_failed: bool,
    /// How long to wait for an offer.
    pub queue: Option<Duration>,
    /// Above this price per hour the user is asked first; none if that was answered in advance.
    pub ask_above: Option<Usd>,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Report {
    /// The machine: the one that runs, or the one that may have been left.
    pub record: Option<Record>,
    /// What turned up of creates that were given up, and could not be removed.
    pub left: Vec<Kept>,
    /// What was tried.
    pub tried: Vec<Tried>,
    /// Which accounts did not answer.
    pub failed: Vec<Box<Error>>,
    /// What went wrong; none if a machine runs as asked.
    pub failure: Option<Failure>,
}
