//! Making pods.

use serde_json::{Value, json};

use crate::cloud::runpod::samples::*;
use crate::cloud::{Cloud, Created, Error, ErrorKind, Limit, Reached};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::Want;

/// What a create at a server that answers it with `reply` came to, what was noted, and what was sent.
async fn create(
    want: &Want,
    spec: &MachineSpec,
    reply: Reply,
) -> (Result<Created, Box<Error>>, Vec<String>, Value) {
    create_with(want, spec, reply, answer(200, "{\"keys\":[]}")).await
}

async fn create_with(
    want: &Want,
    spec: &MachineSpec,
    reply: Reply,
    keys: Reply,
) -> (Result<Created, Box<Error>>, Vec<String>, Value) {
    let offer = cheapest(want).await;
    let server = Canned::start(move |asked, _| match asked.line.as_str() {
        "POST /v2/pods" => reply.clone(),
        "GET /v2/account/ssh-keys" => keys.clone(),
        _ => shop(asked),
    })
    .await;
    let notebook = Notebook::default();
    let made = cloud(&server.base).create(&offer, spec, &mark(), &notebook).await;
    let sent = server.asked().into_iter().filter(|asked| asked.line == "POST /v2/pods").collect::<Vec<_>>();
    assert!(sent.len() <= 1, "sent again");
    assert!(server.lines().iter().all(|line| !line.starts_with("PUT")));
    let body = sent.first().map_or(Value::Null, |asked| serde_json::from_str(&asked.body).unwrap());
    (made, notebook.made.into_inner().unwrap(), body)
}

#[tokio::test]
async fn the_body_says_everything_that_was_agreed() {
    let mut want = want("RTX4090:2");
    (want.ram_gb, want.vcpus) = (Some(63), Some(16));
    let mut spec = spec();
    spec.env = vec![
        ("TOKEN".to_owned(), Secret::new("abc==".to_owned())),
        ("EMPTY".to_owned(), Secret::new(String::new())),
    ];
    let keys =
        answer(200, "{\"keys\":[\"ssh-rsa AAAAB me\",\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOURS x\"]}");
    let (made, noted, body) =
        create_with(&want, &spec, answer(201, pod("5xpma5eg46tqjq").to_string()), keys).await;
    let made = made.unwrap();
    assert_eq!((made.handle.id.as_str(), noted), ("5xpma5eg46tqjq", vec!["5xpma5eg46tqjq".to_owned()]));
    assert_eq!(made.notes, ["1 other key, registered on the RunPod account, may log in"]);
    assert_eq!(
        body,
        json!({
            "name": "gpuprov-dev-00ff00", "image": "runpod/base:1.4.1-cuda1290-ubuntu2204", "cloud": "COMMUNITY",
            "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 2, "minCudaVersion": "12.9", "minRamPerGpu": 32,
                "minVcpuCountPerGpu": 8},
            "dataCenterIds": ["EU-RO-1"], "disk": 50, "ports": ["22/tcp"],
            "env": {"PUBLIC_KEY": format!("{KEY}\nssh-rsa AAAAB me"),
                "GPUPROV_MARK": "v1:lab:default:dev:00ff00ff00ff00ff::", "TOKEN": "abc=="},
        })
    );
}

#[tokio::test]
async fn an_id_is_noted_whatever_else_the_answer_is() {
    let odd = answer(200, "{\"id\":\"abcd1234\",\"status\":7}");
    let (made, noted, _) = create(&want("RTX4090"), &spec(), odd).await;
    assert_eq!((made.unwrap().handle.id, noted), ("abcd1234".to_owned(), vec!["abcd1234".to_owned()]));

    let failing = answer(500, "{\"id\":\"abcd1234\",\"title\":\"x\",\"status\":500,\"detail\":\"late\"}");
    let (made, noted, _) = create(&want("RTX4090"), &spec(), failing).await;
    assert_eq!((made.unwrap_err().reached, noted), (Reached::Yes, vec!["abcd1234".to_owned()]));

    for unreadable in [answer(201, "{}"), answer(201, "{\"id\":\"../x\"}"), answer(200, "<html>")] {
        let (made, noted, _) = create(&want("RTX4090"), &spec(), unreadable).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Unreadable, Reached::Yes));
        assert!(noted.is_empty());
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_written_stops_it() {
    let offer = cheapest(&want("RTX4090")).await;
    let server = Canned::start(|asked, _| {
        if asked.line.starts_with("POST") { answer(201, pod("abcd1234").to_string()) } else { shop(asked) }
    })
    .await;
    let notebook = Notebook { is_full: true, ..Notebook::default() };
    let error = cloud(&server.base).create(&offer, &spec(), &mark(), &notebook).await.unwrap_err();
    assert_eq!(error.reached, Reached::Yes);
    assert!(error.message.contains("abcd1234") && error.message.contains("disk full"));
}

