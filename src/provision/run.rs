//! The offer loop: down the list until a machine is ready.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cloud::{Cloud, Error, ErrorKind, Recheck};
use crate::model::account::AccountId;
use crate::model::machine::MachineState;
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::plan::filter::{Miss, miss};
use crate::plan::queue::Queue;
use crate::provision::attempt::{self, Ended, Try};
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::failure::{Failure, Kind};
use crate::provision::follow::{Course, Step};
use crate::provision::gather::{Asked, within};
use crate::provision::serving::switches;
use crate::provision::{Context, Request};
use crate::state::journal::Open;
use crate::state::lock::NameLock;
use crate::state::record::{Outcome, RECORD_VERSION, Record};

/// One offer that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The offer, with the price of the time it was tried.
    pub offer: Offer,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong; [`Kind::Note`] if nothing did.
    pub kind: Kind,
    /// In words.
    pub message: Option<String>,
    /// What the user can do about it, where the cloud's folder knows.
    pub hint: Option<String>,
}

/// How one pass over the offers ended.
#[derive(Debug)]
pub enum Pass {
    /// A machine is ready.
    Ready,
    /// Nothing was had, and nothing is left.
    Empty,
    /// It is over: nothing else is to be tried. What the failure names may still exist.
    Over(Failure),
}

/// The offer loop of one `provision`.
#[derive(Debug)]
pub struct Loop<'a> {
    /// What every command works with.
    pub context: &'a Context,
    /// What is asked for.
    pub request: &'a Request,
    /// The accounts that take part, with their own form of the request.
    pub asked: &'a [Asked],
    /// What was tried so far, over all passes.
    pub tried: Vec<Tried>,
    /// Machines that were made and given up.
    pub made: u32,
    /// Nothing dearer is bought; none if any price may be.
    pub approved: Option<Usd>,
}

