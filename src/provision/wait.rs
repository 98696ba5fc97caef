//! Waiting for a machine: one loop of single looks for all clouds, with the login beside it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::cloud::{Cloud, Error, ErrorKind, Look, Reached, Sold};
use crate::cluster::Plan;
use crate::model::account::AccountId;
use crate::model::gpu::Gpu;
use crate::model::handle::Handle;
use crate::model::machine::{MachineState, SshAddress};
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::model::secret::Secret;
use crate::provision::Context;
use crate::provision::cancel::Cancel;
use crate::provision::events::{Event, Events};
use crate::provision::gather::within;
use crate::provision::login::{Door, Key, Login, log_in};
use crate::provision::setup::{FIRST_COMMAND, FirstLook, first_look, first_script};
use crate::state::journal::Open;
use crate::state::record::RecordedSsh;

/// How often a line of progress is told.
const TOLD: Duration = Duration::from_secs(1);
/// How often the note of another command is looked for.
pub(super) const NOTE: Duration = Duration::from_millis(500);

/// A machine that is waited for.
#[derive(Debug)]
pub struct Waiting<'a> {
    /// Its account.
    pub cloud: &'a Arc<dyn Cloud>,
    /// Where it is.
    pub handle: &'a Handle,
    /// What was bought.
    pub offer: &'a Offer,
    /// Its record.
    pub open: &'a Open,
    /// The key to log in with.
    pub identity_file: &'a PathBuf,
    /// The key that the machine must admit, one `authorized_keys` line.
    pub public_key: &'a str,
    /// Whether the container image is the user's.
    pub own_image: bool,
    /// Set as soon as a look by its id shows it.
    pub seen: &'a AtomicBool,
    /// Environment for every login.
    pub env: &'a [(String, Secret)],
    /// The cluster whose set-up the first login starts.
    pub cluster: Option<&'a Plan>,
    /// When the create was sent.
    pub since: Instant,
}

/// How the wait ended.
#[derive(Debug)]
pub enum End {
    /// A login works.
    Ready(Ready),
    /// The cloud says that it will not come up.
    Failed(Box<Error>),
    /// The budget is spent, or a login can never work.
    NotReady(String),
    /// The cloud made something else than what was agreed.
    Differs(String),
    /// Somebody else removed it.
    Elsewhere,
    /// The user wants to stop.
    Interrupted,
    /// Another command wants it removed.
    Wanted,
}

/// A machine that can be logged in to.
#[derive(Debug)]
pub struct Ready {
    /// Where.
    pub address: SshAddress,
    /// Whether the host key was learnt over the cloud's API.
    pub host_key_known: bool,
    /// What the first login told.
    pub look: FirstLook,
}

/// Returns the name under which a machine's host key is kept: addresses and ports are used again by strangers' machines.
pub fn host_key_alias(account: &AccountId, id: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    format!("gpuprov-{}-{}", account.cloud(), id.chars().map(fits).collect::<String>())
}

/// Waits until a login works or it is certain that none will.
pub async fn until_ready(
    context: &Context,
    machine: &Waiting<'_>,
    events: &dyn Events,
    cancel: &Cancel,
) -> End {
    let (door, doors) = watch::channel(None);
    let (login_words, last_login) = watch::channel(String::new());
    let (cloud_words, last_look) = watch::channel(String::new());
    let capabilities = machine.cloud.capabilities();
    let name = machine.open.name().clone();
    let alias = host_key_alias(machine.cloud.account(), &machine.handle.id);
    let script = first_script(machine.env, machine.cluster);
    let key = Key {
        name: &name,
        identity_file: machine.identity_file,
        alias: &alias,
        cloud: machine.cloud,
        handle: machine.handle,
        public_key: machine.public_key,
    };
    let login = async {
        loop {
            let first = (FIRST_COMMAND, script.expose().as_bytes());
            match log_in(context, &key, doors.clone(), first, &login_words).await {
                Login::Never(why) => return End::NotReady(why),
                Login::In { output, address, host_key_known } => {
                    match first_look(
                        &output,
                        machine.offer,
                        !machine.env.is_empty(),
                        machine.cluster.is_some(),
                    ) {
                        Some(look) => return End::Ready(Ready { address, host_key_known, look }),
                        None => {
                            login_words.send_replace("the first command did not run to its end".to_owned());
                            tokio::time::sleep(TOLD).await;
                        }
                    }
                }
            }
        }
    };
    let telling = async {
        loop {
            tokio::time::sleep(TOLD).await;
            let words = [last_look.borrow().clone(), last_login.borrow().clone()];
            let words: Vec<String> = words.into_iter().filter(|words| !words.is_empty()).collect();
            events.event(Event::Waiting { words: words.join("; "), elapsed: machine.since.elapsed() });
        }
    };
    let wanted = async {
        while !machine.open.is_wanted() {
            tokio::time::sleep(NOTE).await;
        }
    };
    let extra = if machine.own_image { capabilities.own_image_extra } else { Duration::ZERO };
    let budget = capabilities.boot_budget.saturating_add(extra);
    let left = budget.saturating_sub(machine.since.elapsed());
    tokio::select! {
        biased;
        () = cancel.cancelled() => End::Interrupted,
        () = wanted => End::Wanted,
        end = login => end,
        end = looks(context, machine, &door, &cloud_words) => end,
        () = tokio::time::sleep(left) => {
            let words = [last_look.borrow().clone(), last_login.borrow().clone()].join("; ");
            let budget = crate::model::duration::show(budget);
            End::NotReady(format!("no login in {budget} ({})", words.trim_matches([' ', ';'])))
        }
        () = telling => End::Interrupted,
    }
}

