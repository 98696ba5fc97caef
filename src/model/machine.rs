//! A machine's name, state and address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A machine's name: 2 to 40 of a-z, 0-9 and dash, starting with a letter, not ending with a dash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineName(String);

/// Why a text is no machine name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a machine name: 2 to 40 of a-z, 0-9 and dash, starting with a letter, not ending with a dash"
)]
pub struct MachineNameError(String);

impl MachineName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MachineName {
    type Err = MachineNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (2..=40).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-')
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(MachineName(text.to_owned())) } else { Err(MachineNameError(text.to_owned())) }
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for MachineName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for MachineName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a machine is doing, in the words of the command line. A word that a later version writes is read as `unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineState {
    /// Asked for; the cloud may or may not have it yet.
    Creating,
    /// It exists and is on its way up.
    Booting,
    /// A login works (in a record), or the cloud says so (in a look).
    Running,
    /// Stopped; its disk may go on costing.
    Stopped,
    /// The cloud took it away (spot).
    Preempted,
    /// On its way out.
    Deleting,
    /// It will not come up.
    Failed,
    /// It does not exist any more.
    Gone,
    /// Nothing certain is known; it may cost money.
    #[serde(other)]
    Unknown,
}

impl MachineState {
    /// Returns the word used in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            MachineState::Creating => "creating",
            MachineState::Booting => "booting",
            MachineState::Running => "running",
            MachineState::Stopped => "stopped",
            MachineState::Preempted => "preempted",
            MachineState::Deleting => "deleting",
            MachineState::Failed => "failed",
            MachineState::Gone => "gone",
            MachineState::Unknown => "unknown",
        }
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where ssh reaches a machine. Host, port and user were validated when the value was made: they can be written into an ssh
/// configuration as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshAddress {
    host: String,
    port: u16,
    user: String,
}

/// Why an address from a cloud was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SshAddressError {
    /// Not an IP address or DNS name.
    #[error("the cloud names an ssh host that is no address: `{0}`")]
    Host(String),
    /// An address that cannot be reached from outside.
    #[error("the cloud names an ssh host inside its own network: `{0}`")]
    Inside(String),
    /// Not a port.
    #[error("the cloud names an ssh port that is none: `{0}`")]
    Port(i64),
    /// Not a user name.
    #[error("the cloud names an ssh user that is none: `{0}`")]
    User(String),
}

impl SshAddress {
    /// Returns the address if all three parts are what they should be. Private and carrier-grade NAT addresses are refused
    /// (a machine that shows only such a one is not reachable); loopback is let through only if `loopback` says so, which it
    /// does when the cloud itself answers on loopback.
    pub fn new(host: &str, port: i64, user: &str, loopback: bool) -> Result<Self, SshAddressError> {
        let host = host.trim();
        let user = user.trim();
        let shown = || super::words::one_line(host, 80);
        match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() || ip.is_multicast() => return Err(SshAddressError::Host(shown())),
            Ok(ip) if ip.is_loopback() && !loopback => return Err(SshAddressError::Inside(shown())),
            Ok(IpAddr::V4(ip)) if is_inside(ip) => return Err(SshAddressError::Inside(shown())),
            Ok(_) => {}
            Err(_) if is_dns_name(host) => {}
            Err(_) => return Err(SshAddressError::Host(shown())),
        }
        let port_number =
            u16::try_from(port).ok().filter(|port| *port != 0).ok_or(SshAddressError::Port(port))?;
        let user_fits = (1..=32).contains(&user.len())
            && user.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && user.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if !user_fits {
            return Err(SshAddressError::User(super::words::one_line(user, 40)));
        }
        Ok(SshAddress { host: host.to_owned(), port: port_number, user: user.to_owned() })
    }

    /// Returns the IP address or DNS name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the user to log in as.
    pub fn user(&self) -> &str {
        &self.user
    }
}

fn is_inside(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    ip.is_private()
        || ip.is_link_local()
        || ip.is_broadcast()
        || (first == 100 && (64..128).contains(&second))
        || first == 0
}

fn is_dns_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // All-digit last labels are mistyped IPv4 addresses, never names.
    host.len() <= 253
        && host.contains('.')
        && host.split('.').all(label)
        && !host.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["dev", "a1", "rtx4090-1", &"a".repeat(40)] {
            assert!(good.parse::<MachineName>().is_ok(), "{good}");
        }
        for bad in ["", "a", "1a", "-a", "a-", "Dev", "a_b", "a.b", "*", "dev\n", &"a".repeat(41)] {
            assert!(bad.parse::<MachineName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_that_may_be_written_into_an_ssh_configuration() {
        for host in ["203.0.113.7", " 203.0.113.7 ", "ssh4.vast.ai", "2001:db8::1"] {
            assert!(SshAddress::new(host, 22, "root", false).is_ok(), "{host}");
        }
        for host in [
            "",
            "null",
            "100.65.14.155",
            "10.0.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "0.0.0.0",
            "a b.example",
            "-oProxyCommand=x.y",
            "h.example\nProxyCommand x",
            "1.2.3.256",
            "x..y",
            "[::1]",
        ] {
            assert!(SshAddress::new(host, 22, "root", false).is_err(), "{host}");
        }
        assert!(SshAddress::new("127.0.0.1", 22, "root", true).is_ok());
        for port in [0, -1, 65_536] {
            assert!(SshAddress::new("203.0.113.7", port, "root", false).is_err(), "{port}");
        }
        for user in ["", "-l", "a b", "root\nHost *", "%r", "a@b"] {
            assert!(SshAddress::new("203.0.113.7", 22, user, false).is_err(), "{user}");
        }
    }

    #[test]
    fn a_state_of_a_later_version_is_unknown() {
        assert_eq!(serde_json::from_str::<MachineState>("\"hibernating\"").unwrap(), MachineState::Unknown);
        assert_eq!(serde_json::to_string(&MachineState::Preempted).unwrap(), "\"preempted\"");
    }
}
