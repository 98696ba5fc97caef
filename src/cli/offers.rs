//! `gpuprov offers`: one live list over all accounts, cheapest first.

use std::collections::HashSet;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::asking::{asking, failed_json, warn_failed};
use crate::cli::context::{App, Waits};
use crate::cli::failure::Exit;
use crate::cli::selection::Selection;
use crate::cli::table::{fit, number, table};
use crate::model::duration::show;
use crate::model::offer::{Offer, Stock};
use crate::provision::acquire::worst;
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::{Gathered, gather};
use crate::provision::names::unknown_name;
use crate::state::switches::Switch;

/// Rows of a table unless `--limit` says otherwise.
const ROWS: usize = 25;

/// Width of the column with model and count: `RTX4080SUPER:1`.
const GPU_WIDTH: usize = 14;

/// Lists live offers of all accounts, cheapest first
///
/// Prices are for the whole machine with the requested disk, per hour, without tax. Without --gpus, --cpu-only or
/// --instance-type it shows one-GPU machines, the cheapest of every model and account.
#[derive(Args, Clone, Debug)]
pub struct Offers {
    #[command(flatten)]
    selection: Selection,
    /// Show at most so many offers [default: 25 in a table, all with --json]
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    limit: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Offers {
    /// Returns the members of the JSON output as they are before anything is known.
    pub fn members(&self) -> Map<String, Value> {
        [("offers", json!([])), ("total", json!(0)), ("failed", json!([])), ("skipped", json!([]))]
            .map(|(name, empty)| (name.to_owned(), empty))
            .into_iter()
            .collect()
    }
}

/// Runs the command.
pub async fn run(command: &Offers, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut fields = command.members();
    let result = list(command, app, cancel, &mut fields).await;
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

async fn list(
    command: &Offers,
    app: &App,
    cancel: &Cancel,
    fields: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let chosen = command.selection.choose(&app.config)?;
    let waits = Waits { cloud_timeout: command.selection.cloud_timeout, boot_timeout: None };
    let connected = app.connect(waits, &chosen.accounts)?;
    let asking = asking(&connected, &chosen, &app.output, &[], false)?;
    fields.insert("skipped".to_owned(), asking.skipped_json());
    asking.check()?;
    let timeout = waits
        .cloud_timeout
        .or(app.config.wait.cloud_timeout)
        .unwrap_or(crate::accounts::registry::CLOUD_TIMEOUT);
    let mut gathered: Gathered = tokio::select! {
        gathered = gather(&asking.asked, timeout) => gathered,
        () = cancel.cancelled() => {
            return Err(Failure::new(Kind::Cloud(crate::cloud::ErrorKind::Interrupted), "stopped"));
        }
    };
    // An exact type may be of either kind, and only one of them may be switched on.
    gathered.offers.retain(|offer| {
        connected
            .get(&offer.account)
            .is_some_and(|account| Switch { gpu: account.gpu, cpu: account.cpu }.admits(offer.gpu_count))
    });
    if chosen.unspecific {
        keep_cheapest(&mut gathered.offers);
    }
    for (account, note) in &gathered.notes {
        app.output.warn(Kind::Note, Some(account), None, note);
    }
    fields.insert("failed".to_owned(), failed_json(&gathered.failed));
    if gathered.answered == 0
        && let Some(failure) = worst(&gathered.failed)
    {
        // The failure itself names one of them only.
        if gathered.failed.len() > 1 {
            warn_failed(&gathered.failed, &app.output);
        }
        return Err(failure);
    }
    warn_failed(&gathered.failed, &app.output);
    if let Some(failure) = unknown_name(&chosen.want, &gathered) {
        return Err(failure);
    }
    let total = gathered.offers.len();
    if app.output.is_json() {
        gathered.offers.truncate(command.limit.unwrap_or(usize::MAX));
        fields.insert("offers".to_owned(), serde_json::to_value(&gathered.offers).unwrap_or_default());
        fields.insert("total".to_owned(), total.into());
        return Ok(());
    }
    if total == 0 {
        app.output.progress("no offers");
        for near in gathered.misses.nearest() {
            app.output.progress(format!("  {near}"));
        }
        return Ok(());
    }
    let shown = total.min(command.limit.unwrap_or(ROWS));
    app.output.line(offer_table(&gathered.offers[..shown]));
    if let Some(line) = estimate_line(&gathered.offers[..shown]) {
        app.output.progress(line);
    }
    if shown < total {
        app.output.progress(format!("{} more; `--limit {total}` shows all", total - shown));
    }
    Ok(())
}

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or_else(|| "a whole number of 1 or more is needed".to_owned())
}

/// Keeps the cheapest offer of every model and account; they come in their order.
fn keep_cheapest(offers: &mut Vec<Offer>) {
    let mut seen = HashSet::new();
    offers.retain(|offer| seen.insert((offer.gpu.clone(), offer.account.clone())));
}

/// Returns offers as a table. Columns that no cloud of these tells anything for are left out: 80 columns are soon full.
pub fn offer_table(offers: &[Offer]) -> String {
    let mut header = vec!["$/HOUR", "GPU", "VRAM"];
    let mut right = vec![0, 2];
    let vcpus = offers.iter().any(|offer| offer.vcpus.is_some());
    let ram = offers.iter().any(|offer| offer.ram_gb.is_some());
    for (name, _) in [("VCPU", vcpus), ("RAM", ram), ("DISK", true)].into_iter().filter(|(_, told)| *told) {
        right.push(header.len());
        header.push(name);
    }
    header.extend(["WHERE", "ACCOUNT", "KIND"]);
    let rows = offers.iter().map(|offer| {
        let about = if offer.price_estimated { "~" } else { "" };
        let price = format!("{about}{}", offer.price_per_hour.four_decimals());
        let mut cells = vec![price, gpu_cell(offer), number(offer.vram_gb)];
        cells.extend(vcpus.then(|| number(offer.vcpus)));
        cells.extend(ram.then(|| number(offer.ram_gb)));
        cells.extend([
            offer.disk_gb.to_string(),
            fit(offer.zone.as_deref().or(offer.region.as_deref()).unwrap_or("-"), 14),
            fit(&offer.account.to_string(), 16),
            kind(offer),
        ]);
        cells
    });
    table(&header, &right, rows)
}

/// Returns model and count; a name that our table does not know is cut, without its maker.
fn gpu_cell(offer: &Offer) -> String {
    match &offer.gpu {
        Some(gpu) => {
            let count = format!(":{}", offer.gpu_count);
            format!("{}{count}", fit(gpu.strip_prefix("NVIDIA ").unwrap_or(gpu), GPU_WIDTH - count.len()))
        }
        None => fit(&offer.instance_type, GPU_WIDTH),
    }
}

/// Returns the few words that tell offers of one price apart.
fn kind(offer: &Offer) -> String {
    let mut words = Vec::new();
    if offer.sandbox {
        words.push("sandbox".to_owned());
    }
    if offer.spot {
        words.push("spot".to_owned());
    }
    // Clouds whose prices are a catalogue's vouch for everything, and their zones have long names.
    if offer.secure && !offer.price_estimated {
        words.push("secure".to_owned());
    }
    if let Some(stock) = offer.stock {
        let word = match stock {
            Stock::High => "hi",
            Stock::Medium => "med",
            Stock::Low => "lo",
        };
        words.push(word.to_owned());
    }
    words.join(" ")
}

/// Says what a price with `~` before it is; none where there is none.
fn estimate_line(offers: &[Offer]) -> Option<String> {
    let mut estimated = offers.iter().filter(|offer| offer.price_estimated).peekable();
    estimated.peek()?;
    let now = jiff::Timestamp::now();
    let oldest = estimated.filter_map(|offer| offer.price_as_of).min();
    let age = oldest.and_then(|at| std::time::Duration::try_from(now.duration_since(at)).ok());
    let age = age.map(|age| format!(", up to {} old", show(age))).unwrap_or_default();
    Some(format!("~ is the price of a list or a catalogue, not the cloud's own{age}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::filter::samples::offer;

    #[test]
    fn tables_stay_readable_at_80_columns() {
        let mut widest = offer("a zone with a long name", 123_456_789);
        widest.gpu = Some("RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb".to_owned());
        widest.account = "runpod/a-very-long-account-name-xyz".parse().unwrap();
        (widest.secure, widest.sandbox) = (true, false);
        let text = offer_table(&[widest, offer("EU-RO-1", 346_850)]);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let told = offer_table(&[Offer { vcpus: Some(16.0), ram_gb: Some(62.0), ..offer("EU-RO-1", 1) }]);
        assert!(told.contains("VCPU  RAM  DISK"), "{told}");
        let usual = offer_table(&[Offer {
            sandbox: true,
            secure: true,
            stock: Some(Stock::Medium),
            ..offer("EUR-NO-1", 346_850)
        }]);
        assert!(usual.lines().all(|line| line.chars().count() <= 80), "{usual}");
        let of_catalogue = Offer {
            spot: true,
            secure: true,
            price_estimated: true,
            price_as_of: jiff::Timestamp::now().checked_sub(jiff::Span::new().hours(47)).ok(),
            account: "gcp/default".parse().unwrap(),
            vcpus: Some(208.0),
            ram_gb: Some(1872.0),
            gpu: Some("A100-80GB".to_owned()),
            ..offer("europe-west4-a", 88_490_014)
        };
        let table = offer_table(std::slice::from_ref(&of_catalogue));
        assert!(table.contains("~88.4900  A100-80GB:1"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        let line = estimate_line(&[offer("EU-RO-1", 1), of_catalogue]).unwrap();
        assert!(line.contains("up to 1 d 23 h old"), "{line}");
        assert_eq!(estimate_line(&[offer("EU-RO-1", 1)]), None);
    }

    #[test]
    fn the_cheapest_of_every_model_and_account() {
        let mut other = offer("b", 2);
        other.gpu = Some("H100".to_owned());
        let mut offers = vec![offer("a", 1), other, offer("c", 3)];
        keep_cheapest(&mut offers);
        assert_eq!(offers.iter().map(|offer| offer.price_per_hour.micros()).collect::<Vec<_>>(), [1, 2]);
    }
}
