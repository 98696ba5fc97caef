//! The audit log: every action that changed something, one line of JSON each, in `audit.jsonl`.
//!
//! A line is written with one `write(2)` in append mode, under a lock, and synced. A writer that was killed may leave half a
//! line; the next one ends it first, so that it spoils nothing else. Lines are never changed and never dropped: a file that has
//! become long is put aside under the lock, as `audit.jsonl.1`, after those that were put aside before have moved up one
//! number each. Reading goes over `audit.jsonl.N`, the highest N first, and then `audit.jsonl`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::atomic::sync_dir;
use super::directory::{check_owner, private_dir};
use super::error::StateError;
use crate::model::mark::Claim;
use crate::model::money::Usd;

const FILE: &str = "audit.jsonl";

/// A file of this length, in bytes, is put aside before the next line: some ten thousand lines.
const LONG: u64 = 4 << 20;

/// The version written today. Fields may be added under it.
pub const AUDIT_VERSION: u32 = 1;

/// How long another writer's lock is waited for. After that the line is written without: append mode keeps it whole, and a
/// missing line would be worse.
const PATIENCE: Duration = Duration::from_secs(5);

/// One action, in the words of the JSON output. A stored format. `action` and `outcome` are open lists of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it ended.
    pub time: Timestamp,
    /// Who did it, as the computer calls them.
    pub user: String,
    /// On which computer.
    pub host: String,
    /// With which account; a text, so that lines of later versions can be read.
    #[serde(default)]
    pub account: Option<String>,
    /// `defaults.owner`.
    #[serde(default)]
    pub owner: Option<String>,
    /// What was done: `provision`, `rm`, `forget`, `clouds set`, ...
    pub action: String,
    /// The machine's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The claim.
    #[serde(default)]
    pub claim: Option<Claim>,
    /// The cloud's exact type.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// The GPU in our spelling.
    #[serde(default)]
    pub gpu: Option<String>,
    /// How many GPUs.
    #[serde(default)]
    pub gpu_count: Option<u32>,
    /// Spot or on demand.
    #[serde(default)]
    pub spot: Option<bool>,
    /// What was agreed per hour.
    #[serde(default)]
    pub price_per_hour: Option<Usd>,
    /// For a removal, when the machine was made.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// For a removal, what the machine cost, as estimated.
    #[serde(default)]
    pub cost: Option<Usd>,
    /// How it ended.
    pub outcome: String,
}

/// Who acts, as the computer knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The user's name in the password database, else the number.
    pub user: String,
    /// The computer's name.
    pub host: String,
}

impl Author {
    /// Asks the system who runs this process, and where.
    pub fn here() -> Self {
        let uid = nix::unistd::geteuid();
        let known = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
        let host = nix::unistd::gethostname().ok().and_then(|host| host.into_string().ok());
        Author { user: known.unwrap_or_else(|| uid.to_string()), host: host.unwrap_or_default() }
    }
}

impl AuditEntry {
    /// Returns an entry that says nothing but who did what and how it ended.
    pub fn new(time: Timestamp, author: &Author, action: &str, outcome: &str) -> Self {
        AuditEntry {
            time,
            user: author.user.clone(),
            host: author.host.clone(),
            account: None,
            owner: None,
            action: action.to_owned(),
            name: None,
            claim: None,
            instance_type: None,
            gpu: None,
            gpu_count: None,
            spot: None,
            price_per_hour: None,
            created_at: None,
            cost: None,
            outcome: outcome.to_owned(),
        }
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The entries, in the order of writing.
    pub entries: Vec<AuditEntry>,
    /// How many lines could not be read.
    pub unreadable: usize,
}

/// What one machine cost, from the log alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineCost {
    /// Its name.
    pub name: Option<String>,
    /// Its account.
    pub account: Option<String>,
    /// Whom it was for.
    pub owner: Option<String>,
    /// What it cost, as estimated.
    pub cost: Usd,
}

/// What the entries cost together, for one account and owner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// The account; none for entries that name none.
    pub account: Option<String>,
    /// The owner.
    pub owner: Option<String>,
    /// The sum of `cost`.
    pub cost: Usd,
}

/// The audit log of a state directory.
#[derive(Clone, Debug)]
pub struct Audit {
    state: PathBuf,
    long: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    version: u32,
    #[serde(flatten)]
    entry: &'a AuditEntry,
}

impl Audit {
    /// Opens the log of a state directory, which may be missing or read-only.
    pub fn open(state: &Path) -> Result<Self, StateError> {
        check_owner(state)?;
        Ok(Audit { state: state.to_owned(), long: LONG })
    }

    /// Puts files aside at another length, in bytes.
    #[cfg(test)]
    pub(super) fn with_length(self, long: u64) -> Self {
        Audit { long, ..self }
    }

