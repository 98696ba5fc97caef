//! The clouds on the stage: how each is set up, and what is asked of it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuprov::accounts::{Connect, connect};
use gpuprov::cloud::Cloud;
use gpuprov::model::mark::{Claim, Mark};
use gpuprov::model::offer::Offer;
use gpuprov::model::want::{Kind, Want};
use gpuprov::sandbox::{
    GcpGuesses, NebiusGuesses, Options, RunPodGuesses, Sandbox, VastGuesses, VerdaGuesses,
};
use gpuprov::state::{Config, Env, Paths};
use serde_json::{Value, json};

/// Whose credentials lead to the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The sandbox's own account.
    Owner,
    /// Nobody that it knows.
    Stranger,
}

type Variables = Vec<(&'static str, String)>;

/// One cloud, set up one way.
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// Changes how the sandbox answers where no document says how the cloud does.
    pub(super) change: fn(&mut Options),
    /// The variables that lead to the sandbox; files may be put into the folder.
    pub(super) variables: fn(&Sandbox, &Path, Who) -> Variables,
    /// What to ask for.
    pub(super) gpus: &'static str,
    /// An id as the cloud would give one, of a machine that never was.
    pub(super) never: &'static str,
}

/// What a stranger gives for a secret; it must not be seen anywhere.
pub(super) const WRONG: &str = "sandbox-wrong-secret";

fn secret(who: Who, right: &str) -> String {
    if who == Who::Owner { right.to_owned() } else { WRONG.to_owned() }
}

fn runpod(sandbox: &Sandbox, _: &Path, who: Who) -> Variables {
    vec![
        ("GPUPROV_RUNPOD_ENDPOINT", sandbox.runpod_endpoint()),
        ("RUNPOD_API_KEY", secret(who, sandbox.runpod_key())),
    ]
}

fn vast(sandbox: &Sandbox, _: &Path, who: Who) -> Variables {
    vec![
        ("GPUPROV_VAST_ENDPOINT", sandbox.vast().endpoint()),
        ("VAST_API_KEY", secret(who, sandbox.vast().key())),
    ]
}

fn verda(sandbox: &Sandbox, _: &Path, who: Who) -> Variables {
    vec![
        ("GPUPROV_VERDA_ENDPOINT", sandbox.verda().endpoint()),
        ("VERDA_CLIENT_ID", sandbox.verda().client_id().to_owned()),
        ("VERDA_CLIENT_SECRET", secret(who, sandbox.verda().client_secret())),
    ]
}

fn nebius(sandbox: &Sandbox, _: &Path, who: Who) -> Variables {
    vec![
        ("GPUPROV_NEBIUS_ENDPOINT", sandbox.nebius().endpoint()),
        ("NEBIUS_IAM_TOKEN", secret(who, sandbox.nebius().token())),
    ]
}

