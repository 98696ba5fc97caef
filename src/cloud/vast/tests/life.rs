//! Looking at machines, finding and deleting them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::vast::samples::*;
use crate::cloud::{Cloud, Deletion, ErrorKind, Look, Which};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::handle::Handle;
use crate::model::machine::{MachineState, SshAddress};

const ID: &str = "45390642";

async fn look_at(machine: Value) -> Look {
    let server = Canned::with(vec![answer(200, one(machine).to_string())]).await;
    cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap()
}

fn shown(ssh: &[SshAddress]) -> Vec<String> {
    ssh.iter().map(|address| format!("{}@{}:{}", address.user(), address.host(), address.port())).collect()
}

#[tokio::test]
async fn states() {
    let stopped = json!({"cur_state": "stopped", "next_state": "stopped", "intended_status": "stopped"});
    let with = |actual: Value, more: Value| {
        changed(changed(loading(), json!({"actual_status": actual, "status_msg": null})), more)
    };
    let bid = |min_bid: f64| {
        changed(
            stopped.clone(),
            json!({"is_bid": true, "dph_base": 0.184, "min_bid": min_bid, "storage_total_cost": 0.02}),
        )
    };
    for (machine, state, failed, words) in [
        (with(json!(null), json!({})), MachineState::Booting, false, "waiting for the host"),
        (with(json!("created"), json!({})), MachineState::Booting, false, "created"),
        (loading(), MachineState::Booting, false, "loading: f1555660aa88: Download complete"),
        (with(json!("rebooting"), json!({})), MachineState::Booting, false, "rebooting"),
        (with(json!("hibernating"), json!({})), MachineState::Booting, false, "hibernating"),
        (with(json!("running"), json!({})), MachineState::Booting, false, "running, no ssh address yet"),
        (with(json!("exited"), json!({})), MachineState::Failed, true, "exited"),
        (with(json!("offline"), json!({})), MachineState::Failed, true, "offline"),
        (with(json!("unknown"), json!({})), MachineState::Failed, true, "unknown"),
        (with(json!("created"), stopped.clone()), MachineState::Stopped, true, "created"),
        (
            with(json!("loading"), json!({"intended_status": "stopped"})),
            MachineState::Stopped,
            true,
            "loading",
        ),
        (
            with(json!("running"), json!({"intended_status": "frozen"})),
            MachineState::Stopped,
            true,
            "running",
        ),
        (with(json!("exited"), bid(0.21)), MachineState::Preempted, true, "outbid"),
        (with(json!("loading"), bid(0.1)), MachineState::Preempted, true, "probably outbid"),
        (with(json!(null), json!({"cur_state": "unloaded"})), MachineState::Gone, false, ""),
        (
            with(
                json!("created"),
                json!({"status_msg": "Error response from daemon: OCI runtime create failed: x"}),
            ),
            MachineState::Failed,
            true,
            "created: Error response from daemon",
        ),
        (
            with(
                json!("loading"),
                json!({"status_msg": "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8"}),
            ),
            MachineState::Failed,
            true,
            "unsatisfied condition",
        ),
    ] {
        let look = look_at(machine.clone()).await;
        assert_eq!((look.state, look.failed.is_some()), (state, failed), "{machine}");
        assert!(look.ssh.is_empty());
        assert!(look.words.clone().unwrap_or_default().contains(words), "{machine}: {look:?}");
        assert!(look.failed.is_none_or(|error| error.kind == ErrorKind::NoCapacity), "{machine}");
        if state == MachineState::Preempted {
            assert_eq!(look.costs_now.unwrap().micros(), 20_000, "its disk goes on");
        }
    }
}

#[tokio::test]
async fn an_image_that_no_host_can_pull() {
    let failing = |image: &str| {
        changed(
            loading(),
            json!({"image_uuid": image, "status_msg": "failed to resolve reference: me/own:nope"}),
        )
    };
    let theirs = look_at(failing("me/own:nope")).await.failed.unwrap();
    assert!(theirs.user_input && theirs.kind == ErrorKind::Rejected);
    assert!(!look_at(failing("vastai/base-image:cuda-13.0.3-auto")).await.failed.unwrap().user_input);
}

