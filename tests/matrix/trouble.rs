//! What goes wrong with a call.

use gpuprov::sandbox::{Fault, FaultKind, Junk, Match, NebiusFault, RetryAfter, When};

/// A trouble that a case plays.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// A fault on one call.
    Once(FaultKind),
    /// A fault on this call and on all later ones of the same operation.
    Lasting(FaultKind),
    /// No answer any more, from this call on, whatever is asked.
    Dead,
    /// The process is killed when this call was sent, before or after its effect.
    Kill(When),
    /// The process is killed when the record on disk first looks so.
    KillAt(Step),
    /// The process is killed after this share of the time that it takes without faults.
    KillAfter(f64),
}

/// What the record on disk shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record without an attempt.
    Reserved,
    /// An attempt without the cloud's id.
    Attempt,
    /// The cloud's id, still in state `creating`.
    Handle,
    /// State `booting`.
    Booting,
    /// State `running`.
    Running,
    /// State `deleting`.
    Deleting,
    /// A second attempt.
    Second,
    /// The record is gone again.
    Closed,
}

/// The steps with their names in cases.
pub const STEPS: &[(&str, Step)] = &[
    ("reserved", Step::Reserved),
    ("attempt", Step::Attempt),
    ("handle", Step::Handle),
    ("booting", Step::Booting),
    ("running", Step::Running),
    ("deleting", Step::Deleting),
    ("second", Step::Second),
    ("closed", Step::Closed),
];

/// How long an answer stays out before the connection is cut; over `--cloud-timeout` of the commands.
const SILENCE: u64 = 1300;

/// Every fault of a cloud, with its name in cases.
pub fn faults(cloud: &str) -> Vec<(&'static str, FaultKind)> {
    let mut all = common();
    if cloud == "nebius" {
        all.extend(grpc());
    }
    all
}

/// What gRPC has beyond the common ones, which have their own form there.
fn grpc() -> Vec<(&'static str, FaultKind)> {
    let code = |code: u32, message: &str| NebiusFault::code(code, message);
    let faults = [
        ("unavailable-before", code(14, "upstream connect error")),
        ("unavailable-after", code(14, "upstream connect error").after()),
        ("deadline-before", code(4, "context deadline exceeded")),
        ("deadline-after", code(4, "context deadline exceeded").after()),
        ("unknown-after", code(2, "HTTP 520").after()),
        ("exhausted", code(8, "resource exhausted")),
        ("capacity", NebiusFault::no_capacity()),
        ("quota", NebiusFault::quota("compute.instance.gpu.h100")),
        ("quota-text", NebiusFault::quota_by_text()),
        ("denied", NebiusFault::denied("project-e00x")),
        ("conflict", NebiusFault::conflict()),
        ("not-found", code(5, "not found")),
        ("hollow", NebiusFault::Hollow),
        ("disconnect", NebiusFault::Disconnect),
    ];
    faults.map(|(word, fault)| (word, fault.into())).into()
}

fn common() -> Vec<(&'static str, FaultKind)> {
    let hang = |when| FaultKind::Hang { when, ms: SILENCE };
    let garbage = |body| FaultKind::Garbage { body };
    let many = |retry_after| FaultKind::TooMany { retry_after };
    vec![
        ("500-before", FaultKind::status(500)),
        ("500-after", FaultKind::status_after(500)),
        ("silent-before", hang(When::Before)),
        ("silent-after", hang(When::After)),
        ("reset-before", FaultKind::Reset { when: When::Before }),
        ("reset-after", FaultKind::Reset { when: When::After }),
        ("cut-body", FaultKind::CutBody),
        ("html", garbage(Junk::Html)),
        ("empty-body", garbage(Junk::Empty)),
        ("wrong-type", garbage(Junk::WrongType)),
        ("torn", garbage(Junk::Torn)),
        ("429-seconds", many(RetryAfter::Seconds(1))),
        ("429-date", many(RetryAfter::Date(1))),
        ("401", FaultKind::status(401)),
        ("403", FaultKind::status(403)),
    ]
}

/// The faults that are also played for good.
pub const LASTING: &[&str] = &[
    "500-before",
    "500-after",
    "silent-after",
    "reset-after",
    "html",
    "401",
    "403",
    "unavailable-after",
    "conflict",
];

/// The faults that are played on calls that change something only: of a question it is all one whether it was carried out,
/// and none is refused for want of room or because of another operation.
pub const ONLY_CHANGES: &[&str] = &[
    "500-after",
    "silent-after",
    "reset-after",
    "429-date",
    "unavailable-after",
    "deadline-after",
    "unknown-after",
    "capacity",
    "quota",
    "quota-text",
    "conflict",
    "not-found",
];

/// The faults on the create and the delete that are always in the cut: those that leave open what happened.
pub const DOUBTFUL: &[&str] = &[
    "500-after",
    "silent-after",
    "reset-after",
    "cut-body",
    "html",
    "401",
    "unavailable-after",
    "deadline-after",
    "unknown-after",
    "hollow",
    "disconnect",
];

impl Trouble {
    /// The fault that plays it on the n-th call of `operation`; none for kills by the clock or the record.
    pub fn fault(&self, operation: &str, nth: u32, overall: u32) -> Option<Fault> {
        let hang = |when| FaultKind::Hang { when, ms: 60_000 };
        Some(match self {
            Trouble::Once(kind) => Fault::on(operation, kind.clone()).nth(nth),
            Trouble::Lasting(kind) => Fault::on(operation, kind.clone()).nth(nth).always(),
            Trouble::Dead => {
                let on = Match { nth: Some(overall), times: 0, ..Match::default() };
                Fault { on, what: FaultKind::Reset { when: When::After } }
            }
            Trouble::Kill(when) => Fault::on(operation, hang(*when)).nth(nth),
            Trouble::KillAt(_) | Trouble::KillAfter(_) => return None,
        })
    }

    /// Whether the process is killed.
    pub fn kills(&self) -> bool {
        matches!(self, Trouble::Kill(_) | Trouble::KillAt(_) | Trouble::KillAfter(_))
    }
}