/// Looks at the machine at its cloud's own pace; ends only when it cannot come up.
async fn looks(
    context: &Context,
    machine: &Waiting<'_>,
    door: &watch::Sender<Option<Door>>,
    words: &watch::Sender<String>,
) -> End {
    let capabilities = machine.cloud.capabilities();
    let mut seen = false;
    let mut missed = 0;
    loop {
        match within(
            context.cloud_timeout,
            machine.cloud,
            "looking at the machine",
            machine.cloud.inspect(machine.handle),
        )
        .await
        {
            Ok(look) => {
                if look.state == MachineState::Gone && look.failed.is_none() {
                    // One answer of one server may be behind the others.
                    missed += 1;
                    if missed > 1 && (seen || machine.since.elapsed() > capabilities.listing_lag) {
                        return End::Elsewhere;
                    }
                    words.send_replace("not in the cloud's list yet".to_owned());
                } else {
                    (seen, missed) = (true, 0);
                    machine.seen.store(true, Ordering::Relaxed);
                    if let Some(end) = judge(machine, &look) {
                        return end;
                    }
                    words.send_replace(look.words.clone().unwrap_or_else(|| look.state.to_string()));
                    note_sold(machine, &look.sold);
                    if !look.ssh.is_empty() {
                        let now = Door { addresses: look.ssh, keys: look.host_keys };
                        door.send_if_modified(|door| {
                            let new = door.as_ref() != Some(&now);
                            if new {
                                if let Some(first) = now.addresses.first() {
                                    note_address(machine, first);
                                }
                                *door = Some(now);
                            }
                            new
                        });
                    }
                }
            }
            Err(error) => {
                words.send_replace(error.message.clone());
                if let Some(wait) = error.retry_after {
                    tokio::time::sleep(wait.min(Duration::from_secs(30))).await;
                }
            }
        }
        let pace = capabilities.poll;
        tokio::time::sleep(if machine.since.elapsed() < pace.first_for && machine.cloud.is_roomy() {
            pace.first
        } else {
            pace.then
        })
        .await;
    }
}

fn judge(machine: &Waiting<'_>, look: &Look) -> Option<End> {
    if let Some(failed) = &look.failed {
        // A cloud may say with its late refusal that it made nothing after all.
        let reached = if failed.reached == Reached::No { Reached::No } else { Reached::Yes };
        let mut error =
            Error::new(failed.kind, &failed.account, failed.doing, failed.message.clone(), reached);
        error.limit.clone_from(&failed.limit);
        error.prefer.clone_from(&failed.prefer);
        error.hint.clone_from(&failed.hint);
        error.user_input = failed.user_input;
        return Some(End::Failed(Box::new(error)));
    }
    match look.state {
        MachineState::Failed | MachineState::Stopped | MachineState::Preempted | MachineState::Deleting => {
            let words = look.words.clone().unwrap_or_else(|| look.state.to_string());
            let message = format!("the machine ended before it was ready: {words}");
            let account = machine.cloud.account();
            return Some(End::Failed(Box::new(Error::new(
                ErrorKind::NoCapacity,
                account,
                "waiting for the machine",
                message,
                Reached::Yes,
            ))));
        }
        _ => {}
    }
    disagreement(machine.offer, &look.sold).map(End::Differs)
}

