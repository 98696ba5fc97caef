//! Machines as JSON and tables show them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::table::{fit, table};
use crate::cloud::Look;
use crate::cluster::State;
use crate::http::client::is_loopback as is_loopback_url;
use crate::model::account::AccountId;
use crate::model::duration::show;
use crate::model::gpu::Gpu;
use crate::model::machine::MachineState;
use crate::model::money::Usd;
use crate::model::offer::Offer;
use crate::provision::cancel::Exposed;
use crate::provision::survey::Row;
use crate::provision::{Context, cost_since};
use crate::state::record::{Record, RecordedCluster};

/// Returns the row of a record as it is.
pub fn row_of(record: &Record) -> Row {
    let attempt = record.current();
    Row {
        name: record.name.to_string(),
        account: attempt.map(|attempt| attempt.account.clone()),
        id: attempt.and_then(|attempt| attempt.handle.as_ref()).map(|handle| handle.id.clone()),
        handle: None,
        state: record.state,
        mark: None,
        look: None,
        since: record.machine_at,
        message: record.message.clone(),
        record: Some(Box::new(record.clone())),
    }
}

/// Returns the row of something that may exist and has no record.
pub fn unproven_row(name: String, account: Option<AccountId>, id: Option<String>) -> Row {
    Row {
        name,
        account,
        id,
        handle: None,
        state: MachineState::Unknown,
        mark: None,
        look: None,
        since: None,
        message: None,
        record: None,
    }
}

/// Returns the MACHINE object of something that may exist, as far as it is known.
pub fn exposed_json(exposed: &Exposed) -> Value {
    let mut row = unproven_row(exposed.name.clone(), exposed.account.clone(), exposed.id.clone());
    let mut look = Look::of(MachineState::Unknown);
    look.sold.price_per_hour = exposed.price;
    row.look = Some(look);
    row.message = Some("may still exist and cost money".to_owned());
    machine_json(&row, None, Timestamp::now())
}

/// Returns what was agreed per hour, or what the cloud tells of a machine without a record.
pub fn price(row: &Row) -> Option<Usd> {
    let agreed = row.record.as_ref().and_then(|record| {
        record.price_per_hour.or_else(|| record.current().map(|attempt| attempt.offer.price_per_hour))
    });
    agreed.or_else(|| row.look.as_ref().and_then(|look| look.sold.price_per_hour))
}

/// Returns what the present state costs per hour, where that can be told.
pub fn costs_now(row: &Row) -> Option<Usd> {
    if let Some(told) = row.look.as_ref().and_then(|look| look.costs_now) {
        return Some(told);
    }
    match row.state {
        MachineState::Gone => Some(Usd::ZERO),
        MachineState::Running | MachineState::Booting | MachineState::Creating | MachineState::Deleting => {
            price(row)
        }
        _ => None,
    }
}

/// Returns our estimate of what it cost so far.
pub fn cost_so_far(row: &Row, now: Timestamp) -> Option<Usd> {
    price(row).zip(row.since).map(|(price, since)| cost_since(price, since, now))
}

