//! One case: a scenario, a call, a trouble. It is played in a world of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use gpuprov::sandbox::{Fault, FaultKind, Match, Recorded, When};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::scenario::{Plan, Setup};
use crate::support::{Ran, World, ended};
use crate::trouble::{DOUBTFUL, LASTING, ONLY_CHANGES, STEPS, Step, Trouble, faults};
use crate::verdict;

/// Of calls that are made again and again so many meet each trouble.
const MOST_OF_A_KIND: u32 = 2;
/// Shares of the whole time after which the process is killed.
const SHARES: u32 = 12;
/// Every so many-th of the cases that are not chosen for the cut is in it.
const CUT: usize = 97;

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// What selects it.
    pub name: String,
    /// The scenario.
    pub plan: Plan,
    /// The call's operation.
    pub operation: &'static str,
    /// Which of that operation's calls.
    pub nth: u32,
    /// Which call of all.
    pub overall: u32,
    /// What goes wrong.
    pub trouble: Trouble,
    /// How long the command takes without faults.
    pub whole: Duration,
    /// Whether it is in the cut.
    chosen: bool,
}

/// A run without faults.
#[derive(Debug)]
pub struct Baseline {
    calls: Vec<&'static str>,
    whole: Duration,
}

/// How a case ended.
#[derive(Debug)]
pub struct End {
    /// What does not hold.
    pub wrong: Vec<String>,
    /// Whether the trouble came.
    pub played: bool,
    trace: String,
}

impl End {
    /// Everything needed to understand it.
    pub fn report(&self) -> String {
        let wrong: Vec<String> = self.wrong.iter().map(|wrong| format!("  wrong: {wrong}")).collect();
        format!("{}\n{}", wrong.join("\n"), self.trace)
    }
}

impl Case {
    /// Whether the case is in the cut that every test run plays.
    pub fn in_the_cut(&self) -> bool {
        self.chosen
    }
}

/// The program with these words.
pub fn command(world: &World, program: &Path, words: &str) -> Command {
    let mut command = world.program(program);
    command.args(words.split_whitespace());
    command
}

/// Kills at once and waits for the end.
pub async fn kill(child: &mut Child) {
    child.start_kill().unwrap();
    child.wait().await.unwrap();
}

/// Runs a scenario without faults. Its short time limits may be too short on a busy computer once or twice, not always.
pub async fn record(plan: &Plan, program: &Path) -> Baseline {
    for _ in 0..3 {
        if let Ok(baseline) = recorded(plan, program).await {
            return baseline;
        }
    }
    recorded(plan, program)
        .await
        .unwrap_or_else(|ran| panic!("{} does not work without faults: {ran:?}", plan.name))
}

async fn recorded(plan: &Plan, program: &Path) -> Result<Baseline, Ran> {
    let world = plan.world(program).await;
    let first = world.sandbox.requests().len();
    let begun = Instant::now();
    let ran = ended(command(&world, program, &plan.command()).spawn().unwrap()).await;
    if ran.code != 0 {
        return Err(ran);
    }
    let whole = begun.elapsed();
    let calls = world.sandbox.requests()[first..].iter().map(|request| request.operation).collect();
    Ok(Baseline { calls, whole })
}

/// Makes the cases of a scenario out of a run without faults.
pub fn cases(plan: &Plan, baseline: &Baseline) -> Vec<Case> {
    let scenario = format!("{}/{}", plan.subject.name, plan.name);
    let mut cases = Vec::new();
    let mut add = |name: String, operation, nth, overall, trouble: Trouble, chosen: bool| {
        let name = format!("{scenario}/{name}");
        let whole = baseline.whole;
        cases.push(Case { name, plan: *plan, operation, nth, overall, trouble, whole, chosen });
    };
    for (at, operation) in baseline.calls.iter().enumerate() {
        let nth = baseline.calls[..=at].iter().filter(|other| *other == operation).count() as u32;
        let overall = at as u32 + 1;
        if nth > MOST_OF_A_KIND || !plan.is_own(&baseline.calls, at) {
            continue;
        }
        let call = format!("{operation}#{nth}");
        let changes = !plan.subject.reads.contains(operation);
        let costs = [plan.subject.create, plan.subject.delete].contains(operation);
        let faults =
            faults(plan.subject.name).into_iter().filter(|(word, _)| changes || !ONLY_CHANGES.contains(word));
        for (word, kind) in faults {
            let chosen = costs && nth == 1 && DOUBTFUL.contains(&word) && !plan.name.contains('-');
            add(format!("{call}/{word}"), operation, nth, overall, Trouble::Once(kind.clone()), chosen);
            if LASTING.contains(&word) && nth == 1 {
                let trouble = Trouble::Lasting(kind);
                add(format!("{call}/{word}-lasting"), operation, nth, overall, trouble, false);
            }
        }
        for (word, when) in [("kill-before", When::Before), ("kill-after", When::After)] {
            if !changes && when == When::Before {
                continue;
            }
            let chosen = costs && nth == 1 && matches!(plan.name, "provision" | "provision-rollback" | "rm");
            add(format!("{call}/{word}"), operation, nth, overall, Trouble::Kill(when), chosen);
        }
        add(format!("{call}/dead"), operation, nth, overall, Trouble::Dead, false);
    }
    if matches!(plan.name, "provision" | "provision-rollback" | "rm") {
        for (word, step) in STEPS {
            let chosen = matches!(
                (plan.name, step),
                ("provision-rollback", Step::Attempt | Step::Handle | Step::Deleting | Step::Second)
                    | ("provision", Step::Running)
                    | ("rm", Step::Deleting)
            );
            add(format!("record/{word}"), "", 0, 0, Trouble::KillAt(*step), chosen);
        }
        for share in 1..=SHARES {
            let part = f64::from(share) / f64::from(SHARES + 1);
            add(format!("time/{share:02}"), "", 0, 0, Trouble::KillAfter(part), false);
        }
    }
    let waits = |case: &Case| {
        let trouble = case.name.rsplit('/').next().unwrap_or_default();
        plan.subject.waits.contains(&(case.operation, trouble))
    };
    cases.retain(|case| !waits(case));
    for (at, case) in cases.iter_mut().enumerate() {
        case.chosen |= at % CUT == 0;
    }
    cases
}

