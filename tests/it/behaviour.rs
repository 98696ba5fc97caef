//! What every cloud must do, checked through the trait against the sandbox. A cloud joins by a row in [`stages`].

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gpuprov::accounts::{Connect, connect};
use gpuprov::cloud::{Cloud, Deletion, ErrorKind, Journal, Recheck, Which};
use gpuprov::model::handle::{Handle, Resource, ResourceKind};
use gpuprov::model::machine::{MachineState, SshAddress};
use gpuprov::model::mark::{Claim, Mark};
use gpuprov::model::offer::Offer;
use gpuprov::model::offer_key::OfferKey;
use gpuprov::model::secret::Secret;
use gpuprov::model::spec::MachineSpec;
use gpuprov::model::want::{Cluster, Kind, Want};
use gpuprov::provision::wait::disagreement;
use gpuprov::sandbox::{Options, RunPodGuesses, Sandbox, VastGuesses, VerdaGuesses};
use gpuprov::state::{Config, Env, Paths};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One cloud, set up one way.
struct Stage {
    name: &'static str,
    /// Changes how the sandbox answers where no document says how the cloud does.
    change: fn(&mut Options),
    /// The variables that lead to the sandbox's account.
    variables: fn(&Sandbox) -> Vec<(&'static str, String)>,
    /// The variable whose value is the secret.
    secret: &'static str,
    /// What to ask for.
    gpus: &'static str,
    /// An id as the cloud would give one, of a machine that never was.
    never: &'static str,
}

fn stages() -> Vec<Stage> {
    let runpod: fn(&Sandbox) -> Vec<(&'static str, String)> = |sandbox| {
        vec![
            ("GPUPROV_RUNPOD_ENDPOINT", sandbox.runpod_endpoint()),
            ("RUNPOD_API_KEY", sandbox.runpod_key().to_owned()),
        ]
    };
    let vast: fn(&Sandbox) -> Vec<(&'static str, String)> = |sandbox| {
        vec![
            ("GPUPROV_VAST_ENDPOINT", sandbox.vast().endpoint()),
            ("VAST_API_KEY", sandbox.vast().key().to_owned()),
        ]
    };
    let verda: fn(&Sandbox) -> Vec<(&'static str, String)> = |sandbox| {
        vec![
            ("GPUPROV_VERDA_ENDPOINT", sandbox.verda().endpoint()),
            ("VERDA_CLIENT_ID", sandbox.verda().client_id().to_owned()),
            ("VERDA_CLIENT_SECRET", sandbox.verda().client_secret().to_owned()),
        ]
    };
    vec![
        Stage {
            name: "verda",
            change: |_| {},
            variables: verda,
            secret: "VERDA_CLIENT_SECRET",
            gpus: "H100:1",
            never: "00000000-0000-4000-8000-000000000000",
        },
        Stage {
            name: "verda, guesses flipped",
            change: |options| options.verda_guesses = VerdaGuesses::flipped(),
            variables: verda,
            secret: "VERDA_CLIENT_SECRET",
            gpus: "H100:1",
            never: "00000000-0000-4000-8000-000000000000",
        },
        Stage {
            name: "vast",
            change: |_| {},
            variables: vast,
            secret: "VAST_API_KEY",
            gpus: "RTX5090:1",
            never: "999999999",
        },
        Stage {
            name: "vast, guesses flipped",
            change: |options| options.vast_guesses = VastGuesses::flipped(),
            variables: vast,
            secret: "VAST_API_KEY",
            gpus: "RTX5090:1",
            never: "999999999",
        },
        Stage {
            name: "runpod",
            change: |_| {},
            variables: runpod,
            secret: "RUNPOD_API_KEY",
            gpus: "RTX4090:1",
            never: "0000never0000",
        },
        Stage {
            name: "runpod, guesses flipped",
            change: |options| options.runpod_guesses = RunPodGuesses::flipped(),
            variables: runpod,
            secret: "RUNPOD_API_KEY",
            gpus: "RTX4090:1",
            never: "0000never0000",
        },
    ]
}

/// A stage that is set up.
struct Set {
    sandbox: Sandbox,
    cloud: Arc<dyn Cloud>,
    stranger: Arc<dyn Cloud>,
    want: Want,
    home: tempfile::TempDir,
}

impl Set {
    async fn up(stage: &Stage) -> Set {
        let home = tempfile::Builder::new().prefix("b").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let scratch = home.path().join("machines");
        std::fs::create_dir(&scratch).unwrap();
        let mut options = Options::for_tests(scratch);
        (stage.change)(&mut options);
        let sandbox = Sandbox::start(options).await.unwrap();
        let variables = (stage.variables)(&sandbox);
        let cloud = account(&home, &variables, sandbox.vm_ssh_port());
        let wrong = variables
            .iter()
            .map(|(name, value)| {
                (*name, if *name == stage.secret { "sandbox-wrong-secret".to_owned() } else { value.clone() })
            })
            .collect::<Vec<_>>();
        let stranger = account(&home, &wrong, sandbox.vm_ssh_port());
        let want = Want::new(Kind::Gpus(vec![stage.gpus.parse().unwrap()]), 60);
        Set { sandbox, cloud, stranger, want, home }
    }