/// Compares what the cloud says it made with what was agreed; none if it is that.
pub fn disagreement(offer: &Offer, sold: &Sold) -> Option<String> {
    if let Some(price) = sold.price_per_hour {
        // Some clouds tell a price with the disk in it, some without; the disk's share covers both.
        let allowed = offer.price_per_hour
            + Usd::from_micros(offer.price_per_hour.micros() / 100)
            + offer.price_parts.disk
            + Usd::from_micros(1000);
        if price > allowed {
            return Some(format!("it costs {price}/h, {}/h was agreed", offer.price_per_hour));
        }
    }
    if offer.spot && sold.spot == Some(false) {
        return Some("it is on demand, spot was agreed".to_owned());
    }
    if let Some(count) = sold.gpu_count
        && count != offer.gpu_count
    {
        return Some(format!("it has {count} GPUs, {} were agreed", offer.gpu_count));
    }
    // Some hosts give less disk than was rented; what is counted in GB and GiB is the same.
    if let Some(disk) = sold.disk_gb
        && f64::from(disk) < f64::from(offer.disk_gb) * 0.92
    {
        return Some(format!("it has {disk} GB of disk, {} were agreed", offer.disk_gb));
    }
    if let (Some(raw), Some(agreed)) = (&sold.gpu_raw, &offer.gpu) {
        let made = Gpu::identify(raw, offer.vram_gb);
        let same_spelling = offer.gpu_raw.as_deref().is_some_and(|agreed| agreed.trim() == raw.trim());
        if !same_spelling && made.known && made.name != *agreed {
            return Some(format!("it has a {}, a {agreed} was agreed", made.name));
        }
    }
    None
}

/// Keeps the address, so that `gpuprov ssh` gets to a machine that was kept though it did not get ready.
fn note_address(machine: &Waiting<'_>, address: &SshAddress) {
    // Comfort only, as below.
    let _ = machine.open.update(|record| {
        record.ssh = Some(RecordedSsh {
            address: address.clone(),
            identity_file: machine.identity_file.display().to_string(),
            host_key_known: false,
        });
    });
}

/// Keeps what only the cloud can tell about the machine it made.
fn note_sold(machine: &Waiting<'_>, sold: &Sold) {
    let record = machine.open.record();
    let news = (sold.vcpus.is_some() && record.vcpus != sold.vcpus)
        || (sold.ram_gb.is_some() && record.ram_gb != sold.ram_gb)
        || (sold.zone.is_some() && record.zone != sold.zone);
    if news {
        // Comfort only: a full disk here must not give up a machine that comes up.
        let _ = machine.open.update(|record| {
            record.vcpus = sold.vcpus.or(record.vcpus);
            record.ram_gb = sold.ram_gb.or(record.ram_gb);
            record.zone = sold.zone.clone().or(record.zone.take());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::filter::samples::offer;

    #[test]
    fn what_was_sold_is_compared_with_what_was_agreed() {
        let offer = {
            let mut offer = offer("EU-RO-1", 346_850);
            offer.price_parts.disk = Usd::from_micros(6_850);
            offer
        };
        let dollars = |price: f64| Sold { price_per_hour: Usd::from_f64(price), ..Sold::default() };
        assert_eq!(disagreement(&offer, &Sold::default()), None);
        assert_eq!(disagreement(&offer, &dollars(0.34)), None);
        assert_eq!(disagreement(&offer, &dollars(0.355)), None);
        assert!(disagreement(&offer, &dollars(0.69)).unwrap().contains("$0.69/h"));
        let cases = [
            (Sold { gpu_count: Some(8), ..Sold::default() }, true),
            (Sold { gpu_count: Some(1), ..Sold::default() }, false),
            (Sold { gpu_raw: Some("NVIDIA GeForce RTX 3090".to_owned()), ..Sold::default() }, true),
            (Sold { gpu_raw: Some("RTX 4090".to_owned()), ..Sold::default() }, false),
            (Sold { gpu_raw: Some("a GPU nobody knows".to_owned()), ..Sold::default() }, false),
            (Sold { spot: Some(false), ..Sold::default() }, false),
            (Sold { disk_gb: Some(10), ..Sold::default() }, true),
            (Sold { disk_gb: Some(47), ..Sold::default() }, false),
        ];
        for (sold, differs) in cases {
            assert_eq!(disagreement(&offer, &sold).is_some(), differs, "{sold:?}");
        }
        let spot = Offer { spot: true, ..offer };
        assert!(disagreement(&spot, &Sold { spot: Some(false), ..Sold::default() }).is_some());
    }
}