#[tokio::test]
async fn a_machine_that_is_ready() {
    let look = look_at(machine()).await;
    assert_eq!(shown(&look.ssh), ["root@127.0.0.1:41022", "root@127.0.0.2:20642"]);
    assert_eq!((look.state, look.costs_now.unwrap().micros()), (MachineState::Running, 380_833));
    let sold = look.sold;
    assert_eq!((sold.price_per_hour.unwrap().micros(), sold.spot), (380_833, Some(false)));
    assert_eq!((sold.gpu_raw.as_deref(), sold.gpu_count), (Some("RTX 5090"), Some(1)));
    assert_eq!((sold.ram_gb, sold.vcpus, sold.disk_gb), (Some(63.7), Some(24.0), Some(100)));
    assert_eq!(
        (sold.instance_type.as_deref(), sold.zone.as_deref()),
        (Some("RTX 5090 x1"), Some("Ontario, CA"))
    );
}

#[tokio::test]
async fn ports_that_only_the_list_tells() {
    for by_id in [json!(null), json!({}), json!([41022])] {
        let bare = changed(machine(), json!({"ports": by_id, "extra_env": ["A=b"]}));
        let server = Canned::start(move |asked, _| match asked.line.as_str() {
            "GET /api/v0/instances/45390642/" => answer(200, one(bare.clone()).to_string()),
            line if line.starts_with("GET /api/v1/instances/?") => {
                answer(200, list(&[machine()], None).to_string())
            }
            _ => answer(500, ""),
        })
        .await;
        let look = cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap();
        assert_eq!(shown(&look.ssh), ["root@127.0.0.1:41022", "root@127.0.0.2:20642"]);
        assert!(
            server.lines()[1].contains("select_filters=%7B%22id%22:%7B%22eq%22:45390642%7D%7D"),
            "{:?}",
            server.lines()
        );
    }
    // Without an answer of the list there is still the proxy.
    let bare = changed(machine(), json!({"ports": null}));
    let server = Canned::start(move |asked, _| match asked.line.as_str() {
        "GET /api/v0/instances/45390642/" => answer(200, one(bare.clone()).to_string()),
        _ => answer(400, "{}"),
    })
    .await;
    let look = cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap();
    assert_eq!(shown(&look.ssh), ["root@127.0.0.2:20642"]);
}

