use std::os::unix::fs::MetadataExt;

use super::*;
use crate::accounts::seal::Parts;
use crate::model::secret::Secret;

const SECRET: &str = "k3y-of-the-lab-0123";

fn stored(account: &str) -> Stored {
    let credentials: Parts = [("api_key".to_owned(), Secret::trimmed(SECRET))].into_iter().collect();
    Stored {
        account: account.parse().unwrap(),
        hint: "…0123".to_owned(),
        source: "VAST_API_KEY".to_owned(),
        connected_at: Timestamp::from_second(0).unwrap(),
        identity: None,
        settings: Settings { zones: Some(vec!["a".to_owned()]), ..Settings::default() },
        contents: Contents { credentials, endpoint: None },
    }
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("data")).unwrap()
}

#[test]
fn an_account_is_kept_sealed_and_its_file_is_the_stored_format() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let lab = stored("vast/lab");
    assert_eq!((store.names(), store.read(&lab.account)), (vec![], None));
    assert!(!folder.path().join("data").exists(), "reading made something");
    store.write(&lab).unwrap();
    store.write(&stored("runpod/default")).unwrap();
    let again = open(folder.path());
    assert_eq!(again.names(), ["runpod/default".parse().unwrap(), "vast/lab".parse().unwrap()]);
    assert_eq!(again.read(&lab.account), Some(Ok(lab.clone())));
    let data = folder.path().join("data");
    for (path, mode) in [
        ("seal.key", 0o600),
        ("accounts/vast/lab.json", 0o600),
        ("accounts", 0o700),
        ("accounts/vast", 0o700),
    ] {
        assert_eq!(fs::metadata(data.join(path)).unwrap().mode() & 0o777, mode, "{path}");
    }
    let text = fs::read_to_string(data.join("accounts/vast/lab.json")).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let sealed = value.as_object_mut().unwrap().remove("sealed").unwrap();
    let members: Vec<&str> = sealed.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["key", "nonce", "data"]);
    assert_eq!(
        value,
        serde_json::json!({
            "version": 1, "account": "vast/lab", "hint": "…0123", "source": "VAST_API_KEY",
            "connected_at": "1970-01-01T00:00:00Z", "identity": null, "settings": {"zones": ["a"]},
        })
    );
    // What stands beside the sealed part may be changed by hand.
    fs::write(data.join("accounts/vast/lab.json"), text.replace("\"a\"", "\"b\"")).unwrap();
    let changed = open(folder.path()).read(&lab.account).unwrap().unwrap();
    assert_eq!(changed.settings.zones.as_deref(), Some(&["b".to_owned()][..]));
    again.remove(&lab.account).unwrap();
    again.remove(&lab.account).unwrap();
    assert_eq!(again.names().len(), 1);
}

#[test]
fn what_cannot_be_opened_is_told_spoils_nothing_else_and_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (lab, other) = (stored("vast/lab"), stored("vast/other"));
    let store = open(folder.path());
    store.write(&lab).unwrap();
    store.write(&other).unwrap();
    let path = folder.path().join("data/accounts/vast/lab.json");
    let good = fs::read_to_string(&path).unwrap();
    let moved = fs::read_to_string(folder.path().join("data/accounts/vast/other.json")).unwrap();
    let moved_by_hand = moved.replace("vast/other", "vast/lab");
    let newer = good.replace("\"version\": 1", "\"version\": 2");
    for (bad, word) in [
        (moved.as_str(), "another account"),
        (&moved_by_hand, "changed after it was sealed"),
        (&newer, "newer gpuprov"),
        ("{}", "form of an account"),
        ("", "no JSON"),
    ] {
        fs::write(&path, bad).unwrap();
        let store = open(folder.path());
        let Unopened { why, newer } = store.read(&lab.account).unwrap().unwrap_err();
        assert!(why.contains(word) && why.contains("lab.json") && !why.contains(SECRET), "{why}");
        assert_eq!(store.read(&other.account), Some(Ok(other.clone())));
        assert_eq!(store.names().len(), 2);
        let written = store.write(&lab);
        if newer {
            assert!(written.is_err() && store.remove(&lab.account).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
            continue;
        }
        written.unwrap();
        let aside = (1..9).map(|n| folder.path().join(format!("data/accounts/vast/lab.json.unreadable-{n}")));
        assert!(
            aside.filter_map(|path| fs::read_to_string(path).ok()).any(|text| text == bad),
            "{bad} is lost"
        );
        assert_eq!(store.read(&lab.account), Some(Ok(lab.clone())));
    }
}

#[test]
fn without_its_key_nothing_is_opened_and_no_new_key_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (lab, other) = (stored("vast/lab"), stored("vast/other"));
    let store = open(folder.path());
    store.write(&lab).unwrap();
    store.write(&other).unwrap();
    let key = folder.path().join("data/seal.key");
    let bytes = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let store = open(folder.path());
    assert!(store.read(&lab.account).unwrap().unwrap_err().why.contains("seal.key"));
    let error = store.write(&lab).unwrap_err().to_string();
    assert!(error.contains("seal key") && error.contains("put a copy back"), "{error}");
    assert!(!key.exists());
    fs::write(&key, [1; 31]).unwrap();
    let store = open(folder.path());
    assert!(store.read(&lab.account).unwrap().unwrap_err().why.contains("damaged"));
    assert!(store.write(&lab).is_err());
    fs::write(&key, [1; 32]).unwrap();
    assert!(open(folder.path()).read(&lab.account).unwrap().unwrap_err().why.contains("another key"));
    fs::write(&key, bytes).unwrap();
    assert_eq!(open(folder.path()).read(&lab.account), Some(Ok(lab)));
}

#[test]
fn of_many_that_connect_at_once_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let folder = folder.path();
            scope.spawn(move || open(folder).write(&stored(&format!("vast/w{n}"))).unwrap());
        }
    });
    let store = open(folder.path());
    assert_eq!(store.names().len(), 8);
    assert!(store.names().iter().all(|name| store.read(name).unwrap().is_ok()));
}
