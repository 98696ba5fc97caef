use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::exchange::tests::{granted, nebius};
use super::super::jwt::tests::key;
use super::super::wire::{
    AnonymousAccount, CreateInstanceRequest, GetProfileResponse, Instance, ListDisksResponse,
    ListInstancesRequest, ListInstancesResponse, ListProjectsResponse, ListTenantsResponse, Operation,
    Project, ProjectSpec, ResourceMetadata, ServiceAccountProfile, Tenant,
};
use super::super::{CREATE_TIMEOUT, DEFAULT_ENDPOINT, Nebius};
use super::*;
use crate::cloud::nebius::errors::Attempt;
use crate::cloud::{Cloud, Which};
use crate::grpc::canned::{Asked as Call, Canned, Reply, message, status};
use crate::model::mark::Installation;

fn named(id: &str) -> Option<ResourceMetadata> {
    Some(ResourceMetadata { id: id.to_owned(), ..Default::default() })
}

fn page(ids: &[&str], next: &str) -> Reply {
    let items = ids.iter().map(|id| Instance { metadata: named(id), ..Default::default() }).collect();
    message(&ListInstancesResponse { items, next_page_token: next.to_owned() })
}

fn account(base: &str) -> Nebius {
    nebius(base, Credentials::token("ne1token").unwrap(), None)
}

fn ids(listed: &[Instance]) -> Vec<&str> {
    listed.iter().map(|one| one.metadata.as_ref().unwrap().id.as_str()).collect()
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let server = Canned::with(vec![page(&["a", "b"], "p2"), page(&[], "p3"), page(&["c"], "")]).await;
    let listed = account(&server.base).api.instances("project-e00a").await.unwrap();
    assert_eq!(ids(&listed), ["a", "b", "c"]);
    let asked: Vec<ListInstancesRequest> = server.asked().iter().map(Call::read).collect();
    let tokens: Vec<&str> = asked.iter().map(|one| one.page_token.as_str()).collect();
    assert_eq!(tokens, ["", "p2", "p3"]);
    assert!(asked.iter().all(|one| one.parent_id == "project-e00a" && one.page_size == 1000));
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer ne1token"));
    assert_eq!(server.asked()[0].header("x-idempotency-key"), None);
}

#[tokio::test]
async fn a_page_that_fails_once_is_asked_again_and_a_lost_one_is_an_error() {
    let server = Canned::with(vec![page(&["a"], "p2"), status(14, "busy"), page(&["b"], "")]).await;
    let listed = account(&server.base).api.instances("project-e00a").await.unwrap();
    assert_eq!(ids(&listed), ["a", "b"]);

    let server = Canned::with(vec![page(&["a"], "p2"), status(14, "busy")]).await;
    let error = account(&server.base).api.instances("project-e00a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);

    let server = Canned::with(vec![page(&["a"], "p2"), page(&["b"], "p2")]).await;
    let error = account(&server.base).api.instances("project-e00a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable);
}

fn attempt() -> Attempt {
    Attempt {
        region: "eu-north1".to_owned(),
        project: "project-e00a".to_owned(),
        instance_type: "gpu-h100-sxm 1gpu-16vcpu-200gb".to_owned(),
        gpu: Some("H100".to_owned()),
        spot: false,
    }
}

fn made() -> Reply {
    message(&Operation {
        id: "computeoperation-1".to_owned(),
        resource_id: "computeinstance-1".to_owned(),
        ..Default::default()
    })
}

async fn create(one: &Nebius) -> Result<Operation> {
    let request = CreateInstanceRequest { metadata: named(""), ..Default::default() };
    one.api.create(&request, "key-1", &attempt()).await
}

#[tokio::test]
async fn a_create_keeps_its_key_and_its_bytes() {
    let server = Canned::with(vec![status(8, "slow down"), made()]).await;
    assert_eq!(create(&account(&server.base)).await.unwrap().resource_id, "computeinstance-1");
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].message == asked[1].message), (2, true));
    assert!(asked.iter().all(|one| one.header("x-idempotency-key") == Some("key-1")));
    let ms: u64 = asked[0].header("grpc-timeout").unwrap().strip_suffix('m').unwrap().parse().unwrap();
    assert!(ms > 50_000 && ms <= CREATE_TIMEOUT.as_millis() as u64, "{ms}");

    // A token that ends in the middle: refused by Nebius itself, so nothing was made.
    let tokens = Arc::new(AtomicUsize::new(0));
    let server = Canned::start(move |asked, _| match asked.path.rsplit('/').next().unwrap() {
        "Exchange" => granted(&format!("t{}", tokens.fetch_add(1, Ordering::SeqCst)), 43_200),
        _ if asked.header("authorization") == Some("Bearer t1") => made(),
        _ => status(16, "token expired"),
    })
    .await;
    create(&nebius(&server.base, Credentials::Key(key()), None)).await.unwrap();
    let creates: Vec<Call> = server.asked().into_iter().filter(|one| one.path.ends_with("/Create")).collect();
    assert_eq!((creates.len(), creates[0].message == creates[1].message), (2, true));
    assert!(creates.iter().all(|one| one.header("x-idempotency-key") == Some("key-1")));
}

