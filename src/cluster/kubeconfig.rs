//! The cluster's own credentials made into a kubeconfig that goes through a tunnel.
//!
//! k3s writes `/etc/rancher/k3s/k3s.yaml` with one cluster, context and user, all called `default`, for `https://127.0.0.1:6443`
//! (docs.k3s.io, cluster access). Its server certificate is always valid for 127.0.0.1, and certificates name no port, so a
//! tunnel to any local port keeps the verification on. It is the key to the whole cluster: 0600, never shown.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::model::machine::MachineName;
use crate::model::secret::Secret;
use crate::state::{atomic, private_dir};

/// Longest kubeconfig that is read, in bytes; k3s's has about 3 KB.
const LONGEST: usize = 64 * 1024;

/// The credentials of a cluster's administrator, as base64 of PEM.
#[derive(Clone, Debug)]
pub struct Access {
    authority: String,
    certificate: String,
    key: Secret,
}

#[derive(Deserialize)]
struct File {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    #[serde(rename = "certificate-authority-data")]
    authority: String,
}

#[derive(Deserialize)]
struct NamedUser {
    user: User,
}

#[derive(Deserialize)]
struct User {
    #[serde(rename = "client-certificate-data")]
    certificate: String,
    #[serde(rename = "client-key-data")]
    key: String,
}

impl Access {
    /// Reads k3s's own kubeconfig; none if it is not one. No word of it gets into an error.
    pub fn read(text: &[u8]) -> Option<Access> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
        let file: File = serde_norway::from_str(text).ok()?;
        let (cluster, user) =
            (file.clusters.into_iter().next()?.cluster, file.users.into_iter().next()?.user);
        let is_pem = |text: &str| STANDARD.decode(text).is_ok_and(|pem| pem.starts_with(b"-----BEGIN "));
        if ![&cluster.authority, &user.certificate, &user.key].into_iter().all(|text| is_pem(text)) {
            return None;
        }
        Some(Access {
            authority: cluster.authority,
            certificate: user.certificate,
            key: Secret::new(user.key),
        })
    }

    /// Returns a kubeconfig for a tunnel at `port` of this computer, its parts called `gpuprov-NAME`.
    pub fn kubeconfig(&self, name: &MachineName, port: u16) -> Secret {
        // Base64 and names need no quotes in YAML.
        Secret::new(format!(
            "# Written by gpuprov, which also rewrites it. It works while `gpuprov k8s tunnel {name}` runs.\n\
             apiVersion: v1\nkind: Config\n\
             clusters:\n- name: gpuprov-{name}\n  cluster:\n    server: https://127.0.0.1:{port}\n    certificate-authority-data: {}\n\
             users:\n- name: gpuprov-{name}\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
             contexts:\n- name: gpuprov-{name}\n  context:\n    cluster: gpuprov-{name}\n    user: gpuprov-{name}\n\
             current-context: gpuprov-{name}\n",
            self.authority,
            self.certificate,
            self.key.expose()
        ))
    }
}

/// Our kubeconfig files.
#[derive(Clone, Debug)]
pub struct KubeFiles {
    dir: PathBuf,
}

impl KubeFiles {
    /// Returns the files below the data directory.
    pub fn new(data: &Path) -> Self {
        KubeFiles { dir: data.join("kube") }
    }

    /// Returns the file of the machine, which need not exist.
    pub fn path(&self, name: &MachineName) -> PathBuf {
        self.dir.join(format!("{name}.yaml"))
    }

    /// Returns the port that the machine's file names.
    pub fn port(&self, name: &MachineName) -> Option<u16> {
        let text = std::fs::read_to_string(self.path(name)).ok()?;
        text.lines().find_map(|line| line.trim().strip_prefix("server: https://127.0.0.1:")?.parse().ok())
    }

