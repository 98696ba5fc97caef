//! What a long command tells while it works.

use std::time::Duration;

use async_trait::async_trait;

use crate::model::account::AccountId;
use crate::model::offer::Offer;

/// Something worth telling.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something the user should know; it also stands under `warnings` in JSON.
    Note {
        /// Whom it concerns.
        account: Option<&'a AccountId>,
        /// In words.
        message: String,
    },
    /// An offer is about to be bought.
    Buying {
        /// What.
        offer: &'a Offer,
        /// What tells the paying account's credentials apart.
        hint: String,
        /// The machine's name.
        name: &'a str,
    },
    /// An offer was not had, or a machine was given up.
    Refused {
        /// Which.
        offer: &'a Offer,
        /// Why.
        why: String,
    },
    /// A step began that is worth a line of its own.
    Step(String),
    /// Something is being waited for; told again and again with the newest words.
    Waiting {
        /// The cloud's own words, or ours.
        words: String,
        /// Since the wait began.
        elapsed: Duration,
    },
}

/// Where events go, and who answers questions. Printing is the command line's business.
#[async_trait]
pub trait Events: Send + Sync {
    /// Takes an event.
    fn event(&self, event: Event<'_>);

    /// Asks whether the machine may cost up to what `dearest` costs; `Err` is why there is no answer.
    async fn confirm(&self, dearest: &Offer) -> Result<bool, String>;
}

/// Takes events and does nothing with them.
#[derive(Debug, Default)]
pub struct Silent;

#[async_trait]
impl Events for Silent {
    fn event(&self, _: Event<'_>) {}

    async fn confirm(&self, _: &Offer) -> Result<bool, String> {
        Ok(true)
    }
}
