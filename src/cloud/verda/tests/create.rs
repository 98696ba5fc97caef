//! Making a machine, and what is left when that fails.

use serde_json::{Value, json};

use crate::cloud::verda::samples::*;
use crate::cloud::{Cloud, Created, ErrorKind, Limit, Reached, Result};
use crate::http::canned::{Canned, Reply, json as answer};
use crate::model::handle::ResourceKind;
use crate::model::offer_key::OfferKey;
use crate::model::want::{Spot, Want};

const CREATE: &str = "POST /v1/instances";
const KEYS: &str = "POST /v1/ssh-keys";

async fn create(special: Vec<(&'static str, Vec<Reply>)>) -> (Result<Created>, Vec<String>, Canned) {
    let server = server(special).await;
    let notebook = Notebook::default();
    let made = cloud(&server.base).create(&spot_offer().await, &spec(), &mark(), &notebook).await;
    (made, notebook.ids(), server)
}

fn bodies(server: &Canned, line: &str) -> Vec<Value> {
    let asked = server.asked();
    let hits = asked.iter().filter(|asked| asked.line == line);
    hits.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

fn key_is_deleted(server: &Canned) -> bool {
    server.lines().contains(&format!("DELETE /v1/ssh-keys/{KEY_ID}"))
}

#[tokio::test]
async fn the_key_first_then_the_machine_each_noted() {
    let (made, noted, server) = create(vec![]).await;
    let handle = made.unwrap().handle;
    assert_eq!(handle, crate::cloud::verda::samples::handle());
    assert_eq!(noted, [KEY_ID, ID]);
    assert_eq!(bodies(&server, KEYS), [json!({"name": WHOLE_NAME, "key": KEY})]);
    let body = bodies(&server, CREATE).remove(0);
    let tags: Value =
        mark().labels().into_iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    assert_eq!(tags.as_array().unwrap().len(), 7);
    assert_eq!(
        body,
        json!({
            "instance_type": "1RTXPRO6000.30V", "image": "24.04.cuda13.2.docker", "hostname": "dev",
            "description": "gpuprov-dev-00ff00", "location_code": "FIN-03", "ssh_key_ids": [KEY_ID],
            "os_volume": {"name": WHOLE_NAME, "size": 100, "tags": tags, "on_spot_discontinue": "delete_permanently"},
            "is_spot": true, "contract": "SPOT", "tags": tags,
        })
    );
    assert!(!key_is_deleted(&server));
}

#[tokio::test]
async fn on_demand_and_without_a_gpu() {
    let server = server(vec![]).await;
    let offer = cheapest(&Want { spot: Spot::No, ..want_cpu() }).await;
    cloud(&server.base).create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap();
    let body = bodies(&server, CREATE).remove(0);
    assert_eq!(
        (&body["image"], &body["is_spot"], &body["contract"]),
        (&json!("24.04.base"), &json!(false), &json!("PAY_AS_YOU_GO"))
    );
    assert!(body["os_volume"].get("on_spot_discontinue").is_none());
}

#[tokio::test]
async fn an_id_comes_as_text_or_as_json() {
    for reply in [
        text(202, ID),
        text(202, &format!("{ID}\n")),
        answer(202, format!("\"{ID}\"")),
        answer(202, json!({"id": ID}).to_string()),
    ] {
        let (made, noted, _) = create(vec![(CREATE, vec![reply])]).await;
        assert_eq!((made.unwrap().handle.id.as_str(), noted.len()), (ID, 2));
    }
    for odd in [
        text(202, ""),
        text(202, "<html>"),
        text(202, "accepted"),
        answer(202, "\"queued\""),
        answer(202, "12345678"),
        answer(202, "[]"),
        answer(202, "{}"),
        text(202, "a b"),
    ] {
        let (made, noted, server) = create(vec![(CREATE, vec![odd])]).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Unreadable, Reached::Yes));
        assert_eq!(
            (noted.len(), key_is_deleted(&server)),
            (1, false),
            "it may be made: nothing is cleaned up here"
        );
    }
}

