//! `gpuprov provision`: one machine, from the list to a login.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::asking::{Asking, asking, failed_json};
use crate::cli::context::{App, Waits};
use crate::cli::failure::{Exit, refused, usage};
use crate::cli::machine_args::MachineArgs;
use crate::cli::offers::offer_table;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::selection::{Chosen, Selection};
use crate::cli::view::{machine_json, row_of, unproven_row};
use crate::cloud::Preview;
use crate::model::account::AccountFilter;
use crate::model::duration::show;
use crate::model::machine::{MachineName, MachineState};
use crate::model::mark::{Claim, Mark};
use crate::model::offer::Offer;
use crate::model::offer_key::OfferKey;
use crate::model::spec::MachineSpec;
use crate::model::want::{Cluster, Kind as WantKind, Spot, TypeWant, Want};
use crate::plan::refuse::Soft;
use crate::provision::acquire::acquire;
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::within;
use crate::provision::rehearse::{Rehearsal, rehearse};
use crate::provision::{Context, Report, Request};
use crate::ssh::Include;
use crate::ssh::exec::{agent_socket, check_config};
use crate::ssh::keys::{self, KeyPair, Programs};
use crate::state::env;
use crate::state::record::Record;

/// Gets a machine: the cheapest offer that can be had, checked again, created, and logged in to
///
/// It ends when `ssh NAME` works. Whatever goes wrong, nothing is left that costs money and that `gpuprov ls` does not show.
#[derive(Args, Clone, Debug)]
pub struct Provision {
    #[command(flatten)]
    selection: Selection,
    /// The machine's name: 2 to 40 of a-z, 0-9 and dash; one is made if none is given
    #[arg(long, value_name = "NAME")]
    name: Option<MachineName>,
    /// Take this offer as it is, by its id from `gpuprov offers --json`; nothing else is tried
    #[arg(long, value_name = "ID")]
    offer: Option<String>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Take dear offers without a question
    #[arg(long, short = 'y')]
    yes: bool,
    /// Show what would be tried and the first request; create nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Provision {
    /// Whether nothing is to be created.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Returns the members of the JSON output as they are before anything is known.
    pub fn members(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let members: &[&str] = if self.dry_run {
            fields.insert("dry_run".to_owned(), true.into());
            fields.insert("request".to_owned(), Value::Null);
            &["offers", "failed", "skipped"]
        } else {
            &["machines", "tried", "failed", "skipped"]
        };
        fields.extend(members.iter().map(|name| ((*name).to_owned(), json!([]))));
        fields
    }
}

/// Runs the command.
pub async fn run(command: &Provision, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut fields = command.members();
    let result = work(command, app, cancel, &mut fields).await;
    app.output.end_live();
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}

