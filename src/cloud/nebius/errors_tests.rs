use super::super::wire::{
    BadField, BadRequest, NotEnoughResources, PermissionDenied, QuotaFailure, QuotaViolation, Shortage,
    TooManyRequests,
};
use super::*;

fn account() -> AccountId {
    "nebius/default".parse().unwrap()
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

fn whole(code: i32, words: &str, detail: Option<ServiceError>) -> wire::Status {
    let details = detail.map(|detail| prost_types::Any {
        type_url: "type.googleapis.com/nebius.common.v1.ServiceError".to_owned(),
        value: detail.encode_to_vec(),
    });
    wire::Status { code, message: words.to_owned(), details: details.into_iter().collect() }
}

fn status(code: i32, words: &str, detail: Option<ServiceError>) -> Status {
    Status {
        code: Code::from_i32(code),
        message: words.to_owned(),
        details: whole(code, words, detail).encode_to_vec(),
        via: Via::Service,
        request_id: Some("req-7".to_owned()),
        trace_id: None,
    }
}

fn quota(name: &str) -> ServiceError {
    let violation = QuotaViolation {
        quota: name.to_owned(),
        limit: "8".to_owned(),
        requested: "9".to_owned(),
        ..Default::default()
    };
    ServiceError {
        code: "QuotaFailure".to_owned(),
        quota_failure: Some(QuotaFailure { violations: vec![violation] }),
        ..Default::default()
    }
}

fn shortage() -> ServiceError {
    let violation = Shortage { resource_type: "gpu-h100-sxm".to_owned(), ..Default::default() };
    ServiceError {
        code: "NotEnoughResources".to_owned(),
        not_enough_resources: Some(NotEnoughResources { violations: vec![violation] }),
        ..Default::default()
    }
}

fn early(status: &Status) -> Box<Error> {
    let (account, attempt) = (account(), attempt());
    refused(status, &Asked { account: &account, doing: "creating the machine", attempt: Some(&attempt) })
}

fn at_the_end(status: &wire::Status) -> Box<Error> {
    let (account, attempt) = (account(), attempt());
    late(status, &Asked { account: &account, doing: "creating the machine", attempt: Some(&attempt) })
}

#[test]
fn one_code_and_three_meanings() {
    let same = "Resource exhausted";
    for (detail, kind) in [
        (Some(quota("compute.instance.gpu.h100")), ErrorKind::Quota),
        (Some(shortage()), ErrorKind::NoCapacity),
        (
            Some(ServiceError { too_many_requests: Some(TooManyRequests::default()), ..Default::default() }),
            ErrorKind::RateLimited,
        ),
        (None, ErrorKind::RateLimited),
    ] {
        let error = early(&status(8, same, detail.clone()));
        assert_eq!((error.kind, error.reached), (kind, Reached::No), "{detail:?}");
    }
    // The code alone is enough, without the detail's own message.
    let bare = |code: &str| ServiceError { code: code.to_owned(), ..Default::default() };
    assert_eq!(early(&status(8, "", Some(bare("QuotaFailure")))).kind, ErrorKind::Quota);
    assert_eq!(early(&status(8, "", Some(bare("NotEnoughResources")))).kind, ErrorKind::NoCapacity);
    // At the end of an operation there is no rate limit.
    assert_eq!(at_the_end(&whole(8, same, None)).kind, ErrorKind::NoCapacity);
    let error = at_the_end(&whole(8, same, Some(quota("compute.instance.gpu.h100"))));
    assert_eq!((error.kind, error.reached), (ErrorKind::Quota, Reached::Yes));
}

#[test]
fn words_are_the_fall_back() {
    for (code, words, kind) in [
        (8, "Quota limit exceeded", ErrorKind::Quota),
        (9, "Quota limit exceeded for vpc.allocation.count", ErrorKind::Quota),
        (8, "VM schedule timeout, most likely due to insufficient hardware resources", ErrorKind::NoCapacity),
        (
            13,
            "VM schedule timeout, most likely due to insufficient hardware resources",
            ErrorKind::NoCapacity,
        ),
    ] {
        assert_eq!(at_the_end(&whole(code, words, None)).kind, kind, "{words}");
    }
    assert_eq!(early(&status(8, "VM schedule timeout", None)).kind, ErrorKind::NoCapacity);
    assert_eq!(early(&status(3, "spec.name is wrong", None)).kind, ErrorKind::Rejected);
}

#[test]
fn a_quota_rules_out_what_it_counts() {
    let limit = |name: &str| early(&status(8, "x", Some(quota(name)))).limit.unwrap();
    let region = Some("eu-north1".to_owned());
    assert_eq!(
        limit("compute.instance.gpu.h100"),
        Limit { region: region.clone(), gpu: Some("H100".to_owned()), spot: Some(false), ..Limit::default() }
    );
    assert_eq!(
        limit("compute.instance.preemptible.count"),
        Limit { region: region.clone(), spot: Some(true), ..Limit::default() }
    );
    assert_eq!(limit("vpc.ipv4-address.public.count"), Limit { region: region.clone(), ..Limit::default() });
    let nameless = early(&status(8, "Quota limit exceeded", None)).limit.unwrap();
    assert_eq!(nameless.instance_type.as_deref(), Some("gpu-h100-sxm 1gpu-16vcpu-200gb"));
    let shown = early(&status(8, "x", Some(quota("compute.instance.gpu.h100"))));
    assert!(shown.message.contains("compute.instance.gpu.h100, limit 8, asked for 9"), "{}", shown.message);
    let capacity = early(&status(8, "x", Some(shortage())));
    assert!(
        capacity.message.contains("gpu-h100-sxm 1gpu-16vcpu-200gb, on demand, eu-north1"),
        "{}",
        capacity.message
    );
}

#[test]
fn what_may_have_had_its_effect() {
    for (code, kind, reached) in [
        (3, ErrorKind::Rejected, Reached::No),
        (5, ErrorKind::Rejected, Reached::No),
        (6, ErrorKind::Conflict, Reached::Maybe),
        (7, ErrorKind::Forbidden, Reached::No),
        (9, ErrorKind::Conflict, Reached::No),
        (16, ErrorKind::Auth, Reached::Maybe),
        (2, ErrorKind::Unavailable, Reached::Maybe),
        (4, ErrorKind::Timeout, Reached::Maybe),
        (13, ErrorKind::Unavailable, Reached::Maybe),
        (14, ErrorKind::Unavailable, Reached::Maybe),
        (77, ErrorKind::Unavailable, Reached::Maybe),
    ] {
        let error = early(&status(code, "words", None));
        assert_eq!((error.kind, error.reached), (kind, reached), "{code}");
    }
    for (http, kind, reached) in [
        (401, ErrorKind::Auth, Reached::Maybe),
        (429, ErrorKind::RateLimited, Reached::No),
        (404, ErrorKind::Unavailable, Reached::Maybe),
        (502, ErrorKind::Unavailable, Reached::Maybe),
    ] {
        let error = early(&Status { via: Via::Edge(http), ..status(14, "words", None) });
        assert_eq!((error.kind, error.reached), (kind, reached), "{http}");
    }
    let unread =
        |done| grpc::Error::Unreadable { host: "x".to_owned(), what: "half a frame".to_owned(), done };
    let account = account();
    let asked = Asked { account: &account, doing: "creating the machine", attempt: None };
    assert_eq!(failed(unread(true), &asked).reached, Reached::Yes);
    assert_eq!(failed(unread(false), &asked).reached, Reached::Maybe);
}

#[test]
fn details_say_what_is_wrong() {
    let field = BadField { field: "spec.pricing_model".to_owned(), message: "must be specified".to_owned() };
    let bad =
        ServiceError { bad_request: Some(BadRequest { violations: vec![field] }), ..Default::default() };
    let error = early(&status(3, "invalid", Some(bad)));
    assert_eq!(error.message, "invalid: spec.pricing_model: must be specified (request req-7)");
    let denied = PermissionDenied { resource_id: "project-e00a".to_owned() };
    let denied = ServiceError { permission_denied: Some(denied), ..Default::default() };
    let error = early(&status(7, "", Some(denied)));
    assert!(
        error.message.ends_with("project-e00a") && error.hint.as_ref().unwrap().contains("editor"),
        "{error}"
    );
}

#[test]
fn what_is_repeated() {
    let hint = |kind: RetryType| {
        let detail = ServiceError { retry_type: kind.into(), ..quota("compute.instance.gpu.h100") };
        status(8, "x", Some(detail))
    };
    assert_eq!(may_repeat_read(&hint(RetryType::Nothing)), None);
    assert_eq!(may_repeat_read(&hint(RetryType::UnitOfWork)), None);
    assert_eq!(may_repeat_read(&hint(RetryType::Call)), Some(RATE_WAIT));
    assert_eq!(
        may_repeat_read(&hint(RetryType::Unspecified)),
        None,
        "a quota does not come back in a second"
    );
    assert_eq!(may_repeat_read(&status(8, "x", None)), Some(RATE_WAIT));
    for (code, again) in
        [(14, true), (4, true), (2, true), (13, true), (3, false), (5, false), (7, false), (16, false)]
    {
        assert_eq!(may_repeat_read(&status(code, "x", None)).is_some(), again, "{code}");
        assert_eq!(may_repeat_create(&status(code, "x", None)), None, "{code}");
    }
    assert_eq!(may_repeat_create(&status(8, "x", None)), Some(RATE_WAIT));
    assert_eq!(may_repeat_create(&hint(RetryType::Call)), None);
    for (http, read, create) in [(502, true, false), (429, true, true), (403, false, false)] {
        let edge = Status { via: Via::Edge(http), ..status(14, "x", None) };
        assert_eq!(
            (may_repeat_read(&edge).is_some(), may_repeat_create(&edge).is_some()),
            (read, create),
            "{http}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_details_are_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60), code in -1..20) {
        let status = Status { details: bytes, ..status(code, "x", None) };
        let _ = (early(&status), may_repeat_read(&status), may_repeat_create(&status));
    }
}

#[test]
fn secrets_in_messages_are_not_shown() {
    let account = "nebius/default".parse().unwrap();
    let asked = Asked { account: &account, doing: "x", attempt: None };
    let secret = "Bad token eyJhbGciOi.x";
    let refusal = wire::Status { code: 3, message: secret.to_owned(), ..Default::default() };
    for error in [late(&refusal, &asked), unreadable(&asked, secret, Reached::No)] {
        assert!(!format!("{error} {error:?}").contains("eyJ"), "{error}");
    }
}
