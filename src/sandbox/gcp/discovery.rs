//! The API as its discovery document has it: which method a path is, which query parameters it takes, what its body may hold.
//!
//! `catalog/gcp-discovery.json` is the Compute v1 document (revision 20261106), cut to the methods that are served and the
//! schemas they reach, without descriptions. It refuses more than the service does: every field that is in no schema.

use std::io;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::names;

/// Names of operations, for faults and records, by the document's method.
const OPERATIONS: [(&str, &str); 45] = [
    ("instances.insert", "insert_instance"),
    ("instances.get", "get_instance"),
    ("instances.list", "list_zone_instances"),
    ("instances.aggregatedList", "list_instances"),
    ("instances.delete", "delete_instance"),
    ("instances.getGuestAttributes", "guest_attributes"),
    ("instances.getSerialPortOutput", "serial_port"),
    ("instances.stop", "stop_instance"),
    ("instances.setLabels", "set_labels"),
    ("instances.setMetadata", "set_metadata"),
    ("instances.setScheduling", "set_scheduling"),
    ("instances.setDiskAutoDelete", "set_disk_auto_delete"),
    ("zoneOperations.get", "get_operation"),
    ("zoneOperations.list", "list_operations"),
    ("zoneOperations.wait", "wait_operation"),
    ("globalOperations.get", "get_operation"),
    ("globalOperations.wait", "wait_operation"),
    ("machineTypes.get", "get_machine_type"),
    ("machineTypes.list", "list_zone_machine_types"),
    ("machineTypes.aggregatedList", "list_machine_types"),
    ("acceleratorTypes.get", "get_accelerator_type"),
    ("acceleratorTypes.list", "list_zone_accelerator_types"),
    ("acceleratorTypes.aggregatedList", "list_accelerator_types"),
    ("zones.get", "get_zone"),
    ("zones.list", "list_zones"),
    ("regions.get", "get_region"),
    ("regions.list", "list_regions"),
    ("images.get", "get_image"),
    ("images.getFromFamily", "image_family"),
    ("images.list", "list_images"),
    ("firewalls.insert", "insert_firewall"),
    ("firewalls.get", "get_firewall"),
    ("firewalls.list", "list_firewalls"),
    ("firewalls.delete", "delete_firewall"),
    ("firewalls.patch", "patch_firewall"),
    ("projects.get", "get_project"),
    ("disks.get", "get_disk"),
    ("disks.list", "list_zone_disks"),
    ("disks.aggregatedList", "list_disks"),
    ("disks.delete", "delete_disk"),
    ("subnetworks.list", "list_subnetworks"),
    ("subnetworks.get", "get_subnetwork"),
    ("networks.get", "get_network"),
    ("advice.capacity", "advice"),
    ("advice.capacityHistory", "advice"),
];

/// What is wrong with a request: `error.errors[0].reason` and the sentence.
pub(super) type Wrong = (&'static str, String);

/// The whole document.
#[derive(Debug, Deserialize)]
pub(super) struct Discovery {
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "revision")]
    _revision: String,
    /// Query parameters that every method takes.
    parameters: Map<String, Value>,
    methods: Map<String, Value>,
    schemas: Map<String, Value>,
    #[serde(skip)]
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    id: String,
    operation: &'static str,
    http: String,
    parts: Vec<String>,
}

/// One method with the names that stand in its path.
#[derive(Debug)]
pub(super) struct Method<'a> {
    /// Name in the document, such as `instances.insert`.
    pub(super) id: &'a str,
    /// Name for faults and records.
    pub(super) operation: &'static str,
    names: Vec<(&'a str, String)>,
    spec: &'a Value,
}

impl Method<'_> {
    /// A name of the path, empty when the path has none of this kind.
    pub(super) fn name(&self, kind: &str) -> &str {
        self.names.iter().find(|(name, _)| *name == kind).map_or("", |(_, value)| value)
    }

    /// Name of the schema of its answers.
    #[cfg(test)]
    pub(super) fn response(&self) -> &str {
        self.spec["response"].as_str().unwrap_or_default()
    }
}

impl Discovery {
    /// Reads what is built in.
    pub(super) fn load() -> io::Result<Discovery> {
        let mut read: Discovery = serde_json::from_str(include_str!("../catalog/gcp-discovery.json"))?;
        let operation = |id: &str| OPERATIONS.iter().find(|(known, _)| *known == id).map(|(_, name)| *name);
        let route = |(id, spec): (&String, &Value)| Route {
            id: id.clone(),
            operation: operation(id).unwrap_or("unknown"),
            http: spec["http"].as_str().unwrap_or_default().to_owned(),
            parts: spec["path"].as_str().unwrap_or_default().split('/').map(str::to_owned).collect(),
        };
        read.routes = read.methods.iter().map(route).collect();
        Ok(read)
    }

