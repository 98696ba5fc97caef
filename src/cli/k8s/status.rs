//! `gpuprov k8s status`: one look at the machine.

use std::time::Duration;

use clap::Args;

use super::reach::{keep, none_begun, not_ready, reach, status_json, unanswered};
use crate::cli::context::App;
use crate::cli::failure::Exit;
use crate::cloud::ErrorKind;
use crate::cluster::State;
use crate::cluster::status::ask;
use crate::model::machine::MachineName;
use crate::provision::cancel::Cancel;
use crate::provision::failure::{Failure, Kind};

#[derive(Args, Clone, Debug)]
pub(super) struct StatusCommand {
    /// The machine
    pub(super) name: MachineName,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(command: &StatusCommand, app: &App, cancel: &Cancel) -> Result<Exit, Failure> {
    let mut fields = super::members(&command.name);
    let name = &command.name;
    let look = async {
        let client = reach(app, name).await?;
        ask(&client, name, "", Duration::ZERO).await.map_err(|error| unanswered(name, &error))
    };
    let looked = tokio::select! {
        looked = look => looked,
        () = cancel.cancelled() => Err(Failure::new(Kind::Cloud(ErrorKind::Interrupted), "stopped")),
    };
    let result = looked.and_then(|status| status.ok_or_else(|| none_begun(name)));
    let result = result.map(|status| {
        fields.insert("k8s".to_owned(), status_json(&status));
        keep(app, name, &status.recorded());
        let version = status.version.as_deref().map(|version| format!(" ({version})")).unwrap_or_default();
        app.output.line(format!("{}{version}: {}", status.state.as_str(), status.shown()));
        if let Some(warned) = &status.warned {
            app.output.warn(Kind::Note, None, Some(name.as_str()), warned);
        }
        // The question was answered: that the answer is no good is a warning.
        if status.state == State::Failed {
            let failure = not_ready(name, &status.shown());
            let hint = failure.hint.unwrap_or_default();
            let text = format!("{}; {hint}", failure.message);
            app.output.warn(failure.kind, None, Some(name.as_str()), &text);
        }
    });
    app.output.document(fields, result.as_ref().err());
    result.map(|()| Exit::Done)
}
