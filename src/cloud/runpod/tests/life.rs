//! Looking at pods, finding and deleting them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::runpod::samples::*;
use crate::cloud::{Cloud, Deletion, ErrorKind, HostKeys, Which};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::handle::Handle;
use crate::model::machine::MachineState;

const ID: &str = "5xpma5eg46tqjq";

async fn look_at(pod: Value) -> crate::cloud::Look {
    let server = Canned::with(vec![answer(200, pod.to_string())]).await;
    cloud(&server.base).inspect(&Handle::new(ID)).await.unwrap()
}

fn changed(mut pod: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        pod[name] = value.clone();
    }
    pod
}

#[tokio::test]
async fn states() {
    for (status, state, failed) in [
        ("PROVISIONING", MachineState::Booting, false),
        ("STARTING", MachineState::Booting, false),
        ("RUNNING", MachineState::Booting, false),
        ("EXITED", MachineState::Stopped, false),
        ("ERROR", MachineState::Failed, true),
        ("TERMINATED", MachineState::Gone, false),
        ("HIBERNATING", MachineState::Booting, false),
        ("", MachineState::Unknown, false),
    ] {
        let look = look_at(changed(pod(ID), json!({"status": status}))).await;
        assert_eq!((look.state, look.failed.is_some()), (state, failed), "{status}");
        assert!(look.ssh.is_empty());
        assert!(look.words.unwrap_or_default().starts_with(status), "{status}");
    }
    let look = look_at(changed(ready_pod(ID), json!({"status": "EXITED"}))).await;
    assert!(look.ssh.is_empty() && look.costs_now.is_none());
}

#[tokio::test]
async fn a_pod_that_is_ready() {
    let look = look_at(ready_pod(ID)).await;
    let ssh = &look.ssh[0];
    assert_eq!((ssh.host(), ssh.port(), ssh.user()), ("127.0.0.1", 35558, "root"));
    assert_eq!((look.state, look.costs_now), (MachineState::Running, None));
    let sold = look.sold;
    assert_eq!(sold.price_per_hour.unwrap().micros(), 340_000);
    assert_eq!((sold.gpu_raw.as_deref(), sold.gpu_count), (Some("NVIDIA GeForce RTX 4090"), Some(1)));
    assert_eq!((sold.ram_gb, sold.vcpus, sold.disk_gb), (Some(62.0), Some(16.0), Some(50)));
    assert_eq!(sold.instance_type.as_deref(), Some("NVIDIA GeForce RTX 4090 x1 community"));
    assert_eq!((sold.region.as_deref(), sold.zone.as_deref()), (Some("europe"), Some("EU-RO-1")));
}

#[tokio::test]
async fn not_yet_in_all_its_forms() {
    let running = |ssh: Value, runtime: Value| {
        changed(pod(ID), json!({"status": "RUNNING", "ssh": ssh, "runtime": runtime}))
    };
    let direct =
        |host: &str, port: Value| json!({"direct": {"host": host, "port": port, "username": "root"}});
    for (ssh, runtime) in [
        (json!(null), json!(null)),
        (json!({"proxy": {"host": "ssh.runpod.io", "port": 22}, "direct": null}), json!({})),
        (json!({"direct": {}}), json!({"ports": null})),
        (direct("", json!(1)), json!({"ports": []})),
        (direct("203.0.113.7", json!(0)), json!({"uptime": 5})),
        (direct("203.0.113.7", json!("22")), json!({"uptime": 119})),
        (direct("100.65.14.155", json!(22)), json!({"uptime": 1})),
    ] {
        let look = look_at(running(ssh.clone(), runtime)).await;
        assert_eq!(
            (look.state, look.ssh.is_empty(), look.failed.is_none()),
            (MachineState::Booting, true, true),
            "{ssh}"
        );
    }
    for ssh in [json!({"direct": null}), direct("100.65.14.155", json!(22))] {
        let look = look_at(running(ssh, json!({"uptime": 121}))).await;
        let failed = look.failed.unwrap();
        assert_eq!(failed.kind, ErrorKind::NoCapacity);
        assert!(failed.message.contains("no public address"));
    }
}

