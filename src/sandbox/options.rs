//! How a sandbox behaves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{ClockMode, GcpGuesses, NebiusGuesses, RunPodGuesses, VastGuesses, VerdaGuesses};

/// How a sandbox behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory for the machines' homes. Must exist and should be 0700; what the sandbox puts there it removes.
    pub scratch: PathBuf,
    /// How time passes. Default: by timer.
    pub clock: ClockMode,
    /// A new pod is in lists only after this; a look by its id sees it at once. Default 2 s.
    pub listing_lag: Duration,
    /// A deleted pod is shown as terminated for this long, then it is gone. Default 1 s.
    pub slow_delete: Duration,
    /// Shortest and longest time from a create to a login. Default 1 to 3 s.
    pub boot: (Duration, Duration),
    /// Whether the documented rate windows refuse calls. Default true.
    pub rate_limits: bool,
    /// Whether the control path is served. Default true.
    pub control: bool,
    /// Decides ids and boot times; random when absent. Keys are random always.
    pub seed: Option<u64>,
    /// Serves the clouds over TLS; the control path stays plain. HTTP/2 is spoken where ALPN offers it.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What no document settles about RunPod, one way or the other.
    pub runpod_guesses: RunPodGuesses,
    /// Vast takes no key for an instance before this time after its create. Default 1 s.
    pub attach_lag: Duration,
    /// What no document settles about Vast, one way or the other.
    pub vast_guesses: VastGuesses,
    /// What no document settles about Verda, one way or the other.
    pub verda_guesses: VerdaGuesses,
    /// What no document settles about Nebius, one way or the other.
    pub nebius_guesses: NebiusGuesses,
    /// How long Verda's access tokens live. Default an hour.
    pub verda_token_life: Duration,
    /// What no document settles about Google Cloud, one way or the other.
    pub gcp_guesses: GcpGuesses,
    /// How long Google's exchanged tokens live. Default an hour.
    pub gcp_token_life: Duration,
    /// Longest time that Google holds a call that waits for an operation. Default 20 s.
    pub gcp_hold: Duration,
    /// Port of sshd on machines that are an address alone, at any cloud; absent is 22 where the system allows it, else any.
    pub vm_ssh_port: Option<u16>,
}

impl Options {
    /// The behaviour that people get.
    pub fn new(scratch: PathBuf) -> Options {
        Options {
            scratch,
            clock: ClockMode::Timer,
            listing_lag: Duration::from_secs(2),
            slow_delete: Duration::from_secs(1),
            boot: (Duration::from_secs(1), Duration::from_secs(3)),
            rate_limits: true,
            control: true,
            seed: None,
            tls: None,
            runpod_guesses: RunPodGuesses::default(),
            attach_lag: Duration::from_secs(1),
            vast_guesses: VastGuesses::default(),
            verda_guesses: VerdaGuesses::default(),
            nebius_guesses: NebiusGuesses::default(),
            verda_token_life: Duration::from_secs(3600),
            gcp_guesses: GcpGuesses::default(),
            gcp_token_life: Duration::from_secs(3600),
            gcp_hold: Duration::from_secs(20),
            vm_ssh_port: None,
        }
    }

    /// The same, quicker, and without rate limits.
    pub fn for_tests(scratch: PathBuf) -> Options {
        Options {
            listing_lag: Duration::from_millis(300),
            slow_delete: Duration::from_millis(300),
            boot: (Duration::from_millis(200), Duration::from_millis(400)),
            rate_limits: false,
            attach_lag: Duration::from_millis(150),
            gcp_hold: Duration::from_secs(1),
            ..Options::new(scratch)
        }
    }
}