/// Returns the MACHINE object of the JSON output. Without a context there is no record either.
pub fn machine_json(row: &Row, context: Option<&Context>, now: Timestamp) -> Value {
    let record = row.record.as_deref();
    let attempt = record.and_then(Record::current);
    let offer: Option<&Offer> = attempt.map(|attempt| &attempt.offer);
    let sold = row.look.as_ref().map(|look| &look.sold);
    let account = row.account.as_ref();
    let told = sold.and_then(|sold| sold.gpu_raw.as_deref()).map(|raw| Gpu::identify(raw, None));
    let ssh = match (
        record.and_then(|record| record.ssh.as_ref()),
        row.look.as_ref().map(|look| look.ssh.as_slice()).unwrap_or_default(),
    ) {
        (Some(ssh), now) => {
            let files = context.map(|context| &context.ssh);
            let kept = now.is_empty() || now.contains(&ssh.address);
            let address = now.first().filter(|_| !kept).unwrap_or(&ssh.address);
            let known_hosts = record
                .zip(files)
                .map(|(record, files)| files.known_hosts(&record.name).to_string_lossy().into_owned());
            json!({
                "host": address.host(), "port": address.port(), "user": address.user(),
                "identity_file": ssh.identity_file,
                "known_hosts_file": known_hosts,
                "config_file": files.map(|files| files.config_file().to_string_lossy().into_owned()),
            })
        }
        (None, [address, ..]) => json!({
            "host": address.host(), "port": address.port(), "user": address.user(),
            "identity_file": null, "known_hosts_file": null, "config_file": null,
        }),
        (None, []) => Value::Null,
    };
    let age = row.since.map(|since| now.duration_since(since).as_secs().max(0));
    let sandbox = context.is_some_and(|context| is_sandbox(row, context));
    let mark = row.mark.as_ref();
    json!({
        "name": row.name,
        "account": account,
        "cloud": account.map(|account| account.cloud().as_str()),
        "id": row.id,
        "state": row.state,
        "region": offer.and_then(|offer| offer.region.clone()).or_else(|| sold.and_then(|sold| sold.region.clone())),
        "country": offer.and_then(|offer| offer.country),
        "zone": record.and_then(|record| record.zone.clone())
            .or_else(|| sold.and_then(|sold| sold.zone.clone()))
            .or_else(|| offer.and_then(|offer| offer.zone.clone())),
        "instance_type": offer.map(|offer| offer.instance_type.clone())
            .or_else(|| sold.and_then(|sold| sold.instance_type.clone())),
        "gpu": offer.map_or_else(|| told.as_ref().map(|gpu| gpu.name.clone()), |offer| offer.gpu.clone()),
        "gpu_count": offer.map(|offer| offer.gpu_count).or_else(|| sold.and_then(|sold| sold.gpu_count)),
        "vram_gb": offer.map_or_else(|| told.as_ref().and_then(|gpu| gpu.vram_gb), |offer| offer.vram_gb),
        "vcpus": record.and_then(|record| record.vcpus).or_else(|| offer.and_then(|offer| offer.vcpus))
            .or_else(|| sold.and_then(|sold| sold.vcpus)),
        "ram_gb": record.and_then(|record| record.ram_gb).or_else(|| offer.and_then(|offer| offer.ram_gb))
            .or_else(|| sold.and_then(|sold| sold.ram_gb)),
        "disk_gb": offer.map(|offer| offer.disk_gb).or_else(|| sold.and_then(|sold| sold.disk_gb)),
        "spot": offer.map(|offer| offer.spot).or_else(|| sold.and_then(|sold| sold.spot)),
        "price_per_hour": price(row),
        "costs_now_per_hour": costs_now(row),
        "created_at": row.since.or_else(|| record.map(|record| record.created_at)),
        "age_seconds": age,
        "cost_so_far": cost_so_far(row, now),
        "expires_at": expires(row),
        "ssh": ssh,
        "gpu_check": record.and_then(|record| record.gpu_check),
        "k8s": record.and_then(|record| record.k8s.clone()),
        "message": row.message,
        "installation": record.map(|record| record.installation.to_string())
            .or_else(|| mark.map(|mark| mark.installation.to_string())),
        "owner": record.and_then(|record| record.owner.as_ref().map(ToString::to_string))
            .or_else(|| mark.and_then(|mark| mark.owner.as_ref().map(ToString::to_string))),
        "claim": attempt.map(|attempt| attempt.claim).or_else(|| mark.map(|mark| mark.claim)),
        "recorded": row.record.is_some() || account.is_none(),
        "sandbox": sandbox,
    })
}

/// Whether it is the sandbox's machine and no real one.
pub fn is_sandbox(row: &Row, context: &Context) -> bool {
    let bought = row.record.as_ref().and_then(|record| record.current()).map(|attempt| attempt.offer.sandbox);
    bought.or_else(|| row.account.as_ref().map(|id| is_loopback(context, id))).unwrap_or(false)
}

/// Returns the cluster of a machine that runs; of another one nothing is told.
fn cluster(row: &Row) -> Option<&RecordedCluster> {
    row.record.as_ref().filter(|_| row.state == MachineState::Running)?.k8s.as_ref()
}