#[tokio::test]
async fn a_machine_that_is_not_there() {
    for gone in [
        answer(200, "{\"instances\":null}"),
        answer(200, "{\"instances\":{}}"),
        answer(200, "{\"instances\":[]}"),
        no_such_instance(),
    ] {
        let server = Canned::with(vec![gone]).await;
        let look = cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap();
        assert_eq!(look.state, MachineState::Gone);
    }
    for (unclear, kind) in [
        (
            answer(404, "{\"success\":false,\"error\":\"auth_error\",\"msg\":\"Invalid user key\"}"),
            ErrorKind::Auth,
        ),
        (answer(404, "<html>"), ErrorKind::Unavailable),
        (answer(200, "{}"), ErrorKind::Unreadable),
        (answer(200, "{\"success\":false}"), ErrorKind::Rejected),
        (answer(200, "{\"instances\":7}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":[[45390642]]}"), ErrorKind::Unreadable),
        (answer(200, one(changed(machine(), json!({"id": null}))).to_string()), ErrorKind::Unreadable),
        (answer(200, one(changed(machine(), json!({"id": 1}))).to_string()), ErrorKind::Unreadable),
        (
            answer(410, "{\"success\":false,\"error\":\"deprecated_endpoint\",\"msg\":\"x\"}"),
            ErrorKind::Rejected,
        ),
    ] {
        let server = Canned::with(vec![unclear]).await;
        let error = cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[tokio::test]
async fn an_id_that_is_no_number_is_never_sent() {
    let server = Canned::with(vec![answer(200, "{\"success\":true}")]).await;
    let cloud = cloud(&server.base);
    for id in ["", "0", "1/", "..", "1?x", "one", "1 ", "+1", "01"] {
        for error in [
            cloud.inspect(&Handle::new(id)).await.map(drop).unwrap_err(),
            cloud.delete(&Handle::new(id)).await.map(drop).unwrap_err(),
            cloud.readmit(&Handle::new(id), KEY).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Rejected, "{id}");
        }
    }
    assert!(server.lines().is_empty());
}

async fn found(pages: Vec<Reply>, which: &Which) -> Result<Vec<String>, ErrorKind> {
    let server = Canned::with(pages).await;
    let found = cloud(&server.base).find(which).await.map_err(|error| error.kind)?;
    Ok(found.iter().map(|found| format!("{} {}", found.handle.id, found.mark.name)).collect())
}

#[tokio::test]
async fn ours_are_told_by_the_environment_first() {
    let other = "v1:other:default:dev:11ff00ff00ff00ff::";
    let with = |id: u64, changes: Value| changed(changed(machine(), json!({"id": id})), changes);
    let foreign = [
        with(1, json!({"extra_env": [["A", "b"]], "label": null})),
        // A label is easily copied.
        with(2, json!({"extra_env": [["A", "b"]]})),
        with(3, json!({"extra_env": [["GPUPROV_MARK", other]]})),
        with(4, json!({"extra_env": [["GPUPROV_MARK", "nonsense"]]})),
        with(5, json!({"extra_env": null, "label": "gpuprov-dev"})),
    ];
    let ours = [
        with(11, json!({"label": null})),
        with(12, json!({"extra_env": [format!("GPUPROV_MARK={}", mark().to_text())]})),
        with(13, json!({"extra_env": {"GPUPROV_MARK": mark().to_text()}})),
        with(14, json!({"extra_env": null})),
        with(15, json!({"actual_status": "exited", "cur_state": "stopped"})),
    ];
    let all: Vec<Value> = foreign.iter().chain(&ours).cloned().collect();
    let page = || vec![answer(200, list(&all, None).to_string())];
    let mine = Which::Claim(mark().installation, mark().claim);
    assert_eq!(found(page(), &mine).await.unwrap(), ["11 dev", "12 dev", "13 dev", "14 dev", "15 dev"]);
    assert_eq!(found(page(), &Which::AnyMarked).await.unwrap().len(), 6);
    assert_eq!(found(page(), &Which::Installation("other".parse().unwrap())).await.unwrap(), ["3 dev"]);
}

#[tokio::test]
async fn all_pages_are_read() {
    let page = |id: u64, next: Option<&str>| {
        answer(200, list(&[changed(machine(), json!({"id": id}))], next).to_string())
    };
    let server = Canned::with(vec![page(1, Some("a=b")), page(2, Some("c")), page(2, None)]).await;
    let found = cloud(&server.base).find(&Which::AnyMarked).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|found| found.handle.id.as_str()).collect();
    assert_eq!(ids, ["1", "2"]);
    let first = "GET /api/v1/instances/?limit=25&select_filters=%7B%7D&order_by=%5B%7B%22col%22:%22id%22,%22dir%22:%22asc%22%7D%5D";
    let tail: Vec<String> = server.lines().iter().map(|line| line[first.len()..].to_owned()).collect();
    assert!(server.lines()[0].starts_with(first), "{:?}", server.lines());
    assert_eq!(tail, ["", "&after_token=a%3Db", "&after_token=c"]);
    assert_eq!(found[0].since.unwrap().to_string(), "2026-11-30T00:53:20.25Z");
}

#[tokio::test]
async fn a_list_that_is_none_is_an_error() {
    for (reply, kind) in [
        (
            answer(200, "{\"success\":false,\"error\":\"deprecated_endpoint\",\"msg\":\"use v1\"}"),
            ErrorKind::Rejected,
        ),
        (
            answer(410, "{\"success\":false,\"error\":\"deprecated_endpoint\",\"msg\":\"use v1\"}"),
            ErrorKind::Rejected,
        ),
        (answer(200, "{\"success\":true}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":null}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":{}}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":[7]}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":[[]]}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":[{}]}"), ErrorKind::Unreadable),
        (answer(200, "{\"instances\":[],\"next_token\":7}"), ErrorKind::Unreadable),
        (answer(200, "\"\""), ErrorKind::Unreadable),
        (answer(200, ""), ErrorKind::Unreadable),
        (
            answer(200, list(&[changed(machine(), json!({"id": null}))], None).to_string()),
            ErrorKind::Unreadable,
        ),
        (answer(200, list(&[machine()], Some("same")).to_string()), ErrorKind::Unreadable),
        (answer(404, "{\"success\":false,\"error\":\"auth_error\"}"), ErrorKind::Auth),
    ] {
        assert_eq!(found(vec![reply.clone()], &Which::AnyMarked).await, Err(kind), "{reply:?}");
    }
}

async fn delete(replies: Vec<Reply>) -> (Result<Deletion, ErrorKind>, Vec<String>) {
    let server = Canned::with(replies).await;
    let ended = cloud(&server.base).delete(&Handle::new(ID)).await.map_err(|error| error.kind);
    (ended, server.lines())
}

