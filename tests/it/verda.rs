//! Verda: the main life, on demand, spot and without a GPU, and the traps of a cloud whose machines come with disks and keys.
//!
//! The pass mark is that nothing is left: machines, volumes (the trash too), keys.

use gpuprov::sandbox::{Fault, FaultKind, Junk, Options, VerdaFault, VerdaGuesses, VerdaScript, When};
use serde_json::{Value, json};

use crate::support::machines::outcomes;
use crate::support::{World, ended, until};

/// A world with an account at Verda alone.
async fn world() -> World {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let mut world = World::with(change).await;
    world.unset("RUNPOD_API_KEY");
    world.unset("GPUPROV_RUNPOD_ENDPOINT");
    let verda = world.sandbox.verda();
    let (endpoint, id, secret) =
        (verda.endpoint(), verda.client_id().to_owned(), verda.client_secret().to_owned());
    let port = format!("[defaults]\nk8s = false\n[verda]\nssh_port = {}\n", world.sandbox.vm_ssh_port());
    world.config(&port);
    world.set("GPUPROV_VERDA_ENDPOINT", endpoint);
    world.set("VERDA_CLIENT_ID", id);
    world.set("VERDA_CLIENT_SECRET", secret);
    world
}

/// Plays a fault on the next call to Verda.
fn fault(world: &World, operation: &str, what: impl Into<FaultKind>) {
    world.sandbox.verda().add_fault(Fault::on(operation, what.into()));
}

/// Lets the next machine behave so.
fn script(world: &World, script: VerdaScript) {
    fault(world, "create_instance", FaultKind::Script { script: script.into() });
}

/// The bodies of all requests of one operation.
fn bodies(world: &World, operation: &str) -> Vec<Value> {
    let requests = world.sandbox.requests();
    requests
        .iter()
        .filter(|one| one.operation == operation)
        .map(|one| one.body.clone().unwrap_or_default())
        .collect()
}

/// Fails if anything of ours is left, or anything of somebody else's is not as it was.
fn nothing_is_left(world: &World) {
    let left = world.sandbox.verda().left();
    assert!(left.is_empty(), "left: {left:#?}");
    let harmed = world.sandbox.verda().harmed();
    assert!(harmed.is_empty(), "harmed: {harmed:#?}");
    world.assert_empty();
}

/// Removes a machine, which must work and leave nothing.
async fn remove(world: &World, name: &str) {
    world.remove(name).await;
    nothing_is_left(world);
}

