//! What is run under faults: a command, the world it starts in, and what went wrong before the trouble comes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gpuprov::sandbox::{Fault, FaultKind, LoginTrouble, Script, When};

use crate::case::{command, kill};
use crate::support::{World, ended, until};

/// One cloud in the matrix.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// A GPU that it has several offers of.
    pub gpus: &'static str,
    /// The operation that makes a machine.
    pub create: &'static str,
    /// The operation that deletes one.
    pub delete: &'static str,
    /// The operation that lists machines.
    pub list: &'static str,
    /// The operations that change nothing; `ls` and `offers` may make no others.
    pub reads: &'static [&'static str],
    /// Operations and troubles that mean "not yet" there and are waited out for longer than a case may take.
    pub waits: &'static [(&'static str, &'static str)],
    /// Lets the world have this cloud's account and no other.
    pub connect: fn(&mut World),
    /// Which part of the mark of a machine is its claim, in the ledger's environment or tags.
    pub claim: fn(&BTreeMap<String, String>) -> Option<&str>,
}

/// The claim in the variable that containers carry.
fn claim_in_variable(env: &BTreeMap<String, String>) -> Option<&str> {
    env.get("GPUPROV_MARK")?.split(':').nth(4)
}

/// The clouds. A new one is added here.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "runpod",
        gpus: "RTX4090:1",
        create: "create_pod",
        delete: "delete_pod",
        list: "list_pods",
        reads: &[
            "list_pods",
            "get_pod",
            "logs",
            "catalog",
            "catalog_one",
            "datacenters",
            "datacenter",
            "ssh_keys",
        ],
        waits: &[],
        connect: |_| {},
        claim: claim_in_variable,
    },
    Subject {
        name: "vast",
        gpus: "RTX5090:1",
        create: "create",
        delete: "delete_instance",
        list: "list_instances",
        reads: &["search", "list_instances", "get_instance", "current_user", "gpu_types", "gpu_names"],
        waits: &[],
        connect: |world| {
            world.without_runpod();
            world.with_vast();
        },
        claim: claim_in_variable,
    },
    Subject {
        name: "verda",
        gpus: "H100:1",
        create: "create_instance",
        delete: "instance_action",
        list: "list_instances",
        reads: &[
            "token",
            "list_types",
            "availability",
            "availability_one",
            "locations",
            "images",
            "volume_types",
            "balance",
            "list_instances",
            "get_instance",
            "list_volumes",
            "list_trash",
            "get_volume",
            "list_keys",
            "get_key",
            "journal",
        ],
        waits: &[("instance_action", "403-lasting")],
        connect: |world| {
            world.without_runpod();
            world.with_verda();
        },
        claim: |tags| tags.get("gpuprov-claim").map(String::as_str),
    },
    Subject {
        name: "gcp",
        gpus: "L4:1",
        create: "insert_instance",
        delete: "delete_instance",
        list: "list_instances",
        reads: &[
            "oauth_token",
            "sts_token",
            "impersonate",
            "prices_gpuhunt",
            "prices_skypilot",
            "get_project",
            "get_region",
            "get_zone",
            "get_machine_type",
            "get_accelerator_type",
            "image_family",
            "get_image",
            "get_network",
            "advice",
            "get_instance",
            "list_instances",
            "get_operation",
            "wait_operation",
            "list_operations",
            "guest_attributes",
            "serial_port",
            "get_firewall",
            "list_firewalls",
            "get_disk",
            "list_disks",
        ],
        waits: &[],
        connect: |world| {
            world.without_runpod();
            world.with_gcp();
        },
        claim: |labels| labels.get("gpuprov-claim").map(String::as_str),
    },
    Subject {
        name: "nebius",
        gpus: "H200:1",
        create: "create_instance",
        delete: "delete_instance",
        list: "list_instances",
        reads: &[
            "exchange_token",
            "profile",
            "list_tenants",
            "list_projects",
            "list_platforms",
            "get_platform",
            "list_advice",
            "list_spot_prices",
            "list_quotas",
            "estimate",
            "list_subnets",
            "image_latest",
            "get_instance",
            "get_instance_by_name",
            "list_instances",
            "get_operation",
            "list_operations",
            "list_disks",
            "get_disk",
            "list_allocations",
        ],
        waits: &[("delete_instance", "conflict-lasting")],
        connect: |world| {
            world.without_runpod();
            world.with_nebius();
        },
        claim: |labels| labels.get("gpuprov-claim").map(String::as_str),
    },
];

/// Which command is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Offers,
    Provision,
    Ls,
    Rm,
}

