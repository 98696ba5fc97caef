//! How a machine behaves after it was made, where it is not simply well.
//!
//! A script comes with a create's fault, with a catalogue row, or with a machine that was put there.

use serde::{Deserialize, Serialize};

use super::gcp::GcpScript;
use super::nebius::NebiusScript;
use super::vast::VastScript;
use super::verda::VerdaScript;

/// How a machine behaves after it was made, where it is not simply well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "script", rename_all = "snake_case")]
pub enum Script {
    /// Runs, but never gets an address (RunPod community hosts without a public IP).
    NeverSsh,
    /// Has an address where nobody gets in, or not for long.
    NeverLogin {
        /// Why not.
        cause: LoginTrouble,
    },
    /// Boots for ever. `word` is the status shown all the time.
    NeverReady {
        /// Status word, which need not be documented.
        word: String,
    },
    /// Ends as broken after so many milliseconds.
    GoesError {
        /// Milliseconds after the create.
        ms: u64,
    },
    /// Stops by itself after so many milliseconds.
    GoesExited {
        /// Milliseconds after the create.
        ms: u64,
    },
    /// Is gone without a trace after so many milliseconds; the ledger has it as ended.
    Disappears {
        /// Milliseconds after the create.
        ms: u64,
    },
    /// The host's driver is too old for the image: never ready, bills, and only the system log tells.
    CudaMismatch,
    /// Over six looks: no runtime, no runtime, no ports, empty ports, empty ports, all there.
    RuntimeSequence,
    /// What was made is not what was asked for.
    SoldDifferently {
        /// Factor on the price.
        #[serde(default = "one")]
        cost_factor: f64,
        /// Another GPU id.
        #[serde(default)]
        gpu: Option<String>,
        /// Another count.
        #[serde(default)]
        count: Option<u32>,
    },
    /// Login works, port forwarding is refused (`AllowTcpForwarding no`).
    NoForwarding,
    /// What machines only do at Vast.
    Vast(VastScript),
    /// What machines only do at Verda.
    Verda(VerdaScript),
    /// What machines only do at Google Cloud.
    Gcp(GcpScript),
    /// What machines only do at Nebius.
    Nebius(NebiusScript),
}

fn one() -> f64 {
    1.0
}

/// Why nobody gets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum LoginTrouble {
    /// sshd is up, the key comes so many milliseconds later.
    KeyLate {
        /// Milliseconds after sshd is up.
        ms: u64,
    },
    /// sshd is up and never knows the key.
    NoKey,
    /// The port mapping takes connections and ends them without a word: nothing is behind it.
    ForwardingOff,
    /// Nothing listens on the port.
    Closed,
}
