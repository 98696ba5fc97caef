//! Ports.

use serde_json::{Value, json};

use crate::cloud::gcp::samples::*;
use crate::cloud::{Cloud, ErrorKind, Limit, Reached};
use crate::http::canned::{Canned, Reply};

const CREATE: &str = "POST /zones/us-central1-a/instances";
const RULES: &str = "POST /global/firewalls";
const DELETE_RULE: &str = "DELETE /global/firewalls/gpuprov-00ff00ff00ff00ff";

async fn create(
    ports: &[&str],
    special: Vec<(&'static str, Vec<Reply>)>,
) -> (crate::cloud::Result<crate::cloud::Created>, Vec<String>, Canned) {
    let server = server(special).await;
    let notebook = Notebook::default();
    let made = cloud(&server.base).create(&l4(), &spec_with_ports(ports), &mark(), &notebook).await;
    (made, notebook.ids(), server)
}

#[tokio::test]
async fn one_rule_for_each_range_before_the_machine() {
    let (made, noted, server) = create(&["9000", "8080", "8080@203.0.113.0/24", "9000"], vec![]).await;
    let handle = made.unwrap().handle;
    assert_eq!(noted, [RULE, "gpuprov-00ff00ff00ff00ff-2", ID]);
    let side: Vec<&str> = handle.side.iter().map(|side| side.id.as_str()).collect();
    assert_eq!(side, noted[..2]);
    let sent = bodies(&server, RULES);
    assert_eq!(
        sent[0],
        json!({
            "name": RULE, "description": "v1:lab:default:dev:00ff00ff00ff00ff::ana", "network": "global/networks/default",
            "direction": "INGRESS", "priority": 1000, "sourceRanges": ["0.0.0.0/0"], "targetTags": [RULE],
            "allowed": [{"IPProtocol": "tcp", "ports": ["8080", "9000"]}],
        })
    );
    assert_eq!(
        (&sent[1]["sourceRanges"], &sent[1]["allowed"][0]["ports"]),
        (&json!(["203.0.113.0/24"]), &json!(["8080"]))
    );
    let body: Value = bodies(&server, CREATE).remove(0);
    assert_eq!(body["tags"], json!({"items": [RULE]}));
    let calls = calls(&server);
    let place = |call: &str| calls.iter().position(|made| made == call).unwrap();
    assert!(place(RULES) < place(CREATE));
    assert!(calls.iter().any(|call| call.starts_with("POST /global/operations/")));
}

#[tokio::test]
async fn without_the_right_nothing_is_made() {
    let words = "Required 'compute.firewalls.create' permission for 'projects/lab-1/global/firewalls/x'";
    let no_right = problem(403, "forbidden", words);
    let may_not = problem(403, "forbidden", "Required 'compute.firewalls.delete' permission for 'x'");
    let unseen = problem(403, "forbidden", "Required 'compute.firewalls.get' permission for 'x'");
    let (made, _, server) = create(
        &["8080"],
        vec![
            (RULES, vec![no_right]),
            (DELETE_RULE, vec![may_not]),
            ("GET /global/firewalls/gpuprov-00ff00ff00ff00ff", vec![unseen]),
        ],
    )
    .await;
    let error = made.unwrap_err();
    assert_eq!(
        (error.kind, error.reached, error.limit),
        (ErrorKind::Forbidden, Reached::No, Some(Limit::default()))
    );
    assert!(error.hint.unwrap().contains("roles/compute.securityAdmin"));
    assert!(bodies(&server, CREATE).is_empty());
}

#[tokio::test]
async fn a_refused_machine_takes_its_rule_along() {
    let refused = problem(503, "insufficientCapacity", "no");
    let (made, noted, server) = create(&["8080"], vec![(CREATE, vec![refused.clone()])]).await;
    let error = made.unwrap_err();
    assert_eq!((error.kind, error.reached, noted.len()), (ErrorKind::NoCapacity, Reached::No, 1));
    assert!(calls(&server).contains(&DELETE_RULE.to_owned()));

    let stuck = problem(500, "backendError", "x");
    let (made, ..) = create(&["8080"], vec![(CREATE, vec![refused]), (DELETE_RULE, vec![stuck])]).await;
    let error = made.unwrap_err();
    assert_eq!(error.reached, Reached::Maybe, "it must not be forgotten");
    assert!(error.message.contains("may be left"), "{error}");
}

#[tokio::test]
async fn late_and_repeated_rules() {
    let taken = problem(409, "alreadyExists", "The resource 'x' already exists");
    let (made, ..) = create(&["8080"], vec![(RULES, vec![taken])]).await;
    made.unwrap();
    let wait = "POST /global/operations/operation-1796030000000-64a1b2c3d4e5f-11112222-33334444/wait";
    let late =
        failed(403, "QUOTA_EXCEEDED", "Quota 'FIREWALLS' exceeded.  Limit: 100.0 globally.", json!([]));
    let done = operation("insert", "DONE");
    let (made, _, server) = create(&["8080"], vec![(wait, vec![good(&late), good(&done)])]).await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Quota);
    assert!(bodies(&server, CREATE).is_empty() && calls(&server).contains(&DELETE_RULE.to_owned()));
}

