//! Making machines.

use serde_json::{Value, json};

use crate::cloud::vast::samples::*;
use crate::cloud::{Cloud, Created, Error, ErrorKind, Reached};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::model::secret::Secret;
use crate::model::spec::MachineSpec;
use crate::model::want::{Spot, Want};

const MADE: &str = "{\"success\":true,\"new_contract\":45390642,\"instance_api_key\":\"s3cret\"}";

fn is_create(asked: &Asked) -> bool {
    asked.line.starts_with("PUT /api/v0/asks/")
}

fn attached() -> Reply {
    answer(200, "{\"success\":true,\"msg\":\"SSH key attached successfully\"}")
}

/// What a create came to, what was noted, and what was asked.
async fn create(
    want: &Want,
    spec: &MachineSpec,
    reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static,
) -> (Result<Created, Box<Error>>, Vec<String>, Vec<Asked>) {
    let offer = cheapest(want).await;
    let server = Canned::start(reply).await;
    let notebook = Notebook::default();
    let made = cloud(&server.base).create(&offer, spec, &mark(), &notebook).await;
    (made, notebook.made.into_inner().unwrap(), server.asked())
}

/// The same with one reply to the create, and the key attached.
async fn create_with(reply: Reply) -> (Result<Created, Box<Error>>, Vec<String>, Vec<Asked>) {
    create(
        &want("RTX5090"),
        &spec(),
        move |asked, _| if is_create(asked) { reply.clone() } else { attached() },
    )
    .await
}

fn bodies(asked: &[Asked]) -> Vec<Value> {
    asked
        .iter()
        .filter(|asked| is_create(asked))
        .map(|asked| serde_json::from_str(&asked.body).unwrap())
        .collect()
}

#[tokio::test]
async fn the_body_says_everything_that_was_agreed() {
    let env = vec![
        ("TOKEN".to_owned(), Secret::new("abc==".to_owned())),
        ("NOTE".to_owned(), Secret::new("two words".to_owned())),
    ];
    let spec = MachineSpec { env, ..spec() };
    let (made, noted, asked) =
        create(
            &want("RTX5090"),
            &spec,
            |asked, _| if is_create(asked) { answer(200, MADE) } else { attached() },
        )
        .await;
    let made = made.unwrap();
    assert_eq!((made.handle.id.as_str(), noted), ("45390642", vec!["45390642".to_owned()]));
    assert!(made.notes[0].starts_with("NOTE is in every login, but not"), "{:?}", made.notes);
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(lines, ["PUT /api/v0/asks/21348645/", "POST /api/v0/instances/45390642/ssh/"]);
    assert_eq!(
        bodies(&asked)[0],
        json!({
            "client_id": "me", "image": "vastai/base-image:@vastai-automatic-tag", "disk": 100, "runtype": "ssh_direct",
            "target_state": "running", "cancel_unavail": true,
            "env": {"GPUPROV_MARK": "v1:lab:default:dev:00ff00ff00ff00ff::", "TOKEN": "abc=="},
            "onstart": "touch ~/.no_auto_tmux", "label": "v1:lab:default:dev:00ff00ff00ff00ff::",
        })
    );
    assert_eq!(serde_json::from_str::<Value>(&asked[1].body).unwrap(), json!({"ssh_key": KEY}));
}

#[tokio::test]
async fn a_bid_always_carries_its_price_and_an_on_demand_create_never() {
    let spot = Want { spot: Spot::Only, ..want("RTX5090") };
    for (want, price) in [(spot, json!(0.184)), (want("RTX5090"), Value::Null)] {
        let (made, _, asked) =
            create(&want, &spec(), |asked, _| if is_create(asked) { answer(200, MADE) } else { attached() })
                .await;
        made.unwrap();
        let body = bodies(&asked).remove(0);
        assert_eq!((&body["price"], &body["cancel_unavail"]), (&price, &json!(true)));
        assert_eq!(body.get("price").is_some(), !price.is_null(), "never null");
    }
}

