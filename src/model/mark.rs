//! The marks that every machine and every side resource carries on the cloud's side. A stored format: it never changes meaning.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use ring::rand::SecureRandom;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Name of the environment variable that carries the marks at clouds without labels (RunPod, Vast).
pub const MARK_VARIABLE: &str = "GPUPROV_MARK";

/// Why a text is no mark value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// Not an installation id or owner.
    #[error("`{0}` does not fit: 1 to 40 of a-z, 0-9 and dash")]
    Label(String),
    /// Not a claim.
    #[error("`{0}` is not a claim: 16 hexadecimal digits")]
    Claim(String),
    /// The system has no random numbers to give.
    #[error("the system's random number generator does not answer")]
    NoRandom,
}

fn is_label(text: &str) -> bool {
    (1..=40).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Returns the text as it stands in the mark.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = MarkError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if is_label(text) { Ok($name(text.to_owned())) } else { Err(MarkError::Label(text.to_owned())) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

label! {
    /// Whoever has the same installation id is the same installation: a second computer, or every run of a CI pipeline.
    Installation
}
label! {
    /// Who the machine is for, from `defaults.owner`; it is the only mark that may say who somebody is.
    Owner
}

impl Installation {
    /// Makes a new id of 12 random hexadecimal digits.
    pub fn random() -> Result<Self, MarkError> {
        let claim = Claim::random()?.to_string();
        Ok(Installation(claim[..12].to_owned()))
    }
}

/// One attempt to make a machine: 64 random bits, new for every attempt, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim(u64);

impl Claim {
    /// Makes a new claim.
    pub fn random() -> Result<Self, MarkError> {
        let mut bytes = [0; 8];
        ring::rand::SystemRandom::new().fill(&mut bytes).map_err(|_| MarkError::NoRandom)?;
        Ok(Claim(u64::from_be_bytes(bytes)))
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Claim {
    type Err = MarkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        hex.then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .map(Claim)
            .ok_or_else(|| MarkError::Claim(text.to_owned()))
    }
}

impl Serialize for Claim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Everything that says whose a machine or side resource is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The installation that made it.
    pub installation: Installation,
    /// The account's name without the cloud (a slash does not fit a label).
    pub account: String,
    /// The machine's name.
    pub name: String,
    /// The attempt.
    pub claim: Claim,
    /// When the machine is to end; none if it has no end.
    pub expires: Option<Timestamp>,
    /// Who it is for, if anybody said so.
    pub owner: Option<Owner>,
}

impl Mark {
    /// Returns the one-line form, `v1:INSTALLATION:ACCOUNT:NAME:CLAIM:EXPIRES:OWNER`, absent values empty.
    pub fn to_text(&self) -> String {
        let expires = self.expires.map(|at| at.as_second().to_string()).unwrap_or_default();
        let owner = self.owner.as_ref().map(Owner::as_str).unwrap_or_default();
        let Mark { installation, account, name, claim, .. } = self;
        format!("v1:{installation}:{account}:{name}:{claim}:{expires}:{owner}")
    }

    /// Reads the one-line form; none if it is not ours. More fields at the end, as a later version may write, are let through;
    /// an end or owner that cannot be read is left out rather than losing sight of the machine.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':');
        if parts.next()? != "v1" {
            return None;
        }
        let installation = parts.next()?.parse().ok()?;
        let account = parts.next().filter(|part| !part.is_empty())?.to_owned();
        let name = parts.next().filter(|part| !part.is_empty())?.to_owned();
        let claim = parts.next()?.parse().ok()?;
        let expires = parts.next().and_then(seconds);
        let owner = parts.next().and_then(|part| part.parse().ok());
        Some(Mark { installation, account, name, claim, expires, owner })
    }

    /// Returns the labels or tags, for clouds that have them.
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        let mut labels = vec![
            ("gpuprov", "1".to_owned()),
            ("gpuprov-install", self.installation.to_string()),
            ("gpuprov-account", self.account.clone()),
            ("gpuprov-name", self.name.clone()),
            ("gpuprov-claim", self.claim.to_string()),
        ];
        labels.extend(self.owner.as_ref().map(|owner| ("gpuprov-owner", owner.to_string())));
        labels.extend(self.expires.map(|at| ("gpuprov-expires", at.as_second().to_string())));
        labels
    }

    /// Reads the labels that `get` finds by their names; none if they are not ours.
    pub fn from_labels<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        if get("gpuprov")? != "1" {
            return None;
        }
        Some(Mark {
            installation: get("gpuprov-install")?.parse().ok()?,
            account: get("gpuprov-account")?.to_owned(),
            name: get("gpuprov-name")?.to_owned(),
            claim: get("gpuprov-claim")?.parse().ok()?,
            expires: get("gpuprov-expires").and_then(seconds),
            owner: get("gpuprov-owner").and_then(|owner| owner.parse().ok()),
        })
    }

    /// Returns the name of the machine on the cloud's side: `gpuprov-NAME-` and the first 6 digits of the claim. It is for
    /// people and never decides anything.
    pub fn cloud_name(&self) -> String {
        format!("gpuprov-{}-{}", self.name, &self.claim.to_string()[..6])
    }
}

fn seconds(text: &str) -> Option<Timestamp> {
    text.parse().ok().and_then(|second| Timestamp::from_second(second).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark() -> impl Strategy<Value = Mark> {
        (
            "[a-z0-9-]{1,40}",
            "[a-z0-9-]{1,30}",
            "[a-z][a-z0-9-]{0,38}[a-z0-9]",
            any::<u64>(),
            proptest::option::of(0_i64..4_000_000_000),
            proptest::option::of("[a-z0-9-]{1,40}"),
        )
            .prop_map(|(installation, account, name, claim, expires, owner)| Mark {
                installation: installation.parse().unwrap(),
                account,
                name,
                claim: Claim(claim),
                expires: expires.map(|at| Timestamp::from_second(at).unwrap()),
                owner: owner.map(|owner| owner.parse().unwrap()),
            })
    }

    proptest! {
        #[test]
        fn both_forms_round_trip(mark in mark()) {
            prop_assert_eq!(Mark::from_text(&mark.to_text()), Some(mark.clone()));
            let labels = mark.labels();
            let get = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str());
            prop_assert_eq!(Mark::from_labels(get), Some(mark));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,120}") {
            let _ = Mark::from_text(&text);
        }
    }

    #[test]
    fn the_text_is_the_stored_format() {
        let mark = Mark {
            installation: "team-ci".parse().unwrap(),
            account: "default".to_owned(),
            name: "dev".to_owned(),
            claim: "00ff00ff00ff00ff".parse().unwrap(),
            expires: None,
            owner: None,
        };
        assert_eq!(mark.to_text(), "v1:team-ci:default:dev:00ff00ff00ff00ff::");
        assert_eq!(mark.cloud_name(), "gpuprov-dev-00ff00");
    }

    #[test]
    fn foreign_and_later_marks() {
        for foreign in [
            "",
            "v2:a:b:c:00ff00ff00ff00ff::",
            "v1:a:b",
            "v1:A!:b:c:00ff00ff00ff00ff::",
            "v1:a::c:00ff00ff00ff00ff::",
            "v1:a:b:c:xyz::",
        ] {
            assert_eq!(Mark::from_text(foreign), None, "{foreign}");
        }
        let later = Mark::from_text("v1:a:b:c:00ff00ff00ff00ff:soon:Ana:more").unwrap();
        assert_eq!((later.expires, later.owner), (None, None));
    }
}