    async fn cheapest(&self) -> Offer {
        let mut offers = self.cloud.offers(&self.want).await.unwrap().offers;
        let Kind::Gpus(gpus) = &self.want.kind else { panic!("the suite asks for GPUs") };
        offers.retain(|offer| {
            gpus[0].model.matches(&offer.card().unwrap()) && offer.gpu_count == gpus[0].count
        });
        offers.sort_by(Offer::order);
        offers.into_iter().next().expect("no offers")
    }

    fn mark(&self) -> Mark {
        Mark {
            installation: "suite".parse().unwrap(),
            account: self.cloud.account().name().to_owned(),
            name: "dev".to_owned(),
            claim: Claim::random().unwrap(),
            expires: None,
            owner: None,
        }
    }

    async fn key(&self) -> (PathBuf, String) {
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
    let text = format!("[wait]\npoll = \"100ms\"\n\n[verda]\nssh_port = {port}\n");
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

#[derive(Default)]
struct Noted(Mutex<Vec<Resource>>);

impl Journal for Noted {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        self.0.lock().unwrap().push(resource.clone());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_say_what_they_cost_and_can_be_asked_for_again() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let batch = set.cloud.offers(&set.want).await.unwrap();
        assert!(!batch.offers.is_empty() && !batch.known_gpus.is_empty(), "{}", stage.name);
        for offer in &batch.offers {
            assert_eq!(offer.price_per_hour, offer.price_parts.total(), "{}: {offer:?}", stage.name);
            assert!(offer.disk_gb >= set.want.disk_gb && offer.sandbox, "{}: {offer:?}", stage.name);
            assert!(offer.id.len() <= 200, "{}: {}", stage.name, offer.id);
            let key = OfferKey::decode(&offer.id).unwrap();
            assert_eq!(key.account, offer.account, "{}", stage.name);
            assert_eq!(
                (key.instance_type, key.gpu_count, key.zone, key.price, key.spot, key.disk_gb),
                (
                    offer.instance_type.clone(),
                    offer.gpu_count,
                    offer.zone.clone(),
                    offer.price_per_hour,
                    offer.spot,
                    offer.disk_gb
                ),
                "{}",
                stage.name
            );
        }
        let offer = set.cheapest().await;
        let key = OfferKey::decode(&offer.id).unwrap();
        match set.cloud.recheck(&key, &set.want).await.unwrap() {
            Recheck::Offered(fresh) => {
                assert_eq!(
                    (fresh.price_per_hour, fresh.zone, fresh.id),
                    (offer.price_per_hour, offer.zone, offer.id)
                );
            }
            Recheck::Gone(why) => panic!("{}: {why}", stage.name),
        }
        let nowhere = OfferKey { zone: Some("XX-NOWHERE-9".to_owned()), own: Some("1.1".to_owned()), ..key };
        let gone = set.cloud.recheck(&nowhere, &set.want).await.unwrap();
        assert!(matches!(gone, Recheck::Gone(_)), "{}", stage.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_made_found_reached_and_deleted() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let offer = set.cheapest().await;
        let (key, public) = set.key().await;
        let mark = set.mark();
        let spec = MachineSpec {
            name: "dev".parse().unwrap(),
            public_key: public,
            image: None,
            env: vec![("GREETING".to_owned(), Secret::new("hello".to_owned()))],
            ports: Vec::new(),
            cluster: Cluster::Off,
        };
        let preview = set.cloud.preview(&offer, &spec, &mark);
        assert!(!preview.body.to_string().contains("hello"), "{}: a value in the dry run", stage.name);

        let noted = Noted::default();
        let created = set.cloud.create(&offer, &spec, &mark, &noted).await.unwrap();
        let handle = created.handle;
        let machine = noted.0.lock().unwrap().iter().find(|made| made.kind == ResourceKind::Machine).cloned();
        assert_eq!(
            machine.map(|made| made.id),
            Some(handle.id.clone()),
            "{}: not in the journal",
            stage.name
        );
        assert_eq!(set.sandbox.alive().len(), 1, "{}", stage.name);

        let address = reachable(&stage, &set, &handle, &offer).await;
        log_in(&key, &address).await;
        forward(&key, &address).await;
        finds(&stage, &set, &handle, &mark).await;

        let handle = Handle {
            side: noted
                .0
                .lock()
                .unwrap()
                .iter()
                .filter(|made| made.kind != ResourceKind::Machine)
                .cloned()
                .collect(),
            ..handle
        };
        for _ in 0..2 {
            delete(&stage, &set, &handle).await;
            let look = set.cloud.inspect(&handle).await.unwrap();
            assert_eq!(look.state, MachineState::Gone, "{}", stage.name);
        }
        assert!(set.sandbox.alive().is_empty(), "{}", stage.name);
        let left = set.sandbox.verda().left();
        assert!(left.is_empty(), "{}: {left:#?}", stage.name);
        assert!(set.sandbox.verda().harmed().is_empty(), "{}", stage.name);
        assert!(
            set.cloud.find(&Which::AnyMarked).await.unwrap().is_empty(),
            "{}: something is left",
            stage.name
        );
        assert!(set.sandbox.rejected().is_empty(), "{}: {:#?}", stage.name, set.sandbox.rejected());
        let foreign = set.sandbox.ledger().iter().filter(|entry| entry.alive).count();
        assert!(foreign > 0, "{}: the foreign machine is gone", stage.name);
    }
}

/// Looks until an address is told, and holds what was sold against the offer.
async fn reachable(stage: &Stage, set: &Set, handle: &Handle, offer: &Offer) -> SshAddress {
    for _ in 0..200 {
        let look = set.cloud.inspect(handle).await.unwrap();
        assert!(look.failed.is_none(), "{}: {look:?}", stage.name);
        assert_eq!(disagreement(offer, &look.sold), None, "{}", stage.name);
        if let Some(address) = look.ssh.into_iter().next()
            && TcpStream::connect((address.host(), address.port())).await.is_ok()
        {
            return address;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}: never reachable", stage.name);
}

fn ssh(key: &std::path::Path, address: &SshAddress) -> tokio::process::Command {
    let mut ssh = tokio::process::Command::new("ssh");
    ssh.args([
        "-F",
        "/dev/null",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "IdentitiesOnly=yes",
    ])
    .args([
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
        "-o",
        "ExitOnForwardFailure=yes",
        "-i",
    ])
    .arg(key)
    .args(["-p", &address.port().to_string(), "-l", address.user()])
    .kill_on_drop(true);
    ssh
}

async fn log_in(key: &std::path::Path, address: &SshAddress) {
    for _ in 0..40 {
        let output = ssh(key, address)
            .args([address.host(), "nvidia-smi -L >/dev/null; echo in"])
            .output()
            .await
            .unwrap();
        if output.status.success() {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "in\n");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no login");
}

/// `ssh -L`: a byte goes through the machine to a server and comes back.
async fn forward(key: &std::path::Path, address: &SshAddress) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        stream.write_all(&byte).await.unwrap();
    });
    let local = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let tunnel = ssh(key, address)
        .args(["-N", "-L", &format!("127.0.0.1:{local}:127.0.0.1:{target}"), address.host()])
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", local)).await {
            stream.write_all(b"x").await.unwrap();
            let mut byte = [0];
            tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut byte))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(&byte, b"x");
            echo.await.unwrap();
            drop(tunnel);
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no tunnel");
}

