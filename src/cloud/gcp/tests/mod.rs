//! The account against canned answers.

mod offers;
mod recheck;
mod shop;
