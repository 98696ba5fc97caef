//! The account against a small server that gives canned answers.

mod create;
mod errors;
mod life;
mod odd;
mod offers;
mod searches;
