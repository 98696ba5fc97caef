//! A machine that is not there: gone, or not there yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::credentials::Credentials;
use super::super::exchange::tests::nebius;
use super::super::marks::Carried;
use super::super::wire::{Instance, ListDisksResponse, Operation, ResourceMetadata, Status};
use super::*;
use crate::cloud::Cloud;
use crate::grpc::canned::{Canned, Reply, message, status};
use crate::model::machine::MachineState;

fn handle() -> Handle {
    let mark = Mark::from_text("v1:team-ci-7:lab:dev:00ff00ff00ff00ff:1800000000:ana").unwrap();
    let carried = Carried {
        project: "project-e00a",
        region: "eu-north1",
        operation: Some("computeoperation-e00o"),
        mark: Some(&mark),
        ..Carried::default()
    };
    Handle { data: carried.data(), ..Handle::new("computeinstance-e00i") }
}

fn create(status: Option<Status>) -> Reply {
    message(&Operation { id: "computeoperation-e00o".to_owned(), status, ..Default::default() })
}

fn nothing() -> Reply {
    status(5, "no such thing")
}

/// Answers about the create with `operation`, and about the machine with `instances` in turn, the last for ever.
async fn service(operation: Reply, instances: Vec<Reply>) -> Canned {
    let count = Arc::new(AtomicUsize::new(0));
    Canned::start(move |asked, _| match asked.path.rsplit_once(".v1.").unwrap().1 {
        "OperationService/Get" => operation.clone(),
        "InstanceService/Get" => {
            instances[count.fetch_add(1, Ordering::SeqCst).min(instances.len() - 1)].clone()
        }
        "DiskService/List" => message(&ListDisksResponse::default()),
        other => panic!("{other}"),
    })
    .await
}

fn cloud(server: &Canned) -> Nebius {
    nebius(&server.base, Credentials::token("ne1token").unwrap(), None)
}

#[tokio::test]
async fn a_machine_that_is_still_being_made_is_not_gone() {
    let server = service(create(None), vec![nothing()]).await;
    let cloud = cloud(&server);
    let look = cloud.inspect(&handle()).await.unwrap();
    assert_eq!((look.state, look.words.as_deref()), (MachineState::Creating, Some(MAKING)));
    assert_eq!(cloud.delete(&handle()).await.unwrap(), Deletion::Pending(MAKING.to_owned()));
}

#[tokio::test]
async fn it_is_gone_once_the_create_has_ended_or_is_not_known() {
    let failed = Status { code: 8, message: "schedule timeout".to_owned(), ..Default::default() };
    for operation in [nothing(), create(Some(Status::default())), create(Some(failed))] {
        let server = service(operation.clone(), vec![nothing()]).await;
        let cloud = cloud(&server);
        assert_eq!(cloud.inspect(&handle()).await.unwrap().state, MachineState::Gone, "{operation:?}");
        assert_eq!(cloud.delete(&handle()).await.unwrap(), Deletion::Gone, "{operation:?}");
    }
}

#[tokio::test]
async fn one_that_came_between_two_questions_is_there() {
    let metadata = ResourceMetadata { id: "computeinstance-e00i".to_owned(), ..Default::default() };
    let made = message(&Instance { metadata: Some(metadata), ..Default::default() });
    let server = service(create(Some(Status::default())), vec![nothing(), made.clone()]).await;
    assert_ne!(cloud(&server).inspect(&handle()).await.unwrap().state, MachineState::Gone);
    let server = service(create(Some(Status::default())), vec![nothing(), made]).await;
    assert!(matches!(cloud(&server).delete(&handle()).await.unwrap(), Deletion::Pending(_)));
}

#[tokio::test]
async fn a_create_that_nobody_answers_about_proves_nothing() {
    let server = service(status(7, "no right"), vec![nothing()]).await;
    let cloud = cloud(&server);
    assert_eq!(cloud.inspect(&handle()).await.unwrap_err().kind, ErrorKind::Forbidden);
    assert_eq!(cloud.delete(&handle()).await.unwrap_err().kind, ErrorKind::Forbidden);
}
