//! Real accounts, real money: `GPUPROV_LIVE=1 cargo test --test live -- --ignored --test-threads 1`.
//!
//! Every test takes the cheapest offer under a price cap, removes what it made whatever happens, and looks whether it is gone.
//! Credentials come from the environment or from where gpuprov finds them. Nothing here runs by default.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it did")]

mod runpod;
mod support;