/// Returns why the machine has no cluster, where one was begun and failed.
pub fn failed_cluster(row: &Row) -> Option<&str> {
    let cluster = cluster(row).filter(|cluster| cluster.state == State::Failed.as_str())?;
    Some(cluster.message.as_deref().unwrap_or("unknown"))
}

/// Returns when it is to end.
pub fn expires(row: &Row) -> Option<Timestamp> {
    let recorded = row.record.as_ref().and_then(|record| record.expires_at);
    recorded.or_else(|| row.mark.as_ref().and_then(|mark| mark.expires))
}

/// Whether an account is the sandbox's.
pub fn is_loopback(context: &Context, id: &AccountId) -> bool {
    context.account(id).is_some_and(|cloud| {
        let endpoint = cloud.identity().endpoint;
        url::Url::parse(&endpoint).is_ok_and(|url| is_loopback_url(&url))
    })
}

/// Returns machines as a table; `all` adds whose they are.
pub fn machine_table(rows: &[Row], all: bool, now: Timestamp) -> String {
    let mut header = vec!["NAME", "STATE", "GPU", "WHERE", "ACCOUNT", "AGE", "$/HOUR", "SO FAR"];
    let ends = rows.iter().any(|row| expires(row).is_some());
    if ends {
        header.push("ENDS IN");
    }
    let clusters = rows.iter().any(|row| cluster(row).is_some());
    if clusters {
        header.push("K8S");
    }
    if all {
        header.extend(["OWNER", "INSTALLATION"]);
    }
    let cells = rows.iter().map(|row| {
        let offer = row.record.as_ref().and_then(|record| record.current()).map(|attempt| &attempt.offer);
        let sold = row.look.as_ref().map(|look| &look.sold);
        let gpu = offer
            .and_then(|offer| offer.gpu.clone().map(|gpu| format!("{gpu}:{}", offer.gpu_count)))
            .or_else(|| {
                let raw = sold?.gpu_raw.as_deref()?;
                Some(format!("{}:{}", Gpu::identify(raw, None).name, sold?.gpu_count.unwrap_or(1)))
            });
        let zone = row
            .record
            .as_ref()
            .and_then(|record| record.zone.clone())
            .or_else(|| sold.and_then(|sold| sold.zone.clone()))
            .or_else(|| offer.and_then(|offer| offer.zone.clone()));
        let money = |amount: Option<Usd>| amount.map_or_else(|| "-".to_owned(), Usd::four_decimals);
        let age = row
            .since
            .map(|since| std::time::Duration::try_from(now.duration_since(since)).unwrap_or_default());
        let mut cells = vec![
            fit(&row.name, 20),
            row.state.to_string(),
            fit(&gpu.unwrap_or_else(|| "-".to_owned()), 16),
            fit(&zone.unwrap_or_else(|| "-".to_owned()), 12),
            fit(&row.account.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string), 16),
            age.map_or_else(|| "-".to_owned(), short_age),
            money(costs_now(row).or_else(|| price(row))),
            money(cost_so_far(row, now)),
        ];
        if ends {
            cells.push(match expires(row) {
                None => "-".to_owned(),
                Some(end) if end <= now => "over".to_owned(),
                Some(end) => {
                    short_age(std::time::Duration::try_from(end.duration_since(now)).unwrap_or_default())
                }
            });
        }
        if clusters {
            cells.push(cluster(row).map_or_else(|| "-".to_owned(), |cluster| fit(&cluster.state, 12)));
        }
        if all {
            let mark = row.mark.as_ref();
            let record = row.record.as_ref();
            let owner = record
                .and_then(|record| record.owner.clone())
                .or_else(|| mark.and_then(|mark| mark.owner.clone()))
                .map_or_else(|| "-".to_owned(), |owner| owner.to_string());
            let installation = record
                .map(|record| record.installation.to_string())
                .or_else(|| mark.map(|mark| mark.installation.to_string()))
                .unwrap_or_else(|| "-".to_owned());
            cells.extend([fit(&owner, 12), fit(&installation, 14)]);
        }
        cells
    });
    table(&header, &[6, 7], cells)
}

fn short_age(age: std::time::Duration) -> String {
    show(age).split(' ').take(2).collect::<Vec<_>>().concat()
}