#[tokio::test]
async fn a_contract_is_noted_whatever_else_the_answer_is() {
    for (status, text, kind) in [
        (
            400,
            "{\"success\":false,\"error\":\"x\",\"msg\":\"no\",\"new_contract\":45390643}",
            ErrorKind::NoCapacity,
        ),
        (
            200,
            "{\"success\":false,\"error\":\"invalid_price\",\"msg\":\"low\",\"new_contract\":\"45390643\"}",
            ErrorKind::NoCapacity,
        ),
        (
            500,
            "{\"success\":false,\"error\":\"server_error\",\"new_contract\":45390643}",
            ErrorKind::Unavailable,
        ),
        (
            410,
            "{\"success\":false,\"error\":\"no_such_ask\",\"msg\":\"gone\",\"new_contract\":45390643}",
            ErrorKind::NoCapacity,
        ),
    ] {
        let (made, noted, asked) = create_with(answer(status, text)).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (kind, Reached::Yes), "{text}");
        assert_eq!(noted, ["45390643"]);
        assert_eq!(asked.len(), 1, "no key for what will be deleted, and no second create");
    }
    for odd in [
        "{}",
        "{\"success\":true}",
        "{\"success\":true,\"new_contract\":null}",
        "{\"new_contract\":\"../1\"}",
    ] {
        let (made, noted, _) = create_with(answer(200, odd)).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Unreadable, Reached::Yes), "{odd}");
        assert!(noted.is_empty());
    }
    let (made, _, _) = create_with(answer(200, "<html>")).await;
    assert_eq!(made.unwrap_err().reached, Reached::Maybe);
}

#[tokio::test]
async fn a_record_that_cannot_be_written_stops_it() {
    let offer = cheapest(&want("RTX5090")).await;
    let server = Canned::start(|_, _| answer(200, MADE)).await;
    let notebook = Notebook { is_full: true, ..Notebook::default() };
    let error = cloud(&server.base).create(&offer, &spec(), &mark(), &notebook).await.unwrap_err();
    assert_eq!(error.reached, Reached::Yes);
    assert!(error.message.contains("45390642") && error.message.contains("disk full"));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn a_create_is_sent_again_only_when_it_was_certainly_not_carried_out() {
    for (cut, kind) in
        [(Reply::Close, ErrorKind::Unavailable), (answer(502, "<html>"), ErrorKind::Unavailable)]
    {
        let (made, noted, asked) = create_with(cut).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (kind, Reached::Maybe));
        assert!(noted.is_empty());
        assert_eq!(asked.len(), 1);
    }
    let (made, _, asked) =
        create(&want("RTX5090"), &spec(), |asked, before| match (is_create(asked), before) {
            (true, 0) => answer(429, "API requests too frequent: endpoint threshold=4.5"),
            (true, _) => answer(200, MADE),
            _ => attached(),
        })
        .await;
    made.unwrap();
    assert_eq!(bodies(&asked).len(), 2);
}

#[tokio::test]
async fn the_automatic_tag_falls_back_to_the_newest_that_the_host_runs() {
    let refusal =
        "{\"success\":false,\"error\":\"invalid_args\",\"msg\":\"error 400/3467: invalid image tag\"}";
    let (made, noted, asked) =
        create(&want("RTX5090"), &spec(), move |asked, before| match (is_create(asked), before) {
            (true, 0) => answer(400, refusal),
            (true, _) => answer(200, MADE),
            _ => attached(),
        })
        .await;
    made.unwrap();
    let images: Vec<Value> = bodies(&asked).iter().map(|body| body["image"].clone()).collect();
    assert_eq!(images, ["vastai/base-image:@vastai-automatic-tag", "vastai/base-image:cuda-13.0.3-auto"]);
    assert_eq!(noted.len(), 1);
    // The user's image is what the user wants, or nothing.
    let own = MachineSpec { image: Some("me/own:1".to_owned()), ..spec() };
    let (made, _, asked) = create(&want("RTX5090"), &own, move |_, _| answer(400, refusal)).await;
    assert!(made.unwrap_err().user_input);
    assert_eq!(bodies(&asked).len(), 1);
    // Another refusal is one.
    let (made, _, asked) =
        create_with(answer(400, "{\"error\":\"invalid_args\",\"msg\":\"disk too small\"}")).await;
    assert_eq!((made.unwrap_err().kind, bodies(&asked).len()), (ErrorKind::Rejected, 1));
}

