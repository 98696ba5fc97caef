//! Body of `PUT /api/v0/asks/{id}/`, checked as strictly as the service's own checks, and in places more so.
//!
//! Null stands for absent: the official client sends every field. Lengths are the marks `x-input-validation` of
//! `docs.vast.ai/api-reference` (create instance); `env` is an object whatever that page says
//! (<https://github.com/skypilot-org/skypilot/issues/9486>).

use serde_json::{Map, Value};

use super::catalog::LEAST_DISK;
use super::images;

/// Fields that a create may have. Most are taken and do nothing here.
const KNOWN: [&str; 29] = [
    "client_id",
    "image",
    "disk",
    "label",
    "runtype",
    "target_state",
    "cancel_unavail",
    "env",
    "onstart",
    "price",
    "args",
    "args_str",
    "image_login",
    "template_hash_id",
    "template_id",
    "volume_info",
    "user",
    "extra",
    "force",
    "python_utf8",
    "lang_utf8",
    "use_jupyter_lab",
    "jupyter_dir",
    "vm",
    "entrypoint",
    "create_from",
    "use_ssh",
    "extra_filters",
    "name",
];

/// Words of `runtype`; the official client sends two of them with a blank between.
const RUNTYPES: [&str; 9] = [
    "ssh",
    "jupyter",
    "args",
    "ssh_proxy",
    "ssh_direct",
    "ssh_direc",
    "jupyter_proxy",
    "jupyter_direct",
    "jupyter_direc",
];

/// A create that has been read.
#[derive(Debug)]
pub(super) struct Create {
    pub(super) image: String,
    pub(super) disk: f64,
    pub(super) label: Option<String>,
    pub(super) runtype: String,
    pub(super) stopped: bool,
    pub(super) env: Vec<(String, String)>,
    pub(super) onstart: Option<String>,
    /// The bid; without one it is rented on demand.
    pub(super) price: Option<f64>,
}

/// Why a create is malformed: status, slug and text.
#[derive(Debug)]
pub(super) struct Malformed(pub(super) u16, pub(super) &'static str, pub(super) String);

fn invalid(text: impl Into<String>) -> Malformed {
    Malformed(400, "invalid_args", text.into())
}

impl Create {
    /// Reads a body. `long` is whether an `env` entry may have more than 256 characters.
    pub(super) fn read(body: &Value, long: bool) -> Result<Create, Malformed> {
        let Some(body) = body.as_object() else {
            return Err(invalid("error 400/3467: Invalid args: no body"));
        };
        if let Some(name) = body.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(invalid(format!("error 400/3467: Invalid args: unknown field '{name}'")));
        }
        let image = text(body, "image", 1024)?.unwrap_or_default();
        let template =
            body.get("template_hash_id").or(body.get("template_id")).is_some_and(|id| !id.is_null());
        if template {
            return Err(Malformed(404, "invalid_args", "template not found".into()));
        }
        if image.trim().is_empty() {
            return Err(invalid("error 400/3467: Invalid args: 'image' is required"));
        }
        if body.get("vm") == Some(&Value::Bool(true)) {
            return Err(Malformed(400, "no_ssh_key_for_vm", "No SSH key on the account for a VM.".into()));
        }
        let disk = match body.get("disk") {
            None | Some(Value::Null) => LEAST_DISK,
            Some(value) => value.as_f64().ok_or_else(|| invalid("error 400/3467: disk must be a number"))?,
        };
        if disk < LEAST_DISK {
            return Err(invalid(format!(
                "error 400/3467: Invalid args: disk must be at least {LEAST_DISK} GB"
            )));
        }
        let price = match body.get("price") {
            None | Some(Value::Null) => None,
            Some(value) => {
                Some(value.as_f64().filter(|price| (0.001..=128.0).contains(price)).ok_or_else(|| {
                    Malformed(400, "invalid_price", "Please set a bid price >= 0.001.".into())
                })?)
            }
        };
        let runtype = text(body, "runtype", 64)?.unwrap_or_else(|| "ssh".into());
        if !runtype.split(' ').all(|word| RUNTYPES.contains(&word)) {
            return Err(invalid(format!("error 400/3467: Invalid args: runtype '{runtype}'")));
        }
        let stopped = match text(body, "target_state", 16)?.as_deref() {
            None | Some("running") => false,
            Some("stopped") => true,
            Some(other) => {
                return Err(invalid(format!("error 400/3467: Invalid args: target_state '{other}'")));
            }
        };
        for name in ["cancel_unavail", "force", "python_utf8", "lang_utf8", "use_jupyter_lab"] {
            if body.get(name).is_some_and(|value| !value.is_null() && !value.is_boolean()) {
                return Err(invalid(format!("error 400/3467: Invalid args: {name} must be a boolean")));
            }
        }
        Ok(Create {
            image,
            disk,
            label: text(body, "label", 256)?.filter(|label| !label.is_empty()),
            runtype,
            stopped,
            env: env(body.get("env"), long)?,
            onstart: text(body, "onstart", 4048)?,
            price,
        })
    }

    /// Whether the image has no tag, which is a `server_error` there.
    pub(super) fn untagged(&self) -> bool {
        !images::tagged(&self.image)
    }
}

fn text(body: &Map<String, Value>, name: &str, most: usize) -> Result<Option<String>, Malformed> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().count() <= most => Ok(Some(text.clone())),
        Some(Value::String(_)) => {
            Err(invalid(format!("error 400/3467: Invalid args: {name} is longer than {most} characters")))
        }
        Some(_) => Err(invalid(format!("error 400/3467: Invalid args: {name} must be a string"))),
    }
}

fn env(value: Option<&Value>, long: bool) -> Result<Vec<(String, String)>, Malformed> {
    let env = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(env)) => env,
        Some(_) => return Err(invalid("error 400/3467: Invalid args: env must be a dict")),
    };
    let mut all = Vec::new();
    let (mut length, mut ports) = (0, 0);
    for (name, value) in env {
        let Some(value) = value.as_str() else {
            return Err(invalid(format!("error 400/3467: Invalid args: env '{name}' must be a string")));
        };
        let entry = name.chars().count() + value.chars().count();
        length += entry;
        if entry > 256 && !long {
            return Err(invalid(format!(
                "error 400/3467: Invalid args: env '{name}' is longer than 256 characters"
            )));
        }
        if let Some(port) = name.strip_prefix("-p ") {
            ports += 1;
            if !mapping(port) {
                return Err(invalid(format!("error 400/3467: Invalid args: port mapping '{port}'")));
            }
        }
        all.push((name.clone(), value.to_owned()));
    }
    if length > 32_768 || ports > 64 {
        return Err(invalid("error 400/3467: Invalid args: env is too large"));
    }
    Ok(all)
}

/// `8000:8000` or `53:53/udp`; no ranges, and 22 is the runtype's.
fn mapping(text: &str) -> bool {
    let bare = text.strip_suffix("/udp").or_else(|| text.strip_suffix("/tcp")).unwrap_or(text);
    bare.split_once(':').is_some_and(|(outer, inner)| {
        [outer, inner].iter().all(|part| part.parse::<u32>().is_ok_and(|port| port > 0)) && inner != "22"
    })
}
