//! The directories of one sandbox, and the variables that lead gpuprov there.
//!
//! ```text
//! <cache>/sandbox/                   locked itself while a place is made or swept
//! <cache>/sandbox/sandbox-XXXXXXXX/  one place: config.toml, gcp-key.json, state, data, cache, machines, bin
//!                  .../lock          held as long as the sandbox lives; the kernel drops it with the process
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cli::context::ssh_files_of;
use crate::model::mark::Claim;
use crate::sandbox::{Options, Sandbox as Emulator};
use crate::state::directory::private_dir;
use crate::state::env::{self, Env, Variable};
use crate::state::installation::known_installation;
use crate::state::paths::Paths;

/// What the sandbox's machines need: they boot in seconds.
const CONFIG: &str = "# The sandbox's own configuration: its machines boot in seconds.\n[wait]\npoll = \"500ms\"\ngrace = \"10s\"\n";

/// File name of the key of a Google service account.
const GCP_KEY: &str = "gcp-key.json";

/// What every place and its installation are called at the beginning.
const PREFIX: &str = "sandbox-";

/// Returns the folder that holds all sandboxes of a user, made if it is missing.
pub(super) fn folder(paths: &Paths) -> io::Result<PathBuf> {
    let folder = paths.cache.join("sandbox");
    private_dir(&paths.cache).map_err(io::Error::other)?;
    private_dir(&folder).map_err(io::Error::other)?;
    Ok(folder)
}

/// Opens a file that is there to be locked.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The directories of one sandbox that runs in this process. Nothing of it mixes with real machines.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: PathBuf,
    // Held as long as the sandbox lives; whoever finds it free may sweep the place.
    _lock: File,
}

impl Place {
    /// Makes a place in `folder`, after sweeping what sandboxes left there that were killed.
    pub(super) fn make(paths: &Paths, folder: &Path) -> io::Result<Self> {
        // Without it a sweeper could take a place for dead that is not yet locked.
        let makers = File::open(folder)?;
        makers.lock()?;
        sweep_places(paths, folder);
        let id = Claim::random().map_err(io::Error::other)?.to_string();
        let installation = format!("{PREFIX}{}", &id[..8]);
        let root = folder.join(&installation);
        let dir = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        dir(&root)?;
        let lock = lock_file(&root.join("lock"))?;
        lock.lock()?;
        for part in ["machines", "state", "data", "cache", "bin"] {
            dir(&root.join(part))?;
        }
        std::fs::write(root.join("state").join("installation"), format!("{installation}\n"))?;
        let program = std::env::current_exe()?;
        std::os::unix::fs::symlink(program, root.join("bin").join("gpuprov"))?;
        Ok(Place { root, _lock: lock })
    }

    /// Starts an emulator here, and writes down where sshd is on its machines that are an address alone.
    pub(super) async fn start(&self) -> io::Result<Emulator> {
        let emulator = Emulator::start(Options::new(self.root.join("machines"))).await?;
        let port = emulator.vm_ssh_port();
        let tables = ["verda", "gcp", "nebius"].map(|cloud| format!("\n[{cloud}]\nssh_port = {port}\n"));
        let config = format!("{CONFIG}{}", tables.concat());
        let key = emulator.gcp().try_key_file(emulator.gcp().project())?;
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.root.join(GCP_KEY))?
            .write_all(key.as_bytes())?;
        std::fs::write(self.root.join("config.toml"), config)?;
        Ok(emulator)
    }

    /// Returns the variables that lead gpuprov here.
    pub(super) fn variables(&self, emulator: &Emulator) -> Vec<(&'static str, String)> {
        let path = |part: &str| self.root.join(part).display().to_string();
        vec![
            (env::GPUPROV_RUNPOD_ENDPOINT.name, emulator.runpod_endpoint()),
            (env::RUNPOD_API_KEY.name, emulator.runpod_key().to_owned()),
            (env::GPUPROV_VAST_ENDPOINT.name, emulator.vast().endpoint()),
            (env::VAST_API_KEY.name, emulator.vast().key().to_owned()),
            (env::GPUPROV_VERDA_ENDPOINT.name, emulator.verda().endpoint()),
            (env::VERDA_CLIENT_ID.name, emulator.verda().client_id().to_owned()),
            (env::VERDA_CLIENT_SECRET.name, emulator.verda().client_secret().to_owned()),
            (env::GPUPROV_GCP_ENDPOINT.name, emulator.gcp().endpoint()),
            (env::GOOGLE_APPLICATION_CREDENTIALS.name, path(GCP_KEY)),
            (env::GOOGLE_CLOUD_PROJECT.name, emulator.gcp().project().to_owned()),
            (env::GPUPROV_NEBIUS_ENDPOINT.name, emulator.nebius().endpoint()),
            (env::NEBIUS_IAM_TOKEN.name, emulator.nebius().token().to_owned()),
            (env::NEBIUS_TENANT_ID.name, emulator.nebius().tenant().to_owned()),
            (env::GPUPROV_CONFIG.name, path("config.toml")),
            (env::GPUPROV_STATE_DIR.name, path("state")),
            (env::GPUPROV_DATA_DIR.name, path("data")),
            (env::GPUPROV_CACHE_DIR.name, path("cache")),
        ]
    }

    /// Removes it with its ssh files.
    pub(super) fn clear(&self, paths: &Paths) {
        clear(paths, &self.root);
    }
}

