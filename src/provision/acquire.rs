//! One `provision` from the request to the report: name, offers, question, record, passes, and the last look for what was lost.

use std::time::{Duration, Instant};

use crate::cloud::{Error, ErrorKind};
use crate::model::duration::show;
use crate::model::gpu::Gpu;
use crate::model::money::Usd;
use crate::model::want;
use crate::plan::explain::Misses;
use crate::provision::Context;
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::{Asked, Gathered, gather};
use crate::provision::names::unknown_name;
use crate::provision::recover::sweep;
use crate::provision::request::{Report, Request};
use crate::provision::reserve::{Names, free_elsewhere, names_elsewhere, reserve, reserve_new};
use crate::provision::rounds::Rounds;
use crate::provision::run::{Loop, Pass, Tried, interrupted, open_record, removed};
use crate::provision::serving::{all_off, came_back, serving};
use crate::state::abandoned::Abandoned;
use crate::state::lock::NameLock;
use crate::state::record::Outcome;

/// Gets a machine.
pub async fn acquire(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    events: &dyn Events,
    cancel: &Cancel,
) -> Report {
    let mut report = Report::default();
    if let Err(failure) = work(context, request, asked, events, cancel, &mut report).await {
        report.failure = Some(failure);
    }
    report
}

async fn work(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    events: &dyn Events,
    cancel: &Cancel,
    report: &mut Report,
) -> Result<(), Failure> {
    let lock = request.name.as_ref().map(|name| reserve(context, name)).transpose()?;
    let mut rounds = Rounds::new(request.queue, Instant::now());
    let mut on = serving(context, asked, request)?;
    let elsewhere = async {
        match context.installation_given {
            true => names_elsewhere(context, events).await,
            false => Names::new(),
        }
    };
    let (mut gathered, elsewhere) = tokio::select! {
        both = async { tokio::join!(offers(context, request, &on, events), elsewhere) } => both,
        () = cancel.cancelled() => return Err(stopped()),
    };
    if let Some(failure) = unknown_name(&request.want, &gathered) {
        report.failed = gathered.failed;
        return Err(failure);
    }
    if let Some(name) = &request.name {
        free_elsewhere(&elsewhere, name)?;
    }
    let mut lock = lock;
    let mut open = None;
    let mut turns = Loop { context, request, asked, tried: Vec::new(), made: 0, approved: request.ask_above };
    let failure = loop {
        let mut failure = None;
        if on.is_empty() {
            let off: Vec<String> = asked.iter().map(|asked| asked.cloud.account().to_string()).collect();
            failure = Some(all_off(&off));
        } else if gathered.offers.is_empty() {
            failure = Some(nothing(&gathered, request));
        } else if let Err(refused) = confirm(&mut turns.approved, &gathered, events, cancel).await {
            break Some(refused);
        } else {
            if open.is_none() {
                let lock = match lock.take() {
                    Some(lock) => lock,
                    None => name_for(context, &gathered, request, &elsewhere)?,
                };
                open = Some(open_record(context, lock)?);
            }
            if let Some(open) = &open {
                match turns.pass(open, std::mem::take(&mut gathered.offers), events, cancel).await {
                    Pass::Ready => {}
                    Pass::Over(over) => failure = Some(over),
                    Pass::Empty => failure = Some(conclude(&turns.tried, &gathered)),
                }
            }
        }
        let again =
            failure.as_ref().is_some_and(|failure| waits_for(failure.kind)) && turns.made < request.attempts;
        let now = Instant::now();
        let Some(wait) = again.then(|| rounds.next_wait(now)).flatten() else { break failure };
        // From now on `ls` shows what waits, and `rm` ends it.
        if open.is_none() {
            let lock = match lock.take() {
                Some(lock) => lock,
                None => name_for(context, &gathered, request, &elsewhere)?,
            };
            open = Some(open_record(context, lock)?);
        }
        let words = format!("waiting for an offer, {} more at most", show(rounds.left(now)));
        if let Some(open) = &open
            && let Err(error) = open.update(|record| record.message = Some(words.clone()))
        {
            events.event(Event::Note { account: None, message: error.to_string() });
        }
        let why = if on.is_empty() { "every account is switched off" } else { "nothing to be had" };
        events.event(Event::Step(format!("{why}; {words}; asking again in {}", show(wait))));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = came_back(context, asked, request, &on) => {}
            () = wanted(open.as_ref()) => break Some(removed()),
            () = cancel.cancelled() => break Some(interrupted()),
        }
        on = match serving(context, asked, request) {
            Ok(on) => on,
            Err(failure) => break Some(failure),
        };
        gathered = tokio::select! {
            gathered = offers(context, request, &on, events) => gathered,
            () = cancel.cancelled() => break Some(interrupted()),
        };
    };

    report.failed = gathered.failed;
    let mut failure = failure;
    if let Some(open) = open {
        let mine = open.name().clone();
        // Of earlier commands too: whoever asks an account anyway looks for what was lost there.
        let concerns = |watched: &Abandoned| {
            watched.name == mine || asked.iter().any(|asked| *asked.cloud.account() == watched.account)
        };
        let swept = sweep(context, concerns, events, cancel).await;
        let record = open.record();
        let keep = failure
            .as_ref()
            .is_none_or(|failure| matches!(failure.kind, Kind::SetupFailed | Kind::LeftRunning));
        if keep {
            report.record = Some(record);
        } else if let Err(error) = open.close() {
            events.event(Event::Note { account: None, message: error.to_string() });
        }
        if !swept.left.is_empty() {
            let words: Vec<&str> = swept.left.iter().map(|left| left.message.as_str()).collect();
            failure = Some(
                Failure::new(Kind::LeftRunning, words.join("; "))
                    .hint("`gpuprov ls` shows it; `gpuprov rm ACCOUNT:ID` removes it"),
            );
        }
        report.left = swept.left;
    }
    tell_rejections(&turns.tried, failure.as_ref(), events);
    report.tried = turns.tried;
    failure.map_or(Ok(()), Err)
}