#[tokio::test]
async fn a_refusal_leaves_no_key() {
    let cases = [
        (problem(503, "service_unavailable", "No capacity available"), ErrorKind::NoCapacity),
        (problem(400, "invalid_request", "GPU limit exceeded"), ErrorKind::Quota),
        (problem(400, "invalid_request", "hostname is wrong"), ErrorKind::Rejected),
        (problem(402, "insufficient_funds", "Not enough funds"), ErrorKind::Balance),
        (problem(401, "unauthorized_request", "x"), ErrorKind::Auth),
        (problem(403, "forbidden_action", "Insufficient scope"), ErrorKind::Forbidden),
    ];
    for (reply, kind) in cases {
        let (made, noted, server) = create(vec![(CREATE, vec![reply])]).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (kind, Reached::No), "{error}");
        assert_eq!(noted, [KEY_ID]);
        assert!(key_is_deleted(&server), "{error}");
        assert_eq!(bodies(&server, CREATE).len(), 1, "{error}");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_deleted_keeps_the_attempt_in_sight() {
    let refuse = (CREATE, vec![problem(503, "service_unavailable", "No capacity available")]);
    let listed = ("GET /v1/ssh-keys", vec![good(&json!([key_row(KEY_ID, WHOLE_NAME)]))]);
    let (made, ..) = create(vec![refuse.clone(), listed]).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::NoCapacity, Reached::Maybe));
    let (made, ..) =
        create(vec![refuse, ("GET /v1/ssh-keys", vec![problem(500, "server_error", "x")])]).await;
    let error = made.unwrap_err();
    assert!(error.message.contains("its ssh key may be left"), "{error}");
    assert_eq!(error.reached, Reached::Maybe);
}

#[tokio::test]
async fn an_answer_that_is_lost_is_not_asked_again() {
    for reply in [
        problem(500, "server_error", "Internal server error"),
        Reply::Close,
        text(502, "<html>"),
        text(503, "busy"),
    ] {
        let (made, noted, server) = create(vec![(CREATE, vec![reply])]).await;
        let error = made.unwrap_err();
        assert_eq!(error.reached, Reached::Maybe, "{error}");
        assert_eq!(bodies(&server, CREATE).len(), 1, "{error}");
        assert_eq!((noted.len(), key_is_deleted(&server)), (1, false), "its machine would have no key");
    }
}

#[tokio::test]
async fn a_key_whose_answer_is_lost_is_made_again_and_all_of_its_name_go() {
    let twice = vec![
        (KEYS, vec![Reply::Close, text(201, KEY_ID)]),
        (CREATE, vec![problem(503, "service_unavailable", "No capacity available")]),
        (
            "GET /v1/ssh-keys",
            vec![
                good(&json!([
                    key_row("lost-key-0001", WHOLE_NAME),
                    key_row("other-key-0001", "laptop"),
                    key_row(KEY_ID, WHOLE_NAME)
                ])),
                good(&json!([key_row("other-key-0001", "laptop")])),
            ],
        ),
    ];
    let (made, _, server) = create(twice).await;
    assert_eq!(made.unwrap_err().reached, Reached::No);
    let deleted: Vec<String> = server.lines().into_iter().filter(|line| line.starts_with("DELETE")).collect();
    assert_eq!(deleted.len(), 2, "{deleted:?}");
    assert!(deleted.contains(&"DELETE /v1/ssh-keys/lost-key-0001".to_owned()) && key_is_deleted(&server));

    // A refusal of the second try says nothing about the first.
    let refused = || problem(400, "invalid_request", "key is not valid");
    for (left, reached) in [(vec![key_row("lost-key-0001", WHOLE_NAME)], Reached::No), (vec![], Reached::No)]
    {
        let (made, _, server) = create(vec![
            (KEYS, vec![Reply::Close, refused()]),
            ("GET /v1/ssh-keys", vec![good(&json!(left)), good(&json!([]))]),
        ])
        .await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Rejected, reached));
        let deleted = server.lines().iter().filter(|line| line.starts_with("DELETE")).count();
        assert_eq!((deleted, server.lines().contains(&"GET /v1/ssh-keys".to_owned())), (left.len(), true));
    }

    let (made, noted, server) = create(vec![(KEYS, vec![refused()])]).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Rejected, Reached::No));
    assert_eq!((noted.len(), bodies(&server, CREATE).len()), (0, 0));
}

