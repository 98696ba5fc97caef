//! What goes wrong on the wire while offers are asked for: told, waited out where that helps, never an endless wait.

use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind, Junk, RetryAfter, When};

use crate::support::World;

fn raw(code: u16, body: &str, content_type: &str) -> FaultKind {
    FaultKind::Status {
        code,
        when: When::Before,
        body: Some(body.to_owned()),
        content_type: Some(content_type.to_owned()),
        headers: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_waited_out() {
    let world = World::new().await;
    for fault in [
        FaultKind::status(500),
        FaultKind::status(503),
        raw(502, "<html><body>Bad gateway</body></html>", "text/html"),
        FaultKind::TooMany { retry_after: RetryAfter::Seconds(1) },
        FaultKind::Reset { when: When::Before },
        FaultKind::CutBody,
    ] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on("catalog", fault.clone()).times(2));
        world.sandbox.add_fault(Fault::on("datacenters", fault.clone()).times(1));
        let (code, document) = world.json("offers --gpus RTX4090").await;
        assert_eq!((code, document["total"].as_u64()), (0, Some(4)), "{fault:?}: {document:#}");
        assert_eq!(document["failed"], serde_json::json!([]), "{fault:?}");
    }
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_is_told() {
    let world = World::new().await;
    for (fault, kind, says) in [
        (FaultKind::status(500), "unavailable", ""),
        (raw(502, "<html>S3CRET</html>", "text/html"), "unavailable", "502"),
        (raw(403, "error code: 1010", "text/plain"), "rejected", "1010"),
        (FaultKind::status(410), "rejected", "retired"),
        (FaultKind::CutBody, "unavailable", "broke off"),
        (FaultKind::Garbage { body: Junk::Html }, "unreadable", ""),
        (FaultKind::Garbage { body: Junk::Empty }, "unreadable", ""),
        (FaultKind::Garbage { body: Junk::WrongType }, "unreadable", ""),
        (FaultKind::Garbage { body: Junk::Torn }, "unreadable", ""),
        (FaultKind::TooMany { retry_after: RetryAfter::Nothing }, "rate_limited", ""),
        (FaultKind::TooMany { retry_after: RetryAfter::Date(120) }, "rate_limited", ""),
    ] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on("catalog", fault.clone()).always());
        let begun = Instant::now();
        let (code, document) = world.json("offers --gpus RTX4090 --cloud-timeout 1s").await;
        let error = &document["error"];
        assert_eq!((code, error["kind"].as_str()), (1, Some(kind)), "{fault:?}: {document:#}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(says) && message.contains("runpod/default") && !message.contains("S3CRET"),
            "{message}"
        );
        assert_eq!(document["failed"][0]["kind"], kind, "{fault:?}");
        assert!(error["hint"].is_string(), "{fault:?}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(6), "{fault:?}: {:?}", begun.elapsed());
    }
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_account_delays_nobody_for_long() {
    let world = World::new().await;
    let lab = world.sandbox.add_runpod_account();
    world.config(&format!("[account.\"runpod/lab\"]\napi_key = \"{lab}\"\n"));
    let label = world.sandbox.runpod_account(&lab).unwrap();
    world
        .sandbox
        .add_fault(Fault::on_path("GET", "/v2/", FaultKind::hang(When::Before)).always().account(&label));
    let begun = Instant::now();
    let (code, document) = world.json("offers --gpus RTX4090 --cloud-timeout 1s").await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!((code, document["total"].as_u64()), (0, Some(4)), "{document:#}");
    assert_eq!(
        (document["failed"][0]["account"].as_str(), document["failed"][0]["kind"].as_str()),
        (Some("runpod/lab"), Some("timeout"))
    );
    let (code, document) = world.json("offers --cloud runpod/lab --cloud-timeout 500ms").await;
    assert_eq!((code, document["error"]["kind"].as_str()), (1, Some("timeout")), "{document:#}");
    let ran = world.run("provision --gpus RTX4090 --name dev --cloud-timeout 1s").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.sandbox.clear_faults();
    assert_eq!(world.run("rm dev --yes").await.code, 0);
    world.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_is_kept_and_said() {
    let world = World::new().await;
    let hang = FaultKind::hang(When::Before);
    // One tier hangs or is refused: the other tier's offers are shown, and that some are missing.
    for fault in [hang.clone(), FaultKind::status(404)] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on("catalog", fault.clone()));
        let (code, document) = world.json("offers --gpus RTX4090 --cuda 12.9 --cloud-timeout 1s").await;
        assert_eq!(code, 0, "{fault:?}: {document:#}");
        assert_eq!(document["total"], 2, "{fault:?}: {document:#}");
        assert!(document["warnings"].to_string().contains("not complete"), "{fault:?}: {document:#}");
    }
    // Without the data centres their ids tell.
    for fault in [hang.clone(), FaultKind::status(404), FaultKind::Garbage { body: Junk::Html }] {
        world.sandbox.clear_faults();
        world.sandbox.add_fault(Fault::on("datacenters", fault.clone()).always());
        let (code, document) = world.json("offers --gpus RTX4090 --region europe --cloud-timeout 1s").await;
        assert_eq!((code, document["total"].as_u64()), (0, Some(2)), "{fault:?}: {document:#}");
        assert!(document["warnings"].to_string().contains("data centres' names"), "{document:#}");
    }
    // The question about hidden offers holds up nothing: it is asked without a need.
    world.sandbox.clear_faults();
    world.sandbox.add_fault(Fault::on("catalog", hang).nth(3).always());
    let (code, document) = world.json("offers --gpus RTX4090 --cloud-timeout 3s").await;
    assert_eq!(code, 0, "{document:#}");
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_questions_are_asked_at_once() {
    let world = World::new().await;
    let lab = world.sandbox.add_runpod_account();
    world.config(&format!("[account.\"runpod/lab\"]\napi_key = \"{lab}\"\n"));
    world.sandbox.add_fault(Fault::on_path("GET", "/v2/", FaultKind::Delay { ms: 800 }).always());
    let begun = Instant::now();
    let (code, document) = world.json("offers --gpus RTX4090,RTX4090:2").await;
    let took = begun.elapsed();
    assert_eq!((code, document["failed"].as_array().unwrap().len()), (0, 0));
    let requests = world.sandbox.requests();
    // Two tiers, two counts, with and without our image's floor, and the data centres; for two accounts.
    assert_eq!(requests.len(), 18, "{requests:#?}");
    let first = requests.iter().map(|request| request.at).min().unwrap();
    let last = requests.iter().map(|request| request.at).max().unwrap();
    let spread = last.duration_since(first).as_millis();
    assert!(spread < 750, "a question waited for an answer: {spread} ms between first and last");
    assert!(took < Duration::from_secs(5), "{took:?}");
    world.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_and_words_that_nobody_knows_are_passed_over() {
    let world = World::new().await;
    world.sandbox.add_fault(Fault::on_path("GET", "/v2/", FaultKind::ExtraFields).always());
    world.sandbox.add_fault(Fault::on("list_pods", FaultKind::PageSize { size: 1 }).always());
    let (code, document) = world.json("offers --gpus RTX4090").await;
    assert_eq!((code, document["total"].as_u64()), (0, Some(4)));
    for name in ["one", "two"] {
        world.provision(name).await;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (code, document) = world.json("ls").await;
    assert_eq!((code, document["machines"].as_array().unwrap().len()), (0, 2), "{document:#}");
    assert_eq!(world.run("rm one two --yes").await.code, 0);
    world.assert_empty();
}