    /// Adds an entry, synced.
    pub fn append(&self, entry: &AuditEntry) -> Result<(), StateError> {
        private_dir(&self.state)?;
        let path = self.state.join(FILE);
        let line = serde_json::to_string(&Line { version: AUDIT_VERSION, entry })
            .map_err(|error| StateError::io("write", &path)(io::Error::other(error)))?;
        let lock = self.lock();
        // Without the lock another writer may be about to do the same; the line goes to the long file then.
        if lock.as_ref().is_some_and(|(_, held)| *held)
            && fs::metadata(&path).is_ok_and(|file| file.len() >= self.long)
        {
            // What cannot be put aside is written on: a missing line would be worse than a long file.
            let _ = self.put_aside(&path);
        }
        append_line(&path, &line).map_err(StateError::io("write", &path))
    }

    /// Moves the file to `audit.jsonl.1`, and those before it up one number, the highest first: no name is ever taken, so that
    /// a crash at any point leaves every line where reading finds it, in its order.
    fn put_aside(&self, path: &Path) -> io::Result<()> {
        let named = |number: u64| self.state.join(format!("{FILE}.{number}"));
        for (number, from) in self.aside()? {
            fs::rename(from, named(number.saturating_add(1)))?;
        }
        fs::rename(path, named(1))?;
        sync_dir(&self.state)
    }

    /// Reads the entries since a time, or all. Lines that cannot be read are counted.
    pub fn read(&self, since: Option<Timestamp>) -> Result<History, StateError> {
        let mut history = History::default();
        // Files must not move on while they are read one after the other. Where nothing can be written nobody moves them.
        let _lock = self.state.exists().then(|| self.lock());
        for path in self.files()? {
            let file = match super::regular::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StateError::io("read", &path)(error)),
            };
            for line in BufReader::new(file).split(b'\n') {
                let line = line.map_err(StateError::io("read", &path))?;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                match serde_json::from_slice::<AuditEntry>(&line) {
                    Ok(entry) if since.is_none_or(|since| entry.time >= since) => history.entries.push(entry),
                    Ok(_) => {}
                    Err(_) => history.unreadable += 1,
                }
            }
        }
        Ok(history)
    }

    /// Returns the files of the log, the oldest first.
    fn files(&self) -> Result<Vec<PathBuf>, StateError> {
        let aside = match self.aside() {
            Ok(aside) => aside,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StateError::io("read", &self.state)(error)),
        };
        let mut files: Vec<PathBuf> = aside.into_iter().map(|(_, path)| path).collect();
        files.push(self.state.join(FILE));
        Ok(files)
    }

    /// Returns the files that were put aside with their numbers, the highest first.
    fn aside(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut aside: Vec<(u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.state)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("audit.jsonl."));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                aside.push((number, entry.path()));
            }
        }
        aside.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        Ok(aside)
    }

    // Not the log itself, so that it can be renamed. Returns whether the lock is really held.
    fn lock(&self) -> Option<(File, bool)> {
        let path = self.state.join("audit.lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Some((file, true)),
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => return Some((file, false)),
            }
        }
    }
}

fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut bytes = Vec::with_capacity(line.len() + 2);
    let length = file.seek(SeekFrom::End(0))?;
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            bytes.push(b'\n');
        }
    }
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    // One write for the whole line; what a full disk cut off is tried once more by `write_all`.
    let written = file.write(&bytes)?;
    file.write_all(&bytes[written..])?;
    file.sync_data()?;
    if length == 0 { sync_dir(path.parent().unwrap_or(path)) } else { Ok(()) }
}

/// Returns what each machine cost, in the order in which their first costs were written. Of several entries about one machine,
/// a removal that failed and the one that worked for example, the last one counts.
pub fn machine_costs(entries: &[AuditEntry]) -> Vec<MachineCost> {
    let mut costs: Vec<(Option<Claim>, MachineCost)> = Vec::new();
    for entry in entries {
        let Some(cost) = entry.cost else { continue };
        let known = costs.iter_mut().find(|(claim, _)| claim.is_some() && *claim == entry.claim);
        match known {
            Some((_, known)) => {
                known.cost = cost;
                known.owner = known.owner.take().or_else(|| entry.owner.clone());
            }
            None => {
                let AuditEntry { name, account, owner, .. } = entry.clone();
                costs.push((entry.claim, MachineCost { name, account, owner, cost }));
            }
        }
    }
    costs.into_iter().map(|(_, cost)| cost).collect()
}

/// Adds up what the machines cost, by account and owner, in that order.
pub fn totals(entries: &[AuditEntry]) -> Vec<Total> {
    let mut totals: Vec<Total> = Vec::new();
    for MachineCost { account, owner, cost, .. } in machine_costs(entries) {
        match totals.iter_mut().find(|total| total.account == account && total.owner == owner) {
            Some(total) => total.cost += cost,
            None => totals.push(Total { account, owner, cost }),
        }
    }
    totals.sort_by(|one, two| (&one.account, &one.owner).cmp(&(&two.account, &two.owner)));
    totals
}