#[tokio::test]
async fn the_key_is_attached_with_patience_and_never_put_on_the_account() {
    let server = Canned::start(|asked, before| match (asked.line.as_str(), before) {
        (line, _) if line.starts_with("PUT /api/v0/asks/") => answer(200, MADE),
        ("POST /api/v0/instances/45390642/ssh/", 0..=3) => no_such_instance(),
        ("POST /api/v0/instances/45390642/ssh/", _) => attached(),
        ("GET /api/v0/instances/45390642/", _) => answer(200, one(loading()).to_string()),
        _ => answer(500, ""),
    })
    .await;
    let offer = cheapest(&want("RTX5090")).await;
    let cloud = cloud(&server.base);
    let made = cloud.create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    let attaches = || server.lines().iter().filter(|line| line.contains("/ssh/")).count();
    assert_eq!(attaches(), 1);
    for _ in 0..4 {
        assert!(cloud.inspect(&made.handle).await.unwrap().failed.is_none());
    }
    assert_eq!(attaches(), 3, "until it worked, and no more");
    cloud.readmit(&made.handle, KEY).await.unwrap();
    assert_eq!(attaches(), 4);
    assert!(server.lines().iter().all(|line| !line.contains("/api/v0/ssh/")));
}

#[tokio::test]
async fn a_key_that_is_there_is_well_and_one_that_is_refused_is_an_error() {
    let with =
        |reply: Reply| async move {
            create(&want("RTX5090"), &spec(), move |asked, _| {
                if is_create(asked) { answer(200, MADE) } else { reply.clone() }
            })
            .await
            .0
        };
    assert!(with(answer(400, "{\"success\":false,\"msg\":\"SSH key already attached\"}")).await.is_ok());
    let error = with(answer(400, "{\"success\":false,\"error\":\"invalid_args\",\"msg\":\"bad key\"}"))
        .await
        .unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Rejected, Reached::Yes));
}

#[tokio::test]
async fn what_the_user_must_not_set_is_refused_before_any_request() {
    let env = vec![("GPUPROV_MARK".to_owned(), Secret::new("x".to_owned()))];
    for spec in [MachineSpec { env, ..spec() }, MachineSpec { public_key: " \n".to_owned(), ..spec() }] {
        let (made, noted, asked) = create(&want("RTX5090"), &spec, |_, _| answer(200, MADE)).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached, error.user_input), (ErrorKind::Rejected, Reached::No, true));
        assert!(noted.is_empty() && asked.is_empty());
    }
}

#[tokio::test]
async fn a_preview_shows_the_request_without_secrets_and_without_asking() {
    let offer = cheapest(&want("RTX5090")).await;
    let env = vec![("TOKEN".to_owned(), Secret::new("hidden-value".to_owned()))];
    let preview = cloud("http://127.0.0.1:1").preview(&offer, &MachineSpec { env, ..spec() }, &mark());
    assert_eq!(preview.method, "PUT");
    assert_eq!(preview.url, "http://127.0.0.1:1/api/v0/asks/21348645/");
    assert_eq!(preview.body["env"]["GPUPROV_MARK"], mark().to_text());
    let shown = serde_json::to_string(&preview).unwrap();
    assert!(shown.contains("TOKEN") && !shown.contains("hidden-value") && !shown.contains("vast0123"));
}