#[tokio::test]
async fn refusals_and_cut_answers() {
    const GONE: &str = "There are no longer any instances available with the requested specifications.";
    let (made, _, _) = create(&want("RTX4090"), &spec(), problem(400, GONE)).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::NoCapacity, Reached::No));
    for part in ["1 x NVIDIA GeForce RTX 4090", "community", "EU-RO-1", "CUDA 12.9", "50 GB"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    let (made, _, _) = create(&want("RTX4090"), &spec(), problem(403, "access denied")).await;
    let limit = Limit { gpu: Some("RTX4090".to_owned()), secure: Some(false), ..Limit::default() };
    assert_eq!(made.unwrap_err().limit, Some(limit));
    for cut in [Reply::Close, answer(502, "<html>")] {
        let (made, noted, _) = create(&want("RTX4090"), &spec(), cut).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Unavailable, Reached::Maybe));
        assert!(noted.is_empty());
    }
}

#[tokio::test]
async fn an_image_that_is_missing_is_the_users_or_ours() {
    let missing = || problem(422, "manifest for image not found in its registry");
    let (made, _, _) = create(&want("RTX4090"), &spec(), missing()).await;
    let error = made.unwrap_err();
    assert!(!error.user_input && error.limit == Some(Limit::default()));
    assert!(error.message.contains("runpod/base:1.4.1") && error.hint.unwrap().contains("--image"));

    let own = MachineSpec { image: Some("me/own:cu130".to_owned()), ..spec() };
    let (made, _, body) = create(&want("RTX4090"), &own, missing()).await;
    assert!(made.unwrap_err().user_input);
    // The image needs more than the offer was listed with.
    assert_eq!((&body["image"], &body["gpu"]["minCudaVersion"]), (&json!("me/own:cu130"), &json!("13.0")));
}

#[tokio::test]
async fn the_accounts_keys() {
    let made = || answer(201, pod("abcd1234").to_string());
    let (created, _, body) =
        create_with(&want("RTX4090"), &spec(), made(), problem(403, "access denied")).await;
    assert!(created.unwrap().notes[0].contains("access denied"));
    assert_eq!(body["env"]["PUBLIC_KEY"], json!(KEY));

    let (refused, _, body) =
        create_with(&want("RTX4090"), &spec(), made(), problem(401, "missing bearer token")).await;
    let error = refused.unwrap_err();
    assert_eq!((error.kind, error.reached, body), (ErrorKind::Auth, Reached::No, Value::Null));

    let offer = cheapest(&want("RTX4090")).await;
    let server = Canned::start(move |asked, _| {
        if asked.line.starts_with("POST") { answer(201, pod("abcd1234").to_string()) } else { shop(asked) }
    })
    .await;
    let alone = cloud_with(&server.base, |settings| settings.account_keys = false);
    alone.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    let both = cloud(&server.base);
    for _ in 0..2 {
        both.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    }
    // Once in a process, and not at all where they are switched off.
    assert_eq!(server.lines().iter().filter(|line| line.ends_with("ssh-keys")).count(), 1);
}

#[tokio::test]
async fn what_the_user_must_not_set_is_refused_before_any_request() {
    let env = |name: &str, value: &str| {
        let env = vec![(name.to_owned(), Secret::new(value.to_owned()))];
        MachineSpec { env, ..spec() }
    };
    let large = "x".repeat(110_000);
    for (spec, part) in [
        (env("PUBLIC_KEY", "x"), "PUBLIC_KEY"),
        (env("GPUPROV_MARK", "x"), "GPUPROV_MARK"),
        (env("RUNPOD_API_KEY", "secret-value"), "RUNPOD_API_KEY"),
        (env("BIG", &large), "102400"),
        (MachineSpec { public_key: " \n".to_owned(), ..spec() }, "public key"),
    ] {
        let (made, noted, body) = create(&want("RTX4090"), &spec, answer(201, "{}")).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached, error.user_input), (ErrorKind::Rejected, Reached::No, true));
        assert!(error.message.contains(part) && !error.message.contains("secret-value"), "{error}");
        assert!(noted.is_empty() && body.is_null());
    }
}

#[tokio::test]
async fn a_preview_shows_the_request_without_secrets_and_without_asking() {
    let offer = cheapest(&want("H100")).await;
    let spec =
        MachineSpec { env: vec![("TOKEN".to_owned(), Secret::new("hidden-value".to_owned()))], ..spec() };
    let preview = cloud("http://127.0.0.1:1").preview(&offer, &spec, &mark());
    assert_eq!((preview.method.as_str(), preview.url.as_str()), ("POST", "http://127.0.0.1:1/v2/pods"));
    assert!(preview.body.get("dataCenterIds").is_none());
    assert_eq!(preview.body["env"]["PUBLIC_KEY"], json!(KEY));
    let shown = serde_json::to_string(&preview).unwrap();
    assert!(shown.contains("TOKEN") && !shown.contains("hidden-value") && !shown.contains("rpa_"));
}
