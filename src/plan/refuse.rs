//! Wishes against capabilities: what an account cannot honour is refused before any request.

use crate::cloud::{Capabilities, Support};
use crate::model::want::{Cluster, Spot, Want};

/// Which wishes come from the defaults of the configuration rather than from flags. A default that an account cannot honour
/// is dropped there with a note; it never skips an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soft {
    /// `defaults.spot`.
    pub spot: bool,
    /// `defaults.cpu_only`.
    pub cpu_only: bool,
    /// `defaults.port`.
    pub ports: bool,
}

/// Whether an account takes part.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// It does, with this request.
    Fits {
        /// The request without the defaults that the account cannot honour.
        want: Box<Want>,
        /// What was dropped or is done differently, in words for the user.
        notes: Vec<String>,
    },
    /// It does not.
    Skipped(String),
}

/// Returns whether an account with these capabilities takes part in the request, and how. `env` is the names of the variables
/// that the machine gets.
pub fn fit(want: &Want, soft: Soft, env: &[String], capabilities: &Capabilities) -> Fit {
    let mut want = want.clone();
    let mut notes = Vec::new();

    if want.is_cpu_only() {
        match capabilities.cpu_only {
            Support::Yes => {}
            Support::Note(note) => notes.push(note.to_owned()),
            Support::No(why) => return Fit::Skipped(format!("--cpu-only: {why}")),
        }
    }
    if want.spot != Spot::No {
        match capabilities.spot {
            Support::Yes => {}
            Support::Note(note) => notes.push(note.to_owned()),
            // `any` asks for both; a cloud without spot offers still has the other half.
            Support::No(_) if want.spot == Spot::Any => want.spot = Spot::No,
            Support::No(why) if soft.spot => {
                notes.push(format!("`defaults.spot` is left out: {why}"));
                want.spot = Spot::No;
            }
            Support::No(why) => return Fit::Skipped(format!("--spot: {why}")),
        }
    }
    if want.image.is_some() {
        match capabilities.image {
            Support::Yes => {}
            Support::Note(note) => notes.push(note.to_owned()),
            Support::No(why) => return Fit::Skipped(format!("--image: {why}")),
        }
    }
    if !want.ports.is_empty() {
        let narrowed = want.ports.iter().any(|port| port.cidr.is_some());
        let (flag, support) = match capabilities.ports {
            Support::No(_) => ("--port", capabilities.ports),
            _ if narrowed => ("--port N@CIDR", capabilities.port_cidr),
            _ => ("--port", capabilities.ports),
        };
        match support {
            Support::Yes => {}
            Support::Note(note) => notes.push(note.to_owned()),
            Support::No(why) if soft.ports => {
                notes.push(format!("`defaults.port` is left out: {why}"));
                want.ports.clear();
            }
            Support::No(why) => return Fit::Skipped(format!("{flag}: {why}")),
        }
    }
    if let (Cluster::Insist, Support::No(why)) = (want.cluster, capabilities.cluster) {
        return Fit::Skipped(format!("--k8s: {why}"));
    }
    if let Some(most) = capabilities.max_disk_gb.filter(|most| want.disk_gb > *most) {
        let title = capabilities.cloud.title();
        return Fit::Skipped(format!("--disk: {title} takes disks of up to {most} GB"));
    }
    if let Some(name) = env.iter().find(|name| (capabilities.reserves_env)(name)) {
        let title = capabilities.cloud.title();
        return Fit::Skipped(format!("--env {name}: {title}, or gpuprov there, sets that variable itself"));
    }
    Fit::Fits { want: Box::new(want), notes }
}

/// Returns the note for an account on whose machines the default cluster is not set up.
pub fn skipped_cluster(want: &Want, capabilities: &Capabilities) -> Option<String> {
    match (want.cluster, capabilities.cluster) {
        (Cluster::Default, Support::No(why)) => {
            Some(format!("no Kubernetes on {}: {why}", capabilities.cloud.title()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::want::Kind;
    use crate::plan::filter::samples;

    fn want() -> Want {
        Want::new(Kind::Gpus(Vec::new()), 50)
    }

    #[test]
    fn what_a_flag_asks_for_skips_an_account_that_cannot_do_it() {
        let capabilities = samples::capabilities();
        let cases = [
            (Want { spot: Spot::Only, ..want() }, "--spot: no spot"),
            (Want { ports: vec!["80".parse().unwrap()], ..want() }, "--port: random ports"),
            (Want { cluster: Cluster::Insist, ..want() }, "--k8s: no systemd"),
            (Want { kind: Kind::CpuOnly, ..want() }, "--cpu-only: GPUs only"),
        ];
        for (want, reason) in cases {
            assert_eq!(fit(&want, Soft::default(), &[], &capabilities), Fit::Skipped(reason.to_owned()));
        }
    }

    #[test]
    fn what_a_default_asks_for_is_dropped_with_a_note() {
        let want = Want { spot: Spot::Only, ports: vec!["80".parse().unwrap()], ..want() };
        let soft = Soft { spot: true, ports: true, ..Soft::default() };
        let Fit::Fits { want, notes } = fit(&want, soft, &[], &samples::capabilities()) else {
            panic!("skipped")
        };
        assert_eq!((want.spot, want.ports.len(), notes.len()), (Spot::No, 0, 2));
    }

    #[test]
    fn spot_any_takes_what_there_is() {
        let Fit::Fits { want, notes } =
            fit(&Want { spot: Spot::Any, ..want() }, Soft::default(), &[], &samples::capabilities())
        else {
            panic!("skipped")
        };
        assert_eq!((want.spot, notes.len()), (Spot::No, 0));
    }

    #[test]
    fn a_port_range_is_refused_where_there_is_no_firewall() {
        let mut capabilities = samples::capabilities();
        capabilities.ports = Support::Note("every port is open");
        capabilities.port_cidr = Support::No("there is no firewall");
        let open = Want { ports: vec!["80".parse().unwrap()], ..want() };
        assert!(
            matches!(fit(&open, Soft::default(), &[], &capabilities), Fit::Fits { notes, .. } if notes.len() == 1)
        );
        let narrowed = Want { ports: vec!["80@203.0.113.0/24".parse().unwrap()], ..want() };
        assert_eq!(
            fit(&narrowed, Soft::default(), &[], &capabilities),
            Fit::Skipped("--port N@CIDR: there is no firewall".to_owned())
        );
    }

    #[test]
    fn a_limit_of_one_cloud_skips_that_cloud_alone() {
        let capabilities = samples::capabilities();
        let env = |name: &str| vec!["HF_TOKEN".to_owned(), name.to_owned()];
        let large = Want { disk_gb: 10_001, ..want() };
        let skipped = |fit: Fit| matches!(fit, Fit::Skipped(why) if why.starts_with("--disk: ") || why.starts_with("--env OWN_X: "));
        assert!(skipped(fit(&large, Soft::default(), &[], &capabilities)));
        assert!(skipped(fit(&want(), Soft::default(), &env("OWN_X"), &capabilities)));
        assert!(!skipped(fit(&want(), Soft::default(), &env("OTHER"), &capabilities)));
        let other = Capabilities { max_disk_gb: None, reserves_env: |_| false, ..capabilities };
        assert!(!skipped(fit(&large, Soft::default(), &env("OWN_X"), &other)));
    }
}
