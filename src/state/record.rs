//! The record of one machine: a stored format.
//!
//! A record is written before the first request that can create anything, and dropped only when every attempt in it is proven
//! to be gone. Fields of later versions survive a rewrite by this one (`unknown`). What is needed to delete a machine stands
//! in its attempt: account, identity, claim, handle.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::account::AccountId;
use crate::model::handle::{Handle, Resource};
use crate::model::machine::{MachineName, MachineState, SshAddress};
use crate::model::mark::{Claim, Installation, Owner};
use crate::model::money::Usd;
use crate::model::offer::Offer;

/// The version written today. Records of a higher one are listed as `unknown` and never rewritten.
pub const RECORD_VERSION: u32 = 1;

/// What became of an attempt. The words are those of `tried` in the JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The machine was made and is this record's machine.
    Created,
    /// The re-check did not find the offer.
    Gone,
    /// The re-check found it dearer.
    Dearer,
    /// The create was refused, and nothing exists.
    Refused,
    /// It did not get ready, and was removed.
    NotReady,
    /// It was not what was agreed, and was removed.
    Differs,
    /// Stopped by the user or another command, and removed.
    Interrupted,
    /// Nobody knows whether anything exists.
    #[serde(other)]
    Unknown,
}

impl Outcome {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Created => "created",
            Outcome::Gone => "gone",
            Outcome::Dearer => "dearer",
            Outcome::Refused => "refused",
            Outcome::NotReady => "not_ready",
            Outcome::Differs => "differs",
            Outcome::Interrupted => "interrupted",
            Outcome::Unknown => "unknown",
        }
    }
}

/// Who the credentials were, as recorded; see `cloud::Identity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedIdentity {
    /// The base address.
    pub endpoint: String,
    /// The cloud's own id of the account, where it tells one.
    pub provider: Option<String>,
    /// Stands for the credentials without giving them away.
    pub secret_mark: String,
    /// What tells the credentials apart for people.
    pub hint: String,
}

/// One attempt to make the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The claim on the machine.
    pub claim: Claim,
    /// The account that pays.
    pub account: AccountId,
    /// Who its credentials were.
    pub identity: RecordedIdentity,
    /// What was bought.
    pub offer: Offer,
    /// When the create was about to be sent.
    pub started_at: Timestamp,
    /// How it ended; none while it is under way.
    pub outcome: Option<Outcome>,
    /// The machine, as soon as the cloud named it.
    pub handle: Option<Handle>,
    /// Side resources, as soon as the cloud named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side: Vec<Resource>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// What the look at the GPUs gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuCheck {
    /// As offered.
    Ok,
    /// Not as offered; the message says how.
    Differs,
    /// It could not be told.
    #[serde(other)]
    Unknown,
}

/// How the machine is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSsh {
    /// Host, port, user.
    pub address: SshAddress,
    /// The private key, or the public one whose private half an agent holds; an absolute path.
    pub identity_file: String,
    /// Whether the host key was learnt over the cloud's API.
    pub host_key_known: bool,
}

/// A cluster on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCluster {
    /// `pending`, `installing`, `ready`, `failed`.
    pub state: String,
    /// The version that was set up.
    pub version: Option<String>,
    /// What went wrong, or what is being done.
    pub message: Option<String>,
}

/// Everything known about one machine on this computer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// The machine's name, also the file's.
    pub name: MachineName,
    /// Whose it is.
    pub installation: Installation,
    /// Who it is for.
    pub owner: Option<Owner>,
    /// What it is doing.
    pub state: MachineState,
    /// When the record was made.
    pub created_at: Timestamp,
    /// When the machine was made.
    pub machine_at: Option<Timestamp>,
    /// When it is to end.
    pub expires_at: Option<Timestamp>,
    /// Every attempt so far, the newest last. Attempts given up without an answer are watched apart (`state/abandoned.rs`).
    pub attempts: Vec<Attempt>,
    /// How it is reached.
    pub ssh: Option<RecordedSsh>,
    /// What was agreed per hour.
    pub price_per_hour: Option<Usd>,
    /// vCPUs and memory that the cloud told after the create.
    pub vcpus: Option<f64>,
    /// Memory in GB that the cloud told after the create.
    pub ram_gb: Option<f64>,
    /// The zone that the cloud told after the create.
    pub zone: Option<String>,
    /// What the look at the GPUs gave.
    pub gpu_check: Option<GpuCheck>,
    /// A cluster on it.
    pub k8s: Option<RecordedCluster>,
    /// What its owner should know.
    pub message: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

impl Attempt {
    /// Whether something of it may exist: it has not been proven to be gone.
    pub fn may_exist(&self) -> bool {
        matches!(self.outcome, None | Some(Outcome::Created | Outcome::Unknown))
    }

    /// Returns the machine with every side resource that was noted, each once; none if no machine was named.
    pub fn whole(&self) -> Option<Handle> {
        let mut handle = self.handle.clone()?;
        for resource in &self.side {
            if !handle.side.iter().any(|known| known.id == resource.id) {
                handle.side.push(resource.clone());
            }
        }
        Some(handle)
    }
}

impl Record {
    /// Returns the attempt that may exist; there is never more than one.
    pub fn current(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.may_exist())
    }

    /// Returns the attempt with this claim.
    pub fn attempt_mut(&mut self, claim: Claim) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|attempt| attempt.claim == claim)
    }
}