    /// The method that a path below `/compute/v1/` is.
    pub(super) fn find(&self, http: &str, parts: &[&str]) -> Option<Method<'_>> {
        self.routes.iter().filter(|route| route.http == http).find_map(|route| {
            if route.parts.len() != parts.len() {
                return None;
            }
            let mut names = Vec::new();
            for (want, part) in route.parts.iter().zip(parts) {
                match want.strip_prefix('{').and_then(|want| want.strip_suffix('}')) {
                    Some(_) if part.is_empty() => return None,
                    Some(name) => names.push((name, (*part).to_owned())),
                    None if want == part => {}
                    None => return None,
                }
            }
            let spec = self.methods.get(&route.id)?;
            Some(Method { id: &route.id, operation: route.operation, names, spec })
        })
    }

    /// Whether the names in the path and the query are such as the method takes.
    pub(super) fn check_query(&self, method: &Method<'_>, pairs: &[(String, String)]) -> Result<(), Wrong> {
        let own = method.spec["parameters"].as_object();
        for (name, value) in &method.names {
            let pattern = own.and_then(|own| own.get(*name)).and_then(|spec| spec["pattern"].as_str());
            if !pattern.is_none_or(|pattern| names::fits(pattern, value)) {
                return Err((
                    "invalid",
                    format!(
                        "Invalid value for field '{name}': '{value}'. Must be a match of regex '{}'",
                        pattern.unwrap_or_default()
                    ),
                ));
            }
        }
        for (index, (name, value)) in pairs.iter().enumerate() {
            let spec = own.and_then(|own| own.get(name)).filter(|spec| spec["location"] == "query");
            let Some(spec) = spec.or_else(|| self.parameters.get(name)) else {
                return Err((
                    "badRequest",
                    format!(
                        "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field '{name}' could not be found in request message."
                    ),
                ));
            };
            if spec["repeated"] != true && pairs[..index].iter().any(|(other, _)| other == name) {
                return Err(("badRequest", format!("query parameter {name} is there twice")));
            }
            check_text(spec, name, value)?;
        }
        Ok(())
    }

    /// Whether a body is such as the method takes; a method without a body takes none.
    pub(super) fn check_body(&self, method: &Method<'_>, body: &Value) -> Result<(), Wrong> {
        match method.spec["request"].as_str() {
            Some(schema) => self.check(schema, body, &format!("compute.{}", method.id)),
            None if body.is_null() || body.as_object().is_some_and(Map::is_empty) => Ok(()),
            None => Err(("badRequest", format!("{} takes no body", method.id))),
        }
    }

    /// Whether the method has a body.
    pub(super) fn takes_body(method: &Method<'_>) -> bool {
        method.spec["request"].is_string()
    }

    /// Whether a value is of a schema; `purpose` is the method whose required fields must be there.
    pub(super) fn check(&self, schema: &str, value: &Value, purpose: &str) -> Result<(), Wrong> {
        match self.schemas.get(schema) {
            Some(spec) => self.walk(spec, value, "resource", purpose),
            None => Err(("invalid", format!("no schema {schema}"))),
        }
    }

    fn walk(&self, spec: &Value, value: &Value, path: &str, purpose: &str) -> Result<(), Wrong> {
        // `null` is an absent field, in objects as in the protobuf JSON mapping.
        if value.is_null() {
            return Ok(());
        }
        if let Some(name) = spec["$ref"].as_str() {
            let spec = self.schemas.get(name).unwrap_or(&Value::Null);
            return self.walk(spec, value, path, purpose);
        }
        let wrong = |kind: &str| ("invalid", format!("Invalid value at '{path}' (TYPE_{kind}), {value}"));
        match spec["type"].as_str().unwrap_or("any") {
            "object" => {
                let fields = value.as_object().ok_or_else(|| wrong("MESSAGE"))?;
                let known = spec["properties"].as_object();
                for (name, inner) in fields {
                    let inside = format!("{path}.{name}");
                    match known.and_then(|known| known.get(name)) {
                        Some(spec) => self.walk(spec, inner, &inside, purpose)?,
                        None if spec["additionalProperties"].is_object() => {
                            self.walk(&spec["additionalProperties"], inner, &inside, purpose)?;
                        }
                        None => {
                            let at = path.strip_prefix("resource").unwrap_or(path).trim_start_matches('.');
                            let place = if at.is_empty() { String::new() } else { format!(" at '{path}'") };
                            return Err((
                                "invalid",
                                format!(
                                    "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
                                ),
                            ));
                        }
                    }
                }
                for (name, spec) in known.into_iter().flatten() {
                    let needed = spec["annotations"]["required"].as_array();
                    let needed = needed.is_some_and(|methods| methods.iter().any(|method| method == purpose));
                    if needed && fields.get(name).is_none_or(Value::is_null) {
                        return Err(("required", format!("Required field '{path}.{name}' not specified")));
                    }
                }
                Ok(())
            }
            "array" => {
                let items = value.as_array().ok_or_else(|| wrong("LIST"))?;
                for (index, item) in items.iter().enumerate() {
                    if item.is_null() {
                        return Err(wrong("MESSAGE"));
                    }
                    self.walk(&spec["items"], item, &format!("{path}[{index}]"), purpose)?;
                }
                Ok(())
            }
            "boolean" => value.as_bool().map(|_| ()).ok_or_else(|| wrong("BOOL")),
            "integer" => {
                let fits = match spec["format"].as_str() {
                    Some("uint32") => value.as_u64().is_some_and(|number| u32::try_from(number).is_ok()),
                    _ => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
                };
                if fits { Ok(()) } else { Err(wrong("INT32")) }
            }
            "number" => value.as_f64().map(|_| ()).ok_or_else(|| wrong("DOUBLE")),
            "string" => self.text(spec, value, path),
            _ => Ok(()),
        }
    }

    fn text(&self, spec: &Value, value: &Value, path: &str) -> Result<(), Wrong> {
        let wide = matches!(spec["format"].as_str(), Some("int64" | "uint64"));
        match value {
            Value::String(text) => check_text(spec, path, text),
            // The protobuf JSON mapping takes a plain number too.
            Value::Number(number) if wide && !number.is_f64() => Ok(()),
            _ => Err(("invalid", format!("Invalid value at '{path}' (TYPE_STRING), {value}"))),
        }
    }
}

