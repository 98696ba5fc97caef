//! A way to the cluster: its credentials, and a tunnel through the machine's sshd that lives as long as who asked for it.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use super::API_PORT;
use super::kubeconfig::Access;
use super::script::KUBECONFIG;
use crate::model::machine::MachineName;
use crate::model::words::one_line;
use crate::ssh::exec::{Client, LoginError};
use crate::ssh::tunnel::Tunnel;

/// For one login that fetches the credentials.
const LIMIT: Duration = Duration::from_secs(40);
/// Ports of kubeconfig files: below the range from which Linux takes ports for connections (32768 on).
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// How often another port is tried where a stranger was quicker.
const TRIES: usize = 5;

/// Why there is no way to the cluster.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The machine has no credentials to give yet; these are its words.
    #[error("the cluster has no credentials to give ({0})")]
    NotYet(String),
    /// What it gave is no kubeconfig.
    #[error("the cluster's kubeconfig on the machine cannot be read")]
    Unreadable,
    /// No port of this computer.
    #[error("no port on 127.0.0.1 can be had: {0}")]
    NoPort(std::io::Error),
}

/// Fetches the credentials of the cluster on the machine called `name`.
pub async fn credentials(login: &Client, name: &MachineName) -> Result<Access, AccessError> {
    let output = login.run(name.as_str(), "sh -s", KUBECONFIG.as_bytes(), LIMIT).await?;
    if output.code != Some(0) {
        return Err(AccessError::NotYet(one_line(String::from_utf8_lossy(&output.stderr).trim(), 200)));
    }
    Access::read(&output.stdout).ok_or(AccessError::Unreadable)
}

/// Opens a tunnel at `port`, or at any free one if none is given or something else holds it; returns it with its port.
pub async fn open(
    login: &Client,
    name: &MachineName,
    mut port: Option<u16>,
) -> Result<(Tunnel, u16), AccessError> {
    let mut tries = 0;
    loop {
        let at = match port.take() {
            Some(port) if is_free(port) => port,
            _ => any().map_err(AccessError::NoPort)?,
        };
        match login.tunnel(name.as_str(), at, API_PORT).await {
            Ok(tunnel) => return Ok((tunnel, at)),
            Err(LoginError::Other(words)) if words.contains("forward") && tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the port for a machine's kubeconfig file: always the same one for a name, the next free one where it is taken.
pub fn port_for(name: &MachineName) -> Result<u16, AccessError> {
    let span = u32::from(PORTS.end - PORTS.start);
    let hash = name
        .as_str()
        .bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    (0..100)
        .filter_map(|next| u16::try_from((hash.wrapping_add(next)) % span).ok())
        .map(|offset| PORTS.start + offset)
        .find(|port| is_free(*port))
        .map_or_else(|| any().map_err(AccessError::NoPort), Ok)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn any() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_port_of_its_own_while_it_is_free() {
        let name: MachineName = "dev".parse().unwrap();
        let port = port_for(&name).unwrap();
        assert!(PORTS.contains(&port));
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_ne!(port_for(&name).unwrap(), port);
    }
}
