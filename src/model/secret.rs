//! Secrets: values that never show themselves.

use std::fmt;

use zeroize::Zeroizing;

/// The environment variables whose values are secret. Programs that we start for our own purposes do not inherit them.
pub const VARIABLES: [&str; 5] = [
    "RUNPOD_API_KEY",
    "VAST_API_KEY",
    "VERDA_CLIENT_SECRET",
    "NEBIUS_IAM_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
];

/// A secret text (API key, token, environment value). It has no `Display`, its `Debug` shows nothing of it, and its memory
/// is wiped when it goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret, without the white space around it (keys are often pasted with a line end).
    pub fn trimmed(text: &str) -> Self {
        Secret(Zeroizing::new(text.trim().to_owned()))
    }

    /// Wraps a secret as it is.
    pub fn new(text: String) -> Self {
        Secret(Zeroizing::new(text))
    }

    /// Returns the secret itself. Each caller must be able to say where it ends up.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last four characters behind an ellipsis, for telling keys apart; nothing of a secret under 12 characters.
    pub fn hint(&self) -> String {
        let count = self.0.chars().count();
        let tail: String = if count < 12 { String::new() } else { self.0.chars().skip(count - 4).collect() };
        let printable = tail.chars().all(|c| c.is_ascii_graphic());
        format!("…{}", if printable { tail.as_str() } else { "" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_shown_but_the_hint() {
        let secret = Secret::trimmed(" rpa_0123456789abcdef\n");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(secret.hint(), "…cdef");
        assert_eq!(secret.expose(), "rpa_0123456789abcdef");
        assert_eq!(Secret::trimmed("short").hint(), "…");
    }
}