/// Whether text is of a schema or a query parameter.
fn check_text(spec: &Value, path: &str, text: &str) -> Result<(), Wrong> {
    let refuse = |why: &str| Err(("invalid", format!("Invalid value for field '{path}': '{text}'. {why}")));
    if let Some(words) = spec["enum"].as_array()
        && !words.iter().any(|word| word == text)
    {
        return refuse("is not one of the known values");
    }
    let fits = match (spec["type"].as_str(), spec["format"].as_str()) {
        (Some("boolean"), _) => matches!(text, "true" | "false"),
        (Some("integer"), Some("uint32")) => text.parse::<u32>().is_ok(),
        (Some("integer"), _) => text.parse::<i32>().is_ok(),
        (_, Some("int64")) => text.parse::<i64>().is_ok(),
        (_, Some("uint64")) => text.parse::<u64>().is_ok(),
        _ => true,
    };
    if !fits {
        return refuse("is of another type");
    }
    match spec["pattern"].as_str() {
        Some(pattern) if !names::fits(pattern, text) => {
            refuse(&format!("Must be a match of regex '{pattern}'"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_method_has_a_name_and_schemas() {
        let document = Discovery::load().unwrap();
        for route in &document.routes {
            assert_ne!(route.operation, "unknown", "{}", route.id);
            let spec = &document.methods[&route.id];
            for part in ["request", "response"] {
                let name = spec[part].as_str();
                assert!(name.is_none_or(|name| document.schemas.contains_key(name)), "{}", route.id);
            }
        }
        let parts = ["projects", "p", "zones", "us-central1-a", "instances", "x"];
        let method = document.find("GET", &parts).unwrap();
        assert_eq!(
            (method.operation, method.name("zone"), method.name("instance")),
            ("get_instance", "us-central1-a", "x")
        );
        assert!(document.find("GET", &["projects", "p", "zones", "z", "instances", ""]).is_none());
    }

    #[test]
    fn bodies() {
        let document = Discovery::load().unwrap();
        let check = |value: Value| document.check("Instance", &value, "compute.instances.insert");
        let good = json!({"name": "x", "labels": {"a": "b"}, "description": null,
                          "disks": [{"boot": true, "initializeParams": {"diskSizeGb": "50"}}]});
        assert_eq!(check(good), Ok(()));
        for (bad, reason, word) in [
            (json!({"labels": {}}), "required", "resource.name"),
            (json!({"name": "x", "zones": 1}), "invalid", "Unknown name \"zones\""),
            (json!({"name": "x", "disks": [{"size": 1}]}), "invalid", "at 'resource.disks[0]'"),
            (json!({"name": "x", "labels": {"a": 1}}), "invalid", "resource.labels.a"),
            (json!({"name": "X"}), "invalid", "regex"),
            (
                json!({"name": "x", "scheduling": {"provisioningModel": "spot"}}),
                "invalid",
                "provisioningModel",
            ),
            (json!({"name": "x", "disks": [{"diskSizeGb": "ten"}]}), "invalid", "diskSizeGb"),
            (json!({"name": "x", "metadata": {"items": [{"key": "a"}]}}), "required", "items[0].value"),
            (json!({"name": "x", "canIpForward": "true"}), "invalid", "TYPE_BOOL"),
        ] {
            let (found, sentence) = check(bad.clone()).unwrap_err();
            assert!(found == reason && sentence.contains(word), "{bad}: {found} {sentence}");
        }
    }
}