    /// Writes the machine's file, 0600.
    pub fn write(&self, name: &MachineName, text: &Secret) -> io::Result<PathBuf> {
        self.make()?;
        let path = self.path(name);
        atomic::write(&path, text.expose().as_bytes(), 0o600)?;
        Ok(path)
    }

    /// Writes a file for one command, which goes with the value.
    pub fn passing(&self, name: &MachineName, text: &Secret) -> io::Result<tempfile::NamedTempFile> {
        self.make()?;
        let prefix = passing_prefix(name);
        let mut file = tempfile::Builder::new().prefix(&prefix).suffix(".yaml").tempfile_in(&self.dir)?;
        io::Write::write_all(&mut file, text.expose().as_bytes())?;
        Ok(file)
    }

    /// Removes what there is of a machine, also what killed commands left.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let Ok(name) = name.parse::<MachineName>() else { return Ok(()) };
        let entries = match std::fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let (own, prefix) = (format!("{name}.yaml"), passing_prefix(&name));
        for entry in entries.flatten() {
            let file = entry.file_name();
            let file = file.to_string_lossy();
            if file == own || file.starts_with(&prefix) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn make(&self) -> io::Result<()> {
        let make = |dir: &Path| private_dir(dir).map_err(|error| io::Error::other(error.to_string()));
        self.dir.parent().map_or(Ok(()), |data| make(data).map(drop))?;
        make(&self.dir).map(drop)
    }
}

/// A machine's name holds no `@`, so that `dev` and `dev-2` cannot be mixed up.
fn passing_prefix(name: &MachineName) -> String {
    format!(".once@{name}@")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn theirs(key: &str) -> String {
        let pem = STANDARD.encode("-----BEGIN CERTIFICATE-----\nx\n");
        format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {pem}\n    server: https://127.0.0.1:6443\n  name: default\n\
             contexts: []\ncurrent-context: default\nkind: Config\nusers:\n- name: default\n  user:\n    client-certificate-data: {pem}\n    client-key-data: {key}\n"
        )
    }

    #[test]
    fn the_cluster_s_own_file_is_made_into_ours() {
        let key = STANDARD.encode("-----BEGIN EC PRIVATE KEY-----\nsecret\n");
        let access = Access::read(theirs(&key).as_bytes()).unwrap();
        assert!(!format!("{access:?}").contains(&key));
        let name: MachineName = "dev".parse().unwrap();
        let text = access.kubeconfig(&name, 23456);
        let read: serde_norway::Value = serde_norway::from_str(text.expose()).unwrap();
        assert_eq!(read["clusters"][0]["cluster"]["server"], "https://127.0.0.1:23456");
        assert_eq!(read["users"][0]["user"]["client-key-data"].as_str(), Some(key.as_str()));
        assert_eq!(read["current-context"], read["contexts"][0]["name"]);
        assert!(!text.expose().contains("insecure") && !text.expose().contains("default"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "[]", "clusters: []\nusers: []\n", &theirs("not base64!"), &theirs("aGVsbG8=")] {
            assert!(Access::read(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Access::read(&[0xff, 0xfe]).is_none());
    }

    #[test]
    fn files_are_private_and_go_with_their_machine_alone() {
        let top = tempfile::tempdir().unwrap();
        let files = KubeFiles::new(top.path());
        let [dev, other] = ["dev", "dev-2"].map(|name| name.parse::<MachineName>().unwrap());
        let access = Access::read(theirs(&STANDARD.encode("-----BEGIN X")).as_bytes()).unwrap();
        for name in [&dev, &other] {
            let path = files.write(name, &access.kubeconfig(name, 20001)).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let (_, left) = files.passing(&dev, &access.kubeconfig(&dev, 20002)).unwrap().keep().unwrap();
        assert_eq!(std::fs::metadata(&left).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(files.port(&other), Some(20001));
        files.remove("dev").unwrap();
        assert!(!left.exists() && !files.path(&dev).exists() && files.path(&other).exists());
        files.remove("../dev-2").unwrap();
        assert!(files.path(&other).exists());
    }
}