async fn work(
    command: &Provision,
    app: &App,
    cancel: &Cancel,
    fields: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let (mut chosen, offer) = match &command.offer {
        Some(id) => by_offer(command, app, id)?,
        None => {
            let chosen = command.selection.choose(&app.config)?;
            if chosen.unspecific {
                return Err(usage("say what is wanted: one of --gpus, --cpu-only, --instance-type, --offer")
                    .hint("for example `gpuprov provision --gpus RTX4090:1 --name dev`"));
            }
            (chosen, None)
        }
    };
    // A flag insists: an account without a cluster would be bought for nothing. A default waits where there is one.
    if command.machine.wait.as_deref() == Some("k8s") {
        if command.selection.no_k8s {
            return Err(usage("`--wait k8s` does not go with `--no-k8s`"));
        }
        chosen.want.cluster = Cluster::Insist;
    }
    let by_default = app.config.defaults.wait.as_deref() == Some("k8s");
    let wait_cluster = match command.machine.wait.as_deref() {
        Some(what) => what == "k8s",
        None => chosen.want.cluster == Cluster::Insist || by_default,
    };
    let env = command.machine.environment(app)?;
    let names: Vec<String> = env.iter().map(|(name, _)| name.clone()).collect();
    let script = command.machine.script(app)?;
    let waits =
        Waits { cloud_timeout: command.selection.cloud_timeout, boot_timeout: command.machine.boot_timeout };
    let connected = app.connect(waits, &chosen.accounts)?;
    let asking = asking(&connected, &chosen, &app.output, &names, true)?;
    fields.insert("skipped".to_owned(), asking.skipped_json());
    let queue = command.machine.queue.or(app.config.defaults.queue).filter(|_| !command.dry_run);
    // With a queue, an account that is switched off now may come back.
    if queue.is_none() || asking.off.is_empty() {
        asking.check()?;
    }
    let context = app.context(&connected, waits)?;
    if let Some(why) = &connected.unproven {
        return Err(refused(format!("{why}; without it nobody could tell later who pays for the machine")));
    }
    let key = prepare(command, app, &context).await?;
    let defaults = &app.config.defaults;
    let answered = command.yes || command.offer.is_some() || chosen.want.max_price.is_some();
    let request = Request {
        want: chosen.want.clone(),
        offer,
        name: command.name.clone(),
        key,
        env,
        startup_script: script,
        wait_cluster,
        attempts: command.machine.attempts.or(defaults.attempts).unwrap_or(3),
        ttl: command.machine.ttl.or(defaults.ttl),
        keep_failed: command.machine.keep_failed || defaults.keep_failed.unwrap_or(false),
        queue,
        ask_above: defaults.ask_above.filter(|_| !answered),
    };
    if command.dry_run {
        return dry_run(app, &context, &request, &asking, fields).await;
    }
    let progress = Progress::new(&app.output);
    let report = acquire(&context, &request, &asking.all(), &progress, cancel).await;
    app.output.end_live();
    finish(app, &context, report, fields).await
}

/// Reads `--offer ID` into a request for exactly that.
fn by_offer(command: &Provision, app: &App, id: &str) -> Result<(Chosen, Option<Offer>), Failure> {
    if let Some(flag) = command.selection.beside_offer() {
        return Err(usage(format!("{flag} does not go with --offer: the id says it all")));
    }
    let key = OfferKey::decode(id).map_err(usage)?;
    let mut want = Want::new(
        WantKind::Types(vec![TypeWant { name: key.instance_type.clone(), count: Some(key.gpu_count) }]),
        key.disk_gb,
    );
    if key.gpu_count == 0 {
        want.kind = WantKind::CpuOnly;
    }
    want.spot = if key.spot { Spot::Only } else { Spot::No };
    want.cuda = None;
    // Wishes that are not about which offer it is.
    let beside = Selection {
        image: command.selection.image.clone(),
        port: command.selection.port.clone(),
        k8s: command.selection.k8s,
        no_k8s: command.selection.no_k8s,
        max_price: command.selection.max_price,
        ..Selection::default()
    }
    .choose(&app.config)?;
    want.image = beside.want.image;
    want.ports = beside.want.ports;
    want.cluster = beside.want.cluster;
    // A flag is a word for paying up to it. A default is none: it still holds, but allows nothing beyond what the id says.
    let default = app.config.defaults.max_price.filter(|most| *most < key.price);
    want.max_price = command.selection.max_price.or(default);
    want.disk_given = true;
    let offer = Offer::of_key(id, &key);
    let chosen = Chosen {
        want,
        soft: Soft { spot: false, ..beside.soft },
        accounts: vec![AccountFilter::Account(key.account)],
        soft_accounts: false,
        unspecific: false,
        gpu_count: Some(key.gpu_count),
    };
    Ok((chosen, Some(offer)))
}

