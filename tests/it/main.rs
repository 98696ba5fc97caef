//! The real binary against the sandbox: cleared environment, own HOME, real sockets, a real ssh client.

#![allow(unreachable_pub, dead_code, reason = "a test binary has no outside")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests too")]

mod accounts;
mod ask_above;
mod audit;
mod behaviour;
mod clouds;
mod clouds_identity;
mod clouds_keyless;
mod clouds_sealed;
mod clouds_set;
mod clouds_switch;
mod completions;
mod config;
mod docs;
mod doctor;
mod dry_run;
mod exit_codes;
mod expired;
mod gcp;
mod hostile;
mod http_faults;
mod identity;
mod imports;
mod interrupt;
mod json;
mod k8s;
mod life;
mod listed;
mod ls;
mod nebius;
mod offers;
mod ownership;
mod provision;
mod queue;
mod readme;
mod recovery;
mod reference;
mod rm;
mod sandbox_daemon;
mod secrets;
mod selection;
mod setup;
mod ssh;
mod support;
mod tls;
mod traps;
mod vast;
mod verda;