async fn finds(stage: &Stage, set: &Set, handle: &Handle, mark: &Mark) {
    let claim = Which::Claim(mark.installation.clone(), mark.claim);
    let mut found = Vec::new();
    for _ in 0..100 {
        found = set.cloud.find(&claim).await.unwrap();
        if !found.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let machines: Vec<_> = found.iter().filter(|found| found.kind == ResourceKind::Machine).collect();
    assert_eq!(machines.len(), 1, "{}: {found:?}", stage.name);
    assert_eq!((&machines[0].handle.id, &machines[0].mark), (&handle.id, mark), "{}", stage.name);
    for (which, count) in [
        (Which::Installation(mark.installation.clone()), 1),
        (Which::AnyMarked, 1),
        (Which::Claim(mark.installation.clone(), Claim::random().unwrap()), 0),
        (Which::Installation("another".parse().unwrap()), 0),
    ] {
        let found = set.cloud.find(&which).await.unwrap();
        let machines = found.iter().filter(|found| found.kind == ResourceKind::Machine).count();
        assert_eq!(machines, count, "{}: {which:?}", stage.name);
    }
}

async fn delete(stage: &Stage, set: &Set, handle: &Handle) {
    for _ in 0..200 {
        if set.cloud.delete(handle).await.unwrap() == Deletion::Gone {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}: never gone", stage.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_told_apart() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let mine = set.cloud.check().await.unwrap();
        assert!(mine.is_same(&set.cloud.identity()), "{}", stage.name);
        assert!(!mine.is_same(&set.stranger.identity()), "{}", stage.name);
        let wrong = set.stranger.check().await.unwrap_err();
        assert_eq!(wrong.kind, ErrorKind::Auth, "{}: {wrong}", stage.name);
        let wrong = set.stranger.offers(&set.want).await.unwrap_err();
        assert_eq!(wrong.kind, ErrorKind::Auth, "{}: {wrong}", stage.name);
        assert!(!format!("{wrong:?}").contains("sandbox-wrong-secret"), "{}", stage.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_was_is_gone() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let never = Handle::new(stage.never);
        assert_eq!(set.cloud.inspect(&never).await.unwrap().state, MachineState::Gone, "{}", stage.name);
        assert_eq!(set.cloud.delete(&never).await.unwrap(), Deletion::Gone, "{}", stage.name);
        for odd in ["", ".", "..", "a/b", "?x=1"] {
            let look = set.cloud.inspect(&Handle::new(odd)).await;
            assert!(look.is_err() || look.unwrap().state == MachineState::Gone, "{}: {odd}", stage.name);
        }
        assert!(
            set.sandbox.ledger().iter().any(|entry| entry.alive),
            "{}: the foreign machine is gone",
            stage.name
        );
    }
}
