//! All output goes through here: results to stdout, everything else to stderr, one JSON document when asked for.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value, json};

use crate::cli::failure;
use crate::model::account::AccountId;
use crate::provision::failure::{Failure, Kind};

/// Version of the JSON output.
const VERSION: u32 = 1;

/// Where output goes and what it looks like.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    warnings: Mutex<Vec<Value>>,
    bar: Mutex<Option<indicatif::ProgressBar>>,
}

impl Output {
    /// Returns the output of one command.
    pub fn new(json: bool, quiet: bool) -> Self {
        Output { json, quiet, warnings: Mutex::default(), bar: Mutex::default() }
    }

    /// Whether one JSON document is asked for.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether progress may redraw a line.
    pub fn is_live(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Whether somebody can be asked.
    pub fn can_ask() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Prints a line of result, for people and scripts.
    pub fn line(&self, text: impl Display) {
        if !self.json {
            write_out(&format!("{text}\n"));
        }
    }

    /// Prints a line of progress.
    pub fn progress(&self, text: impl Display) {
        if !self.quiet {
            self.write_err(&format!("{text}\n"));
        }
    }

    /// Tells something the user should know; it also stands under `warnings` in JSON.
    pub fn warn(&self, kind: Kind, account: Option<&AccountId>, name: Option<&str>, message: &str) {
        let warning = json!({
            "kind": kind.as_str(),
            "message": message,
            "account": account.map(ToString::to_string),
            "name": name,
        });
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.contains(&warning) {
            return;
        }
        warnings.push(warning);
        drop(warnings);
        if !self.quiet {
            let style = Style::new().fg_color(Some(AnsiColor::Yellow.into())).bold();
            let word = if kind == Kind::Note { "note" } else { "warning" };
            let whom = account.map(|account| format!("{account}: ")).unwrap_or_default();
            self.write_err(&format!("{style}{word}:{style:#} {whom}{message}\n"));
        }
    }

    /// Prints a failure with its hint.
    pub fn failure(&self, failed: &Failure) {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        self.write_err(&format!("{red}error:{red:#} {}\n", failed.message));
        if let Some(hint) = failure::hint(failed) {
            let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into())).bold();
            self.write_err(&format!("\n{cyan}hint:{cyan:#} {hint}\n"));
        }
    }

    /// Prints the one JSON document, if one is asked for.
    pub fn document(&self, mut fields: Map<String, Value>, failed: Option<&Failure>) {
        if !self.json {
            return;
        }
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = failed.map(|failed| {
            json!({"kind": failed.kind.as_str(), "message": failed.message, "hint": failure::hint(failed)})
        });
        let mut document = Map::new();
        document.insert("version".to_owned(), VERSION.into());
        document.insert("warnings".to_owned(), Value::Array(warnings));
        document.insert("error".to_owned(), error.unwrap_or(Value::Null));
        document.append(&mut fields);
        let text = serde_json::to_string_pretty(&Value::Object(document)).unwrap_or_default();
        write_out(&format!("{text}\n"));
    }

    /// Asks a question with yes or no; no is the default. The future can be dropped: the question is then left unanswered.
    pub async fn ask(&self, question: &str) -> bool {
        let answer = self.ask_text(&format!("{question} [y/N] ")).await;
        matches!(answer.trim(), "y" | "Y" | "yes" | "Yes")
    }

    /// Asks a question with a line of text for an answer; nothing is nothing. The future can be dropped, as above.
    pub async fn ask_text(&self, question: &str) -> String {
        self.write_err(question);
        // Nothing can interrupt a read from a terminal; in a thread of its own it holds nobody up.
        let read = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer).map(|_| answer)
        });
        read.await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Shows `text` on the line that is drawn again and again.
    pub fn live(&self, text: &str) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bar.get_or_insert_with(|| {
            let bar = indicatif::ProgressBar::new_spinner();
            bar.enable_steady_tick(std::time::Duration::from_millis(120));
            bar
        });
        bar.set_message(text.to_owned());
    }

    /// Takes the line away that is drawn again and again.
    pub fn end_live(&self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }

    fn write_err(&self, text: &str) {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || {
            // A closed stderr is no reason to stop cleaning up.
            let _ = anstream::stderr().lock().write_all(text.as_bytes());
        };
        match bar.as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// Writes to stdout. A closed pipe (`gpuprov offers | head`) is no failure.
fn write_out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = LOST.set(error.to_string());
        }
        _ => {}
    }
}

/// Why a result could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// Returns why a result could not be written (a full disk behind stdout); none if all was, or nobody reads it any more.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes text that was made elsewhere (help, the sandbox's variables) to stdout as it is.
pub fn raw(text: &str) {
    write_out(text);
}