/// Makes sure, before anything costs, that a machine could be recorded and logged in to.
async fn prepare(command: &Provision, app: &App, context: &Context) -> Result<KeyPair, Failure> {
    let Some(ssh) = app.program("ssh") else {
        return Err(refused("there is no `ssh` program in PATH").hint("install OpenSSH's client"));
    };
    context.registry.check_writable().map_err(refused)?;
    context.ssh.check().map_err(|error| refused(format!("our ssh files: {error}")))?;
    let ssh_files = |error: std::io::Error| refused(format!("our ssh files: {error}"));
    let draft = context.ssh.draft().map_err(ssh_files)?;
    let name = command.name.as_ref().map_or("gpuprov-machine", MachineName::as_str);
    check_config(&ssh, draft.path(), name).await.map_err(|words| {
        refused(format!("ssh does not take its configuration, so no login could work: {words}"))
            .hint("mend the file that it names; `ssh -G x` shows what ssh makes of it")
    })?;
    drop(draft);
    let keygen = app.program("ssh-keygen");
    let Some(ssh_keygen) = keygen else {
        return Err(refused("there is no `ssh-keygen` program in PATH").hint("install OpenSSH's client"));
    };
    let programs = Programs { ssh_keygen, ssh_add: app.program("ssh-add") };
    let configured = match (&command.machine.ssh_key, &app.config.ssh.key) {
        (Some(path), _) => {
            let text = path.to_str().ok_or_else(|| refused("--ssh-key: the path is not UTF-8"))?;
            let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
            Some(app.paths.resolve(text, &base).map_err(refused)?)
        }
        (None, Some(path)) => Some(app.paths.resolve(path, app.config.folder()).map_err(refused)?),
        (None, None) => None,
    };
    if configured.as_deref().is_some_and(|path| path.to_str().is_none()) {
        return Err(refused("the path of the ssh key is not UTF-8"));
    }
    let user_config = app.paths.user_ssh_config.clone().filter(|path| path.exists());
    let socket =
        agent_socket(&ssh, user_config.as_deref(), "gpuprov-machine", app.env.get(&env::SSH_AUTH_SOCK)).await;
    let key = keys::resolve(configured.as_deref(), context.ssh.dir(), &programs, socket.as_deref())
        .await
        .map_err(|error| refused(with_sources(&error)))?;
    if key.made {
        app.output.progress(format!("made a key pair for machines: {}", key.identity_file.display()));
    }
    Ok(key)
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

async fn dry_run(
    app: &App,
    context: &Context,
    request: &Request,
    asking: &Asking,
    fields: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let progress = Progress::new(&app.output);
    let mut failed = Vec::new();
    let rehearsed = rehearse(context, request, &asking.asked, &progress, &mut failed).await;
    fields.insert("failed".to_owned(), failed_json(&failed));
    let Rehearsal { offers, name } = rehearsed?;
    let preview = preview(context, request, asking, &offers[0], name)?;
    fields.insert("offers".to_owned(), serde_json::to_value(&offers).unwrap_or_default());
    fields.insert("request".to_owned(), serde_json::to_value(&preview).unwrap_or_default());
    app.output.line(offer_table(&offers[..offers.len().min(25)]));
    app.output.line(format!(
        "\n{} {}\n{}",
        preview.method,
        preview.url,
        serde_json::to_string_pretty(&preview.body).unwrap_or_default()
    ));
    Ok(())
}

fn preview(
    context: &Context,
    request: &Request,
    asking: &Asking,
    first: &Offer,
    name: MachineName,
) -> Result<Preview, Failure> {
    let Some(asked) = asking.asked.iter().find(|asked| *asked.cloud.account() == first.account) else {
        return Err(Failure::new(Kind::NothingOffered, "the account of the first offer is not asked"));
    };
    let claim = Claim::random().map_err(refused)?;
    let mark = Mark {
        installation: context.installation.clone(),
        account: first.account.name().to_owned(),
        name: name.to_string(),
        claim,
        expires: request.ttl.map(|ttl| Timestamp::now() + ttl),
        owner: context.owner.clone(),
    };
    let spec = MachineSpec {
        name,
        public_key: request.key.public_line.clone(),
        image: asked.want.image.clone(),
        env: request.env.clone(),
        ports: asked.want.ports.clone(),
        cluster: request.want.cluster,
    };
    Ok(asked.cloud.preview(first, &spec, &mark))
}

async fn finish(
    app: &App,
    context: &Context,
    report: Report,
    fields: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let output: &Arc<Output> = &app.output;
    fields.insert("failed".to_owned(), failed_json(&report.failed));
    let tried: Value = report
        .tried
        .iter()
        .map(|tried| {
            json!({
                "offer": tried.offer.id,
                "account": tried.offer.account,
                "price_per_hour": tried.offer.price_per_hour,
                "outcome": tried.outcome.as_str(),
                "kind": tried.kind.as_str(),
                "message": tried.message,
            })
        })
        .collect();
    fields.insert("tried".to_owned(), tried);
    let left = report.left.iter().map(|left| {
        let mut row = unproven_row(left.name.clone(), left.account.clone(), left.id.clone());
        row.message = Some(left.message.clone());
        row
    });
    let now = Timestamp::now();
    let mut machines: Vec<Value> = left.map(|row| machine_json(&row, Some(context), now)).collect();
    let Some(record) = &report.record else {
        fields.insert("machines".to_owned(), machines.into());
        return report.failure.map_or(Ok(()), Err);
    };
    // Whatever failed beside it: a machine that is ready can be logged in to.
    machines.insert(0, machine_json(&row_of(record), Some(context), now));
    let runs = record.state == MachineState::Running;
    if runs {
        include(app, context);
        if let Some(end) = record.expires_at {
            let left = show(std::time::Duration::try_from(end.duration_since(now)).unwrap_or_default());
            let text = match ends_itself(context, record).await {
                Some(at) => {
                    format!("`{}` ends in {left}: the cloud deletes it by itself at {at:.0}", record.name)
                }
                None => format!(
                    "`{}` is to end in {left}, but the cloud does not end it: `gpuprov rm --expired` does, here or on any \
                     computer with the installation id `{}`",
                    record.name, record.installation
                ),
            };
            output.warn(Kind::Note, None, Some(record.name.as_str()), &text);
        }
    }
    fields.insert("machines".to_owned(), machines.into());
    if let Some(failure) = report.failure {
        return Err(failure);
    }
    let price = record.price_per_hour.unwrap_or_default();
    output.progress(format!("{} is running for {price}/h: `ssh {0}` or `gpuprov ssh {0}`", record.name));
    output.line(&record.name);
    Ok(())
}

/// Lets the user's own ssh find our machines.
fn include(app: &App, context: &Context) {
    let output = &app.output;
    let plain = |why: &str| {
        let text = format!("{why}; plain ssh: `ssh -F {} NAME`", context.ssh.config_file().display());
        output.warn(Kind::Note, None, None, &text);
    };
    if !context.manage_ssh_config {
        return plain("`ssh.manage_config` is false");
    }
    match context.ssh.ensure_include() {
        Ok(Include::Present) => {}
        Ok(Include::Added { path, line }) => {
            let text = format!("added `{line}` to {}; delete that line to undo it", path.display());
            output.warn(Kind::Note, None, None, &text);
        }
        Err(error) => plain(&with_sources(&error)),
    }
    if let Some(note) = context.ssh.plain_ssh_note() {
        output.warn(Kind::Note, None, None, &note);
    }
}

/// Asks the cloud when it will end the machine; none where it does not say that it will.
async fn ends_itself(context: &Context, record: &Record) -> Option<Timestamp> {
    let attempt = record.current()?;
    let (cloud, handle) = (context.account(&attempt.account)?, attempt.handle.as_ref()?);
    let look = within(context.cloud_timeout, cloud, "looking at the machine", cloud.inspect(handle)).await;
    look.ok()?.ends_at
}
