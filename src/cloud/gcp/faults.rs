//! The words by which Google's refusals are told apart, and what else would fail the same way.
//!
//! Sources: the discovery document of Compute v1; cloud.google.com/compute/docs/troubleshooting/troubleshooting-vm-creation
//! and .../troubleshooting-bulk-vm-creation; the cases named below.

use serde_json::Value;

use super::errors::{Asked, refusal};
use super::mend;
use super::verdicts::{Operation, QuotaInfo};
use super::wire::told;
use crate::cloud::{Error, ErrorKind, Limit};
use crate::http::Answer;

/// A refusal, early or late, as it is sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault {
    /// The HTTP status, also of a late one.
    pub(super) status: u16,
    /// Reasons and codes, the most telling first, as they came.
    pub(super) words: Vec<String>,
    /// Google's sentence.
    pub(super) message: String,
    /// Which quota.
    pub(super) quota: Option<QuotaInfo>,
    /// Zones that have what was asked for.
    pub(super) zones: Vec<String>,
}

impl Fault {
    /// Reads an error answer; none if its body is not Google's.
    pub(super) fn of_answer(answer: &Answer) -> Option<Self> {
        let body = refusal(answer)?;
        let errors = body.errors.unwrap_or_default();
        let details = body.details.unwrap_or_default();
        let reasons = details.iter().filter_map(|detail| told(detail.reason.as_ref()));
        let reasons = reasons.chain(errors.iter().filter_map(|error| told(error.reason.as_ref())));
        let words: Vec<String> = reasons.chain(told(body.status.as_ref())).map(str::to_owned).collect();
        let zones = details.iter().filter_map(|detail| detail.metadata.as_ref());
        let zones = zones.filter_map(|data| data.get("zonesAvailable")).flat_map(zone_list).collect();
        let message = body.message.unwrap_or_default();
        Some(Fault { status: answer.status, words, message, quota: None, zones })
    }

    /// Reads the errors of an operation.
    pub(super) fn of_operation(operation: &Operation) -> Self {
        let mut fault = Fault { status: operation.http_error_status_code.unwrap_or(0), ..Fault::default() };
        for error in operation.error.iter().flat_map(|error| error.errors.iter().flatten()) {
            fault.words.extend(told(error.code.as_ref()).map(str::to_owned));
            if fault.message.is_empty() {
                fault.message = error.message.clone().unwrap_or_default();
            }
            for detail in error.error_details.iter().flatten() {
                let data = detail.error_info.as_ref().and_then(|info| info.metadatas.as_ref());
                fault
                    .zones
                    .extend(data.and_then(|data| data.get("zonesAvailable")).into_iter().flat_map(zone_list));
                if fault.quota.is_none() {
                    fault.quota.clone_from(&detail.quota_info);
                }
            }
        }
        if fault.message.is_empty() {
            fault.message = operation.http_error_message.clone().unwrap_or_default();
        }
        fault
    }

    /// Whether one of its words is this one, whatever the spelling (`QUOTA_EXCEEDED`, `quotaExceeded`).
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|known| plain(known) == word)
    }

    fn says(&self, part: &str) -> bool {
        self.message.contains(part)
    }

    /// The metric and the region of an exceeded quota; no region for one over all regions.
    fn quota_metric(&self) -> Option<(String, Option<String>)> {
        // "Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region us-central1."
        let quoted = self.message.split_once("Quota '").and_then(|(_, rest)| rest.split_once('\''));
        let in_region = self.message.split_once(" in region ").map(|(_, rest)| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
            rest[..end].to_owned()
        });
        let told_region = self.quota.as_ref().and_then(|quota| {
            quota.dimensions.as_ref()?.get("region").and_then(Value::as_str).map(str::to_owned)
        });
        let named = self.quota.as_ref().and_then(|quota| {
            let metric = told(quota.metric_name.as_ref())?;
            Some(metric.rsplit('/').next().unwrap_or(metric).to_uppercase())
        });
        let metric = quoted.map(|(metric, _)| metric.to_uppercase()).or(named)?;
        Some((metric, in_region.or(told_region).filter(|region| !region.is_empty())))
    }
}

