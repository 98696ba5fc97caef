//! The account against a small server that gives canned answers.

mod create;
mod life;
mod offers;
