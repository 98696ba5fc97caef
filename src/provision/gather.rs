//! Asking all accounts at once, each under its own deadline, and putting their answers together.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::cloud::{Cloud, Error, ErrorKind, Found, OfferBatch, Reached};
use crate::model::account::AccountId;
use crate::model::offer::Offer;
use crate::model::want::Want;
use crate::plan::explain::Misses;
use crate::plan::filter::{Miss, miss};

/// An account and what it is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The account.
    pub cloud: Arc<dyn Cloud>,
    /// The request, without defaults that it cannot honour.
    pub want: Want,
}

/// What all accounts answered.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The offers that meet the wishes, in their total order.
    pub offers: Vec<Offer>,
    /// What the others missed.
    pub misses: Misses,
    /// Notes of the clouds.
    pub notes: Vec<(AccountId, String)>,
    /// Who did not answer, and why.
    pub failed: Vec<Box<Error>>,
    /// How many did.
    pub answered: usize,
    /// GPU names that some cloud knows.
    pub known_gpus: Vec<String>,
    /// Exact types that some cloud knows; none if one of those that answered cannot tell.
    pub known_types: Option<Vec<String>>,
    /// Regions and zones that some cloud knows.
    pub known_places: Vec<String>,
}

/// How much longer than its own time limit an account is waited for. Its calls end at the limit by themselves, and what came
/// until then is kept; an end from outside at the same moment would throw it away.
const NET: Duration = Duration::from_millis(750);

/// Asks every account; takes as long as the slowest, and not longer than `deadline` and a moment.
pub async fn gather(asked: &[Asked], deadline: Duration) -> Gathered {
    let answers = join_all(asked.iter().map(|asked| async move {
        tokio::time::timeout(deadline + NET, asked.cloud.offers(&asked.want))
            .await
            .unwrap_or_else(|_| Err(late(deadline, &asked.cloud, "listing offers")))
    }))
    .await;
    let mut gathered = Gathered::default();
    for (asked, answer) in asked.iter().zip(answers) {
        match answer {
            Ok(batch) => gathered.take(asked, batch),
            Err(error) => gathered.failed.push(error),
        }
    }
    gathered.offers.sort_by(Offer::order);
    gathered
}

impl Gathered {
    fn take(&mut self, asked: &Asked, batch: OfferBatch) {
        let account = asked.cloud.account();
        let known_types = if self.answered == 0 { Some(Vec::new()) } else { self.known_types.take() };
        self.known_types = known_types.zip(batch.known_types).map(|(known, more)| [known, more].concat());
        self.answered += 1;
        self.known_gpus.extend(batch.known_gpus);
        self.known_places.extend(batch.known_places);
        self.notes.extend(batch.notes.into_iter().map(|note| (account.clone(), note)));
        let (mut unpriced, mut untold) = (0, 0);
        for offer in batch.offers {
            match miss(&offer, &asked.want, asked.cloud.capabilities()) {
                None => self.offers.push(offer),
                Some(why) => {
                    unpriced += usize::from(why == Miss::Unpriced);
                    untold += usize::from(matches!(why, Miss::RamUntold | Miss::VcpusUntold));
                    self.misses.count(&offer, why);
                }
            }
        }
        for (count, what) in
            [(unpriced, "without a usable price"), (untold, "without a word on RAM or vCPUs")]
        {
            if count > 0 {
                self.notes.push((account.clone(), format!("{count} offers {what} left out")));
            }
        }
    }
}

/// Waits for an answer of `cloud` no longer than `deadline`.
pub async fn within<T>(
    deadline: Duration,
    cloud: &Arc<dyn Cloud>,
    doing: &'static str,
    answer: impl Future<Output = crate::cloud::Result<T>>,
) -> crate::cloud::Result<T> {
    tokio::time::timeout(deadline, answer).await.unwrap_or_else(|_| Err(late(deadline, cloud, doing)))
}

fn late(deadline: Duration, cloud: &Arc<dyn Cloud>, doing: &'static str) -> Box<Error> {
    let message = format!("no answer in {}", crate::model::duration::show(deadline));
    Box::new(Error::new(ErrorKind::Timeout, cloud.account(), doing, message, Reached::Maybe))
}

/// Two accounts that are one at the provider both list everything that is there: each thing counts once, for the account that its
/// mark names if that one is among them.
pub fn once(found: &mut Vec<(AccountId, Found)>) {
    let named = |(account, found): &(AccountId, Found)| account.name() == found.mark.account;
    found.sort_by_key(|entry| !named(entry));
    let mut seen = HashSet::new();
    found.retain(|(account, found)| {
        seen.insert((account.cloud(), found.kind, found.handle.id.clone(), found.mark.claim))
    });
}
