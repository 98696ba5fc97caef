//! A computer that is not as it should be: broken files, folders that cannot be written to, answers by others.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use gpuprov::sandbox::{Fault, FaultKind, When};

use crate::support::{World, finish};

const DEV: &str = "provision --gpus RTX4090 --name dev";

fn fifo(path: &std::path::Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ssh_configuration_that_ssh_does_not_take_is_told_before_anything_costs() {
    let world = World::new().await;
    std::fs::create_dir(world.home().join(".ssh")).unwrap();
    for bad in [&b"NoSuchOption yes\n"[..], b"\x7fELF\x02\x01\x00\x00\x80\xff\n"] {
        std::fs::write(world.home().join(".ssh/config"), bad).unwrap();
        let refused = world.run(DEV).await;
        assert_eq!((refused.code, world.creates()), (2, 0), "{refused:?}");
        assert!(refused.stderr.contains(".ssh/config"), "{refused:?}");
    }
    world.write(".ssh/config", "Host *\n  User bob\n");
    world.provision("dev").await;
    world.remove("dev").await;
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_none_is_no_empty_account() {
    let world = World::new().await;
    world.provision("dev").await;
    let record = world.state().join("machines/dev.json");
    let kept = std::fs::read(&record).unwrap();
    std::fs::remove_file(&record).unwrap();
    let body = |body: &str| FaultKind::Status {
        code: 200,
        when: When::Before,
        body: Some(body.to_owned()),
        content_type: Some("application/json".to_owned()),
        headers: Vec::new(),
    };
    for odd in ["[[]]", "[]", "{}"] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on("list_pods", body(odd)).always());
        let ran = world.run("rm dev --yes --ignore-not-found").await;
        assert_ne!(ran.code, 0, "{odd}: {ran:?}");
    }
    std::fs::write(&record, kept).unwrap();
    world.sandbox.clear_faults();
    world.remove("dev").await;
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_something_in_between_after_the_create_makes_no_second_machine() {
    for (code, body, kind) in [
        (404, "<html>Not Found</html>", "text/html"),
        (404, "{\"message\":\"no route\"}", "application/json"),
        (400, "{\"detail\":\"Bad Request\"}", "application/json"),
        (409, "{}", "application/json"),
    ] {
        let world = World::new().await;
        let fault = FaultKind::Status {
            code,
            when: When::After,
            body: Some(body.to_owned()),
            content_type: Some(kind.to_owned()),
            headers: Vec::new(),
        };
        world.sandbox.add_fault(Fault::on("create_pod", fault));
        let ran = world.run(DEV).await;
        assert!(world.creates() == 1 || world.sandbox.alive().len() <= 1, "{code} {body}: {ran:?}");
        assert!(ran.code == 0 || world.sandbox.alive().is_empty(), "{code} {body}: {ran:?}");
        if ran.code == 0 {
            world.remove("dev").await;
        }
        world.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_are_not_utf8_are_refused_and_nothing_panics() {
    let mut world = World::new().await;
    let odd = OsString::from_vec([world.home().as_os_str().as_encoded_bytes(), b"/od\xffd"].concat());
    for name in ["GPUPROV_DATA_DIR", "GPUPROV_STATE_DIR", "GPUPROV_CACHE_DIR"] {
        world.set(name, odd.clone());
        let ran = world.run(DEV).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(name), "{ran:?}");
        world.unset(name);
    }
    for words in [DEV, "ls", "ls --json"] {
        let mut command = world.gpuprov(words.split_whitespace());
        command.env("HOME", &odd);
        let ran = finish(command).await;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert_eq!(world.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_written_is_no_success() {
    let world = World::new().await;
    let full = async |words: &str| {
        let mut command = world.gpuprov(words.split_whitespace());
        command.stdout(Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()));
        finish(command).await
    };
    for words in ["offers --gpus RTX4090 --json", "offers --gpus RTX4090", "completions bash"] {
        let ran = full(words).await;
        assert_eq!(ran.code, 1, "{words}: {ran:?}");
        assert!(ran.stderr.contains("could not be written"), "{ran:?}");
    }
    // The machine runs: 1 would say that nothing costs.
    let made = full(DEV).await;
    assert_eq!(made.code, 7, "{made:?}");
    assert_eq!(full("rm dev --yes").await.code, 1);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_or_a_folder_in_the_place_of_a_file_holds_nobody_up() {
    let world = World::new().await;
    world.provision("dev").await;
    fifo(&world.state().join("machines/q1.json"));
    std::fs::create_dir(world.state().join("machines/q2.json")).unwrap();
    std::fs::create_dir_all(world.state().join("machines/dev.wanted")).unwrap();
    let (code, listed) = world.json("ls").await;
    assert_eq!(code, 0, "{listed:#}");
    for name in ["q1", "q2"] {
        let row = listed["machines"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(row["state"], "unknown");
        let forgotten = world.run(&format!("rm {name} --forget --yes")).await;
        assert_eq!(forgotten.code, 0, "{forgotten:?}");
    }
    world.remove("dev").await;
    fifo(&world.home().join("config.fifo"));
    let config = world.home().join("config.fifo").display().to_string();
    assert_eq!(world.args(["--config", &config, "ls"]).await.code, 2);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_place_for_the_identity_key_only_provision_is_refused() {
    let world = World::new().await;
    world.provision("dev").await;
    // For everybody, root too: no folder can be made below a file.
    std::fs::rename(world.home().join(".local/share"), world.home().join(".local/was")).unwrap();
    world.write(".local/share", "a file");
    let lock = world.home().join(".ssh/gpuprov/.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    for words in ["offers --gpus RTX4090", "ls", "ssh dev true"] {
        let ran = world.run(words).await;
        assert_eq!(ran.code, 0, "{words}: {ran:?}");
    }
    let listed = world.json("ls").await.1;
    assert_eq!(listed["machines"][0]["state"], "running", "{listed:#}");
    let refused = world.run("provision --gpus RTX4090 --name other").await;
    assert_eq!((refused.code, world.creates()), (2, 1), "{refused:?}");
    std::fs::remove_dir(&lock).unwrap();
    world.remove("dev").await;
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_name_the_way_out() {
    let world = World::new().await;
    world.provision("dev").await;
    let key = world.home().join(".local/share/gpuprov/identity.key");
    std::fs::write(&key, "").unwrap();
    let listed = world.run("ls").await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.stdout.contains("dev") && listed.stderr.contains("identity.key"), "{listed:?}");
    assert!(listed.stderr.contains("delete it"), "{listed:?}");
    assert_eq!(world.run("provision --gpus RTX4090 --name other").await.code, 2);

    let installation = world.state().join("installation");
    let id = std::fs::read(&installation).unwrap();
    std::fs::write(&installation, "").unwrap();
    for words in ["rm dev --yes", "rm --all --yes"] {
        let kept = world.run(words).await;
        assert_eq!(kept.code, 6, "{kept:?}");
        assert!(kept.stderr.contains("GPUPROV_INSTALLATION"), "{kept:?}");
    }
    assert!(world.run("ls").await.stderr.contains("GPUPROV_INSTALLATION"));
    std::fs::write(&installation, id).unwrap();
    world.remove("dev").await;
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_time_at_all_is_refused() {
    let world = World::new().await;
    for words in [
        "provision --gpus RTX4090 --boot-timeout 0",
        "provision --gpus RTX4090 --ttl 0s",
        "provision --gpus RTX4090 --cloud-timeout 0",
        "offers --cloud-timeout 0",
        "ls --cloud-timeout 0",
        "rm dev --cloud-timeout 0",
    ] {
        assert_eq!(world.run(words).await.code, 2, "{words}");
    }
    for table in ["[defaults]\nttl = 0\n", "[defaults]\nttl = \"0m\"\n"] {
        world.config(table);
        let ran = world.run("offers").await;
        assert!(ran.code == 2 && ran.stderr.contains("more than 0"), "{ran:?}");
    }
    for key in ["boot_timeout", "cloud_timeout"] {
        world.write(".config/gpuprov/config.toml", &format!("[wait]\n{key} = 0\n"));
        let ran = world.run("offers").await;
        assert!(ran.code == 2 && ran.stderr.contains("more than 0"), "{ran:?}");
    }
    assert_eq!(world.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_gpuprov_itself_are_refused_before_any_request() {
    let world = World::new().await;
    for word in ["GPUPROV_MARK=x", "GPUPROV_OTHER=x", "PUBLIC_KEY=x"] {
        let ran = world.args(["provision", "--gpus", "RTX4090", "--env", word]).await;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert_eq!(world.requests(), 0);
}
