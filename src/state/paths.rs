//! Where things lie on this computer.
//!
//! The places are those of the XDG specification, on Linux and macOS alike. As it says, a relative `XDG_*` is ignored; a
//! relative `GPUPROV_*` is an error, because nothing is read from the working directory.

use std::path::{Path, PathBuf};

use super::env::{self, Env, Variable};

/// Why the places cannot be told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    /// A variable of ours is a relative path.
    #[error("`{0}` must be an absolute path")]
    Relative(&'static str),
    /// A path is not UTF-8: neither ssh's configuration nor records could name it.
    #[error("`{0}` is not UTF-8")]
    NotUtf8(&'static str),
    /// There is nowhere to keep what must not be lost.
    #[error("HOME is not set, so `GPUPROV_STATE_DIR` must say where to keep the records of machines")]
    NoHome,
    /// A path begins with `~` and there is no home.
    #[error("HOME is not set, so `~` in `{0}` means nothing")]
    NoTilde(String),
}

/// The places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// `HOME`; none if it is not set or relative.
    pub home: Option<PathBuf>,
    /// The config file.
    pub config_file: PathBuf,
    /// Whether somebody named the config file, so that it must exist.
    pub config_file_given: bool,
    /// What must not be lost. It holds no secret but the ssh key where there is no home.
    pub state: PathBuf,
    /// Sealed accounts and their key.
    pub data: PathBuf,
    /// What may be deleted at any time.
    pub cache: PathBuf,
    /// Our files for ssh: `~/.ssh/gpuprov`, or `<state>/ssh` where there is no home.
    pub ssh: PathBuf,
    /// The user's own ssh configuration; none if there is no home.
    pub user_ssh_config: Option<PathBuf>,
    /// The home folder that the password database names, which is the one that ssh takes `~` for.
    pub passwd_home: Option<PathBuf>,
}

