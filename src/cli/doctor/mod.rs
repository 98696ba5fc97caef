//! `gpuprov doctor`: looks at everything that gpuprov needs and says how to mend what is wrong. It changes nothing.
//!
//! `local` looks at this computer, `machines` at the records, `clouds` at accounts, certificates and the clock.

mod clouds;
mod local;
mod machines;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::context::App;
use crate::cli::failure::Exit;
use crate::model::duration;
use crate::provision::failure::{Failure, Kind};

/// Checks ssh, files, accounts and the clock, and says how to mend what is wrong
///
/// It changes nothing. It ends with 0 when all is well, else with 1.
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    /// How long any one account may take to answer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    cloud_timeout: Option<std::time::Duration>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What one look gave.
#[derive(Debug)]
struct Check {
    name: String,
    ok: bool,
    message: String,
    fix: Option<String>,
}

/// The looks so far.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn good(&mut self, name: impl Into<String>, message: impl Into<String>) {
        self.0.push(Check { name: name.into(), ok: true, message: message.into(), fix: None });
    }

    fn bad(&mut self, name: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        let fix = Some(fix.into()).filter(|fix| !fix.is_empty());
        self.0.push(Check { name: name.into(), ok: false, message: message.into(), fix });
    }
}

/// Runs the command. `config` is what is wrong with the configuration, which then counts as empty.
pub async fn run(command: &Doctor, app: &App, config: Option<&Failure>) -> Result<Exit, Failure> {
    let mut checks = Checks::default();
    local::programs(app, &mut checks).await;
    local::directories(app, &mut checks);
    local::config(app, config, &mut checks);
    local::key(app, &mut checks).await;
    local::home(app, &mut checks);
    machines::ssh_config(app, &mut checks).await;
    machines::records(app, &mut checks);
    clouds::all(app, command.cloud_timeout, &mut checks).await;
    let wrong = checks.0.iter().filter(|check| !check.ok).count();
    for check in &checks.0 {
        let word = if check.ok { "ok   " } else { "WRONG" };
        app.output.line(format!("{word}  {}: {}", check.name, check.message));
        if let Some(fix) = &check.fix {
            app.output.line(format!("         {fix}"));
        }
    }
    let shown: Vec<Value> = checks
        .0
        .iter()
        .map(|check| json!({"name": check.name, "ok": check.ok, "message": check.message, "fix": check.fix}))
        .collect();
    let mut fields = Map::new();
    fields.insert("checks".to_owned(), shown.into());
    let failure = match wrong {
        0 => None,
        1 => Some(Failure::new(Kind::Local, "1 thing is wrong")),
        count => Some(Failure::new(Kind::Local, format!("{count} things are wrong"))),
    };
    app.output.document(fields, failure.as_ref());
    failure.map_or(Ok(Exit::Done), Err)
}
