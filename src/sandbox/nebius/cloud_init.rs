//! What cloud-init makes of the user data at the first boot: who gets in, which host key is shown, what sshd allows.
//!
//! The user data are read as cloud-init reads them (<https://docs.cloud-init.io/en/latest/reference/modules.html>): the
//! first line says `#cloud-config`, the rest is YAML, of which JSON is a part. There is no other way in: without a user of
//! theirs nobody can log in, and the image forbids port forwarding until something allows it. Nothing of `runcmd` is run.

use russh::keys::{PrivateKey, PublicKey};
use serde_json::Value;

/// The only user that a machine of the sandbox can have.
pub(super) const USER: &str = "ubuntu";

/// What a first boot ends with.
#[derive(Debug, Default)]
pub(super) struct Booted {
    /// Public keys of the user, one a line.
    pub(super) authorized: String,
    /// The host key that was put in, where one was.
    pub(super) host_key: Option<PrivateKey>,
    /// Whether sshd starts at all: it does not with a host key that it cannot read.
    pub(super) no_sshd: bool,
    /// Whether sshd forwards ports.
    pub(super) forwarding: bool,
}

/// Names that the documents reserve: <https://docs.nebius.com/compute/virtual-machines/ssh-keys>.
const RESERVED: [&str; 2] = ["root", "admin"];

/// Reads user data; none at all when cloud-init can do nothing with it.
pub(super) fn boot(user_data: &str) -> Booted {
    let Some(config) = parse(user_data) else { return Booted::default() };
    let mut booted = Booted { forwarding: forwarding(&config), ..Booted::default() };
    let keys: Vec<&str> = users(&config)
        .filter(|user| user.get("name").and_then(Value::as_str) == Some(USER))
        .flat_map(|user| texts(user.get("ssh_authorized_keys")))
        .map(str::trim)
        .collect();
    booted.authorized = keys.join("\n");
    if let Some(keys) = config.get("ssh_keys") {
        match host_key(keys) {
            Some(key) => booted.host_key = Some(key),
            None => booted.no_sshd = true,
        }
    }
    booted
}

/// What is wrong with user data that the service, or a careful client, would not let pass.
pub(super) fn objection(user_data: &str) -> Option<&'static str> {
    if user_data.is_empty() {
        return None;
    }
    let Some(config) = parse(user_data) else { return Some("user data is no cloud-config") };
    let names = || users(&config).filter_map(|user| user.get("name").and_then(Value::as_str));
    names().any(|name| RESERVED.contains(&name)).then_some("the users root and admin are reserved")
}

/// The document after its first line.
fn parse(user_data: &str) -> Option<Value> {
    let (first, rest) = user_data.split_once('\n')?;
    if first.trim_end() != "#cloud-config" {
        return None;
    }
    let value: Value = serde_norway::from_str(rest).ok()?;
    value.is_object().then_some(value)
}

fn users(config: &Value) -> impl Iterator<Item = &Value> {
    config.get("users").and_then(Value::as_array).into_iter().flatten()
}

/// A text, or a list of such.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The key pair of `ssh_keys`, if sshd can read it and its halves belong together.
fn host_key(keys: &Value) -> Option<PrivateKey> {
    let part = |name: &str| keys.get(name).and_then(Value::as_str);
    let text = part("ed25519_private")?;
    // OpenSSH reads no key file without a line's end at its end.
    let key = PrivateKey::from_openssh(text).ok().filter(|_| text.ends_with('\n'))?;
    let fits = match part("ed25519_public") {
        Some(public) => {
            PublicKey::from_openssh(public.trim()).ok()?.key_data() == key.public_key().key_data()
        }
        None => true,
    };
    fits.then_some(key)
}