/// A stranger's key is one that Google does not know any more, of a project of somebody else's.
fn gcp(sandbox: &Sandbox, folder: &Path, who: Who) -> Variables {
    let gcp = sandbox.gcp();
    let mut file: Value = serde_json::from_str(&match who {
        Who::Owner => gcp.key_file(),
        Who::Stranger => gcp.deleted_key_file(),
    })
    .unwrap();
    if who == Who::Stranger {
        file["project_id"] = json!(WRONG);
    }
    let path = folder.join(format!("{who:?}.json"));
    std::fs::write(&path, file.to_string()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    vec![
        ("GPUPROV_GCP_ENDPOINT", gcp.endpoint()),
        ("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string()),
    ]
}

/// Every cloud twice: as we believe it to be, and with everything the other way round that no document settles.
pub(super) fn stages() -> Vec<Stage> {
    let runpod = Stage {
        name: "runpod",
        change: |_| {},
        variables: runpod,
        gpus: "RTX4090:1",
        never: "0000never0000",
    };
    let vast = Stage { name: "vast", change: |_| {}, variables: vast, gpus: "RTX5090:1", never: "999999999" };
    let verda = Stage {
        name: "verda",
        change: |_| {},
        variables: verda,
        gpus: "H100:1",
        never: "00000000-0000-4000-8000-000000000000",
    };
    let nebius = Stage {
        name: "nebius",
        change: |_| {},
        variables: nebius,
        gpus: "H100:1",
        never: "computeinstance-e00never",
    };
    let gcp =
        Stage { name: "gcp", change: |_| {}, variables: gcp, gpus: "L4:1", never: "7240199231733014150" };
    vec![
        Stage {
            name: "gcp, guesses flipped",
            change: |options| options.gcp_guesses = GcpGuesses::flipped(),
            ..gcp
        },
        gcp,
        Stage {
            name: "nebius, guesses flipped",
            change: |options| options.nebius_guesses = NebiusGuesses::flipped(),
            ..nebius
        },
        nebius,
        Stage {
            name: "runpod, guesses flipped",
            change: |options| options.runpod_guesses = RunPodGuesses::flipped(),
            ..runpod
        },
        runpod,
        Stage {
            name: "vast, guesses flipped",
            change: |options| options.vast_guesses = VastGuesses::flipped(),
            ..vast
        },
        vast,
        Stage {
            name: "verda, guesses flipped",
            change: |options| options.verda_guesses = VerdaGuesses::flipped(),
            ..verda
        },
        verda,
    ]
}

/// A stage that is set up.
pub(super) struct Set {
    pub(super) sandbox: Sandbox,
    pub(super) cloud: Arc<dyn Cloud>,
    pub(super) stranger: Arc<dyn Cloud>,
    pub(super) want: Want,
    pub(super) home: tempfile::TempDir,
}

impl Set {
    pub(super) async fn up(stage: &Stage) -> Set {
        let home = tempfile::Builder::new().prefix("b").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let scratch = home.path().join("machines");
        std::fs::create_dir(&scratch).unwrap();
        let mut options = Options::for_tests(scratch);
        (stage.change)(&mut options);
        let sandbox = Sandbox::start(options).await.unwrap();
        let port = sandbox.vm_ssh_port();
        let cloud = account(&home, &(stage.variables)(&sandbox, home.path(), Who::Owner), port);
        let stranger = account(&home, &(stage.variables)(&sandbox, home.path(), Who::Stranger), port);
        let want = Want::new(Kind::Gpus(vec![stage.gpus.parse().unwrap()]), 60);
        Set { sandbox, cloud, stranger, want, home }
    }

    pub(super) async fn cheapest(&self) -> Offer {
        let mut offers = self.cloud.offers(&self.want).await.unwrap().offers;
        let Kind::Gpus(gpus) = &self.want.kind else { panic!("the suite asks for GPUs") };
        offers.retain(|offer| {
            gpus[0].model.matches(&offer.card().unwrap()) && offer.gpu_count == gpus[0].count
        });
        offers.sort_by(Offer::order);
        offers.into_iter().next().expect("no offers")
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            installation: "suite".parse().unwrap(),
            account: self.cloud.account().name().to_owned(),
            name: "dev".to_owned(),
            claim: Claim::random().unwrap(),
            expires: None,
            owner: None,
        }
    }

    pub(super) async fn key(&self) -> (PathBuf, String) {
        let file = self.home.path().join("key");
        let made = tokio::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "suite", "-f"])
            .arg(&file)
            .status()
            .await;
        assert!(made.unwrap().success());
        let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        (file, public.trim().to_owned())
    }
}

fn account(home: &tempfile::TempDir, variables: &[(&'static str, String)], port: u16) -> Arc<dyn Cloud> {
    let home = [("HOME", home.path().display().to_string())];
    let env = Env::of(home.into_iter().chain(variables.iter().cloned()));
    let paths = Paths::new(&env).unwrap();
    let text = format!(
        "[wait]\npoll = \"100ms\"\n\n[verda]\nssh_port = {port}\n[gcp]\nssh_port = {port}\n[nebius]\nssh_port = {port}\n"
    );
    let config = Config::parse(&text, &paths.config_file).unwrap();
    let connected = connect(Connect {
        env: &env,
        config: &config,
        paths: &paths,
        cloud_timeout: None,
        boot_timeout: None,
        only_environment: true,
        named: &[],
        recorded: &[],
        read_only: false,
    });
    Arc::clone(&connected.unwrap().accounts[0].cloud)
}
