//! The order of trying, which learns from refusals.

use std::collections::{HashMap, HashSet};

use crate::cloud::{Error, ErrorKind, Limit};
use crate::model::account::AccountId;
use crate::model::offer::Offer;
use crate::plan::limit::covers;

/// After so many refusals the rest of a group goes behind all other offers.
const PATIENCE: u32 = 2;

/// Offers that fail together: same account, type (or tier) and spot.
type Group = (AccountId, String, bool);

/// What is left to try.
///
/// The order is the total order of offers, except that groups which refused twice go behind all others, and zones that a
/// cloud named as better come first within their account's group.
#[derive(Debug)]
pub struct Queue {
    waiting: Vec<Offer>,
    // Few groups ever refuse: a look through them by reference is cheaper than making a key for every offer.
    refusals: Vec<(Group, u32)>,
    preferred: HashMap<AccountId, HashSet<String>>,
    rejections: HashMap<AccountId, u32>,
    twins: HashMap<AccountId, usize>,
}

impl Queue {
    /// Returns a queue of `offers`. `twins` gives accounts that are one at the provider the same number.
    pub fn new(mut offers: Vec<Offer>, twins: HashMap<AccountId, usize>) -> Self {
        offers.sort_by(Offer::order);
        Queue {
            waiting: offers,
            refusals: Vec::new(),
            preferred: HashMap::new(),
            rejections: HashMap::new(),
            twins,
        }
    }

    /// Returns all that is left, in the order of trying.
    pub fn in_order(&self) -> Vec<&Offer> {
        let mut offers: Vec<&Offer> = self.waiting.iter().collect();
        offers.sort_by(|one, two| self.rank(one).cmp(&self.rank(two)).then_with(|| one.order(two)));
        offers
    }

