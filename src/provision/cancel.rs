//! Stopping: a wish to stop that everything long looks at, and the list of what may cost money if the process leaves now.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::model::account::AccountId;
use crate::model::money::Usd;

/// The wish to stop. Ctrl-C is one source of it; a server or a job runner could be another.
#[derive(Clone, Debug)]
pub struct Cancel {
    stop: watch::Receiver<bool>,
    exposure: Exposure,
}

/// The other end of [`Cancel`].
#[derive(Debug)]
pub struct Canceller {
    stop: watch::Sender<bool>,
    exposure: Exposure,
}

impl Canceller {
    /// Returns both ends.
    pub fn new() -> (Canceller, Cancel) {
        let (sender, receiver) = watch::channel(false);
        let exposure = Exposure::default();
        (Canceller { stop: sender, exposure: exposure.clone() }, Cancel { stop: receiver, exposure })
    }

    /// Asks everything to stop and to clean up behind it.
    pub fn cancel(&self) {
        self.stop.send_replace(true);
    }

    /// Returns what may exist at a cloud and cost money at this moment.
    pub fn exposed(&self) -> Vec<Exposed> {
        self.exposure.list()
    }
}

impl Cancel {
    /// Returns a wish that never comes.
    pub fn never() -> Cancel {
        Canceller::new().1
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits for the wish to stop.
    pub async fn cancelled(&self) {
        let mut stop = self.stop.clone();
        // A dropped sender means that nobody can ask any more: that is not a wish to stop.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the list of what may cost money.
    pub fn exposure(&self) -> &Exposure {
        &self.exposure
    }
}

/// One thing that may exist at a cloud and cost money, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The machine's name.
    pub name: String,
    /// Its account.
    pub account: Option<AccountId>,
    /// The cloud's id.
    pub id: Option<String>,
    /// Per hour.
    pub price: Option<Usd>,
}

impl Exposed {
    /// Returns a machine at an account.
    pub fn at(name: impl fmt::Display, account: &AccountId, id: Option<&str>, price: Option<Usd>) -> Self {
        Exposed { name: name.to_string(), account: Some(account.clone()), id: id.map(str::to_owned), price }
    }

    /// Returns something of which only a name is known.
    pub fn named(name: impl fmt::Display) -> Self {
        Exposed { name: name.to_string(), account: None, id: None, price: None }
    }
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some(account) = &self.account else { return Ok(()) };
        write!(f, " ({account}")?;
        if let Some(id) = &self.id {
            write!(f, ":{id}")?;
        }
        if let Some(price) = self.price {
            write!(f, " for {price}/h")?;
        }
        f.write_str(")")
    }
}

/// What may exist at a cloud and cost money if the process leaves now. Only a proof takes something off it: that it is gone,
/// or was never made.
#[derive(Clone, Debug, Default)]
pub struct Exposure(Arc<Mutex<BTreeMap<String, Exposed>>>);

impl Exposure {
    /// Notes that `what` may exist from now on; `key` takes it off again.
    pub fn add(&self, key: &str, what: Exposed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), what);
    }

    /// Notes that it is proven not to exist.
    pub fn remove(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn list(&self) -> Vec<Exposed> {
        let all: Vec<Exposed> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        // What is known of a name says more than the name.
        let known = |name: &str| all.iter().any(|other| other.account.is_some() && other.name == name);
        all.iter().filter(|one| one.account.is_some() || !known(&one.name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everybody_hears_of_it() {
        let (canceller, cancel) = Canceller::new();
        let other = cancel.clone();
        assert!(!cancel.is_cancelled());
        canceller.cancel();
        cancel.cancelled().await;
        other.cancelled().await;
        assert!(other.is_cancelled());
    }

    #[test]
    fn exposure_is_what_was_added_and_not_taken_off() {
        let (canceller, cancel) = Canceller::new();
        cancel.exposure().add("a", Exposed::named("a"));
        let account = "runpod/default".parse().unwrap();
        let machine = Exposed::at("b", &account, Some("x1"), Some(Usd::from_micros(340_000)));
        cancel.exposure().add("b", machine.clone());
        cancel.exposure().remove("a");
        assert_eq!(canceller.exposed(), std::slice::from_ref(&machine));
        assert_eq!(machine.to_string(), "b (runpod/default:x1 for $0.34/h)");
        assert_eq!(Exposed { id: None, price: None, ..machine }.to_string(), "b (runpod/default)");
        assert_eq!(Exposed::named("a").to_string(), "a");
    }
}
