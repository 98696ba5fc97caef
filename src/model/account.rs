//! Clouds and accounts: `<cloud>/<name>`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One of the five clouds. Only `accounts/registry.rs` matches on it exhaustively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CloudKind {
    /// Google Cloud (Compute Engine).
    Gcp,
    /// Nebius.
    Nebius,
    /// RunPod.
    Runpod,
    /// Vast.
    Vast,
    /// Verda.
    Verda,
}

impl CloudKind {
    /// All clouds, in the order of their names.
    pub const ALL: [CloudKind; 5] =
        [CloudKind::Gcp, CloudKind::Nebius, CloudKind::Runpod, CloudKind::Vast, CloudKind::Verda];

    /// Returns the word used on the command line and in account ids.
    pub fn as_str(self) -> &'static str {
        match self {
            CloudKind::Gcp => "gcp",
            CloudKind::Nebius => "nebius",
            CloudKind::Runpod => "runpod",
            CloudKind::Vast => "vast",
            CloudKind::Verda => "verda",
        }
    }

    /// Returns the name people know the cloud by.
    pub fn title(self) -> &'static str {
        match self {
            CloudKind::Gcp => "Google Cloud",
            CloudKind::Nebius => "Nebius",
            CloudKind::Runpod => "RunPod",
            CloudKind::Vast => "Vast",
            CloudKind::Verda => "Verda",
        }
    }
}

impl fmt::Display for CloudKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CloudKind {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        CloudKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| AccountIdError::UnknownCloud(text.to_owned()))
    }
}

/// Why a text is no account id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountIdError {
    /// The part before the slash names no cloud.
    #[error("`{0}` is not a cloud; the clouds are gcp, nebius, runpod, vast, verda")]
    UnknownCloud(String),
    /// The part after the slash is not a valid account name.
    #[error("`{0}` is not an account name: 1 to 30 lower-case letters, digits and dashes")]
    BadName(String),
}

/// An account: a cloud and the name that its owner gave it (`default` if none), shown as `runpod/default`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId {
    cloud: CloudKind,
    name: String,
}

impl AccountId {
    /// Returns the id of `cloud`'s account `name` (1 to 30 lower-case letters, digits, dashes).
    pub fn new(cloud: CloudKind, name: &str) -> Result<Self, AccountIdError> {
        let fits = (1..=30).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits {
            Ok(AccountId { cloud, name: name.to_owned() })
        } else {
            Err(AccountIdError::BadName(name.to_owned()))
        }
    }

    /// Returns `<cloud>/default`.
    pub fn default_of(cloud: CloudKind) -> Self {
        AccountId { cloud, name: "default".to_owned() }
    }

    /// Returns the cloud.
    pub fn cloud(&self) -> CloudKind {
        self.cloud
    }

    /// Returns the part after the slash, as it stands in the account mark.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cloud, self.name)
    }
}

impl FromStr for AccountId {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (cloud, name) = text.split_once('/').unwrap_or((text, "default"));
        AccountId::new(cloud.parse()?, name)
    }
}

impl Serialize for AccountId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AccountId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One word of `--cloud`: a whole cloud, or one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountFilter {
    /// Every account of the cloud.
    Cloud(CloudKind),
    /// That account alone.
    Account(AccountId),
}

impl AccountFilter {
    /// Whether the filter lets the account through.
    pub fn admits(&self, account: &AccountId) -> bool {
        match self {
            AccountFilter::Cloud(cloud) => account.cloud() == *cloud,
            AccountFilter::Account(id) => account == id,
        }
    }

    /// Returns the cloud that the filter speaks of.
    pub fn cloud(&self) -> CloudKind {
        match self {
            AccountFilter::Cloud(cloud) => *cloud,
            AccountFilter::Account(id) => id.cloud(),
        }
    }
}

impl FromStr for AccountFilter {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') { text.parse().map(Self::Account) } else { text.parse().map(Self::Cloud) }
    }
}

impl fmt::Display for AccountFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccountFilter::Cloud(cloud) => cloud.fmt(f),
            AccountFilter::Account(id) => id.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_shown() {
        let id: AccountId = "runpod/lab-b".parse().unwrap();
        assert_eq!((id.cloud(), id.name()), (CloudKind::Runpod, "lab-b"));
        assert_eq!(id.to_string(), "runpod/lab-b");
        assert_eq!("vast".parse::<AccountId>().unwrap().to_string(), "vast/default");
        for bad in
            ["", "aws/x", "runpod/", "runpod/Lab", "runpod/a/b", "runpod/0123456789012345678901234567890"]
        {
            assert!(bad.parse::<AccountId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_filter_admits_a_cloud_or_one_account() {
        let lab: AccountId = "vast/lab".parse().unwrap();
        assert!("vast".parse::<AccountFilter>().unwrap().admits(&lab));
        assert!("vast/lab".parse::<AccountFilter>().unwrap().admits(&lab));
        assert!(!"vast/default".parse::<AccountFilter>().unwrap().admits(&lab));
        assert!(!"runpod".parse::<AccountFilter>().unwrap().admits(&lab));
    }
}