#[tokio::test]
async fn ranges_that_a_machine_has_no_address_for() {
    let (made, noted, server) = create(&["8080@2001:db8::/32"], vec![]).await;
    let error = made.unwrap_err();
    assert!(error.user_input && noted.is_empty() && calls(&server).is_empty(), "{error}");
}

#[tokio::test]
async fn ssh_that_nothing_lets_in_is_told_with_the_command() {
    use crate::cloud::gcp::ports::ssh_is_shut;
    let web = changed(rule(), json!({"name": "web", "targetTags": []}));
    let ssh = |more: Value| {
        let open = json!([{"IPProtocol": "tcp", "ports": ["20-30"]}]);
        changed(changed(rule(), json!({"name": "ssh", "targetTags": null, "allowed": open})), more)
    };
    let list = |rules: Value| vec![("GET /global/firewalls", vec![good(&json!({"items": rules}))])];
    let look = async |rules: Value| {
        let server = server(list(rules)).await;
        ssh_is_shut(&cloud(&server.base), &["ours".to_owned()]).await
    };
    let words = look(json!([web])).await.unwrap();
    assert!(
        words.contains("gcloud compute firewall-rules create default-allow-ssh --project=lab-1"),
        "{words}"
    );
    for shut in [
        json!({"disabled": true}),
        json!({"direction": "EGRESS"}),
        json!({"targetTags": ["theirs"]}),
        json!({"targetServiceAccounts": ["a@b"]}),
        json!({"network": "https://www.googleapis.com/compute/v1/projects/lab-1/global/networks/other"}),
        json!({"allowed": [{"IPProtocol": "udp"}]}),
        json!({"sourceRanges": ["10.128.0.0/9"]}),
        json!({"sourceRanges": [], "sourceTags": ["web"]}),
    ] {
        assert!(look(json!([ssh(shut.clone())])).await.is_some(), "{shut}");
    }
    for open in [
        json!({}),
        json!({"targetTags": ["ours"]}),
        json!({"sourceRanges": ["10.0.0.0/8", "203.0.113.0/24"]}),
        json!({"sourceRanges": null}),
        json!({"allowed": [{"IPProtocol": "all"}]}),
        json!({"allowed": [{"IPProtocol": "tcp"}]}),
        json!({"allowed": [{"IPProtocol": "6", "ports": ["22"]}]}),
    ] {
        assert!(look(json!([ssh(open.clone())])).await.is_none(), "{open}");
    }
    let server = server(vec![(
        "GET /global/firewalls",
        vec![problem(403, "forbidden", "Required 'compute.firewalls.list' permission for 'x'")],
    )])
    .await;
    assert!(ssh_is_shut(&cloud(&server.base), &[]).await.is_none(), "not without the right to look");
}
