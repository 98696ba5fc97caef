//! Which variables go into the container. All of them are also written over ssh after the first login, so one that Vast
//! might mangle is better left out here than refused.

use serde_json::{Map, Value};

use crate::model::mark::{MARK_VARIABLE, Mark};
use crate::model::secret::Secret;

/// Longest entry (docs.vast.ai/api-reference, `createInstance`, input validation).
const LONGEST: usize = 256;

/// Longest sum of all entries.
const LONGEST_SUM: usize = 32_768;

/// The environment of a create, and what was left out of it.
pub(super) struct Environment {
    /// What is sent: an object. As text in the form of Docker's flags, which the published document shows, it is refused or
    /// ignored (github.com/skypilot-org/skypilot/issues/9486).
    pub(super) sent: Map<String, Value>,
    /// Names of variables that reach the machine over ssh alone.
    pub(super) left_out: Vec<String>,
}

/// Returns the environment: the mark, and of the user's what fits.
pub(super) fn environment(mark: &Mark, user: &[(String, Secret)]) -> Environment {
    let mut sent = Map::new();
    let mark = mark.to_text();
    let mut sum = MARK_VARIABLE.len() + mark.len();
    sent.insert(MARK_VARIABLE.to_owned(), Value::from(mark));
    let mut left_out = Vec::new();
    for (name, value) in user.iter().filter(|(name, _)| name != MARK_VARIABLE) {
        let length = name.len() + 1 + value.expose().len();
        if !is_plain_name(name) || !is_plain(value.expose()) || length > LONGEST || sum + length > LONGEST_SUM
        {
            left_out.push(name.clone());
            continue;
        }
        sum += length;
        sent.insert(name.clone(), Value::from(value.expose()));
    }
    Environment { sent, left_out }
}

/// Whether a name can only be a variable's: `-p 80:80` as a name would open a port.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a value comes through as it is: blanks and quotes are taken apart on the way.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:/@%+=,".contains(&b))
}

/// Returns the note about variables that were left out.
pub(super) fn note(left_out: &[String]) -> Option<String> {
    (!left_out.is_empty()).then(|| {
        format!(
            "{} in every login, but not in the container's own environment: Vast takes short values without blanks and quotes only",
            match left_out {
                [one] => format!("{one} is"),
                all => format!("{} are", all.join(", ")),
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()))).collect()
    }

    fn mark() -> Mark {
        Mark::from_text("v1:lab:default:dev:00ff00ff00ff00ff::").unwrap()
    }

    #[test]
    fn what_fits_is_sent_and_the_rest_is_named() {
        let long = "x".repeat(300);
        let user = pairs(&[
            ("TOKEN", "abc=="),
            ("URL", "https://x.example/a?b"),
            ("PATH_LIKE", "/a:/b"),
            ("SPACED", "a b"),
            ("QUOTED", "a\"b"),
            ("EMPTY", ""),
            ("LONG", &long),
            ("-p 80:80", "1"),
            ("9X", "1"),
            (MARK_VARIABLE, "v1:evil"),
        ]);
        let environment = environment(&mark(), &user);
        let names: Vec<&str> = environment.sent.keys().map(String::as_str).collect();
        assert_eq!(names, ["GPUPROV_MARK", "TOKEN", "PATH_LIKE"]);
        assert_eq!(environment.sent["GPUPROV_MARK"], mark().to_text());
        assert_eq!(environment.left_out, ["URL", "SPACED", "QUOTED", "EMPTY", "LONG", "-p 80:80", "9X"]);
        assert!(note(&environment.left_out).unwrap().starts_with("URL, SPACED, "));
        assert_eq!(note(&[]), None);
    }

    #[test]
    fn the_sum_is_bounded() {
        let names: Vec<String> = (0..200).map(|at| format!("V{at}")).collect();
        let value = "x".repeat(240);
        let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        let environment = environment(&mark(), &pairs(&all));
        let sum: usize =
            environment.sent.iter().map(|(name, value)| name.len() + value.as_str().unwrap().len()).sum();
        assert!(sum <= LONGEST_SUM && environment.left_out.len() > 50);
    }
}
