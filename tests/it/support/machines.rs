//! What tests of machines' lives ask for again and again.

use gpuprov::sandbox::{Fault, FaultKind, LedgerEntry, Script};
use serde_json::Value;

use super::{Ran, World, finish};

impl World {
    /// Runs the binary with these words, blanks in them kept.
    pub async fn words(&self, words: &[&str]) -> Ran {
        finish(self.gpuprov(words)).await
    }

    /// Plays a fault on the next call of an operation.
    pub fn fault(&self, operation: &str, what: FaultKind) {
        self.sandbox.add_fault(Fault::on(operation, what));
    }

    /// Lets the next machine behave so.
    pub fn script(&self, script: Script) {
        self.fault("create_pod", FaultKind::Script { script });
    }

    /// The record of a machine, if there is one.
    pub fn record(&self, name: &str) -> Option<Value> {
        let text = std::fs::read(self.state().join(format!("machines/{name}.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// All lines of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state().join("audit.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every machine ever made but those of somebody else.
    pub fn made(&self) -> Vec<LedgerEntry> {
        self.sandbox.made()
    }

    /// The only machine that exists.
    pub fn only(&self) -> LedgerEntry {
        let alive = self.sandbox.alive();
        assert_eq!(alive.len(), 1, "{alive:#?}");
        alive[0].clone()
    }

    /// Requests of one operation so far.
    pub fn asked(&self, operation: &str) -> usize {
        self.sandbox.requests().iter().filter(|request| request.operation == operation).count()
    }

    /// Removes a machine, which must work, and fails if anything is left.
    pub async fn remove(&self, name: &str) {
        let ran = self.run(&format!("rm {name} --yes")).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, format!("{name}\n").as_str()), "{ran:?}");
        self.assert_empty();
        assert_eq!(self.record(name), None);
    }
}

/// The outcomes of `tried`.
pub fn outcomes(document: &Value) -> Vec<&str> {
    document["tried"].as_array().unwrap().iter().map(|tried| tried["outcome"].as_str().unwrap()).collect()
}
