//! What to try and in which order: pure functions over offers, wishes and capabilities. No requests, no clock, no output.
//!
//! A cloud narrows its answers only to save time; what counts is decided here, once, on normalised values.

pub mod explain;
pub mod filter;
pub mod limit;
pub mod queue;
pub mod refuse;