#[tokio::test]
async fn the_next_image_is_tried_when_one_is_not_taken() {
    let wrong = || problem(400, "invalid_request", "Operating system is not valid for this instance type");
    let (made, _, server) = create(vec![(CREATE, vec![wrong(), wrong(), text(202, ID)])]).await;
    assert_eq!(made.unwrap().handle.id, ID);
    let images: Vec<Value> = bodies(&server, CREATE).into_iter().map(|body| body["image"].clone()).collect();
    assert_eq!(images, ["24.04.cuda13.2.docker", "ubuntu-24.04-cuda-13.0-open-docker", "24.04.cuda13.0"]);

    let (made, _, server) = create(vec![(CREATE, vec![wrong()])]).await;
    let error = made.unwrap_err();
    assert_eq!(
        (error.kind, error.reached),
        (ErrorKind::Rejected, Reached::No),
        "never taken for no capacity"
    );
    assert_eq!(bodies(&server, CREATE).len(), 3);
    assert!(error.message.contains("24.04.cuda13.0"), "{error}");
    let limit =
        Limit { instance_type: Some("1RTXPRO6000.30V".to_owned()), spot: Some(true), ..Limit::default() };
    assert_eq!(error.limit, Some(limit));
    assert!(key_is_deleted(&server));
}

#[tokio::test]
async fn images_come_from_the_type_itself_and_else_from_the_public_list() {
    const IMAGES: &str = "GET /v1/images";
    let (made, _, server) = create(vec![(IMAGES, vec![good(&json!([]))])]).await;
    made.unwrap();
    assert_eq!(bodies(&server, CREATE)[0]["image"], "24.04.cuda13.2.docker");
    let (made, noted, _) =
        create(vec![(IMAGES, vec![problem(404, "not_found", "Instance type not found")])]).await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::NoCapacity);
    assert!(noted.is_empty(), "before anything is made");
    let broken = (0..5).map(|_| problem(500, "server_error", "x")).collect();
    for silent in [broken, (0..5).map(|_| Reply::Close).collect()] {
        let (made, noted, _) = create(vec![(IMAGES, silent)]).await;
        assert_eq!((made.unwrap_err().reached, noted.len()), (Reached::No, 0));
    }

    let offer = spot_offer().await;
    let mut key = OfferKey::decode(&offer.id).unwrap();
    key.cuda = Some("14.0".parse().unwrap());
    let offer = crate::model::offer::Offer { id: key.encode(), ..offer };
    let server = crate::cloud::verda::samples::server(vec![]).await;
    let error = cloud(&server.base).create(&offer, &spec(), &mark(), &Notebook::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Rejected);
    assert!(error.message.contains("CUDA 14.0"), "{error}");
    assert!(!server.lines().iter().any(|line| line.starts_with("POST /v1/ssh-keys")));
}

#[tokio::test]
async fn a_record_that_cannot_be_written_stops_it() {
    let offer = spot_offer().await;
    for (room, creates) in [(0, 0), (1, 1)] {
        let server = server(vec![]).await;
        let notebook = Notebook { room, ..Notebook::default() };
        let error = cloud(&server.base).create(&offer, &spec(), &mark(), &notebook).await.unwrap_err();
        assert_eq!(bodies(&server, CREATE).len(), creates);
        match creates {
            0 => assert!(key_is_deleted(&server) && error.reached == Reached::No),
            _ => assert_eq!(
                (error.reached, notebook.made.lock().unwrap()[1].kind),
                (Reached::Yes, ResourceKind::Machine)
            ),
        }
    }
}

#[tokio::test]
async fn what_can_be_told_before_any_request() {
    let server = server(vec![]).await;
    let cloud = cloud(&server.base);
    let offer = spot_offer().await;
    let nobody = crate::model::spec::MachineSpec { public_key: " ".to_owned(), ..spec() };
    assert!(cloud.create(&offer, &nobody, &mark(), &Notebook::default()).await.unwrap_err().user_input);
    let mut key = OfferKey::decode(&offer.id).unwrap();
    key.disk_gb = 10_241;
    let huge = crate::model::offer::Offer { id: key.encode(), ..offer.clone() };
    assert!(cloud.create(&huge, &spec(), &mark(), &Notebook::default()).await.unwrap_err().user_input);
    assert!(server.lines().is_empty());
    let preview = cloud.preview(&offer, &spec(), &mark());
    assert_eq!((preview.method.as_str(), preview.url), ("POST", format!("{}/v1/instances", server.base)));
    assert_eq!(preview.body["ssh_key_ids"], json!(["…"]));
    assert!(server.lines().is_empty(), "a dry run asks nothing");
}
