//! What each cloud adds to the making of its accounts (`maker.rs`).

use std::sync::Arc;

use super::error::AccountsError;
use super::given::Given;
use super::seal::Parts;
use super::sources::{Look, Place};
use super::store::Settings;
use crate::cloud::{Cloud, Setup};
use crate::http;
use crate::model::account::AccountId;
use crate::model::secret::Secret;
use crate::state::config::{CloudTable, CloudTables, Config};
use crate::state::env::Variable;

/// What is wrong with sealed credentials that lack a part, as it stands after the account.
pub(super) const UNKNOWN_PARTS: &str = "was connected with credentials that this version does not know";

/// What one cloud adds: where its credentials are, and how an account is made of them.
pub(super) trait Kind {
    /// The cloud's table in the config file.
    type Table: CloudTable;
    /// What lets an account in.
    type Credentials;
    /// Where the cloud is asked.
    const OFFICIAL: Official;
    /// What a table of the config file lacks that makes no account.
    const LACKS: &'static str;
    /// Whether credentials are used that merely lie around: an environment variable or a file of other tools that nobody set
    /// up for gpuprov.
    const UNASKED: bool;

    /// Picks the cloud's tables.
    fn tables(config: &Config) -> &CloudTables<Self::Table>;

    /// Looks for the credentials of an account, and says where they are. What is there and cannot be used is told in
    /// `warnings`.
    fn find(
        look: &Look<'_>,
        account: &AccountId,
        warnings: &mut Vec<String>,
    ) -> Option<(Self::Credentials, Place)>;

    /// Returns why credentials that were found cannot be used; they are then told as found and not used.
    fn unusable(_credentials: &Self::Credentials) -> Option<&str> {
        None
    }

    /// Returns the long-lived part of the credentials, which tells accounts apart.
    fn secret(credentials: &Self::Credentials) -> Secret;

    /// Returns what tells the credentials apart for people, without being secret.
    fn hint(credentials: &Self::Credentials) -> String;

    /// The flags of `clouds set` that the cloud takes, beside `--name`, `--endpoint` and `--no-check`.
    const FLAGS: &'static [&'static str];
    /// Those of them that a terminal is asked for where nothing is given and nothing is found.
    const ASKED: &'static [&'static str] = &[];

    /// Returns the credentials that `clouds set` was given, and how; none if no flag speaks of any.
    fn given(look: &Look<'_>, given: &Given) -> Result<Option<(Self::Credentials, Place)>, AccountsError>;

    /// Returns the credentials in parts, to be sealed; none if they cannot be kept.
    fn parts(credentials: &Self::Credentials) -> Option<Parts>;

    /// Returns the credentials that were taken apart with [`Kind::parts`]. The error says why they cannot be used here and now,
    /// as it stands after the account.
    fn restore(look: &Look<'_>, parts: &Parts) -> Result<Self::Credentials, String>;

    /// Returns the settings that belong to credentials found somewhere and are not in them: they may be gone from there later.
    fn settings(_: &Look<'_>, _: &AccountId, _: &Self::Credentials) -> Settings {
        Settings::default()
    }

    /// Returns credentials that were found, to be used as connected ones are: with the settings that are kept beside them, not
    /// with what else lies around.
    fn settle(credentials: Self::Credentials) -> Self::Credentials {
        credentials
    }

    /// Puts the settings of a connected account into the configuration, where its own table leaves them open.
    fn apply(_: &Settings, _: &AccountId, _: &mut Config) {}

    /// Makes the account with its settings. No request.
    fn cloud(
        look: &Look<'_>,
        setup: Setup,
        credentials: Self::Credentials,
        http: http::Client,
    ) -> Result<Arc<dyn Cloud>, AccountsError>;
}

/// A cloud's own address, and the variable that names another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Official {
    /// Where it answers, without a slash at the end.
    pub(super) base: &'static str,
    /// The variable.
    pub(super) variable: &'static Variable,
    /// What belongs to the paths below the base but is often copied with it.
    pub(super) tails: &'static [&'static str],
}