#[tokio::test]
async fn an_uncertain_create_is_not_sent_again() {
    for (reply, kind, reached) in [
        (Reply::Cut, ErrorKind::Unavailable, Reached::Maybe),
        (Reply::Reset, ErrorKind::Unavailable, Reached::Maybe),
        (status(14, "busy"), ErrorKind::Unavailable, Reached::Maybe),
        (status(4, "late"), ErrorKind::Timeout, Reached::Maybe),
        (
            Reply::Raw(502, "text/html", b"<html>".to_vec(), Vec::new()),
            ErrorKind::Unavailable,
            Reached::Maybe,
        ),
        (
            Reply::Raw(200, "application/grpc", vec![1, 2], vec![("grpc-status", "0".to_owned())]),
            ErrorKind::Unreadable,
            Reached::Yes,
        ),
        (status(3, "wrong"), ErrorKind::Rejected, Reached::No),
        (status(5, "no subnet"), ErrorKind::Rejected, Reached::No),
    ] {
        let server = Canned::with(vec![reply.clone()]).await;
        let error = create(&account(&server.base)).await.unwrap_err();
        assert_eq!(
            (error.kind, error.reached, server.asked().len()),
            (kind, reached, 1),
            "{reply:?}: {error}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_no_error_and_odd_ids_are_never_sent() {
    let server = Canned::with(vec![status(5, "no such thing")]).await;
    let one = account(&server.base);
    assert!(one.api.instance("computeinstance-1", "x").await.unwrap().is_none());
    assert!(one.api.operation("computeoperation-1", "x").await.unwrap().is_none());
    assert!(one.api.delete_disk("computedisk-1").await.unwrap().is_none());
    assert!(one.api.delete_instance("computeinstance-1").await.unwrap().is_none());
    let asked = server.asked();
    let keys: Vec<&str> = asked.iter().filter_map(|one| one.header("x-idempotency-key")).collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "a delete has a key of its own: {keys:?}");
    for odd in ["", "x", "a b", "../x", "a\n", &"a".repeat(101)] {
        let error = one.api.delete_instance(odd).await.unwrap_err();
        assert_eq!((error.kind, error.reached), (ErrorKind::Rejected, Reached::No));
    }
    assert_eq!(server.asked().len(), 4);
    // Something in between knows nothing of machines.
    let server = Canned::with(vec![Reply::Raw(404, "text/html", Vec::new(), Vec::new())]).await;
    let error = account(&server.base).api.instance("computeinstance-1", "x").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn the_tenant_is_known_once_it_was_asked_for() {
    let server = tenant(&["project-1"], page(&[], ""), robot()).await;
    let one = account(&server.base);
    assert_eq!(one.identity().provider, None);
    one.scope().await.unwrap();
    assert_eq!(one.identity().provider.as_deref(), Some("tenant-e00lab"));
}

#[tokio::test]
async fn a_project_that_is_closed_to_us_hides_no_machine_that_is_looked_for() {
    let server = Canned::start(|asked, _| match asked.path.rsplit('.').next().unwrap() {
        "ProjectService/List" => {
            let project = |id: &str| Project {
                metadata: named(id),
                spec: Some(ProjectSpec { region: "eu-north1".to_owned() }),
                status: None,
            };
            let items = vec![project("project-1"), project("project-2")];
            message(&ListProjectsResponse { items, ..Default::default() })
        }
        "InstanceService/List" if asked.read::<ListInstancesRequest>().parent_id == "project-2" => {
            status(7, "no right")
        }
        "InstanceService/List" => page(&[], ""),
        "DiskService/List" => message(&ListDisksResponse::default()),
        other => panic!("{other}"),
    })
    .await;
    let mut one = account(&server.base);
    one.settings.tenant = Some("tenant-e00lab".to_owned());
    one.settings.projects = vec!["project-1".to_owned()];
    let installation: Installation = "team-ci-7".parse().unwrap();
    let all = Which::Installation(installation.clone());
    assert!(one.find(&all).await.unwrap().is_empty());
    let lost = Which::Claim(installation, "00ff00ff00ff00ff".parse().unwrap());
    let error = one.find(&lost).await.unwrap_err();
    assert!(error.kind == ErrorKind::Forbidden && error.message.contains("project-2"), "{error}");
}

#[test]
fn each_service_has_its_host_unless_one_endpoint_is_named() {
    let official = account(DEFAULT_ENDPOINT);
    assert_eq!(official.api.base(&methods::CREATE_INSTANCE), "https://compute.api.nebius.cloud");
    assert_eq!(official.api.base(&methods::EXCHANGE), "https://tokens.iam.api.nebius.cloud");
    for named in ["http://127.0.0.1:1234", "https://relay.example"] {
        assert_eq!(account(named).api.base(&methods::LIST_SPOT_PRICES), named);
    }
    assert_eq!(key_of([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

/// Answers as an account with these projects; `instances` answers the list of machines.
async fn tenant(projects: &'static [&'static str], instances: Reply, profile: GetProfileResponse) -> Canned {
    Canned::start(move |asked, _| match asked.path.as_str() {
        "/nebius.iam.v1.ProfileService/Get" => message(&profile),
        "/nebius.iam.v2.TenantService/List" => {
            let items = vec![Tenant { metadata: named("tenant-e00lab"), status: None }];
            message(&ListTenantsResponse { items, next_page_token: String::new() })
        }
        "/nebius.iam.v2.ProjectService/List" => {
            let project = |id: &&str| Project {
                metadata: named(id),
                spec: Some(ProjectSpec { region: format!("region-{id}") }),
                status: None,
            };
            message(&ListProjectsResponse {
                items: projects.iter().map(project).collect(),
                ..Default::default()
            })
        }
        "/nebius.compute.v1.InstanceService/List" => instances.clone(),
        other => panic!("{other}"),
    })
    .await
}

fn robot() -> GetProfileResponse {
    GetProfileResponse {
        service_account_profile: Some(ServiceAccountProfile::default()),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_check_tells_who_and_looks_into_the_projects() {
    let server = tenant(&["project-1", "project-2"], page(&[], ""), robot()).await;
    let identity = account(&server.base).check().await.unwrap();
    assert_eq!(identity.provider.as_deref(), Some("tenant-e00lab"));
    assert_eq!(server.paths().iter().filter(|path| *path == "InstanceService/List").count(), 2);

    let nobody = GetProfileResponse { anonymous_profile: Some(AnonymousAccount {}), ..Default::default() };
    let server = tenant(&["project-1"], page(&[], ""), nobody).await;
    assert_eq!(account(&server.base).check().await.unwrap_err().kind, ErrorKind::Auth);

    let server = tenant(&[], page(&[], ""), robot()).await;
    assert_eq!(account(&server.base).check().await.unwrap_err().kind, ErrorKind::Forbidden);

    let server = tenant(&["project-1"], status(7, "no right"), robot()).await;
    let error = account(&server.base).check().await.unwrap_err();
    assert!(error.kind == ErrorKind::Forbidden && error.message.contains("project-1"), "{error}");
}