/// What is there before the command, or goes wrong in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Nothing.
    Empty,
    /// A given installation id, so that `provision` asks for machines of other computers.
    Given,
    /// The first machine never lets anybody in: `provision` rolls it back and takes the next offer.
    FirstNeverReady,
    /// The answer of the first create is lost, and it took effect.
    FirstAnswerLost,
    /// The first create is lost, and nothing was made.
    FirstCreateLost,
    /// A machine that runs.
    Running,
    /// A `provision` that was killed when its create had taken effect.
    Interrupted,
    /// A machine that runs and has no record here, and another one that has.
    Unrecorded,
}

/// A command in a world.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The cloud.
    pub subject: &'static Subject,
    /// Name in cases.
    pub name: &'static str,
    /// What is judged.
    pub verb: Verb,
    /// What is there before.
    pub setup: Setup,
    /// The command after the program.
    pub words: &'static str,
}

const PROVISION: &str =
    "provision --gpus GPUS --name dev --attempts 2 --boot-timeout 4s --cloud-timeout 1s --json";
const HASTY: &str =
    "provision --gpus GPUS --name dev --attempts 2 --boot-timeout 1500ms --cloud-timeout 1s --json";

/// Returns the scenarios of a cloud.
pub fn plans(subject: &'static Subject) -> Vec<Plan> {
    let plan = |name, verb, setup, words| Plan { subject, name, verb, setup, words };
    let remove = "rm dev --yes --cloud-timeout 1s --json";
    vec![
        plan("offers", Verb::Offers, Setup::Empty, "offers --gpus GPUS --cloud-timeout 1s --json"),
        plan("provision", Verb::Provision, Setup::Empty, PROVISION),
        plan("provision-given", Verb::Provision, Setup::Given, PROVISION),
        plan("provision-rollback", Verb::Provision, Setup::FirstNeverReady, HASTY),
        plan("provision-settle", Verb::Provision, Setup::FirstAnswerLost, PROVISION),
        plan("provision-abandon", Verb::Provision, Setup::FirstCreateLost, PROVISION),
        plan("ls", Verb::Ls, Setup::Running, "ls --json"),
        plan("ls-interrupted", Verb::Ls, Setup::Interrupted, "ls --json"),
        plan("rm", Verb::Rm, Setup::Running, remove),
        plan("rm-interrupted", Verb::Rm, Setup::Interrupted, remove),
        plan("rm-all", Verb::Rm, Setup::Unrecorded, "rm --all --yes --cloud-timeout 1s --json"),
    ]
}

impl Plan {
    /// The command's words.
    pub fn command(&self) -> String {
        self.words.replace("GPUS", self.subject.gpus)
    }

    /// Whether a call is this scenario's own; the others meet every trouble in the plain one already.
    pub fn is_own(&self, calls: &[&str], at: usize) -> bool {
        match self.setup {
            Setup::FirstNeverReady | Setup::FirstAnswerLost | Setup::FirstCreateLost => {
                calls[..at].contains(&self.subject.create)
            }
            Setup::Given => calls[at] == self.subject.list,
            Setup::Empty | Setup::Running | Setup::Interrupted | Setup::Unrecorded => true,
        }
    }

    /// Makes the world in which the command starts.
    pub async fn world(&self, program: &Path) -> World {
        let mut world = World::new().await;
        (self.subject.connect)(&mut world);
        let create = self.subject.create;
        let make = format!("provision --gpus {} --name dev", self.subject.gpus);
        match self.setup {
            Setup::Empty => {}
            Setup::Given => world.set("GPUPROV_INSTALLATION", "team-ci"),
            Setup::FirstNeverReady => {
                let script = Script::NeverLogin { cause: LoginTrouble::Closed };
                world.sandbox.add_fault(Fault::on(create, FaultKind::Script { script }));
            }
            Setup::FirstAnswerLost => {
                world.sandbox.add_fault(Fault::on(create, FaultKind::Reset { when: When::After }));
            }
            Setup::FirstCreateLost => {
                world.sandbox.add_fault(Fault::on(create, FaultKind::Reset { when: When::Before }));
            }
            Setup::Running => made(&world, program, &make).await,
            Setup::Interrupted => {
                world.sandbox.add_fault(Fault::on(create, FaultKind::hang(When::After)));
                let mut child = command(&world, program, &make).spawn().unwrap();
                until("the machine of the run that is to be killed", || !world.sandbox.alive().is_empty())
                    .await;
                kill(&mut child).await;
                world.sandbox.clear_faults();
                world.sandbox.step(Duration::from_secs(1));
            }
            Setup::Unrecorded => {
                made(&world, program, &make).await;
                std::fs::remove_file(world.state().join("machines/dev.json")).unwrap();
                made(&world, program, &make.replace("dev", "other")).await;
            }
        }
        world
    }
}

async fn made(world: &World, program: &Path, words: &str) {
    let ran = ended(command(world, program, words).spawn().unwrap()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
}
