//! SSH keys and startup scripts on file, and tags that are added later.

use serde_json::{Value, json};

use super::state::{KeyObject, ScriptObject, State};
use super::wire::{AddKey, AddScript, DeleteKeys, DeleteScripts, Tag, TagBody, find, page, read, tags_wrong};
use super::{VerdaCloud, error, invalid, no_effect};
use crate::sandbox::lock;
use crate::sandbox::server::{Answer, Call};
use russh::keys::{HashAlg, PublicKey};

/// Startup scripts of a project (reference: 100 unless raised).
const SCRIPTS: usize = 100;

impl VerdaCloud {
    /// `GET /ssh-keys`.
    pub(super) fn keys(&self, account: &str) -> Answer {
        let state = lock(&self.state);
        let user = owner(&state, account);
        let mine = state.keys.iter().filter(|key| key.account == account);
        Answer::json(200, mine.map(|key| key.show(&user)).collect())
    }

    /// `GET /ssh-keys/{id}`.
    pub(super) fn key(&self, account: &str, id: &str) -> Answer {
        let state = lock(&self.state);
        let user = owner(&state, account);
        match state.keys.iter().find(|key| key.account == account && key.id == id) {
            Some(key) => self.single(key.show(&user)),
            None => error(404, "not_found", "Invalid ssh key id"),
        }
    }

    /// `POST /ssh-keys`. The same key may be on file many times.
    pub(super) fn add_key(&self, call: &Call, account: &str) -> Answer {
        let body: AddKey = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        if body.key.contains("PRIVATE KEY") {
            return invalid("that is a private key");
        }
        if body.name.is_empty() || PublicKey::from_openssh(body.key.trim()).is_err() {
            return invalid("Invalid ssh key");
        }
        let mut state = lock(&self.state);
        let id = state.uuid();
        let key = body.key.trim().to_owned();
        let new =
            KeyObject { id: id.clone(), account: account.to_owned(), name: body.name, key, foreign: false };
        state.keys.push(new);
        self.new_id(201, &id)
    }

    /// `DELETE /ssh-keys` and `DELETE /ssh-keys/{id}`.
    pub(super) fn delete_keys(&self, call: &Call, account: &str, one: Option<&str>) -> Answer {
        let ids = match one {
            Some(id) => vec![id.to_owned()],
            None => match read::<DeleteKeys>(call) {
                Ok(body) => body.keys,
                Err(refused) => return *refused,
            },
        };
        let mut state = lock(&self.state);
        let known = |id: &String| state.keys.iter().any(|key| key.account == account && key.id == *id);
        if !ids.iter().all(known) {
            return error(404, "not_found", "Invalid ssh key id");
        }
        if !no_effect(call) {
            state.keys.retain(|key| !ids.contains(&key.id));
        }
        Answer::empty(200)
    }

    /// `GET /scripts`: in pages, newest first unless asked otherwise.
    pub(super) fn scripts(&self, call: &Call, account: &str) -> Answer {
        let pairs = call.pairs();
        let part = find(&pairs, &["name"]).unwrap_or("");
        let state = lock(&self.state);
        let mine = state.scripts.iter().filter(|known| known.account == account && known.name.contains(part));
        let mut rows: Vec<Value> = mine.map(|known| self.show_script(known)).collect();
        if find(&pairs, &["orderDirection"]) != Some("asc") {
            rows.reverse();
        }
        page(&pairs, rows)
    }

    /// `GET /scripts/{id}`.
    pub(super) fn script(&self, account: &str, id: &str) -> Answer {
        let state = lock(&self.state);
        match state.scripts.iter().find(|known| known.account == account && known.id == id) {
            Some(known) => self.single(self.show_script(known)),
            None => error(404, "not_found", "Invalid script id"),
        }
    }