/// Plays a case.
pub async fn run(case: &Case, program: &Path) -> End {
    let world = case.plan.world(program).await;
    let first = world.sandbox.requests().len();
    let before = verdict::ids(&world);
    if let Some(fault) = case.trouble.fault(case.operation, case.nth, case.overall) {
        world.sandbox.add_fault(fault);
    }
    if matches!(case.trouble, Trouble::KillAt(_)) {
        // Every step stays visible for a while.
        let on = Match { times: 0, ..Match::default() };
        world.sandbox.add_fault(Fault { on, what: FaultKind::Delay { ms: 60 } });
    }
    let child = command(&world, program, &case.plan.command()).spawn().unwrap();
    let (ran, killed) = match &case.trouble {
        Trouble::Kill(_) => hung(child, &world, case, first).await,
        Trouble::KillAt(step) => at_step(child, &world, *step).await,
        Trouble::KillAfter(share) => after(child, case.whole.mul_f64(*share)).await,
        _ => (ended(child).await, false),
    };
    let requests = world.sandbox.requests()[first..].to_vec();
    let played =
        killed || (!case.trouble.kills() && requests.iter().any(|request| met(case, request, &requests)));
    let mut trace = vec![format!("  $ gpuprov {}", case.plan.command()), shown(&ran), calls(&requests)];
    let mut wrong = Vec::new();
    if !killed {
        verdict::judge(case, &world, &ran, &before, &requests, &mut wrong);
    }
    verdict::always(&world, &ran, &mut wrong);
    trace.push(format!("  ledger at the end of the command: {:?}", verdict::ledger(&world)));
    world.sandbox.clear_faults();
    let succeeded = !killed && ran.code == 0;
    verdict::aftermath(case, &world, program, succeeded, &mut wrong, &mut trace).await;
    End { wrong, played, trace: trace.join("\n") }
}

/// Whether this request met the case's trouble, and not what the scenario had set before.
fn met(case: &Case, request: &Recorded, all: &[Recorded]) -> bool {
    let of_the_scenario =
        all.iter().find(|other| other.operation == case.plan.subject.create).is_some_and(|create| {
            create.index == request.index && !matches!(case.plan.setup, Setup::Empty | Setup::Given)
        });
    !request.faults.is_empty() && !of_the_scenario
}

/// Waits until the call hangs, then kills.
async fn hung(mut child: Child, world: &World, case: &Case, first: usize) -> (Ran, bool) {
    let end = Instant::now() + crate::support::LIMIT;
    loop {
        let hangs = world.sandbox.requests()[first..]
            .iter()
            .any(|request| request.operation == case.operation && request.faults.contains(&"hang"));
        if hangs {
            // The effect comes in the same breath as the record of the request; this lets it be over.
            tokio::time::sleep(Duration::from_millis(20)).await;
            child.start_kill().unwrap();
            return (ended(child).await, true);
        }
        if child.try_wait().unwrap().is_some() || Instant::now() > end {
            return (ended(child).await, false);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Kills when the record on disk first shows the step.
async fn at_step(mut child: Child, world: &World, step: Step) -> (Ran, bool) {
    let path = world.state().join("machines/dev.json");
    let end = Instant::now() + crate::support::LIMIT;
    let mut seen = false;
    loop {
        let record = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        seen |= record.is_some();
        if is_at(record.as_ref(), seen, step) {
            child.start_kill().unwrap();
            return (ended(child).await, true);
        }
        if child.try_wait().unwrap().is_some() || Instant::now() > end {
            return (ended(child).await, false);
        }
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
}

fn is_at(record: Option<&Value>, seen: bool, step: Step) -> bool {
    let Some(record) = record else { return step == Step::Closed && seen };
    let state = record["state"].as_str().unwrap_or_default();
    let attempts = record["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    match step {
        Step::Reserved => attempts.is_empty(),
        Step::Attempt => state == "creating" && attempts.last().is_some_and(|last| last["handle"].is_null()),
        Step::Handle => state == "creating" && attempts.last().is_some_and(|last| last["handle"].is_object()),
        Step::Booting | Step::Running | Step::Deleting => {
            let word = match step {
                Step::Booting => "booting",
                Step::Running => "running",
                _ => "deleting",
            };
            state == word
        }
        Step::Second => attempts.len() > 1,
        Step::Closed => false,
    }
}

async fn after(mut child: Child, time: Duration) -> (Ran, bool) {
    tokio::time::sleep(time).await;
    let over = child.try_wait().unwrap().is_some();
    if !over {
        child.start_kill().unwrap();
    }
    (ended(child).await, !over)
}

/// A command's end for people.
pub fn shown(ran: &Ran) -> String {
    let lines = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!("  exit {}\n  stdout\n{}  stderr\n{}", ran.code, lines(&ran.stdout), lines(&ran.stderr))
}

fn calls(requests: &[Recorded]) -> String {
    let line = |request: &Recorded| {
        let faults = request.faults.join(" ");
        format!("    {} {} {} {faults}", request.operation, request.path, request.status)
    };
    format!("  calls\n{}", requests.iter().map(line).collect::<Vec<_>>().join("\n"))
}