fn zone_list(value: &Value) -> Vec<String> {
    let words = value.as_str().unwrap_or_default().split([',', ' ']);
    words.map(str::trim).filter(|zone| super::names::is_zone(zone)).map(str::to_owned).collect()
}

fn plain(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Sorts a refusal. A code says more than a status: an exceeded quota of all regions comes as `403 FORBIDDEN`
/// (github.com/GoogleCloudPlatform/ai-on-gke/issues/849), an exhausted zone as `503 SERVICE UNAVAILABLE`
/// (github.com/scylladb/scylla-cluster-tests/issues/12477).
pub(super) fn kind(fault: &Fault) -> ErrorKind {
    if fault.says("RESOURCE_POOL_EXHAUSTED") || fault.says("does not have enough resources available") {
        return ErrorKind::NoCapacity;
    }
    if fault.says("Quota '") && fault.says("exceeded") {
        return ErrorKind::Quota;
    }
    if fault.says("is not found or access is unauthorized") {
        // "Location us-central1-z is not found or access is unauthorized."
        return ErrorKind::NoCapacity;
    }
    let told = fault.words.iter().find_map(|word| of_word(&plain(word)));
    told.or_else(|| of_sentence(fault)).unwrap_or_else(|| of_status(fault.status))
}

/// Sorts by the sentence alone, where an answer has no words, and a status that says little.
fn of_sentence(fault: &Fault) -> Option<ErrorKind> {
    match fault.status {
        403 if fault.says("Rate Limit Exceeded") => Some(ErrorKind::RateLimited),
        403 if fault.says("requires billing") => Some(ErrorKind::Balance),
        400 if fault.says("is not ready") || fault.says("already being used by") => Some(ErrorKind::Conflict),
        _ => None,
    }
}

fn of_word(word: &str) -> Option<ErrorKind> {
    if word.contains("resourcepoolexhausted") {
        return Some(ErrorKind::NoCapacity);
    }
    if word.starts_with("quotaexceeded") {
        return Some(ErrorKind::Quota);
    }
    Some(match word {
        // The last one is what a spot machine gets that is taken away while it is made.
        "insufficientcapacity" | "stockout" | "vmmincountnotreached" | "unsupportedoperation" => {
            ErrorKind::NoCapacity
        }
        "ratelimitexceeded"
        | "userratelimitexceeded"
        | "resourceoperationrateexceeded"
        | "resourceexhausted" => ErrorKind::RateLimited,
        "billingdisabled" => ErrorKind::Balance,
        "servicedisabled" | "accessnotconfigured" | "iampermissiondenied" => ErrorKind::Forbidden,
        "autherror" | "unauthenticated" | "accesstokenexpired" | "accesstokentypeunsupported" => {
            ErrorKind::Auth
        }
        "forbidden"
        | "permissiondenied"
        | "permissionserror"
        | "insufficientpermissions"
        | "conditionnotmet" => ErrorKind::Forbidden,
        "notfound" | "resourcenotfound" => ErrorKind::NotFound,
        "alreadyexists" | "resourcealreadyexists" | "resourcenotready" | "resourceinusebyanotherresource" => {
            ErrorKind::Conflict
        }
        "invalid" | "badrequest" | "required" | "parseerror" | "invalidparameter" | "invalidargument"
        | "invalidusage" | "invalidfieldvalue" => ErrorKind::Rejected,
        "internalerror" | "backenderror" | "internal" | "unavailable" => ErrorKind::Unavailable,
        _ => return None,
    })
}

fn of_status(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Auth,
        403 | 412 => ErrorKind::Forbidden,
        404 => ErrorKind::NotFound,
        408 => ErrorKind::Timeout,
        409 => ErrorKind::Conflict,
        429 => ErrorKind::RateLimited,
        400..=499 => ErrorKind::Rejected,
        // Also an operation that ended badly without a word.
        _ => ErrorKind::Unavailable,
    }
}