#[tokio::test]
async fn gone_is_a_state_but_only_when_runpod_says_so() {
    let look = async |reply: Reply| {
        let server = Canned::with(vec![reply]).await;
        cloud(&server.base).inspect(&Handle::new(ID)).await
    };
    assert_eq!(look(problem(404, "resource not found")).await.unwrap().state, MachineState::Gone);
    for elsewhere in
        [answer(404, "<html>"), answer(404, ""), problem(404, "The requested path was not found.")]
    {
        assert!(look(elsewhere).await.is_err());
    }
    let bare = |name: &str| changed(pod(ID), json!({name: null})).to_string();
    for unreadable in [
        "no json".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        json!([ID, "dev", "TERMINATED"]).to_string(),
        bare("id"),
        bare("status"),
        pod("another").to_string(),
    ] {
        let error = look(answer(200, unreadable.clone())).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{unreadable}");
    }
    for elsewhere in ["{}", "[\"Not Found\"]", "{\"title\":\"Not Found\"}", "{\"detail\":\"Not Found\"}"] {
        assert!(look(answer(404, elsewhere)).await.is_err(), "{elsewhere}");
    }
    for bad in ["", ".", "..", "a/b", "a?b"] {
        let error = cloud("http://127.0.0.1:1").inspect(&Handle::new(bad)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{bad}");
    }
}

fn log(lines: &[&str]) -> Reply {
    let event = |line: &&str| format!("id: 1\ndata: {}\n\n", json!({"source": "container", "line": line}));
    let events: String = lines.iter().map(event).collect();
    Reply::Answer(200, "content-type: text/event-stream\r\n".to_owned(), events)
}

#[tokio::test]
async fn host_keys_come_from_the_log_of_a_pod_that_is_waited_for() {
    let print = format!("SHA256:{}", "a".repeat(43));
    let line = format!("256 {print} root@{ID} (ED25519)");
    let server = Canned::start(move |asked, _| match asked.line.contains("/logs?") {
        true => log(&[
            "Setting up SSH...",
            &line,
            "SSH host keys:",
            "Start script(s) finished, Pod is ready to use.",
        ]),
        false => answer(200, ready_pod(ID).to_string()),
    })
    .await;
    let cloud = cloud(&server.base);
    let handle = Handle::new(ID);
    assert_eq!(cloud.inspect(&handle).await.unwrap().host_keys, HostKeys::Unknown);
    for _ in 0..3 {
        let look = cloud.inspect(&handle).await.unwrap();
        assert_eq!(look.host_keys, HostKeys::Fingerprints(vec![print.clone()]));
    }
    let logs: Vec<String> = server.lines().into_iter().filter(|line| line.contains("logs")).collect();
    assert_eq!(logs, [format!("GET /v2/pods/{ID}/logs?source=container&tail=1000")]);
}

#[tokio::test]
async fn a_log_that_hangs_or_is_forbidden_is_no_trouble() {
    for reply in [Reply::Hang, problem(403, "access denied"), answer(500, "x"), Reply::Close] {
        let forbidden = matches!(reply, Reply::Answer(403, ..));
        let server = Canned::start(move |asked, _| match asked.line.contains("/logs?") {
            true => reply.clone(),
            false => answer(200, ready_pod(ID).to_string()),
        })
        .await;
        let cloud = cloud(&server.base);
        let started = std::time::Instant::now();
        for _ in 0..3 {
            assert_eq!(cloud.inspect(&Handle::new(ID)).await.unwrap().host_keys, HostKeys::Unknown);
        }
        assert!(started.elapsed() < Duration::from_secs(4));
        let logs = server.lines().iter().filter(|line| line.contains("logs")).count();
        assert_eq!(logs, if forbidden { 1 } else { 2 });
    }
}

#[tokio::test]
async fn only_marked_pods_are_found() {
    let with_mark = |id: &str, text: &str| {
        changed(ready_pod(id), json!({"env": {"GPUPROV_MARK": text, "PUBLIC_KEY": "x"}}))
    };
    let foreign = changed(pod("foreign1"), json!({"env": {"A": "b"}, "name": "gpuprov-dev-00ff00"}));
    let page_two = [
        pod(ID),
        with_mark("other-account", "v1:lab:second:dev:1111111111111111::"),
        with_mark("other-lab", "v1:office:default:dev:2222222222222222::"),
        with_mark("odd-mark", "v1:LAB"),
        json!({"id": "no-env"}),
    ];
    let first = json!({"pods": [pod(ID), foreign], "pagination": {"nextCursor": "c=1", "hasNextPage": true}});
    let (first, second) = (first.to_string(), list(&page_two).to_string());
    let server = Canned::start(move |asked, _| {
        answer(200, if asked.line.contains("cursor=c%3D1") { second.clone() } else { first.clone() })
    })
    .await;
    let cloud = cloud(&server.base);
    let ids = async |which: Which| -> Vec<String> {
        cloud.find(&which).await.unwrap().into_iter().map(|found| found.handle.id).collect()
    };
    let lab = mark().installation;
    assert_eq!(ids(Which::Installation(lab.clone())).await, [ID]);
    assert_eq!(ids(Which::Claim(lab.clone(), mark().claim)).await, [ID]);
    assert_eq!(ids(Which::Claim(lab, "3333333333333333".parse().unwrap())).await, [""; 0]);
    assert_eq!(ids(Which::AnyMarked).await, [ID, "other-account", "other-lab"]);
    let found = &cloud.find(&Which::AnyMarked).await.unwrap()[0];
    assert_eq!((found.mark.clone(), found.cloud_name.as_str()), (mark(), "gpuprov-dev-00ff00"));
    assert_eq!(found.since.unwrap().to_string(), "2026-11-30T09:00:00.436Z");
    assert!(server.lines().iter().all(|line| !line.contains("logs")));
}

#[tokio::test]
async fn a_list_that_is_not_whole_is_an_error() {
    let nameless = changed(pod(ID), json!({"id": null}));
    let bare = json!({"id": "x", "name": "gpuprov-dev-00ff00"});
    for odd in [
        json!({}),
        json!([]),
        json!([[]]),
        json!([[ready_pod(ID)], {}]),
        json!({"pods": null}),
        json!({"pods": [], "pagination": []}),
        json!({"pods": [], "pagination": {"nextCursor": 7}}),
        list(&[json!(7)]),
        list(&[json!([])]),
        list(&[json!({})]),
        list(&[changed(pod(ID), json!({"status": null}))]),
        json!({"pods": [], "pagination": {"hasNextPage": true, "nextCursor": null}}),
        json!({"pods": [], "pagination": {"hasNextPage": true, "nextCursor": "same"}}),
        list(&[nameless]),
        list(&[bare]),
    ] {
        let server = Canned::with(vec![answer(200, odd.to_string())]).await;
        let error = cloud(&server.base).find(&Which::AnyMarked).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{odd}");
    }
    // An older server has one page and says nothing of others.
    let server = Canned::with(vec![answer(200, json!({"pods": [pod(ID)]}).to_string())]).await;
    assert_eq!(cloud(&server.base).find(&Which::AnyMarked).await.unwrap().len(), 1);
}

#[tokio::test]
async fn deleting() {
    let delete = async |deleted: Reply, looked: Reply| {
        let server = Canned::start(move |asked, _| match asked.line.starts_with("DELETE") {
            true => deleted.clone(),
            false => looked.clone(),
        })
        .await;
        let outcome = cloud(&server.base).delete(&Handle::new(ID)).await;
        assert_eq!(server.lines()[0], format!("DELETE /v2/pods/{ID}"));
        outcome
    };
    let done = || Reply::Answer(204, String::new(), String::new());
    let unknown = || problem(404, "resource not found");
    let shown = |status: &str| answer(200, changed(pod(ID), json!({"status": status})).to_string());
    assert_eq!(delete(done(), unknown()).await.unwrap(), Deletion::Gone);
    assert_eq!(delete(unknown(), unknown()).await.unwrap(), Deletion::Gone);
    assert_eq!(delete(done(), shown("TERMINATED")).await.unwrap(), Deletion::Gone);
    assert!(
        matches!(delete(done(), shown("RUNNING")).await.unwrap(), Deletion::Pending(why) if why.contains("RUNNING"))
    );
    let busy = || problem(409, "action not valid for current pod status");
    assert!(matches!(delete(busy(), shown("PROVISIONING")).await.unwrap(), Deletion::Pending(_)));
    let member = changed(pod(ID), json!({"cluster": {"id": "c1"}}));
    assert_eq!(delete(busy(), answer(200, member.to_string())).await.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(delete(done(), answer(502, "<html>")).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(delete(problem(401, "x"), unknown()).await.unwrap_err().kind, ErrorKind::Auth);
    assert_eq!(delete(answer(404, "<html>"), unknown()).await.unwrap_err().kind, ErrorKind::Unavailable);
    let limited = Reply::Answer(429, "retry-after: 900\r\n".to_owned(), "{\"title\":\"x\"}".to_owned());
    let error = delete(limited, unknown()).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (ErrorKind::RateLimited, Some(Duration::from_secs(900))));
}

#[tokio::test]
async fn the_key_is_checked_with_the_cheapest_call() {
    let server = Canned::with(vec![answer(200, list(&[]).to_string())]).await;
    let identity = cloud(&server.base).check().await.unwrap();
    assert_eq!((identity.provider, identity.hint.as_str()), (None, "…6789"));
    assert_eq!(server.lines(), ["GET /v2/pods?limit=1"]);
    for (status, kind) in [(401, ErrorKind::Auth), (403, ErrorKind::Forbidden)] {
        let server = Canned::with(vec![problem(status, "x")]).await;
        assert_eq!(cloud(&server.base).check().await.unwrap_err().kind, kind);
    }
    let server = Canned::with(vec![Reply::Answer(403, String::new(), "error code: 1010".to_owned())]).await;
    assert_eq!(cloud(&server.base).check().await.unwrap_err().kind, ErrorKind::Rejected);
}