impl Loop<'_> {
    /// Goes down the list once.
    pub async fn pass(
        &mut self,
        open: &Open,
        offers: Vec<Offer>,
        events: &dyn Events,
        cancel: &Cancel,
    ) -> Pass {
        let mut course = Course::new(Queue::new(offers, self.twins()));
        while let Some(offer) = course.queue.take_next() {
            if cancel.is_cancelled() {
                return Pass::Over(interrupted());
            }
            if open.is_wanted() {
                return Pass::Over(removed());
            }
            if course.is_over() {
                return Pass::Empty;
            }
            match self.switched_on(&offer) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failure) => return Pass::Over(failure),
            }
            course.begin();
            let Some(asked) = self.asked.iter().find(|asked| *asked.cloud.account() == offer.account) else {
                continue;
            };
            let fresh = tokio::select! {
                fresh = self.recheck(asked, &offer) => fresh,
                () = cancel.cancelled() => return Pass::Over(interrupted()),
            };
            if !matches!(fresh, Fresh::Failed(_)) {
                course.answered(&offer.account);
            }
            let offer = match fresh {
                Fresh::Take(fresh) => *fresh,
                Fresh::Gone(why) => {
                    course.queue.gone(&offer);
                    let kind = Kind::Cloud(ErrorKind::NoCapacity);
                    self.note(offer, Outcome::Gone, kind, why, events);
                    course.count_refusal();
                    continue;
                }
                Fresh::Dearer(fresh) => {
                    let key = (fresh.account.clone(), fresh.instance_type.clone(), fresh.zone.clone());
                    let why =
                        format!("it is {}/h now, {}/h was shown", fresh.price_per_hour, offer.price_per_hour);
                    if self.request.offer.is_none()
                        && self.approved.is_none_or(|most| fresh.price_per_hour <= most)
                        && miss(&fresh, &asked.want, asked.cloud.capabilities()).is_none()
                        && course.put_back.insert(key)
                    {
                        events.event(Event::Refused {
                            offer: &offer,
                            why: format!("{why}; put back in order"),
                        });
                        course.queue.put_back(*fresh);
                    } else {
                        self.note(*fresh, Outcome::Dearer, Kind::TooDear, why, events);
                    }
                    course.count_refusal();
                    continue;
                }
                Fresh::Failed(error) => {
                    self.turned_down(&mut course, Step::Recheck, offer, &error, events, cancel).await;
                    course.count_refusal();
                    continue;
                }
            };
            match self.switched_on(&offer) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failure) => return Pass::Over(failure),
            }
            let cloud = Arc::clone(&asked.cloud);
            let ended = self.buy(&cloud, open, &offer, events, cancel).await;
            if let Some(over) = self.follow(&mut course, open, offer, ended, events, cancel).await {
                return over;
            }
        }
        Pass::Empty
    }

    /// Whether the offer's account is still switched on for such machines: another process may switch it off at any time.
    fn switched_on(&self, offer: &Offer) -> Result<bool, Failure> {
        Ok(switches(self.context)?.of(&offer.account).admits(offer.gpu_count))
    }

    async fn buy(
        &self,
        cloud: &Arc<dyn Cloud>,
        open: &Open,
        offer: &Offer,
        events: &dyn Events,
        cancel: &Cancel,
    ) -> Ended {
        let request = self.request;
        events.event(Event::Buying { offer, hint: cloud.identity().hint, name: open.name().as_str() });
        let want =
            self.asked.iter().find(|asked| *asked.cloud.account() == offer.account).map(|asked| &asked.want);
        let spec = MachineSpec {
            name: open.name().clone(),
            public_key: request.key.public_line.clone(),
            image: want.and_then(|want| want.image.clone()),
            env: request.env.clone(),
            ports: want.map(|want| want.ports.clone()).unwrap_or_default(),
            cluster: request.want.cluster,
        };
        attempt::run(self.context, &Try { cloud, offer, spec: &spec, request, open }, events, cancel).await
    }

    /// Asks for the offer again, right before it would be bought.
    pub(super) async fn recheck(&self, asked: &Asked, offer: &Offer) -> Fresh {
        let key = match OfferKey::decode(&offer.id) {
            Ok(key) => key,
            Err(error) => return Fresh::Gone(error.to_string()),
        };
        let answer = within(
            self.context.cloud_timeout,
            &asked.cloud,
            "checking the offer again",
            asked.cloud.recheck(&key, &asked.want),
        )
        .await;
        let fresh = match answer {
            Ok(Recheck::Offered(fresh)) => fresh,
            Ok(Recheck::Gone(why)) => return Fresh::Gone(why),
            Err(error) => return Fresh::Failed(error),
        };
        let capabilities = asked.cloud.capabilities();
        match miss(&fresh, &asked.want, capabilities) {
            Some(Miss::Price) => return Fresh::Dearer(fresh),
            Some(other) => return Fresh::Gone(format!("it does not meet `{}` any more", other.flag())),
            None => {}
        }
        // A price limit above what the id says is a word for paying up to it.
        let allowed = match (&self.request.offer, asked.want.max_price) {
            (Some(_), Some(most)) => most.max(offer.price_per_hour),
            _ => offer.price_per_hour,
        };
        if fresh.price_per_hour > allowed { Fresh::Dearer(fresh) } else { Fresh::Take(fresh) }
    }

    pub(super) fn refused(&mut self, queue: &mut Queue, offer: Offer, error: &Error, events: &dyn Events) {
        queue.refused(&offer, error);
        self.note(offer, Outcome::Refused, Kind::Cloud(error.kind), error.message.clone(), events);
        if let Some(tried) = self.tried.last_mut() {
            tried.hint.clone_from(&error.hint);
        }
    }

    pub(super) fn note(
        &mut self,
        offer: Offer,
        outcome: Outcome,
        kind: Kind,
        message: String,
        events: &dyn Events,
    ) {
        events.event(Event::Refused { offer: &offer, why: message.clone() });
        self.tried.push(Tried { offer, outcome, kind, message: Some(message), hint: None });
    }

    /// Counts a machine that was made and given up; returns whether it was the last allowed.
    pub(super) fn count_made(&mut self) -> bool {
        self.made += 1;
        self.made >= self.request.attempts
    }

    fn twins(&self) -> HashMap<AccountId, usize> {
        let identities: Vec<_> = self.asked.iter().map(|asked| asked.cloud.identity()).collect();
        let first = |at: usize| identities.iter().position(|one| one.is_same(&identities[at])).unwrap_or(at);
        self.asked.iter().enumerate().map(|(at, asked)| (asked.cloud.account().clone(), first(at))).collect()
    }
}

/// What a re-check gave.
pub(super) enum Fresh {
    /// It can be had, for no more than was shown or allowed.
    Take(Box<Offer>),
    /// It costs more.
    Dearer(Box<Offer>),
    /// It cannot be had.
    Gone(String),
    /// There was no answer.
    Failed(Box<Error>),
}

/// Stopped by the user, and nothing is left.
pub(super) fn interrupted() -> Failure {
    Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped; nothing is left running")
}

/// Stopped by another command, and nothing is left.
pub(super) fn removed() -> Failure {
    Failure::new(Kind::Removed, "removed by another command")
}

/// Writes the record that reserves the name, before the first request that can create anything.
pub fn open_record(context: &Context, lock: NameLock) -> Result<Open, Failure> {
    let record = Record {
        version: RECORD_VERSION,
        name: lock.name().clone(),
        installation: context.installation.clone(),
        owner: context.owner.clone(),
        state: MachineState::Creating,
        created_at: Timestamp::now(),
        machine_at: None,
        expires_at: None,
        attempts: Vec::new(),
        ssh: None,
        price_per_hour: None,
        vcpus: None,
        ram_gb: None,
        zone: None,
        gpu_check: None,
        k8s: None,
        message: None,
        unknown: std::collections::BTreeMap::new(),
    };
    Open::start(lock, record).map_err(|error| Failure::new(Kind::Refused, error.to_string()))
}