async fn wanted(open: Option<&crate::state::journal::Open>) {
    loop {
        if open.is_some_and(crate::state::journal::Open::is_wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Asks for offers; with `--offer` there is just that one, and its re-check asks for it.
pub(super) async fn offers(
    context: &Context,
    request: &Request,
    asked: &[Asked],
    events: &dyn Events,
) -> Gathered {
    if let Some(offer) = &request.offer {
        let offers = asked.iter().any(|asked| *asked.cloud.account() == offer.account);
        let offers = offers.then(|| offer.clone()).into_iter().collect();
        return Gathered { offers, answered: 1, ..Gathered::default() };
    }
    let mut gathered = gather(asked, context.cloud_timeout).await;
    // An exact type may be of either kind, and only one of them may be switched on.
    if let Ok(switches) = context.switches.read() {
        gathered.offers.retain(|offer| switches.of(&offer.account).admits(offer.gpu_count));
    }
    for (account, message) in &gathered.notes {
        events.event(Event::Note { account: Some(account), message: message.clone() });
    }
    for error in &gathered.failed {
        let message = format!("{}: {}", error.doing, error.message);
        events.event(Event::Note { account: Some(&error.account), message });
    }
    gathered
}

/// Makes a name: by the first offer, or by what is asked for where there is none yet and some is waited for.
pub(super) fn name_for(
    context: &Context,
    gathered: &Gathered,
    request: &Request,
    elsewhere: &Names,
) -> Result<NameLock, Failure> {
    let by_type = |name: &str| Gpu::identify(name.split(" x").next().unwrap_or_default(), None);
    let card = match (gathered.offers.first(), &request.want.kind) {
        (Some(first), _) => first.card().or_else(|| {
            // An offer taken by its id tells no GPU before its re-check; its type does.
            (first.gpu_count > 0).then(|| by_type(&first.instance_type))
        }),
        (None, want::Kind::Gpus(gpus)) => gpus.first().map(|gpu| Gpu::identify(gpu.model.as_asked(), None)),
        (None, want::Kind::Types(types)) => types.first().map(|ty| by_type(&ty.name)),
        (None, want::Kind::CpuOnly) => None,
    };
    reserve_new(context, card.as_ref(), elsewhere)
}

/// Asks before anything is bought that is dearer than what may be bought without a question, or was allowed so far.
async fn confirm(
    approved: &mut Option<Usd>,
    gathered: &Gathered,
    events: &dyn Events,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let Some(above) = *approved else { return Ok(()) };
    let dearest = gathered.offers.iter().max_by_key(|offer| offer.price_per_hour);
    let Some(dearest) = dearest.filter(|offer| offer.price_per_hour > above) else { return Ok(()) };
    let answer = tokio::select! {
        answer = events.confirm(dearest) => answer,
        () = cancel.cancelled() => return Err(stopped()),
    };
    match answer {
        Ok(true) => {
            *approved = Some(dearest.price_per_hour);
            Ok(())
        }
        Ok(false) => Err(Failure::new(Kind::Refused, "not confirmed; nothing was created")),
        Err(why) => Err(Failure::new(
            Kind::Refused,
            format!("an offer for {}/h needs a yes: {why}", dearest.price_per_hour),
        )
        .hint("pass `--yes`, `--max-price` or `--offer`")),
    }
}

/// Why there are no offers at all.
pub fn nothing(gathered: &Gathered, request: &Request) -> Failure {
    if gathered.answered == 0
        && let Some(failure) = worst(&gathered.failed)
    {
        return failure;
    }
    let (kind, message) = if gathered.misses.only_too_dear() {
        (Kind::TooDear, "every offer is above `--max-price`".to_owned())
    } else {
        (Kind::NothingOffered, "no offer meets the wishes".to_owned())
    };
    let failure = Failure::new(kind, message);
    match hint(&gathered.misses) {
        Some(hint) => failure.hint(hint),
        None if request.want.max_price.is_some() => {
            failure.hint("see `gpuprov offers` without `--max-price`")
        }
        None => failure.hint("see `gpuprov offers` with fewer wishes, or wait for one with `--queue 1h`"),
    }
}

fn hint(misses: &Misses) -> Option<String> {
    let nearest = misses.nearest();
    (!nearest.is_empty()).then(|| format!("nearest {}", nearest.join("; ")))
}

/// The failure of accounts that all did not answer: refused credentials only where every account refused them, because any
/// other may have had what was asked for.
pub fn worst(failed: &[Box<Error>]) -> Option<Failure> {
    let credentials = |error: &Error| matches!(error.kind, ErrorKind::Auth | ErrorKind::Forbidden);
    let other = failed.iter().find(|error| !credentials(error));
    let first = other.or(failed.first());
    first.map(|error| Failure::from(error.as_ref()))
}

/// Why nothing was had although there were offers.
fn conclude(tried: &[Tried], gathered: &Gathered) -> Failure {
    let Some(last) = tried.last() else {
        return Failure::new(Kind::NothingOffered, "no offer meets the wishes any more");
    };
    let words = last.message.clone().unwrap_or_default();
    let count = tried.len();
    if last.outcome == Outcome::Unknown {
        // It was looked for as long as it could have turned up.
        return Failure::new(last.kind, format!("no machine was had, and none is known to run: {words}"));
    }
    if matches!(last.outcome, Outcome::NotReady | Outcome::Differs) {
        return Failure::new(
            Kind::NotReady,
            format!("no machine got ready, and all were removed again: {words}"),
        )
        .hint("try again, or another place: see `gpuprov offers`");
    }
    let all = |kind: ErrorKind| tried.iter().all(|tried| tried.kind == Kind::Cloud(kind));
    for kind in
        [ErrorKind::Rejected, ErrorKind::Auth, ErrorKind::Forbidden, ErrorKind::Balance, ErrorKind::Quota]
    {
        if all(kind) {
            let hint = last.hint.clone();
            let failure = Failure::new(Kind::Cloud(kind), format!("{}: {words}", last.offer.account));
            return Failure { hint, ..failure };
        }
    }
    if tried.iter().all(|tried| tried.outcome == Outcome::Dearer) {
        return Failure::new(Kind::TooDear, format!("only dearer than shown or allowed: {words}"));
    }
    let failure = Failure::new(
        Kind::Cloud(ErrorKind::NoCapacity),
        format!("none of {count} offers could be had; the last one: {words}"),
    );
    match hint(&gathered.misses) {
        Some(hint) => failure.hint(hint),
        None => failure.hint("wait for one with `--queue 1h`, or see `gpuprov offers` with fewer wishes"),
    }
}

/// Tells at the end what clouds said of requests that they found wrong: no list of refusals may bury it.
fn tell_rejections(tried: &[Tried], failure: Option<&Failure>, events: &dyn Events) {
    let mut told: Vec<String> = Vec::new();
    for tried in tried.iter().filter(|tried| tried.kind == Kind::Cloud(ErrorKind::Rejected)) {
        let message = format!(
            "refused {}: {}",
            tried.offer.instance_type,
            tried.message.as_deref().unwrap_or_default()
        );
        let known = told.contains(&message)
            || failure.is_some_and(|failure| {
                tried.message.as_ref().is_some_and(|words| failure.message.contains(words))
            });
        if !known {
            events.event(Event::Note { account: Some(&tried.offer.account), message: message.clone() });
            told.push(message);
        }
    }
}

/// Whether waiting may help.
fn waits_for(kind: Kind) -> bool {
    match kind {
        Kind::NothingOffered | Kind::TooDear | Kind::NotReady => true,
        Kind::Cloud(kind) => {
            matches!(
                kind,
                ErrorKind::NoCapacity
                    | ErrorKind::Quota
                    | ErrorKind::Unavailable
                    | ErrorKind::Timeout
                    | ErrorKind::RateLimited
            )
        }
        _ => false,
    }
}

fn stopped() -> Failure {
    Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped; nothing was created")
}
