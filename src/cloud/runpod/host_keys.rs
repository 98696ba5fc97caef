//! The host key's fingerprints, and reasons why a container does not start, from a pod's logs.
//!
//! RunPod's images print their fingerprints at boot (github.com/runpod/containers, `container-template/start.sh`):
//! `ED25519 key fingerprint:`, then `256 SHA256:... root@<id> (ED25519)`, and at the end `SSH host keys:` and
//! `Start script(s) finished, Pod is ready to use.` The log comes over https with our key, so it can be believed.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::client::{Api, LogSource};
use super::wire::LogLine;

/// The longest that one look may read the container's log.
const HOST_KEY_PATIENCE: Duration = Duration::from_millis(2500);

/// The longest that one look may read the host's log.
const SYSTEM_PATIENCE: Duration = Duration::from_millis(1500);

/// The past lines come at once; when nothing came for this long, what follows is new.
const QUIET: Duration = Duration::from_millis(400);

/// What a log says about the host keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// All fingerprints, `SHA256:...`.
    All(Vec<String>),
    /// Not yet.
    NotYet,
    /// The key may not read logs.
    Forbidden,
}

/// Reads the fingerprints from the container's log.
pub(super) async fn read(api: &Api, id: &str) -> Printed {
    let mut keys = Fingerprints::default();
    match lines(api, id, LogSource::Container, 1000, HOST_KEY_PATIENCE, |line| keys.take(line)).await {
        Read::Forbidden => Printed::Forbidden,
        Read::Done => keys.all().map_or(Printed::NotYet, Printed::All),
    }
}

/// Reads the reason why the container does not start from the host's log; none if there is none.
pub(super) async fn trouble(api: &Api, id: &str) -> Option<String> {
    let mut found = None;
    let take = |line: &str| {
        found = is_trouble(line).then(|| line.to_owned()).or(found.take());
        found.is_some()
    };
    lines(api, id, LogSource::System, 100, SYSTEM_PATIENCE, take).await;
    found
}

fn is_trouble(line: &str) -> bool {
    ["requirement error", "error starting container"].iter().any(|words| line.to_lowercase().contains(words))
}

enum Read {
    Done,
    Forbidden,
}

/// Gives each line to `take` until that returns true, the log is quiet, or the time is over. Trouble with a log is no trouble
/// of the machine: it ends the reading.
async fn lines(
    api: &Api,
    id: &str,
    source: LogSource,
    tail: u32,
    patience: Duration,
    mut take: impl FnMut(&str) -> bool,
) -> Read {
    // A look must fit into the account's time limit with its logs.
    let patience = patience.min(api.timeout() / 4);
    let end = Instant::now() + patience;
    let Ok(mut stream) = api.log(id, source, tail, patience).await else { return Read::Done };
    match stream.status {
        401 | 403 => return Read::Forbidden,
        200..=299 => {}
        _ => return Read::Done,
    }
    let mut events = Events::default();
    let mut until = end;
    while let Ok(Ok(Some(piece))) = timeout_at(until, stream.next()).await {
        for line in events.feed(&piece) {
            if take(&line) {
                return Read::Done;
            }
        }
        until = end.min(Instant::now() + QUIET);
    }
    Read::Done
}

/// Splits a stream of server-sent events into log lines.
#[derive(Debug, Default)]
struct Events {
    rest: Vec<u8>,
}

impl Events {
    fn feed(&mut self, piece: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(piece);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let data = line.trim_end().strip_prefix("data:").map(str::trim_start);
            let read = data.and_then(|data| serde_json::from_str::<LogLine>(data).ok());
            lines.extend(read.and_then(|read| read.line));
        }
        lines
    }
}

/// Collects the fingerprints of one boot.
#[derive(Debug, Default)]
struct Fingerprints {
    found: Vec<String>,
    complete: bool,
}

impl Fingerprints {
    /// Takes a line in; true when all are there. A list that is not complete is no use: ssh may choose the key that is
    /// missing from it.
    fn take(&mut self, line: &str) -> bool {
        let line = line.trim();
        if line.starts_with("Setting up SSH") {
            // A restarted container has new keys.
            *self = Fingerprints::default();
        }
        let mut words = line.split_whitespace();
        let bits = words.next().is_some_and(|bits| bits.bytes().all(|b| b.is_ascii_digit()));
        let print = words.next().filter(|word| bits && is_print(word) && line.ends_with(')'));
        self.found
            .extend(print.filter(|print| !self.found.iter().any(|found| found == print)).map(str::to_owned));
        self.complete |= line.starts_with("Start script(s) finished");
        self.complete && !self.found.is_empty()
    }

    fn all(self) -> Option<Vec<String>> {
        (self.complete && !self.found.is_empty()).then_some(self.found)
    }
}

/// Whether a word is the SHA-256 of a key in base64, as ssh shows it.
fn is_print(word: &str) -> bool {
    word.strip_prefix("SHA256:").is_some_and(|hash| {
        hash.len() == 43 && hash.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> String {
        let data = serde_json::json!({"ts": "2026-06-01T12:02:03Z", "source": "container", "line": line});
        format!("id: 2026-06-01T12:02:03Z/1\ndata: {data}\r\n\n")
    }

    fn print(letter: &str) -> String {
        format!("SHA256:{}", letter.repeat(43))
    }

    fn boot(one: &str, two: &str) -> Vec<String> {
        vec![
            "Setting up SSH...".to_owned(),
            "RSA key fingerprint:".to_owned(),
            format!("3072 {} root@5xpma5eg46tqjq (RSA)", print(one)),
            "ED25519 key fingerprint:".to_owned(),
            format!("256 {} root@5xpma5eg46tqjq (ED25519)", print(two)),
            "SSH host keys:".to_owned(),
            "Start script(s) finished, Pod is ready to use.".to_owned(),
        ]
    }

    fn read(lines: &[String], piece: usize) -> Option<Vec<String>> {
        let text: String = lines.iter().map(|line| event(line)).collect();
        let (mut events, mut keys) = (Events::default(), Fingerprints::default());
        for bytes in text.as_bytes().chunks(piece) {
            for line in events.feed(bytes) {
                keys.take(&line);
            }
        }
        keys.all()
    }

    #[test]
    fn fingerprints_of_a_whole_boot() {
        for piece in [1, 7, 100_000] {
            assert_eq!(read(&boot("a", "b"), piece), Some(vec![print("a"), print("b")]));
        }
        assert_eq!(read(&boot("a", "b")[..6], 9), None);
        assert_eq!(read(&["Start script(s) finished".to_owned()], 9), None);
    }

    #[test]
    fn a_second_boot_has_new_keys() {
        let both = [boot("a", "b"), boot("c", "d")].concat();
        assert_eq!(read(&both, 50), Some(vec![print("c"), print("d")]));
        assert_eq!(read(&both[..both.len() - 1], 50), None);
    }

    #[test]
    fn what_is_trouble() {
        assert!(is_trouble(
            "error starting container: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9"
        ));
        assert!(!is_trouble("start container for runpod/base:1.4.1: begin"));
    }

    proptest::proptest! {
        #[test]
        fn any_stream_is_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), line in "\\PC{0,60}") {
            let mut keys = Fingerprints::default();
            for line in Events::default().feed(&bytes).iter().chain([&line]) {
                keys.take(line);
            }
        }
    }
}