#[tokio::test]
async fn a_delete_is_proven_by_a_look() {
    let done = || answer(200, "{\"success\":true,\"msg\":\"destroying instance 45390642.\"}");
    let gone = || answer(200, "{\"instances\":null}");
    let there = || answer(200, one(loading()).to_string());
    let (ended, lines) = delete(vec![done(), gone()]).await;
    assert_eq!(ended, Ok(Deletion::Gone));
    assert_eq!(lines, ["DELETE /api/v0/instances/45390642/", "GET /api/v0/instances/45390642/"]);
    assert_eq!(delete(vec![no_such_instance(), gone()]).await.0, Ok(Deletion::Gone));
    assert_eq!(delete(vec![no_such_instance(), no_such_instance()]).await.0, Ok(Deletion::Gone));
    for pending in [vec![done(), there()], vec![answer(200, "{}"), there()]] {
        assert!(matches!(delete(pending).await.0, Ok(Deletion::Pending(_))));
    }
    for (replies, kind) in [
        (vec![answer(200, "{\"success\":false,\"error\":\"x\",\"msg\":\"not now\"}")], ErrorKind::Rejected),
        (vec![answer(404, "{\"success\":false,\"error\":\"auth_error\"}")], ErrorKind::Auth),
        (vec![done(), answer(404, "{\"success\":false,\"error\":\"auth_error\"}")], ErrorKind::Auth),
        (vec![answer(404, "<html>")], ErrorKind::Unavailable),
        // Not confirmed is not on its way.
        (vec![done(), answer(500, "{}")], ErrorKind::Unavailable),
        (vec![done(), answer(200, "{}")], ErrorKind::Unreadable),
        (vec![done(), answer(400, "{}")], ErrorKind::Rejected),
    ] {
        assert_eq!(delete(replies).await.0, Err(kind));
    }
}

#[tokio::test]
async fn a_429_is_never_a_deletion() {
    let slow = Reply::Answer(
        429,
        "content-type: text/plain\r\n".to_owned(),
        "API requests too frequent: threshold=3.0".to_owned(),
    );
    let (ended, lines) = delete(vec![slow.clone()]).await;
    assert!(matches!(ended, Ok(Deletion::Pending(_))), "{ended:?}");
    assert!(lines.len() > 1, "a delete may be repeated");
    let done = answer(200, "{\"success\":true}");
    assert_eq!(delete(vec![slow, done, answer(200, "{\"instances\":null}")]).await.0, Ok(Deletion::Gone));
}

#[tokio::test]
async fn deletes_at_once_wait_for_their_turn_without_counting_as_silent() {
    let server = Canned::start(|asked, _| match asked.line.as_str() {
        line if line.starts_with("DELETE") => answer(200, "{\"success\":true}"),
        _ => answer(200, "{\"instances\":null}"),
    })
    .await;
    let cloud = cloud_with(&server.base, |setup, _| setup.poll = None);
    assert_eq!(cloud.delete(&Handle::new("1")).await.unwrap(), Deletion::Gone);
    match cloud.delete(&Handle::new("2")).await.unwrap() {
        Deletion::Pending(words) => assert!(words.contains("its turn"), "{words}"),
        Deletion::Gone => panic!("it was not even sent"),
    }
    assert_eq!(server.lines().iter().filter(|line| line.starts_with("DELETE")).count(), 1);
}

#[tokio::test]
async fn the_user_is_the_identity() {
    let server = Canned::start(|asked, _| shop(asked)).await;
    let cloud = cloud(&server.base);
    assert_eq!(cloud.identity().provider, None);
    let identity = cloud.check().await.unwrap();
    assert_eq!(identity.provider.as_deref(), Some("123456"));
    assert_eq!((cloud.identity(), identity.hint.as_str()), (identity.clone(), "…6789"));
    // A new key of the same user is the same account.
    let rotated = cloud_with(&server.base, |setup, settings| {
        setup.secret_mark = "fedcba9876543210".to_owned();
        settings.key = crate::model::secret::Secret::trimmed("another0123456789");
    });
    assert!(!rotated.identity().is_same(&identity));
    assert!(rotated.check().await.unwrap().is_same(&identity));
}

#[tokio::test]
async fn images_of_the_users_get_more_time() {
    let quarter = Duration::from_secs(900);
    let of = |image: Option<&str>, boot_timeout| {
        let cloud = cloud_with("http://127.0.0.1:1", |setup, settings| {
            setup.boot_timeout = boot_timeout;
            settings.image = image.map(str::to_owned);
        });
        (cloud.capabilities().boot_budget, cloud.capabilities().own_image_extra)
    };
    assert_eq!(of(None, None), (quarter, quarter));
    assert_eq!(of(Some("me/own"), None), (quarter * 2, Duration::ZERO));
    assert_eq!(of(Some("me/own"), Some(quarter / 3)), (quarter / 3, Duration::ZERO));
}
