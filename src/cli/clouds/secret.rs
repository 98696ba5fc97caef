//! How a secret gets in: from a flag, from standard input, or by a question without an echo.

use std::io::Read;

use zeroize::Zeroizing;

use crate::accounts::Place;
use crate::cli::failure::usage;
use crate::cli::output::Output;
use crate::model::secret::Secret;
use crate::provision::failure::{Failure, Kind};

/// Longer input is no secret, in bytes.
const LIMIT: u64 = 1 << 20;

/// Takes a secret flag's value for clap; nothing of it can be shown.
pub(super) fn parse(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// Resolves the value of a flag: `-` is standard input (a question, where that is a terminal), anything else the secret
/// itself, which gets a warning.
pub(super) async fn given(
    flag: &'static str,
    label: &'static str,
    value: &Secret,
    output: &Output,
) -> Result<(Secret, Place), Failure> {
    if value.expose() != "-" {
        let secret = filled(flag, Secret::trimmed(value.expose()))?;
        let text = format!(
            "{flag}: a secret on the command line stands in the list of processes and in the shell's history; \
             `{flag} -` reads it from standard input"
        );
        output.warn(Kind::Note, None, None, &text);
        return Ok((secret, Place::Told(flag)));
    }
    if Output::can_ask() {
        return asked(flag, label).await;
    }
    let text = Zeroizing::new(blocking(read_stdin).await?);
    Ok((filled(flag, Secret::trimmed(&text))?, Place::Told("standard input")))
}

/// Asks a terminal, which shows nothing of the answer.
pub(super) async fn asked(flag: &'static str, label: &'static str) -> Result<(Secret, Place), Failure> {
    let question = format!("{label} (not shown): ");
    let answer = blocking(move || rpassword::prompt_password(question)).await?;
    let answer = Zeroizing::new(answer);
    Ok((filled(flag, Secret::trimmed(&answer))?, Place::Told("an answer on the terminal")))
}

/// Asks a terminal for something that is no secret.
pub(super) async fn asked_openly(label: &'static str, output: &Output) -> Result<String, Failure> {
    let answer = output.ask_text(&format!("{label}: ")).await;
    Some(answer.trim().to_owned())
        .filter(|answer| !answer.is_empty())
        .ok_or_else(|| usage(format!("no {label} was given")))
}

fn filled(flag: &str, secret: Secret) -> Result<Secret, Failure> {
    if secret.is_empty() { Err(usage(format!("{flag}: nothing is given"))) } else { Ok(secret) }
}

fn read_stdin() -> std::io::Result<String> {
    // Read to the end in one piece of memory, so that nothing is left behind where it grew.
    let mut text = String::with_capacity(64 << 10);
    std::io::stdin().take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

/// Nothing can interrupt a read from a terminal; in a thread of its own it holds nobody up.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let read = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other);
    read.and_then(|read| read).map_err(|error| usage(format!("the secret could not be read: {error}")))
}
