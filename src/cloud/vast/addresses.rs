//! Where a machine is reached: a port of the host itself, else Vast's proxy.
//!
//! The proxy is slower and sometimes refuses keys that are attached to one machine only, so it is the fall-back. Its port is
//! `ssh_port` as it stands; other tools add one where they should not (github.com/vast-ai/vast-cli/issues/79).
//! `machine_dir_ssh_port` and `direct_port_start` are something else.

use serde_json::Value;

use super::wire::Instance;
use crate::model::machine::SshAddress;

/// Who logs in; passwords are off.
const USER: &str = "root";

/// Returns the addresses, the direct one first, and why one could not be used.
pub(super) fn addresses(instance: &Instance, loopback: bool) -> (Vec<SshAddress>, Option<String>) {
    let (mut usable, mut trouble) = (Vec::new(), None);
    for (host, port) in [direct(instance), proxy(instance)].into_iter().flatten() {
        match SshAddress::new(&host, port, USER, loopback) {
            Ok(address) if !usable.contains(&address) => usable.push(address),
            Ok(_) => {}
            Err(error) => trouble = trouble.or(Some(error.to_string())),
        }
    }
    (usable, trouble)
}

/// Whether the port of the host is told.
pub(super) fn has_direct(instance: &Instance) -> bool {
    direct(instance).is_some()
}

fn direct(instance: &Instance) -> Option<(String, i64)> {
    // The value ends in a line end (github.com/vast-ai/vast-cli/issues/75).
    let host = instance.public_ipaddr.as_deref().map(str::trim).filter(|host| !host.is_empty())?;
    let mapped = instance.ports.as_ref()?.get("22/tcp")?;
    let mapped = mapped.as_array().and_then(|all| all.first()).unwrap_or(mapped);
    Some((host.to_owned(), port(mapped.get("HostPort")?)?))
}

fn proxy(instance: &Instance) -> Option<(String, i64)> {
    let host = instance.ssh_host.as_deref().map(str::trim).filter(|host| !host.is_empty())?;
    let port = instance.ssh_port.filter(|port| (1.0..65_536.0).contains(port))? as i64;
    // With Jupyter the first port is its own (github.com/vast-ai/vast-cli, `vastai/utils.py`).
    let jupyter = instance.image_runtype.as_deref().is_some_and(|kind| kind.contains("jupyter"));
    Some((host.to_owned(), port + i64::from(jupyter)))
}

fn port(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(instance: Value) -> Vec<String> {
        let instance: Instance = serde_json::from_value(instance).unwrap();
        let (usable, _) = addresses(&instance, false);
        usable.iter().map(|address| format!("{}:{}", address.host(), address.port())).collect()
    }

    #[test]
    fn direct_first_and_the_proxy_behind_it() {
        let ports = json!({"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "41022"}, {"HostPort": "1"}]});
        let whole = json!({"public_ipaddr": "203.0.113.14\n", "ports": ports, "ssh_host": "ssh5.vast.ai", "ssh_port": 20642,
            "machine_dir_ssh_port": 5300, "direct_port_start": -1});
        assert_eq!(of(whole.clone()), ["203.0.113.14:41022", "ssh5.vast.ai:20642"]);
        let changed = |changes: Value| {
            let mut instance = whole.clone();
            for (name, value) in changes.as_object().unwrap() {
                instance[name] = value.clone();
            }
            of(instance)
        };
        for ports in [
            json!(null),
            json!({}),
            json!([41022]),
            json!({"22/tcp": null}),
            json!({"22/tcp": []}),
            json!({"80/tcp": [{"HostPort": "1"}]}),
        ] {
            assert_eq!(changed(json!({"ports": ports})), ["ssh5.vast.ai:20642"], "{ports}");
        }
        assert_eq!(changed(json!({"ports": {"22/tcp": [{"HostPort": 22}]}}))[0], "203.0.113.14:22");
        assert_eq!(changed(json!({"image_runtype": "jupyter_direct"}))[1], "ssh5.vast.ai:20643");
        assert_eq!(changed(json!({"image_runtype": "ssh_direc ssh_proxy"}))[1], "ssh5.vast.ai:20642");
        assert_eq!(changed(json!({"public_ipaddr": null, "ssh_port": null})), [""; 0]);
        assert_eq!(changed(json!({"public_ipaddr": "10.0.0.5"})), ["ssh5.vast.ai:20642"]);
        assert_eq!(changed(json!({"public_ipaddr": "203.0.113.14\nProxyCommand x"})), ["ssh5.vast.ai:20642"]);
        assert_eq!(changed(json!({"ssh_host": "x y"})), ["203.0.113.14:41022"]);
    }

    #[test]
    fn an_address_that_cannot_be_used_is_told() {
        let instance = json!({"public_ipaddr": "10.0.0.5", "ports": {"22/tcp": [{"HostPort": "22"}]}});
        let (usable, trouble) = addresses(&serde_json::from_value(instance).unwrap(), false);
        assert!(usable.is_empty() && trouble.unwrap().contains("10.0.0.5"));
    }
}