    /// `POST /scripts`. They are kept and not run: what people put there is meant for another computer.
    pub(super) fn add_script(&self, call: &Call, account: &str) -> Answer {
        let body: AddScript = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let mut state = lock(&self.state);
        if body.name.is_empty() || body.script.is_empty() {
            return invalid("a script needs a name and a text");
        }
        if state.scripts.iter().filter(|known| known.account == account).count() >= SCRIPTS {
            return error(400, "invalid_request", "Script limit exceeded");
        }
        let id = state.uuid();
        let at = self.shared.clock.now();
        let account = account.to_owned();
        state.scripts.push(ScriptObject { id: id.clone(), account, name: body.name, text: body.script, at });
        self.new_id(201, &id)
    }

    /// `DELETE /scripts` and `DELETE /scripts/{id}`.
    pub(super) fn delete_scripts(&self, call: &Call, account: &str, one: Option<&str>) -> Answer {
        let ids = match one {
            Some(id) => vec![id.to_owned()],
            None => match read::<DeleteScripts>(call) {
                Ok(body) => body.scripts,
                Err(refused) => return *refused,
            },
        };
        let mut state = lock(&self.state);
        let known =
            |id: &String| state.scripts.iter().any(|known| known.account == account && known.id == *id);
        if !ids.iter().all(known) {
            return error(404, "not_found", "Invalid script id");
        }
        state.scripts.retain(|known| !ids.contains(&known.id));
        Answer::empty(200)
    }

    fn show_script(&self, known: &ScriptObject) -> Value {
        let at = self.shared.clock.date(known.at);
        json!({"id": known.id, "name": known.name, "script": known.text, "created_at": format!("{at:.3}")})
    }

    /// One key or script: the document says an object, the official clients read an array of one.
    fn single(&self, one: Value) -> Answer {
        Answer::json(200, if self.guesses().single_objects { one } else { json!([one]) })
    }

    /// `POST /instances/{id}/tags` and the same of volumes.
    pub(super) fn add_tag(&self, call: &Call, account: &str, what: &str, id: &str) -> Answer {
        let body: TagBody = match read(call) {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        if let Some(wrong) = tags_wrong(std::slice::from_ref(&body)) {
            return invalid(&wrong);
        }
        let mut state = lock(&self.state);
        let tag = state.tag(&body);
        let shown = tag.show();
        match tags_of(&mut state, account, what, id) {
            None => error(404, "not_found", "no such resource"),
            Some(tags) if tags.iter().any(|known| known.key == tag.key) => {
                error(409, "conflict", "tag already on the resource")
            }
            Some(tags) if tags.len() >= 10 => invalid("tags must contain no more than 10 elements"),
            Some(tags) => {
                tags.push(tag);
                Answer::json(201, shown)
            }
        }
    }

    /// `DELETE /instances/{id}/tags/{tagId}` and the same of volumes.
    pub(super) fn delete_tag(&self, account: &str, what: &str, id: &str, tag: &str) -> Answer {
        let mut state = lock(&self.state);
        match tags_of(&mut state, account, what, id) {
            Some(tags) if tags.iter().any(|known| known.id == tag) => {
                tags.retain(|known| known.id != tag);
                Answer::empty(204)
            }
            _ => error(404, "not_found", "no such tag"),
        }
    }
}

fn owner(state: &State, account: &str) -> String {
    state
        .accounts
        .iter()
        .find(|known| known.label == account)
        .map(|known| known.user.clone())
        .unwrap_or_default()
}

fn tags_of<'a>(state: &'a mut State, account: &str, what: &str, id: &str) -> Option<&'a mut Vec<Tag>> {
    if what == "instances" {
        let found = state.instances.iter_mut().find(|one| one.id == id && one.account == account);
        return found.map(|one| &mut one.tags);
    }
    let found = state.volumes.iter_mut().find(|one| one.id == id && one.account == account);
    found.map(|one| &mut one.tags)
}

impl KeyObject {
    /// As JSON. The fingerprint has the form of an MD5; it is the beginning of a SHA-256.
    fn show(&self, user: &str) -> Value {
        let print = PublicKey::from_openssh(&self.key).ok().map(|key| {
            let bytes = key.fingerprint(HashAlg::Sha256);
            let hex: Vec<String> =
                bytes.as_bytes().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            hex.join(":")
        });
        json!({"id": self.id, "name": self.name, "key": self.key, "fingerprint": print, "created_by_user_id": user})
    }
}
