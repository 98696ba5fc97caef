//! What the machine is told at its first boot: a user with our key, our host key, and that ssh may forward ports.
//!
//! JSON is YAML: the document is written by a serializer after the `#cloud-config` line, so no value can break out of it
//! (cloudinit.readthedocs.io, modules "users and groups", "ssh", "write files").

use serde_json::{Value, json};

use super::host_key::HostKey;

/// Whom to log in as. The API has no field for keys and images have no login of their own; `root` and `admin` are reserved
/// (docs.nebius.com/compute, connecting to a virtual machine).
pub(super) const USER: &str = "ubuntu";

/// The most that the API takes, in bytes.
pub(super) const MOST_BYTES: usize = 32_768;

/// Stands for the private host key where the document is shown.
const HIDDEN: &str = "(made for the machine, not shown)";

/// Returns the user data.
pub(super) fn user_data(public_key: &str, host_key: &HostKey) -> String {
    document(public_key, host_key.private.expose(), &host_key.public)
}

/// Returns the user data with neither half of a host key, for showing.
pub(super) fn shown(public_key: &str) -> String {
    document(public_key, HIDDEN, HIDDEN)
}

fn document(public_key: &str, host_private: &str, host_public: &str) -> String {
    format!("#cloud-config\n{}\n", config(public_key, host_private, host_public))
}

fn config(public_key: &str, host_private: &str, host_public: &str) -> Value {
    json!({
        // Without `default`: the image's own user would get no key and stay all the same.
        "users": [{
            "name": USER,
            "groups": ["adm", "sudo"],
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "shell": "/bin/bash",
            "lock_passwd": true,
            "ssh_authorized_keys": [public_key.trim()],
        }],
        "ssh_pwauth": false,
        "ssh_deletekeys": true,
        "ssh_keys": {"ed25519_private": host_private, "ed25519_public": host_public},
        // The image has forwarding off. The first value that sshd reads holds, and drop-ins are read in order of their names.
        "write_files": [{
            "path": "/etc/ssh/sshd_config.d/00-gpuprov.conf",
            "permissions": "0644",
            "content": "AllowTcpForwarding yes\n",
        }],
        // For images whose sshd is up before the file is written; a reload leaves open logins alone.
        "runcmd": [["systemctl", "try-reload-or-restart", "ssh.service"]],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIp2 ana@laptop";

    fn read(document: &str) -> Value {
        let (first, rest) = document.split_once('\n').unwrap();
        assert_eq!(first, "#cloud-config");
        serde_json::from_str(rest).unwrap()
    }

    #[test]
    fn the_document_says_who_may_log_in_and_as_whom_the_machine_answers() {
        let host = HostKey::random().unwrap();
        let document = user_data(&format!(" {KEY}\n"), &host);
        assert!(document.len() < MOST_BYTES);
        let config = read(&document);
        assert_eq!(config["users"][0]["name"], "ubuntu");
        assert_eq!(config["users"][0]["ssh_authorized_keys"], json!([KEY]));
        assert_eq!(config["ssh_keys"]["ed25519_public"], host.public.as_str());
        assert_eq!(config["ssh_keys"]["ed25519_private"], host.private.expose());
        assert_eq!(config["ssh_deletekeys"], true);
        assert_eq!(config["write_files"][0]["content"], "AllowTcpForwarding yes\n");
        // It is YAML too.
        let yaml: Value = serde_norway::from_str(&document).unwrap();
        assert_eq!(yaml, config);
        let shown = shown(KEY);
        assert!(!shown.contains("PRIVATE KEY") && shown.contains(KEY));
    }

    proptest::proptest! {
        #[test]
        fn no_key_breaks_out(comment in "\\PC{0,60}|[\"'\\\\:#{}\\[\\]\n]{0,20}") {
            let key = format!("ssh-ed25519 AAAA {comment}");
            let config = read(&document(&key, "private\nkey", "public"));
            proptest::prop_assert_eq!(&config["users"][0]["ssh_authorized_keys"][0], key.trim());
            proptest::prop_assert_eq!(config.as_object().unwrap().len(), 6);
        }
    }
}
