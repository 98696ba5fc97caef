//! `gpuprov clouds list`: every account, connected or found.

use clap::Args;

use super::view::{self, Row};
use crate::cli::context::{App, Waits};
use crate::provision::failure::Failure;

/// Lists every account, connected or found, with where its credentials come from; no cloud is asked
#[derive(Args, Clone, Debug)]
pub(super) struct List {
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(app: &App, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let connected = app.connect_for_machines(Waits::default(), &[])?;
    *rows = view::rows(app, &connected);
    if let Some(why) = &connected.unswitched {
        let message = format!("it is not known which accounts are switched off: {why}");
        return Err(crate::cli::failure::refused(message));
    }
    if rows.is_empty() {
        app.output.progress("no account; `gpuprov clouds set CLOUD` connects one");
    } else {
        app.output.line(view::text(rows));
    }
    Ok(())
}