/// Whether a living sandbox holds this place.
pub(super) fn is_alive(root: &Path) -> bool {
    File::open(root.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// Returns the place that these variables lead to, if a living sandbox holds it: they were set by `sandbox run` or `serve`.
pub(super) fn given(env: &Env) -> Option<PathBuf> {
    let state = env.path(&env::GPUPROV_STATE_DIR)?;
    let root = state.parent()?;
    let named = root.file_name()?.to_str()?.starts_with(PREFIX);
    (named && state.ends_with("state") && is_alive(root)).then(|| root.to_owned())
}

/// Whether these variables lead to a sandbox, living or not: set for another terminal, they may outlive it, and what is done
/// there must still never reach a real account.
pub(super) fn is_inside(env: &Env) -> bool {
    let state = env.path(&env::GPUPROV_STATE_DIR);
    state.as_deref().is_some_and(|state| {
        let place = state.parent().filter(|_| state.ends_with("state")).and_then(Path::file_name);
        place.and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    })
}

/// The variables that lead to accounts of the caller, at any cloud.
pub(super) const REAL: [&Variable; 20] = [
    &env::GPUPROV_RUNPOD_ENDPOINT,
    &env::GPUPROV_VAST_ENDPOINT,
    &env::GPUPROV_VERDA_ENDPOINT,
    &env::GPUPROV_GCP_ENDPOINT,
    &env::GPUPROV_NEBIUS_ENDPOINT,
    &env::RUNPOD_API_KEY,
    &env::VAST_API_KEY,
    &env::VERDA_CLIENT_ID,
    &env::VERDA_CLIENT_SECRET,
    &env::VERDA_PROFILE,
    &env::GOOGLE_APPLICATION_CREDENTIALS,
    &env::GOOGLE_CLOUD_PROJECT,
    &env::GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES,
    &env::NEBIUS_IAM_TOKEN,
    &env::NEBIUS_TENANT_ID,
    &env::NEBIUS_PROFILE,
    &env::ACTIONS_ID_TOKEN_REQUEST_URL,
    &env::ACTIONS_ID_TOKEN_REQUEST_TOKEN,
    &env::GPUPROV_INSTALLATION,
    &env::GPUPROV_CONFIG,
];

/// Returns the environment that leads to a sandbox and to nothing else: no credential and no endpoint of the caller is left.
pub(super) fn environment(env: Env, variables: &[(String, String)]) -> Env {
    let env = REAL.into_iter().fold(env, Env::without);
    env::ALL.iter().fold(env, |env, variable| {
        match variables.iter().find(|(name, _)| name == variable.name) {
            Some((_, value)) => env.with(variable, value),
            None => env,
        }
    })
}

/// Removes what sandboxes left that were killed.
pub(super) fn sweep(paths: &Paths, folder: &Path) -> io::Result<()> {
    let makers = File::open(folder)?;
    makers.lock()?;
    sweep_places(paths, folder);
    Ok(())
}

fn sweep_places(paths: &Paths, folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for root in entries.flatten().map(|entry| entry.path()) {
        let ours =
            root.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        if ours && root.is_dir() && !is_alive(&root) {
            clear(paths, &root);
        }
    }
}

/// Removes a sandbox's folder and its ssh files.
fn clear(paths: &Paths, root: &Path) {
    if let Ok(Some(installation)) = known_installation(&root.join("state"), None)
        && installation.as_str().starts_with(PREFIX)
    {
        let files = ssh_files_of(paths, installation);
        for name in files.blocks().unwrap_or_default() {
            let _ = files.remove(&name);
        }
        if let Some(folder) = files.config_file().parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
        let _ = std::fs::remove_file(files.conf_file());
    }
    let _ = std::fs::remove_dir_all(root);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::account::CloudKind;

    #[tokio::test]
    async fn every_cloud_is_served() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Env::of([("HOME", home.path())])).unwrap();
        let place = Place::make(&paths, &folder(&paths).unwrap()).unwrap();
        let emulator = place.start().await.unwrap();
        let variables = place.variables(&emulator);
        for cloud in CloudKind::ALL {
            let endpoint = format!("GPUPROV_{}_ENDPOINT", cloud.as_str().to_uppercase());
            assert!(variables.iter().any(|(name, _)| *name == endpoint), "{cloud}");
        }
        // What leads to accounts is taken from the caller first.
        for (name, _) in &variables {
            let own = name.ends_with("_DIR");
            assert!(own || REAL.iter().any(|variable| variable.name == *name), "{name}");
        }
        assert!(is_inside(&Env::of(variables)));
        assert!(!is_inside(&Env::of([("GPUPROV_STATE_DIR", home.path())])));
        emulator.stop().await;
        place.clear(&paths);
    }

    #[test]
    fn nothing_of_the_callers_accounts_is_left() {
        let real = env::ALL.iter().map(|variable| (variable.name, "real"));
        let variables = vec![
            (env::RUNPOD_API_KEY.name.to_owned(), "sandbox".to_owned()),
            (env::GPUPROV_STATE_DIR.name.to_owned(), "/sandbox/state".to_owned()),
        ];
        let env = environment(Env::of(real), &variables);
        assert_eq!(env.get(&env::RUNPOD_API_KEY), Some("sandbox"));
        assert_eq!(env.get(&env::GPUPROV_STATE_DIR), Some("/sandbox/state"));
        assert_eq!(env.get(&env::HOME), Some("real"));
        for variable in env::ALL {
            let accounts = variable.secret || variable.name.ends_with("_ENDPOINT");
            if accounts && variable.name != env::RUNPOD_API_KEY.name {
                assert_eq!(env.get(variable), None, "{}", variable.name);
            }
        }
    }
}