/// Waits until no machine of ours is on its way out, and returns what `ls` says then.
async fn gone_from_the_list(world: &World) -> Value {
    for _ in 0..40 {
        let (code, listed) = world.json("ls").await;
        assert_eq!(code, 0, "{listed}");
        let machines = listed["machines"].as_array().unwrap();
        if machines.iter().all(|machine| machine["state"] != "deleting") {
            return listed;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("never gone");
}

async fn provision(world: &World, words: &str) -> Value {
    let (code, ran) = world.json(&format!("provision --name dev {words}")).await;
    assert_eq!(code, 0, "{ran}");
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_life() {
    let world = world().await;
    let (code, list) = world.json("offers --gpus H100:1 --region FI").await;
    assert_eq!(code, 0, "{list}");
    let offers = list["offers"].as_array().unwrap();
    let shown = |offer: &Value| format!("{} {}", offer["instance_type"], offer["zone"]).replace('"', "");
    let rows: Vec<String> = offers.iter().map(shown).collect();
    assert_eq!(rows, ["1H100.80S.32V FIN-01", "1H100.80S.32V FIN-03", "1H100.80S.30V FIN-02"], "no .CC");
    let first = &offers[0];
    assert_eq!(
        (&first["secure"], &first["disk_gb"], &first["cuda"]),
        (&json!(true), &json!(50), &json!("13.2"))
    );
    assert_eq!((&first["vcpus"], &first["ram_gb"]), (&json!(32.0), &json!(185.0)));
    let parts: f64 =
        first["price_parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    assert!((parts - first["price_per_hour"].as_f64().unwrap()).abs() < 1e-9);
    assert!((parts - 2.3037).abs() < 1e-4, "{parts}");

    let ran = world.run("provision --gpus H100:1 --name dev --port 8080 --env A=b").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    assert!(ran.stderr.contains("every port is open"), "{}", ran.stderr);
    let body = bodies(&world, "create_instance").remove(0);
    assert_eq!((&body["image"], &body["hostname"]), (&json!("24.04.cuda13.2.docker"), &json!("dev")));
    let inside = world.run("ssh dev -- echo $A; nvidia-smi --query-gpu=name --format=csv,noheader").await;
    assert!(inside.code == 0 && inside.stdout.starts_with("b\n"), "{inside:?}");
    let plain = crate::support::finish({
        let mut ssh = world.program("ssh");
        ssh.args(["-F", world.home().join(".ssh/config").to_str().unwrap(), "dev", "whoami"]);
        ssh
    })
    .await;
    assert_eq!(plain.code, 0, "{plain:?}");
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["state"], &machine["spot"]), (&json!("running"), &json!(false)), "{listed}");
    assert_eq!((&machine["gpu_check"], &machine["ssh"]["user"]), (&json!("ok"), &json!("root")));
    assert_eq!(listed["left_over"], json!([]));
    remove(&world, "dev").await;
    assert_eq!(world.asked("token"), 1, "one token for all commands");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_documents_leave_open_the_life_is_the_same() {
    let world = world_with(|options| options.verda_guesses = VerdaGuesses::flipped()).await;
    for (words, gpus) in [("--gpus H100:1 --spot", 1), ("--gpus RTXPRO6000:2", 2), ("--cpu-only", 0)] {
        let ran = provision(&world, words).await;
        assert_eq!(ran["machines"][0]["gpu_count"], json!(gpus), "{ran}");
        remove(&world, "dev").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gpu() {
    let world = world().await;
    let ran = provision(&world, "--cpu-only --vcpus 8").await;
    let machine = &ran["machines"][0];
    assert_eq!((&machine["instance_type"], &machine["gpu"]), (&json!("CPU.8V.32G"), &Value::Null), "{ran}");
    assert_eq!(bodies(&world, "create_instance")[0]["image"], json!("24.04.base"));
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spot_and_what_becomes_of_it() {
    let world = world().await;
    let ran = provision(&world, "--gpus B200:1 --spot").await;
    let machine = &ran["machines"][0];
    assert_eq!((&machine["spot"], &machine["zone"]), (&json!(true), &json!("FIN-03")));
    let body = bodies(&world, "create_instance").remove(0);
    assert_eq!((&body["contract"], &body["is_spot"]), (&json!("SPOT"), &json!(true)));
    assert_eq!(body["os_volume"]["on_spot_discontinue"], json!("delete_permanently"));
    assert!(world.sandbox.verda().evict(machine["id"].as_str().unwrap()));
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!(machine["state"], json!("preempted"), "{listed}");
    assert_eq!(machine["costs_now_per_hour"], json!(0.0), "{listed}");
    assert!(machine["message"].as_str().unwrap().contains("evicted_by_on_demand"), "{listed}");
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_away_while_it_starts_the_next_offer_is_tried() {
    let world = world().await;
    script(&world, VerdaScript::Evicted { ms: 1 });
    let ran = provision(&world, "--gpus H100:1 --spot").await;
    assert_eq!(outcomes(&ran), ["not_ready", "created"], "{ran}");
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_is_not_provisioning() {
    let world = world().await;
    for failing in [VerdaScript::no_capacity(), VerdaScript::installation_failed(), VerdaScript::quota()] {
        let hidden = match failing {
            VerdaScript::EndsAs { word, ms, error, .. } => {
                VerdaScript::EndsAs { word, ms, error, hidden_volume: true }
            }
            other => other,
        };
        script(&world, hidden.clone());
        let ran = provision(&world, "--gpus H100:1").await;
        assert_eq!(outcomes(&ran), ["not_ready", "created"], "{hidden:?} {ran}");
        remove(&world, "dev").await;
    }
    // A word that nobody knows is waited on.
    script(&world, VerdaScript::BootsAs { word: "validating2".to_owned() });
    let ran = world.run("provision --gpus H100:1 --name dev").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    remove(&world, "dev").await;
    script(&world, VerdaScript::LateAddress { ms: 500 });
    provision(&world, "--gpus H100:1").await;
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_on_its_way_up_is_removed_as_soon_as_that_can_be() {
    let world = world().await;
    script(&world, VerdaScript::RefusesDelete { times: 3 });
    provision(&world, "--gpus H100:1").await;
    remove(&world, "dev").await;
    assert_eq!(world.asked("instance_action"), 4);

    script(&world, VerdaScript::LateAddress { ms: 5000 });
    let child = world.start("provision --gpus H100:1 --name dev");
    until("the create", || world.asked("create_instance") == 2).await;
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    assert_eq!(ended(child).await.code, 1);
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_volume_stays() {
    let world = world().await;
    for (operation, what) in [
        ("instance_action", VerdaFault::VolumesStay),
        ("instance_action", VerdaFault::VolumesTrashed),
        ("instance_action", VerdaFault::NoEffect),
        ("instance_action", VerdaFault::ItemsFail { status: 403, error: "not now".to_owned() }),
        ("delete_key", VerdaFault::NoEffect),
    ] {
        provision(&world, "--gpus H100:1").await;
        fault(&world, operation, what.clone());
        remove(&world, "dev").await;
    }
    provision(&world, "--gpus H100:1").await;
    fault(&world, "instance_action", VerdaFault::VolumesStay);
    fault(&world, "delete_volume", VerdaFault::NoEffect);
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_in_the_console_without_its_disk() {
    let world = world().await;
    let ran = provision(&world, "--gpus H100:1").await;
    assert!(world.sandbox.verda().remove_instance_only(ran["machines"][0]["id"].as_str().unwrap()));
    let listed = gone_from_the_list(&world).await;
    assert_eq!(listed["machines"][0]["state"], json!("gone"), "{listed}");
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_create_leaves_no_key() {
    let world = world().await;
    for (what, code) in [
        (VerdaFault::no_capacity(), 3),
        (VerdaFault::quota("Volume limit exceeded"), 3),
        (VerdaFault::no_funds(), 3),
        (VerdaFault::scope(), 4),
    ] {
        let shown = format!("{what:?}");
        world.sandbox.verda().add_fault(Fault::on("create_instance", what.into()).always());
        let ran = world.run("provision --gpus H100:1 --name dev").await;
        assert_eq!(ran.code, code, "{shown} {ran:?}");
        world.sandbox.clear_faults();
        nothing_is_left(&world);
        assert_eq!(world.record("dev"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_image_is_not_taken_for_no_capacity() {
    let world = world().await;
    // The first two of its images are refused.
    provision(&world, "--gpus A6000:1").await;
    let images: Vec<Value> =
        bodies(&world, "create_instance").into_iter().map(|body| body["image"].clone()).collect();
    assert_eq!(
        images,
        ["24.04.cuda13.2.docker", "ubuntu-24.04-cuda-13.0-open-docker", "ubuntu-24.04-cuda-12.8-open-docker"]
    );
    remove(&world, "dev").await;
    let ran = world.run("provision --gpus A6000:2 --name dev").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("Operating system is not valid"), "{ran:?}");
    nothing_is_left(&world);
    provision(&world, "--gpus A6000:1 --cuda 12.0 --disk 70").await;
    assert_eq!(bodies(&world, "create_instance").last().unwrap()["os_volume"]["size"], json!(70));
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_answer_is_lost_is_found() {
    let world = world().await;
    for lost in [VerdaFault::server_error_after().into(), FaultKind::Reset { when: When::After }] {
        let before = world.asked("create_instance");
        fault(&world, "create_instance", lost);
        provision(&world, "--gpus H100:1").await;
        assert_eq!(world.asked("create_instance"), before + 1, "nothing is bought twice");
        remove(&world, "dev").await;
    }
    // Neither machine nor volume carries our tags.
    fault(&world, "create_instance", VerdaFault::TagsLost);
    fault(&world, "create_instance", VerdaFault::server_error_after());
    provision(&world, "--gpus H100:1").await;
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_made_nothing_leaves_no_key() {
    let world = world().await;
    fault(&world, "create_instance", FaultKind::Reset { when: When::Before });
    let ran = provision(&world, "--gpus H100:1").await;
    assert_eq!(outcomes(&ran), ["unknown", "created"], "{ran}");
    let keys = world.sandbox.verda().left().iter().filter(|left| left.to_string().contains("SshKey")).count();
    assert_eq!(keys, 1, "that of the machine that is there");
    remove(&world, "dev").await;

    // Killed between the key and the machine.
    fault(&world, "create_instance", FaultKind::hang(When::Before));
    let mut child = world.start("provision --gpus H100:1 --name dev");
    until("the create", || world.asked("create_instance") == 3).await;
    child.kill().await.unwrap();
    let removed = world.run("rm dev --yes").await;
    assert_eq!(removed.code, 0, "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_computer_finds_and_removes_it() {
    let mut world = world().await;
    world.set("GPUPROV_INSTALLATION", "team");
    fault(&world, "create_instance", VerdaFault::TagsLost);
    provision(&world, "--gpus H100:1").await;
    world.set("GPUPROV_STATE_DIR", world.home().join("elsewhere").into_os_string());
    let (_, listed) = world.json("ls").await;
    let machine = &listed["machines"][0];
    assert_eq!((&machine["name"], &machine["recorded"]), (&json!("dev"), &json!(false)), "{listed}");
    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_without_a_record_goes_with_its_disk_and_key() {
    let mut world = world().await;
    world.set("GPUPROV_INSTALLATION", "team");
    provision(&world, "--gpus H100:1").await;
    std::fs::remove_dir_all(world.state()).unwrap();
    // The volume does not go with its machine.
    fault(&world, "instance_action", VerdaFault::VolumesStay);
    let removed = world.run("rm --all --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_left_over_is_listed_and_goes_by_its_id() {
    let world = world().await;
    let ran = provision(&world, "--gpus H100:1").await;
    assert!(world.sandbox.verda().remove_instance_only(ran["machines"][0]["id"].as_str().unwrap()));
    let forgotten = world.run("rm --forget dev --yes").await;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    let listed = gone_from_the_list(&world).await;
    let left = listed["left_over"].as_array().unwrap();
    let mut kinds: Vec<&str> = left.iter().map(|left| left["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["disk", "key"], "{listed}");
    for left in left {
        let removed = world.run(&format!("rm verda/default:{} --yes", left["id"].as_str().unwrap())).await;
        assert_eq!(removed.code, 0, "{removed:?}");
    }
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_something_else_is_no_empty_list() {
    let world = world().await;
    provision(&world, "--gpus H100:1").await;
    for (operation, words) in [
        ("list_types", "offers --gpus H100:1"),
        ("availability", "offers --gpus H100:1"),
        ("list_instances", "ls"),
        ("list_volumes", "ls"),
        ("list_keys", "ls"),
    ] {
        let junk = FaultKind::Garbage { body: Junk::WrongType };
        world.sandbox.verda().add_fault(Fault::on(operation, junk).always());
        let (_, said) = world.json(words).await;
        assert_eq!(said["failed"][0]["kind"], json!("unreadable"), "{operation}: {said}");
        world.sandbox.clear_faults();
    }
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_during_the_wait_is_renewed() {
    let world = world().await;
    script(&world, VerdaScript::LateAddress { ms: 1500 });
    let child = world.start("provision --gpus H100:1 --name dev");
    until("a look", || world.asked("get_instance") > 0).await;
    world.sandbox.verda().expire_tokens();
    let ran = ended(child).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.asked("token"), 2, "one for all, one more after the 401");
    world.sandbox.verda().expire_tokens();
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_honoured_is_refused_before_any_request() {
    let world = world().await;
    for words in ["--image x/y", "--port 80@203.0.113.0/24"] {
        let ran = world.run(&format!("provision --gpus H100:1 --name dev {words}")).await;
        assert_eq!(ran.code, 2, "{words} {ran:?}");
    }
    assert_eq!(world.requests(), 0);
    let mut wrong = world;
    wrong.set("VERDA_CLIENT_SECRET", "wrong-S3CRET-0123");
    let ran = wrong.run("provision --gpus H100:1 --name dev").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(!format!("{ran:?}").contains("S3CRET"));
    nothing_is_left(&wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_that_somebody_attached_are_only_detached() {
    let world = world().await;
    let account = world.sandbox.verda().client_id().to_owned();
    world.sandbox.verda().set_foreign_volume(&account, "data").unwrap();
    world.sandbox.verda().set_foreign_key(&account, "laptop", "ssh-ed25519 AAAA laptop").unwrap();
    provision(&world, "--gpus H100:1").await;
    remove(&world, "dev").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_costs_now_counts_its_disk_and_all_of_its_gpus() {
    let mut world = world().await;
    let made = world.run("provision --gpus H100:1 --name dev").await;
    assert_eq!(made.code, 0, "{made:?}");
    let (_, running) = world.json("ls").await;
    let machine = &running["machines"][0];
    assert_eq!(machine["costs_now_per_hour"], machine["price_per_hour"], "{machine}");
    fault(&world, "list_instances", FaultKind::StatusWord { word: "offline".to_owned() });
    let (_, off) = world.json("ls").await;
    let machine = &off["machines"][0];
    assert_eq!(machine["state"], "stopped", "{machine}");
    assert_eq!(machine["costs_now_per_hour"], machine["price_per_hour"], "{machine}");
    world.sandbox.clear_faults();

    // A disk that is too large for Verda is none for everybody.
    let alone = world.run("offers --gpus any --disk 12000").await;
    assert!(alone.code == 2 && alone.stderr.contains("up to 10240 GB"), "{alone:?}");
    world.set("GPUPROV_VAST_ENDPOINT", world.sandbox.vast().endpoint());
    world.set("VAST_API_KEY", world.sandbox.vast().key().to_owned());
    let (_, both) = world.json("offers --gpus any --disk 12000").await;
    assert_eq!(both["skipped"][0]["account"], "verda/default", "{both}");
    assert_ne!(both["error"]["kind"], "unsupported", "{both}");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    nothing_is_left(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_before_the_create_that_fails_passes_on_at_once() {
    let world = world().await;
    for _ in 0..4 {
        fault(&world, "images", FaultKind::status(500));
    }
    let begun = std::time::Instant::now();
    let (code, made) = world.json("provision --gpus H100 --name dev").await;
    assert_eq!(code, 0, "{made}");
    assert_eq!(made["tried"][0]["outcome"], "refused", "{made}");
    assert_eq!(made["tried"][1]["outcome"], "created", "{made}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(40), "nothing was looked for");
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    nothing_is_left(&world);
}
