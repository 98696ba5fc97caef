//! Making a machine.

use serde_json::{Value, json};

use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, Created, ErrorKind, Limit, Reached, Result};
use crate::http::canned::{Canned, Reply};
use crate::model::offer::Offer;

const CREATE: &str = "POST /zones/us-central1-a/instances";
const GET: &str = "GET /zones/us-central1-a/instances/gpuprov-dev-00ff00";

async fn create(special: Vec<(&'static str, Vec<Reply>)>) -> (Result<Created>, Vec<String>, Canned) {
    create_of(&l4(), special).await
}

async fn create_of(
    offer: &Offer,
    special: Vec<(&'static str, Vec<Reply>)>,
) -> (Result<Created>, Vec<String>, Canned) {
    let server = server(special).await;
    let notebook = Notebook::default();
    let made = cloud(&server.base).create(offer, &spec(), &mark(), &notebook).await;
    (made, notebook.ids(), server)
}

fn item<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    let items = body["metadata"]["items"].as_array().unwrap();
    items.iter().find(|item| item["key"] == key).and_then(|item| item["value"].as_str())
}

#[tokio::test]
async fn a_machine_is_asked_for_noted_and_named_by_its_number() {
    let (made, noted, server) = create(vec![]).await;
    assert_eq!(made.unwrap().handle, handle());
    assert_eq!(noted, [ID]);
    assert_eq!(
        calls(&server),
        [
            "GET /compute/v1/projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2204-nvidia-580",
            CREATE
        ]
    );
    let body = bodies(&server, CREATE).remove(0);
    assert_eq!(body["name"], NAME);
    assert_eq!(body["machineType"], "zones/us-central1-a/machineTypes/g2-standard-4");
    assert_eq!(body["labels"]["gpuprov"], "1");
    assert_eq!(body["labels"]["gpuprov-claim"], "00ff00ff00ff00ff");
    let parameters = &body["disks"][0]["initializeParams"];
    assert_eq!(
        parameters["sourceImage"],
        "projects/deeplearning-platform-release/global/images/common-cu129-ubuntu-2204-nvidia-580-v20261101"
    );
    assert_eq!((&parameters["diskSizeGb"], &parameters["labels"]), (&json!("50"), &body["labels"]));
    assert_eq!(parameters["diskType"], "zones/us-central1-a/diskTypes/pd-balanced");
    assert_eq!(
        body["scheduling"],
        json!({
            "provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "automaticRestart": false,
            "onHostMaintenance": "TERMINATE",
        })
    );
    assert_eq!(item(&body, "ssh-keys"), Some("ubuntu:ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOURS gpuprov"));
    assert_eq!(item(&body, "enable-oslogin"), Some("FALSE"));
    assert_eq!(item(&body, "block-project-ssh-keys"), Some("TRUE"));
    assert_eq!(item(&body, "enable-guest-attributes"), Some("TRUE"));
    for absent in ["serviceAccounts", "guestAccelerators", "tags"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
    let line = server.lines().into_iter().find(|line| line.contains("requestId=")).unwrap();
    let id = line.rsplit('=').next().unwrap();
    assert_eq!((id.len(), id.matches('-').count()), (36, 4));
}

#[tokio::test]
async fn on_demand_without_a_gpu_with_a_t4_and_on_hyperdisk() {
    let (_, _, server) = create_of(&offer("n2-standard-8", None, 0, false), vec![]).await;
    let body = bodies(&server, CREATE).remove(0);
    assert_eq!(
        body["scheduling"],
        json!({"provisioningModel": "STANDARD", "automaticRestart": true, "onHostMaintenance": "MIGRATE"})
    );
    assert!(
        body["disks"][0]["initializeParams"]["sourceImage"].as_str().unwrap().contains("ubuntu-os-cloud")
    );
    assert!(body.get("guestAccelerators").is_none() && item(&body, "user-data").is_none());

    let (_, _, server) = create_of(&offer("n1-standard-8", Some("T4"), 2, false), vec![]).await;
    let body = bodies(&server, CREATE).remove(0);
    assert_eq!(
        body["guestAccelerators"],
        json!([{"acceleratorType": "zones/us-central1-a/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}])
    );
    assert_eq!(body["scheduling"]["onHostMaintenance"], "TERMINATE");

    let (_, _, server) = create_of(&offer("a4-highgpu-8g", Some("B200"), 8, true), vec![]).await;
    let disk = bodies(&server, CREATE).remove(0)["disks"][0]["initializeParams"]["diskType"].clone();
    assert_eq!(disk, "zones/us-central1-a/diskTypes/hyperdisk-balanced");
}

#[tokio::test]
async fn an_end_is_kept_by_google() {
    let server = server(vec![]).await;
    let cloud = cloud(&server.base);
    let mut ending = mark();
    ending.expires = Some(jiff::Timestamp::now() + std::time::Duration::from_secs(7200));
    let on_demand = offer("g2-standard-4", Some("L4"), 1, false);
    cloud.create(&on_demand, &spec(), &ending, &Notebook::default()).await.unwrap();
    let body = bodies(&server, CREATE).remove(0);
    assert_eq!(body["scheduling"]["maxRunDuration"], json!({"seconds": "7200"}));
    assert_eq!(body["scheduling"]["instanceTerminationAction"], "DELETE");
    ending.expires = Some(jiff::Timestamp::now() + std::time::Duration::from_secs(121 * 86_400));
    let error = cloud.create(&on_demand, &spec(), &ending, &Notebook::default()).await.unwrap_err();
    assert!(error.user_input && error.reached == Reached::No, "{error}");
}

#[tokio::test]
async fn a_retired_family_and_a_larger_image() {
    const DEEP: &str = "/compute/v1/projects/deeplearning-platform-release/global/images/family/";
    let retired = Canned::start(|asked, _| match asked.line.contains(DEEP) {
        true => problem(404, "notFound", "The resource 'projects/x/global/images/family/y' was not found"),
        false => shop(asked),
    })
    .await;
    // A 404 about something else is no proof.
    cloud(&retired.base).create(&l4(), &spec(), &mark(), &Notebook::default()).await.unwrap_err();
    let retired = Canned::start(|asked, _| match asked.line.contains(DEEP) {
        true => {
            let family = asked.line.rsplit('/').next().unwrap();
            let path = format!("projects/deeplearning-platform-release/global/images/family/{family}");
            problem(404, "notFound", &format!("The resource '{path}' was not found"))
        }
        false => shop(asked),
    })
    .await;
    cloud(&retired.base).create(&l4(), &spec(), &mark(), &Notebook::default()).await.unwrap();
    let taken = bodies(&retired, CREATE).remove(0)["disks"][0]["initializeParams"]["sourceImage"].clone();
    assert!(taken.as_str().unwrap().starts_with("projects/ubuntu-os-accelerator-images/"), "{taken}");

    let large = Canned::start(|asked, _| match asked.line.contains(DEEP) {
        true => good(&image("big", "80")),
        false => shop(asked),
    })
    .await;
    let made = cloud(&large.base).create(&l4(), &spec(), &mark(), &Notebook::default()).await.unwrap();
    assert_eq!(bodies(&large, CREATE).remove(0)["disks"][0]["initializeParams"]["diskSizeGb"], "80");
    assert!(made.notes[0].contains("80 GB"), "{:?}", made.notes);
}

#[tokio::test]
async fn a_refusal_is_sorted_and_sent_once() {
    let exhausted = "The zone 'projects/lab-1/zones/us-central1-a' does not have enough resources available. \
                     ZONE_RESOURCE_POOL_EXHAUSTED";
    let cases = [
        (problem(503, "insufficientCapacity", "no"), ErrorKind::NoCapacity),
        (problem(503, "backendError", exhausted), ErrorKind::NoCapacity),
        (
            problem(
                403,
                "quotaExceeded",
                "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1.",
            ),
            ErrorKind::Quota,
        ),
        (problem(400, "badRequest", "InstanceTaxonomies are not compatible"), ErrorKind::Rejected),
        (
            problem(400, "invalid", "Requested disk size cannot be smaller than the image size"),
            ErrorKind::Rejected,
        ),
        (problem(401, "authError", "Invalid Credentials"), ErrorKind::Auth),
        (
            problem(
                403,
                "forbidden",
                "Required 'compute.instances.create' permission for 'projects/lab-1/..'",
            ),
            ErrorKind::Forbidden,
        ),
        (
            problem(
                404,
                "notFound",
                "The resource 'projects/lab-1/zones/us-central1-a/machineTypes/g2' was not found",
            ),
            ErrorKind::NoCapacity,
        ),
        (problem(412, "conditionNotMet", "Constraint constraints/compute.x violated"), ErrorKind::Forbidden),
        (problem(403, "rateLimitExceeded", "Rate Limit Exceeded"), ErrorKind::RateLimited),
    ];
    for (reply, kind) in cases {
        let (made, noted, server) = create(vec![(CREATE, vec![reply])]).await;
        let error = made.unwrap_err();
        assert_eq!((error.kind, error.reached), (kind, Reached::No), "{error}");
        assert_eq!((noted.len(), bodies(&server, CREATE).len()), (0, 1), "{error}");
    }
}

#[tokio::test]
async fn what_mends_it_is_said() {
    let network = "The resource 'projects/lab-1/global/networks/default' was not found";
    let off = "Compute Engine API has not been used in project 123 before or it is disabled.";
    let cases = [
        (problem(404, "notFound", network), "gcloud compute networks create default --project=lab-1"),
        (
            problem(403, "accessNotConfigured", off),
            "gcloud services enable compute.googleapis.com --project=lab-1",
        ),
        (
            problem(
                412,
                "conditionNotMet",
                "Constraint constraints/compute.vmExternalIpAccess violated for project 1.",
            ),
            "public addresses",
        ),
        (
            problem(
                412,
                "conditionNotMet",
                "Constraint constraints/compute.requireOsLogin violated for project 1.",
            ),
            "OS Login",
        ),
        (problem(403, "BILLING_DISABLED", "This API method requires billing"), "billing"),
        (
            problem(403, "forbidden", "Required 'compute.instances.create' permission for 'projects/x'"),
            "compute.instances.create",
        ),
        (
            problem(403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."),
            "iam-admin/quotas?project=lab-1",
        ),
    ];
    for (reply, words) in cases {
        let (made, ..) = create(vec![(CREATE, vec![reply])]).await;
        let error = made.unwrap_err();
        assert!(error.hint.as_deref().unwrap_or_default().contains(words), "{error}: {:?}", error.hint);
        assert_eq!(error.limit, Some(Limit::default()), "{error}: no zone would do better");
    }
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_name_and_by_the_same_request_id() {
    // It was made: the name tells.
    let (made, noted, server) =
        create(vec![(CREATE, vec![Reply::Close]), (GET, vec![good(&staging())])]).await;
    let made = made.unwrap().handle;
    assert_eq!((made.id.as_str(), noted.len(), bodies(&server, CREATE).len()), (ID, 1, 1));
    assert!(!made.data.contains_key("operation"));

    // It was not: the same create once more.
    let twice = vec![problem(500, "backendError", "x"), good(&operation("insert", "RUNNING"))];
    let (made, noted, server) = create(vec![(CREATE, twice)]).await;
    assert_eq!((made.unwrap().handle, noted.len()), (handle(), 1));
    let ids: Vec<String> = server.lines().into_iter().filter(|line| line.contains("requestId=")).collect();
    assert_eq!((ids.len(), &ids[0]), (2, &ids[1]));

    // The name is another's.
    let other = changed(staging(), json!({"labels": {}, "id": "1"}));
    let taken = problem(409, "alreadyExists", "The resource '..' already exists");
    let (made, noted, _) = create(vec![(CREATE, vec![taken]), (GET, vec![good(&other)])]).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached, noted.len()), (ErrorKind::Conflict, Reached::No, 0));
}

#[tokio::test]
async fn what_refuses_the_repetition_says_nothing_about_the_first_try() {
    let replies =
        vec![Reply::Close, problem(403, "quotaExceeded", "Quota 'X' exceeded.  Limit: 0.0 globally.")];
    let (made, ..) = create(vec![(CREATE, replies)]).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached), (ErrorKind::Quota, Reached::Maybe));
}

#[tokio::test]
async fn without_guest_attributes_where_they_are_forbidden() {
    let words = "Constraint constraints/compute.disableGuestAttributesAccess violated for project 1.";
    let replies = vec![problem(412, "conditionNotMet", words), good(&operation("insert", "RUNNING"))];
    let (made, _, server) = create(vec![(CREATE, replies)]).await;
    assert!(made.unwrap().notes[0].contains("guest attributes"));
    let sent = bodies(&server, CREATE);
    assert_eq!(item(&sent[0], "enable-guest-attributes"), Some("TRUE"));
    assert_eq!(item(&sent[1], "enable-guest-attributes"), None);
    let ids: Vec<String> = server.lines().into_iter().filter(|line| line.contains("requestId=")).collect();
    assert_ne!(ids[0], ids[1], "another body is another request");
}

#[tokio::test]
async fn a_record_that_cannot_be_written_stops_it() {
    let server = server(vec![]).await;
    let notebook = Notebook { room: 0, ..Notebook::default() };
    let error = cloud(&server.base).create(&l4(), &spec(), &mark(), &notebook).await.unwrap_err();
    assert_eq!((error.reached, notebook.ids().len()), (Reached::Yes, 1));
    assert_eq!(bodies(&server, CREATE).len(), 1);
}

#[tokio::test]
async fn a_preview_asks_nothing_and_shows_no_token() {
    let preview = cloud("http://127.0.0.1:1").preview(&l4(), &spec(), &mark());
    assert_eq!(preview.method, "POST");
    assert_eq!(preview.url, format!("http://127.0.0.1:1{P}/zones/us-central1-a/instances"));
    let text = preview.body.to_string();
    assert!(text.contains("/images/family/") && !text.contains("eyJ"), "{text}");
}