/// Whether something in it allows forwarding: a drop-in of sshd, or commands that write one and tell sshd.
fn forwarding(config: &Value) -> bool {
    let allows = |text: &str| {
        text.lines().any(|line| {
            let words: Vec<&str> =
                line.split([' ', '\t', '=', '\'', '"']).filter(|word| !word.is_empty()).collect();
            words.windows(2).any(|pair| {
                pair[0].eq_ignore_ascii_case("AllowTcpForwarding")
                    && matches!(pair[1], "yes" | "all" | "local")
            })
        })
    };
    let files = config.get("write_files").and_then(Value::as_array).into_iter().flatten();
    let drop_in = |file: &&Value| {
        let part = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = part("path");
        let read = path.starts_with("/etc/ssh/sshd_config.d/") && path.ends_with(".conf");
        read && part("encoding").is_empty() && allows(part("content"))
    };
    if files.filter(drop_in).count() > 0 {
        return true;
    }
    let commands: String = ["bootcmd", "runcmd"]
        .iter()
        .flat_map(|name| config.get(*name).and_then(Value::as_array).into_iter().flatten())
        .map(|command| match command {
            Value::Array(_) => texts(Some(command)).join(" ") + "\n",
            other => other.as_str().unwrap_or_default().to_owned() + "\n",
        })
        .collect();
    let told = commands.contains("restart") || commands.contains("reload");
    commands.contains("sshd_config") && told && allows(&commands)
}

#[cfg(test)]
mod tests {
    use russh::keys::ssh_key::LineEnding;
    use russh::keys::ssh_key::private::Ed25519Keypair;
    use serde_json::json;

    use super::*;

    fn config(value: &Value) -> String {
        format!("#cloud-config\n{value}\n")
    }

    #[test]
    fn json_and_yaml_are_read() {
        let user = json!({"users": [{"name": "ubuntu", "ssh_authorized_keys": ["ssh-ed25519 AAAA a"]}]});
        assert_eq!(boot(&config(&user)).authorized, "ssh-ed25519 AAAA a");
        let yaml = "#cloud-config\nusers:\n  - default\n  - name: ubuntu\n    ssh_authorized_keys:\n      - key one\n      - key two\n";
        assert_eq!(boot(yaml).authorized, "key one\nkey two");
        assert_eq!(boot("users: []\n").authorized, "");
        assert_eq!(objection("#!/bin/sh\nexit"), Some("user data is no cloud-config"));
        assert_eq!(objection(&config(&user)), None);
        assert!(objection(&config(&json!({"users": [{"name": "root"}]}))).is_some());
    }

    #[test]
    fn host_keys_are_checked() {
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
        let private = key.to_openssh(LineEnding::LF).unwrap().to_string();
        let public = key.public_key().to_openssh().unwrap();
        let other = PrivateKey::from(Ed25519Keypair::from_seed(&[8; 32])).public_key().to_openssh().unwrap();
        let with = |private: &str, public: &str| {
            boot(&config(&json!({"ssh_keys": {"ed25519_private": private, "ed25519_public": public}})))
        };
        assert!(with(&private, &public).host_key.is_some());
        assert!(with(&private, &other).no_sshd);
        assert!(with(private.trim_end(), &public).no_sshd);
        assert!(with("nonsense\n", &public).no_sshd);
    }

    #[test]
    fn forwarding_is_off_until_allowed() {
        let allowed = |value: Value| boot(&config(&value)).forwarding;
        assert!(!allowed(json!({})));
        let file = |path: &str, content: &str| json!({"write_files": [{"path": path, "content": content}]});
        assert!(allowed(file("/etc/ssh/sshd_config.d/10-x.conf", "AllowTcpForwarding yes\n")));
        assert!(!allowed(file("/etc/ssh/sshd_config.d/10-x.conf", "AllowTcpForwarding no\n")));
        assert!(!allowed(file("/etc/motd", "AllowTcpForwarding yes\n")));
        let write = "echo 'AllowTcpForwarding yes' > /etc/ssh/sshd_config.d/10-x.conf";
        assert!(allowed(json!({"runcmd": [write, ["systemctl", "restart", "ssh"]]})));
        assert!(!allowed(json!({"runcmd": [write]})));
    }
}
