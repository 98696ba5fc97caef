//! A cloud's table and the tables of its accounts.

use std::collections::BTreeMap;

use super::read::Table;
use crate::model::account::{AccountId, CloudKind};

/// A table with the settings of one cloud.
pub trait CloudTable: Clone + Default {
    /// The cloud.
    const CLOUD: CloudKind;

    /// Returns this table with what it leaves open taken from `base`.
    fn over(self, base: Self) -> Self;

    /// Returns this table without its credentials.
    fn without_credentials(self) -> Self;

    /// Whether a secret stands in it.
    fn has_secret(&self) -> bool;

    /// Returns the other base URL that it names.
    fn endpoint(&self) -> Option<&String>;
}

/// What the config file says about one cloud.
#[derive(Clone, Debug, Default)]
pub struct CloudTables<T> {
    /// The cloud's table: it holds for all its accounts, its credentials for `<cloud>/default` alone.
    pub table: Option<T>,
    /// The tables of single accounts, by the accounts' names.
    pub accounts: BTreeMap<String, T>,
}

impl<T: CloudTable> CloudTables<T> {
    pub(super) fn read_accounts(&mut self, accounts: &mut Table<'_>, read: impl Fn(&mut Table<'_>) -> T) {
        let found = accounts.accounts(|id| id.cloud() == T::CLOUD, read);
        self.accounts.extend(found.into_iter().map(|(id, table)| (id.name().to_owned(), table)));
    }

    /// Returns the settings of one account: its own table over the cloud's.
    pub fn of(&self, account: &AccountId) -> T {
        let mut base = self.table.clone().unwrap_or_default();
        if *account != AccountId::default_of(T::CLOUD) {
            base = base.without_credentials();
        }
        self.accounts.get(account.name()).cloned().unwrap_or_default().over(base)
    }

    /// Whether the file says anything about the cloud.
    pub fn is_named(&self) -> bool {
        self.table.is_some() || !self.accounts.is_empty()
    }

    /// Whether a secret stands in any of the tables.
    pub fn has_secret(&self) -> bool {
        self.table.iter().chain(self.accounts.values()).any(T::has_secret)
    }
}