/// Adds what else would fail the same way, better zones, and what to do about it.
pub(super) fn explain(error: &mut Error, fault: &Fault, asked: &Asked<'_>) {
    if let Some(attempt) = asked.attempt
        && error.kind == ErrorKind::NotFound
    {
        (error.kind, error.limit) = missing(fault, asked.network);
        if error.kind == ErrorKind::NoCapacity {
            error.limit = Some(attempt.limit());
        }
    }
    match error.kind {
        ErrorKind::NoCapacity => {
            error.prefer.clone_from(&fault.zones);
            if let Some(attempt) = asked.attempt {
                error.limit = Some(attempt.limit());
                error.message = format!("{} (asked: {})", error.message, attempt.shown());
            }
        }
        ErrorKind::Quota => {
            let (limit, hint) = quota(fault, asked);
            error.limit = Some(limit);
            error.hint = Some(hint);
        }
        // A policy about places: other zones may be allowed.
        ErrorKind::Forbidden if fault.says("gcp.resourceLocations") => {
            let zone = asked.attempt.map(|attempt| attempt.zone.clone());
            error.limit = Some(Limit { zone, ..Limit::default() });
            error.hint = Some("`zones` in `[gcp]` names the zones that are asked".to_owned());
        }
        ErrorKind::Forbidden | ErrorKind::Balance => {
            error.limit = Some(Limit::default());
        }
        // Another type may fit where this one does not.
        ErrorKind::Rejected => {
            error.limit = asked.attempt.map(|attempt| Limit {
                instance_type: Some(attempt.instance_type.clone()),
                ..Limit::default()
            });
        }
        _ => {}
    }
    if error.hint.is_none() {
        error.hint = mend::hint(error.kind, fault, asked);
    }
}

/// What a create means that names something which does not exist: the network is the account's, everything else is not sold in
/// that zone.
fn missing(fault: &Fault, network: &str) -> (ErrorKind, Option<Limit>) {
    let of_network = fault.says("/networks/") || fault.says("/subnetworks/");
    match of_network && fault.says(network.rsplit('/').next().unwrap_or(network)) {
        true => (ErrorKind::Forbidden, Some(Limit::default())),
        false => (ErrorKind::NoCapacity, None),
    }
}

fn quota(fault: &Fault, asked: &Asked<'_>) -> (Limit, String) {
    let link = format!("https://console.cloud.google.com/iam-admin/quotas?project={}", asked.project);
    let Some((metric, region)) = fault.quota_metric() else {
        let limit = asked.attempt.map(super::errors::Attempt::limit).unwrap_or_default();
        return (limit, format!("ask for a higher quota at {link}"));
    };
    let place =
        region.as_deref().map_or_else(|| "all regions".to_owned(), |region| format!("region {region}"));
    let of_gpus = metric.contains("GPUS");
    let of_cpus = metric.contains("CPUS");
    // Spot GPUs have quotas of their own, so that one for GPUs on demand says nothing about them.
    let spot = match (metric.starts_with("PREEMPTIBLE_"), asked.attempt) {
        (true, _) => Some(true),
        (false, Some(attempt)) if of_gpus && region.is_some() => Some(attempt.spot),
        (false, _) => None,
    };
    let limit = match (&region, asked.attempt) {
        // CPUS_ALL_REGIONS, GPUS_ALL_REGIONS: of a quota of nothing nothing can be had anywhere, of another a smaller type may fit.
        (None, Some(attempt)) if !fault.says("Limit: 0") => {
            Limit { instance_type: Some(attempt.instance_type.clone()), spot, ..Limit::default() }
        }
        (None, _) => Limit { spot, ..Limit::default() },
        (Some(region), Some(attempt)) => {
            Limit {
                region: Some(region.clone()),
                gpu: attempt.gpu.clone().filter(|_| of_gpus),
                // A smaller type may still fit.
                instance_type: Some(attempt.instance_type.clone()).filter(|_| of_cpus),
                spot,
                ..Limit::default()
            }
        }
        (Some(region), None) => Limit { region: Some(region.clone()), spot, ..Limit::default() },
    };
    let limit_now = fault.quota.as_ref().and_then(|quota| quota.limit);
    let now = limit_now.map(|limit| format!(" (now {limit})")).unwrap_or_default();
    (limit, format!("ask for a higher quota of {metric} in {place}{now} at {link}"))
}
