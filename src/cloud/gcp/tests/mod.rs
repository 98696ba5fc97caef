//! The account against canned answers.

mod bodies;
mod create;
mod delete;
mod late;
mod looks;
mod offers;
mod ports;
mod recheck;
mod shop;
mod tokens;
