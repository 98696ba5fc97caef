//! The token of the outside world: read from a file, asked for at an address, or printed by a command.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use super::external::{External, Format, Source};
use crate::http::{Client, Method, Retry};
use crate::model::secret::{Secret, VARIABLES};
use crate::model::words::one_line;

/// No token is longer.
const MOST_BYTES: usize = 256 * 1024;

/// Returns the token, or why there is none. Nothing of the token, of headers or of a command's output is in the reason.
pub(super) async fn token(external: &External, http: &Client, within: Duration) -> Result<Secret, String> {
    match &external.source {
        Source::File { path, format } => {
            let shown = path.display();
            let bytes =
                tokio::fs::read(path).await.map_err(|error| format!("the token file {shown}: {error}"))?;
            read(&bytes, format).map_err(|why| format!("the token file {shown} {why}"))
        }
        Source::Address { url, headers, format } => {
            let mut request = http.request(Method::GET, url).retry(Retry::Safe).within(within);
            for (name, value) in headers {
                request = request.secret_header(name, value);
            }
            let answer = request.send().await.map_err(|error| format!("asking for the token: {error}"))?;
            if !answer.is_success() {
                return Err(format!("asking for the token: status {}", answer.status));
            }
            read(&answer.body, format).map_err(|why| format!("the answer with the token {why}"))
        }
        Source::Command { command, timeout, output_file } => {
            if let Some(kept) = output_file.as_deref().and_then(kept) {
                return Ok(kept);
            }
            run(external, command, *timeout, output_file.as_deref()).await
        }
    }
}

fn read(bytes: &[u8], format: &Format) -> Result<Secret, String> {
    if bytes.len() > MOST_BYTES {
        return Err("is too large".to_owned());
    }
    let text = match format {
        Format::Text => std::str::from_utf8(bytes).map_err(|_| "is no text".to_owned())?.to_owned(),
        Format::Json(name) => {
            let body: Value = serde_json::from_slice(bytes).map_err(|_| "is no JSON".to_owned())?;
            let token = body.get(name).and_then(Value::as_str);
            token.ok_or_else(|| format!("holds no `{}`", one_line(name, 40)))?.to_owned()
        }
    };
    let token = Secret::trimmed(&text);
    if token.is_empty() { Err("is empty".to_owned()) } else { Ok(token) }
}

/// What a command prints (google.aip.dev/auth/4117).
#[derive(Deserialize)]
struct Printed {
    version: Option<u32>,
    success: Option<bool>,
    token_type: Option<String>,
    expiration_time: Option<i64>,
    id_token: Option<String>,
    saml_response: Option<String>,
    code: Option<Value>,
    message: Option<String>,
}

impl Printed {
    fn token(self) -> Result<Secret, String> {
        if self.success != Some(true) {
            let code = self.code.map(|code| code.to_string()).unwrap_or_default();
            let words = one_line(&self.message.unwrap_or_default(), 200);
            return Err(format!("the command gave no token: {words} ({code})"));
        }
        if self.version.is_some_and(|version| version > 1) {
            return Err("the command prints a newer format than gpuprov knows".to_owned());
        }
        if self.expiration_time.is_some_and(|at| at <= Timestamp::now().as_second()) {
            return Err("the command gave a token that has expired".to_owned());
        }
        let saml = self.token_type.as_deref().is_some_and(|kind| kind.ends_with("saml2"));
        let token = if saml { self.saml_response } else { self.id_token };
        let token = token.map(|token| Secret::trimmed(&token)).filter(|token| !token.is_empty());
        token.ok_or_else(|| "the command printed no token".to_owned())
    }
}

/// Returns the token that a command left in its file, while it lasts.
fn kept(file: &Path) -> Option<Secret> {
    let printed: Printed = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let lasts = printed.expiration_time? > Timestamp::now().as_second() + 60;
    lasts.then(|| printed.token().ok()).flatten()
}

async fn run(
    external: &External,
    line: &str,
    most: Duration,
    output: Option<&Path>,
) -> Result<Secret, String> {
    let words = words(line);
    let Some((program, arguments)) = words.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE", &external.audience)
        .env("GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE", &external.token_type)
        .env("GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(email) = external.email() {
        command.env("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL", email);
    }
    if let Some(file) = output {
        command.env("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", file);
    }
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    let shown = one_line(program, 80);
    let ran = tokio::time::timeout(most, command.output()).await;
    let output = ran
        .map_err(|_| format!("the command {shown} did not end within {most:?}"))?
        .map_err(|error| format!("the command {shown}: {error}"))?;
    if output.stdout.len() > MOST_BYTES {
        return Err(format!("the command {shown} prints too much"));
    }
    match serde_json::from_slice::<Printed>(&output.stdout) {
        Ok(printed) => printed.token(),
        Err(_) if !output.status.success() => Err(format!("the command {shown} failed ({})", output.status)),
        Err(_) => Err(format!("what the command {shown} prints is not the JSON that it should be")),
    }
}

/// Splits a command line as a shell would, as far as quotes go. No shell is asked.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut begun, mut quote) = (Vec::new(), String::new(), false, None);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                word.extend(characters.next());
                begun = true;
            }
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_like_a_shell_does() {
        for (line, split) in [
            ("/bin/token --for me", vec!["/bin/token", "--for", "me"]),
            (r#"  "/opt/my tool" 'a b' c\ d "" "#, vec!["/opt/my tool", "a b", "c d", ""]),
            (r#"x "a\"b" 'c\d'"#, vec!["x", "a\"b", "c\\d"]),
            ("", vec![]),
        ] {
            assert_eq!(words(line), split, "{line}");
        }
    }

    #[test]
    fn tokens_come_as_text_or_in_json() {
        let text = |bytes: &[u8], format: &Format| read(bytes, format).map(|token| token.expose().to_owned());
        assert_eq!(text(b" eyJ.a.b\n", &Format::Text).unwrap(), "eyJ.a.b");
        let json = Format::Json("value".to_owned());
        assert_eq!(text(br#"{"value": "eyJ.a.b", "count": 1}"#, &json).unwrap(), "eyJ.a.b");
        for (bytes, format) in [
            (&b" \n"[..], &Format::Text),
            (b"\xff\xfe", &Format::Text),
            (b"eyJsecret", &json),
            (br#"{"token": "eyJsecret"}"#, &json),
            (br#"{"value": 7}"#, &json),
        ] {
            let why = read(bytes, format).unwrap_err();
            assert!(!why.contains("eyJsecret"), "{why}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_survived(line in "[\\\\\"' a-z]{0,30}") {
            let _ = words(&line);
        }
    }
}