    /// Takes the next offer to try.
    pub fn take_next(&mut self) -> Option<Offer> {
        let (at, ..) = self
            .waiting
            .iter()
            .enumerate()
            .map(|(at, offer)| (at, self.rank(offer), offer))
            .min_by(|one, two| one.1.cmp(&two.1).then_with(|| one.2.order(two.2)))?;
        Some(self.waiting.remove(at))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts an offer back with its new price.
    pub fn put_back(&mut self, offer: Offer) {
        self.waiting.push(offer);
    }

    /// Learns that `offer` was gone at the re-check: one refusal of its group.
    pub fn gone(&mut self, offer: &Offer) {
        self.count_refusal(offer);
        self.leave_out_twins(offer);
    }

    /// Learns from a refusal that left nothing behind.
    pub fn refused(&mut self, offer: &Offer, error: &Error) {
        self.count_refusal(offer);
        if !error.prefer.is_empty() {
            let zones = self.preferred.entry(offer.account.clone()).or_default();
            zones.extend(error.prefer.iter().cloned());
        }
        match error.kind {
            ErrorKind::NoCapacity => {
                self.leave_out_twins(offer);
                if let Some(limit) = &error.limit {
                    self.leave_out(&offer.account, limit);
                }
            }
            ErrorKind::Quota | ErrorKind::Forbidden | ErrorKind::Balance | ErrorKind::Auth => {
                self.leave_out(&offer.account, &error.limit.clone().unwrap_or_default());
            }
            ErrorKind::Rejected => {
                let times = self.rejections.entry(offer.account.clone()).or_default();
                *times += 1;
                // What the cloud thinks wrong about one type may be right for the next; a second such answer means that it is
                // something about our requests to this account.
                let limit = match (&error.limit, *times) {
                    (_, 2..) => Limit::default(),
                    (Some(limit), _) => limit.clone(),
                    (None, _) => {
                        Limit { instance_type: Some(offer.instance_type.clone()), ..Limit::default() }
                    }
                };
                self.leave_out(&offer.account, &limit);
            }
            ErrorKind::RateLimited => self.leave_out(&offer.account, &Limit::default()),
            _ => {}
        }
    }

    /// Learns that the machine made from `offer` did not get ready: neither it nor another part of the same host is tried again.
    pub fn not_ready(&mut self, offer: &Offer) {
        self.count_refusal(offer);
        let same_host = |other: &Offer| offer.host.is_some() && other.host == offer.host;
        self.waiting
            .retain(|other| !(other.account == offer.account && (other.id == offer.id || same_host(other))));
    }

    fn leave_out(&mut self, account: &AccountId, limit: &Limit) {
        self.waiting.retain(|offer| !covers(limit, account, offer));
    }

    fn leave_out_twins(&mut self, offer: &Offer) {
        let Some(twin) = self.twins.get(&offer.account).copied() else { return };
        let same = |other: &Offer| {
            other.instance_type == offer.instance_type
                && other.zone == offer.zone
                && other.host == offer.host
                && other.spot == offer.spot
        };
        let twins = &self.twins;
        self.waiting.retain(|other| {
            !(other.account != offer.account && twins.get(&other.account) == Some(&twin) && same(other))
        });
    }

    fn count_refusal(&mut self, offer: &Offer) {
        match self.refusals.iter_mut().find(|(group, _)| is_in(offer, group)) {
            Some((_, times)) => *times += 1,
            None => {
                let group = (offer.account.clone(), offer.instance_type.clone(), offer.spot);
                self.refusals.push((group, 1));
            }
        }
    }

    fn rank(&self, offer: &Offer) -> (bool, bool) {
        let tired = self.refusals.iter().any(|(group, times)| *times >= PATIENCE && is_in(offer, group));
        let zones = self.preferred.get(&offer.account);
        let named = zones.zip(offer.zone.as_ref()).is_some_and(|(zones, zone)| zones.contains(zone));
        (tired, !named && !self.preferred.is_empty())
    }
}

fn is_in(offer: &Offer, (account, instance_type, spot): &Group) -> bool {
    offer.account == *account && offer.instance_type == *instance_type && offer.spot == *spot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::Reached;
    use crate::plan::filter::samples::offer;
    use proptest::prelude::*;

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, &"runpod/default".parse().unwrap(), "creating", "no", Reached::No)
    }

    fn of_type(ty: &str, zone: &str, micros: i64) -> Offer {
        Offer { instance_type: ty.to_owned(), ..offer(zone, micros) }
    }

    fn zones(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take_next()).map(|offer| offer.zone.unwrap()).collect()
    }

    #[test]
    fn a_host_that_failed_is_not_tried_again_for_any_part_of_it() {
        let on = |host: &str, at: i64| Offer { host: Some(host.to_owned()), ..offer("x", at) };
        let mut queue =
            Queue::new(vec![on("machine:1", 1), on("machine:1", 2), on("machine:2", 3)], HashMap::new());
        let failed = queue.take_next().unwrap();
        queue.not_ready(&failed);
        let left: Vec<_> = queue.in_order().iter().map(|offer| offer.host.clone().unwrap()).collect();
        assert_eq!(left, ["machine:2"]);
    }

    #[test]
    fn a_group_that_refused_twice_goes_behind() {
        let offers =
            vec![of_type("a", "1", 1), of_type("a", "2", 2), of_type("a", "3", 3), of_type("b", "4", 4)];
        let mut queue = Queue::new(offers, HashMap::new());
        for _ in 0..2 {
            let first = queue.take_next().unwrap();
            queue.refused(&first, &error(ErrorKind::NoCapacity));
        }
        assert_eq!(zones(&mut queue), ["4", "3"]);
    }

    #[test]
    fn named_zones_come_first() {
        let offers = vec![of_type("a", "1", 1), of_type("a", "2", 2), of_type("a", "3", 3)];
        let mut queue = Queue::new(offers, HashMap::new());
        let first = queue.take_next().unwrap();
        let mut named = error(ErrorKind::NoCapacity);
        named.prefer = vec!["3".to_owned()];
        queue.refused(&first, &named);
        assert_eq!(zones(&mut queue), ["3", "2"]);
    }

    #[test]
    fn a_quota_leaves_out_what_its_limit_covers() {
        let offers = vec![of_type("a", "1", 1), of_type("a", "2", 2), of_type("b", "3", 3)];
        let mut queue = Queue::new(offers, HashMap::new());
        let first = queue.take_next().unwrap();
        let limit = Limit { instance_type: Some("a".to_owned()), ..Limit::default() };
        queue.refused(&first, &error(ErrorKind::Quota).with_limit(limit));
        assert_eq!(zones(&mut queue), ["3"]);
    }

    #[test]
    fn a_rejection_leaves_out_the_type_and_a_second_one_the_account() {
        let mut other = offer("9", 9);
        other.account = "runpod/lab".parse().unwrap();
        let offers = vec![
            of_type("a", "1", 1),
            of_type("a", "2", 2),
            of_type("b", "3", 3),
            of_type("c", "4", 4),
            other,
        ];
        let mut queue = Queue::new(offers, HashMap::new());
        let first = queue.take_next().unwrap();
        queue.refused(&first, &error(ErrorKind::Rejected));
        let second = queue.take_next().unwrap();
        assert_eq!(second.instance_type, "b");
        queue.refused(&second, &error(ErrorKind::Rejected));
        assert_eq!(zones(&mut queue), ["9"]);
    }

    #[test]
    fn twins_are_not_asked_for_the_same_again() {
        let mut twin = offer("1", 1);
        twin.account = "runpod/lab".parse().unwrap();
        let mut elsewhere = twin.clone();
        elsewhere.zone = Some("2".to_owned());
        let twins = HashMap::from([(offer("1", 1).account, 0), (twin.account.clone(), 0)]);
        let mut queue = Queue::new(vec![offer("1", 1), twin, elsewhere], twins);
        let first = queue.take_next().unwrap();
        queue.refused(&first, &error(ErrorKind::NoCapacity));
        assert_eq!(zones(&mut queue), ["2"]);
    }

    proptest! {
        #[test]
        fn offers_come_in_the_total_order_whatever_order_they_arrive_in(prices in proptest::collection::vec(1_i64..50, 1..40), seed in any::<u64>()) {
            let mut offers: Vec<Offer> = prices.iter().enumerate().map(|(at, micros)| offer(&format!("z{at}"), *micros)).collect();
            let mut one = Queue::new(offers.clone(), HashMap::new());
            let turn = usize::try_from(seed % offers.len() as u64).unwrap();
            offers.rotate_left(turn);
            offers.reverse();
            let mut two = Queue::new(offers, HashMap::new());
            let taken: Vec<Offer> = std::iter::from_fn(|| one.take_next()).collect();
            prop_assert!(taken.windows(2).all(|pair| pair[0].order(&pair[1]).is_le()));
            prop_assert_eq!(taken, std::iter::from_fn(|| two.take_next()).collect::<Vec<_>>());
        }
    }
}
