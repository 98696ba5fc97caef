//! Events of a long command as lines for people: a spinner on a terminal, plain lines elsewhere.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::cli::output::Output;
use crate::model::duration::show;
use crate::model::offer::Offer;
use crate::provision::events::{Event, Events};
use crate::provision::failure::Kind;

/// Without a terminal a wait is told when its words change, and this often otherwise.
const REMINDER: Duration = Duration::from_secs(30);

/// Tells events on stderr.
#[derive(Debug)]
pub struct Progress<'a> {
    output: &'a Output,
    told: Mutex<(String, Option<Instant>)>,
}

impl<'a> Progress<'a> {
    /// Returns the teller of one command.
    pub fn new(output: &'a Output) -> Self {
        Progress { output, told: Mutex::default() }
    }

    fn wait(&self, words: &str, elapsed: Duration) {
        let elapsed = Duration::from_secs(elapsed.as_secs());
        if self.output.is_live() {
            self.output.live(&format!("{words} ({})", show(elapsed)));
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.0 != words || told.1.is_none_or(|at| at.elapsed() >= REMINDER);
        if due {
            *told = (words.to_owned(), Some(Instant::now()));
            self.output.progress(format!("  {words} ({})", show(elapsed)));
        }
    }
}

#[async_trait]
impl Events for Progress<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Waiting { words, elapsed } => self.wait(&words, elapsed),
            Event::Note { account, message } => self.output.warn(Kind::Note, account, None, &message),
            Event::Step(text) => {
                self.output.end_live();
                self.output.progress(text);
            }
            Event::Refused { offer, why } => {
                self.output.end_live();
                self.output.progress(format!("{} at {}: {why}", offer.instance_type, place(offer)));
            }
            Event::Buying { offer, hint, name } => {
                self.output.end_live();
                let sandbox = if offer.sandbox { " (sandbox)" } else { "" };
                self.output.progress(format!(
                    "{name}: {} at {}, paid by {} ({hint}): {}/h, {}/day{sandbox}",
                    offer.instance_type,
                    place(offer),
                    offer.account,
                    offer.price_per_hour,
                    offer.price_per_hour.times(24)
                ));
            }
        }
    }

    async fn confirm(&self, dearest: &Offer) -> Result<bool, String> {
        if !Output::can_ask() {
            return Err("there is no terminal to ask at".to_owned());
        }
        self.output.end_live();
        let question = format!(
            "take an offer for up to {}/h ({} at {})?",
            dearest.price_per_hour,
            dearest.instance_type,
            place(dearest)
        );
        Ok(self.output.ask(&question).await)
    }
}

/// Returns the place of an offer as people read it.
pub fn place(offer: &Offer) -> &str {
    offer.zone.as_deref().or(offer.region.as_deref()).unwrap_or("an untold place")
}