impl Paths {
    /// Tells the places from the variables. It makes no directory.
    ///
    /// Without a home and without variables, configuration lies in the state directory; data and cache lie beside it, as
    /// `<state>.data` and `<state>.cache`, because the state directory must hold no secret.
    pub fn new(env: &Env) -> Result<Self, PathsError> {
        let all = [
            &env::HOME,
            &env::GPUPROV_STATE_DIR,
            &env::GPUPROV_DATA_DIR,
            &env::GPUPROV_CACHE_DIR,
            &env::GPUPROV_CONFIG,
            &env::XDG_STATE_HOME,
            &env::XDG_DATA_HOME,
            &env::XDG_CACHE_HOME,
            &env::XDG_CONFIG_HOME,
        ];
        let odd = |variable: &&&Variable| env.path(variable).is_some_and(|path| path.to_str().is_none());
        if let Some(variable) = all.iter().find(odd) {
            return Err(PathsError::NotUtf8(variable.name));
        }
        let home = env.path(&env::HOME).filter(|home| home.is_absolute());
        let place =
            |ours: &Variable, xdg: &Variable, below_home: &str| -> Result<Option<PathBuf>, PathsError> {
                if let Some(path) = given(env, ours)? {
                    return Ok(Some(path));
                }
                let base = env.path(xdg).filter(|path| path.is_absolute());
                let base = base.or_else(|| home.as_ref().map(|home| home.join(below_home)));
                Ok(base.map(|base| base.join("gpuprov")))
            };
        // The rule is about HOME, not about XDG_STATE_HOME: without a home, say where.
        let state = match (&home, given(env, &env::GPUPROV_STATE_DIR)?) {
            (None, None) => return Err(PathsError::NoHome),
            (_, Some(state)) => state,
            (Some(home), None) => place(&env::GPUPROV_STATE_DIR, &env::XDG_STATE_HOME, ".local/state")?
                .unwrap_or_else(|| home.join(".local/state/gpuprov")),
        };
        let beside = |suffix: &str| {
            let mut path = state.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        let given_config = given(env, &env::GPUPROV_CONFIG)?;
        let config_file_given = given_config.is_some();
        let config_file = match given_config {
            Some(file) => file,
            None => {
                let base = env.path(&env::XDG_CONFIG_HOME).filter(|path| path.is_absolute());
                let base = base.or_else(|| home.as_ref().map(|home| home.join(".config")));
                base.map_or_else(|| state.clone(), |base| base.join("gpuprov")).join("config.toml")
            }
        };
        let data = place(&env::GPUPROV_DATA_DIR, &env::XDG_DATA_HOME, ".local/share")?;
        let cache = place(&env::GPUPROV_CACHE_DIR, &env::XDG_CACHE_HOME, ".cache")?;
        Ok(Paths {
            config_file,
            config_file_given,
            data: data.unwrap_or_else(|| beside(".data")),
            cache: cache.unwrap_or_else(|| beside(".cache")),
            ssh: home.as_ref().map_or_else(|| state.join("ssh"), |home| home.join(".ssh/gpuprov")),
            user_ssh_config: home.as_ref().map(|home| home.join(".ssh/config")),
            passwd_home: passwd_home(),
            home,
            state,
        })
    }

    /// Returns the path that a setting names: `~` and `~/...` are the home folder, a relative path lies under `base` (the
    /// config file's folder for a setting in it, the working directory for a flag).
    pub fn resolve(&self, text: &str, base: &Path) -> Result<PathBuf, PathsError> {
        let below = match text {
            "~" => Some(""),
            _ => text.strip_prefix("~/"),
        };
        match (below, &self.home) {
            (None, _) => Ok(base.join(text)),
            (Some(below), Some(home)) => Ok(home.join(below)),
            (Some(_), None) => Err(PathsError::NoTilde(text.to_owned())),
        }
    }
}

fn given(env: &Env, variable: &Variable) -> Result<Option<PathBuf>, PathsError> {
    match env.path(variable) {
        Some(path) if !path.is_absolute() => Err(PathsError::Relative(variable.name)),
        path => Ok(path.map(without_end_slash)),
    }
}

fn without_end_slash(path: PathBuf) -> PathBuf {
    path.components().collect()
}

fn passwd_home() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??;
    Some(user.dir).filter(|dir| dir.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(pairs: &[(&str, &str)]) -> Result<Paths, PathsError> {
        Paths::new(&Env::of(pairs.iter().copied()))
    }

    #[test]
    fn the_defaults_are_under_home() {
        let paths = paths(&[("HOME", "/home/ana"), ("XDG_DATA_HOME", "relative")]).unwrap();
        assert_eq!(paths.config_file, Path::new("/home/ana/.config/gpuprov/config.toml"));
        assert!(!paths.config_file_given);
        assert_eq!(paths.state, Path::new("/home/ana/.local/state/gpuprov"));
        assert_eq!(paths.data, Path::new("/home/ana/.local/share/gpuprov"));
        assert_eq!(paths.cache, Path::new("/home/ana/.cache/gpuprov"));
        assert_eq!(paths.ssh, Path::new("/home/ana/.ssh/gpuprov"));
        assert_eq!(paths.user_ssh_config.as_deref(), Some(Path::new("/home/ana/.ssh/config")));
    }

    #[test]
    fn ours_win_over_xdg_and_xdg_over_home() {
        let paths = paths(&[
            ("HOME", "/home/ana"),
            ("XDG_STATE_HOME", "/xdg/state"),
            ("XDG_CONFIG_HOME", "/xdg/config"),
            ("XDG_CACHE_HOME", "/xdg/cache"),
            ("GPUPROV_CACHE_DIR", "/ours/cache/"),
            ("GPUPROV_CONFIG", "/ours/c.toml"),
        ])
        .unwrap();
        assert_eq!(paths.state, Path::new("/xdg/state/gpuprov"));
        assert_eq!(paths.cache, Path::new("/ours/cache"));
        assert_eq!(paths.config_file, Path::new("/ours/c.toml"));
        assert!(paths.config_file_given);
    }

    #[test]
    fn without_a_home_the_state_directory_must_be_given() {
        assert_eq!(paths(&[]), Err(PathsError::NoHome));
        assert_eq!(paths(&[("HOME", "here")]), Err(PathsError::NoHome));
        assert_eq!(paths(&[("XDG_STATE_HOME", "/xdg")]), Err(PathsError::NoHome));
        let paths = paths(&[("GPUPROV_STATE_DIR", "/srv/state")]).unwrap();
        assert_eq!(paths.home, None);
        assert_eq!(paths.user_ssh_config, None);
        assert_eq!(paths.ssh, Path::new("/srv/state/ssh"));
        assert_eq!(paths.config_file, Path::new("/srv/state/config.toml"));
        assert_eq!(paths.data, Path::new("/srv/state.data"));
        assert_eq!(paths.cache, Path::new("/srv/state.cache"));
    }

    #[test]
    fn relative_paths_of_ours_are_errors() {
        for name in ["GPUPROV_STATE_DIR", "GPUPROV_DATA_DIR", "GPUPROV_CACHE_DIR", "GPUPROV_CONFIG"] {
            assert_eq!(paths(&[("HOME", "/h"), (name, "here")]), Err(PathsError::Relative(name)));
        }
    }

    #[test]
    fn settings_name_paths_under_home_or_a_base() {
        let paths = paths(&[("HOME", "/home/ana")]).unwrap();
        let base = Path::new("/etc/base");
        for (text, path) in [
            ("~/.ssh/id", "/home/ana/.ssh/id"),
            ("~", "/home/ana/"),
            ("key.json", "/etc/base/key.json"),
            ("/abs", "/abs"),
            ("~x/y", "/etc/base/~x/y"),
        ] {
            assert_eq!(paths.resolve(text, base).unwrap(), Path::new(path), "{text}");
        }
        let homeless = Paths { home: None, ..paths };
        assert!(homeless.resolve("~/x", base).is_err());
    }
}
