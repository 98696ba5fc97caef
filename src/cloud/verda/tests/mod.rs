//! The account against canned answers.

mod create;
mod delete;
mod looks;
mod offers;
mod tokens;
