//! `GET /v2/pods`: newest first, in pages, with cursors that are good only if they were handed out.

use serde_json::json;

use super::pods::Phase;
use super::{RunPod, invalid};
use crate::sandbox::faults::FaultKind;
use crate::sandbox::lock;
use crate::sandbox::machine::{hex, random};
use crate::sandbox::server::{Answer, Call};

/// Default and largest page (`docs.runpod.io/api-reference-v2`, listPods).
const PAGE: usize = 1000;

impl RunPod {
    /// One page. Query parameters that it does not know are ignored, as by the service.
    pub(super) fn list(&self, call: &Call, account: &str) -> Answer {
        let pairs = call.pairs();
        let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let mut size = match get("limit").map(str::parse::<usize>) {
            None => PAGE,
            Some(Ok(limit)) if (1..=PAGE).contains(&limit) => limit,
            Some(_) => return invalid(&["query parameter 'limit' must be 1..1000".into()]),
        };
        for fault in &call.faults {
            if let FaultKind::PageSize { size: small } = fault {
                size = (*small).clamp(1, size);
            }
        }
        let now = self.shared.clock.now();
        let slow = self.shared.options.slow_delete;
        let mut state = lock(&self.state);
        let after = match get("cursor") {
            None => None,
            Some(cursor) => match state.cursors.get(cursor) {
                // A pod that ended since keeps its place: everything older than it comes next.
                Some((owner, after)) if owner == account => Some(*after),
                _ => return invalid(&["query parameter 'cursor' is not valid".into()]),
            },
        };
        let mut shown = Vec::new();
        let mut last = None;
        let mut more = false;
        let mut pods: Vec<_> = state.pods.iter_mut().filter(|pod| pod.account == account).collect();
        pods.sort_by_key(|pod| std::cmp::Reverse(pod.place()));
        for pod in pods {
            let phase = pod.phase(now, slow);
            let place = pod.place();
            if phase == Phase::Gone || now < pod.listed_from || after.is_some_and(|after| place >= after) {
                continue;
            }
            if shown.len() == size {
                more = true;
                break;
            }
            pod.looks = pod.looks.saturating_add(1);
            shown.push(self.show(pod, phase, &call.faults));
            last = Some(place);
        }
        let next = last.filter(|_| more).map(|last| {
            let cursor = hex(&random::<12>());
            state.cursors.insert(cursor.clone(), (account.to_owned(), last));
            cursor
        });
        if self.guesses().one_page && size == PAGE {
            return Answer::json(200, json!({"pods": shown}));
        }
        Answer::json(200, json!({"pods": shown, "pagination": {"nextCursor": next, "hasNextPage": more}}))
    }
}
