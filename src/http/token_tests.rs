use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// Gives out `t1`, `t2`, ... and counts.
struct Office {
    given: AtomicU32,
    lives: Duration,
    is_open: bool,
}

impl Office {
    fn new(lives: Duration) -> Self {
        Office { given: AtomicU32::new(0), lives, is_open: true }
    }

    async fn ask(&self) -> Result<Granted, String> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let number = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        match self.is_open {
            true => Ok(Granted { token: Secret::new(format!("t{number}")), lives: self.lives }),
            false => Err(format!("closed {number}")),
        }
    }

    async fn token(&self, tokens: &Tokens) -> Result<String, String> {
        tokens.get(|| self.ask()).await.map(|token| token.expose().to_owned())
    }

    fn given(&self) -> u32 {
        self.given.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn many_at_once_ask_once() {
    let tokens = Arc::new(Tokens::new(None, "k"));
    let office = Arc::new(Office::new(HOUR));
    let asking = (0..20).map(|_| {
        let (tokens, office) = (Arc::clone(&tokens), Arc::clone(&office));
        tokio::spawn(async move { office.token(&tokens).await })
    });
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap().unwrap(), "t1");
    }
    assert_eq!(office.given(), 1);
}

/// Holds a token that is to be renewed and that ends so many seconds from now.
fn holding(renew_in: i64, ends_in: i64) -> Tokens {
    let at = |seconds| Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    let held = Held { token: Secret::trimmed("t0"), renew_at: at(renew_in), ends_at: at(ends_in) };
    Tokens { key: "k".to_owned(), file: None, held: RwLock::new(Some(held)) }
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end() {
    let office = Office::new(HOUR);
    assert_eq!(office.token(&holding(10, 60)).await.unwrap(), "t0");
    let due = holding(-1, 60);
    assert_eq!(office.token(&due).await.unwrap(), "t1");
    assert_eq!(office.token(&due).await.unwrap(), "t1");
    let margin = |lives: Duration| {
        let held = Held::of(&Granted { token: Secret::trimmed("x"), lives });
        held.ends_at.duration_since(held.renew_at).as_secs()
    };
    assert_eq!((margin(HOUR), margin(Duration::from_secs(60))), (300, 6));
    // A life of zero is over at once, and one of ages is cut.
    assert!(!Held::of(&Granted { token: Secret::trimmed("x"), lives: Duration::ZERO }).is_fresh());
    assert!(Held::of(&Granted { token: Secret::trimmed("x"), lives: Duration::MAX }).is_fresh());
}

#[tokio::test]
async fn a_failed_renewal_leaves_a_token_that_still_lives() {
    let office = Office { is_open: false, ..Office::new(HOUR) };
    assert_eq!(office.token(&holding(-1, 60)).await.unwrap(), "t0");
    assert_eq!(office.given(), 1, "it was asked");
    assert_eq!(office.token(&holding(-2, -1)).await.unwrap_err(), "closed 2");
}

#[tokio::test]
async fn the_file_serves_the_next_process_of_that_account_alone() {
    let folder = tempfile::tempdir().unwrap();
    let tokens_in = folder.path().join("cache/tokens");
    let office = Office::new(HOUR);
    let tokens = |key: &str| Tokens::new(Some(&tokens_in), key);
    assert_eq!(office.token(&tokens("verda https://a 0123")).await.unwrap(), "t1");
    assert_eq!(office.token(&tokens("verda https://a 0123")).await.unwrap(), "t1");
    assert_eq!(office.token(&tokens("verda https://b 0123")).await.unwrap(), "t2");
    assert_eq!(office.token(&tokens("verda https://a 4567")).await.unwrap(), "t3");
    assert_eq!(fs::metadata(&tokens_in).unwrap().mode() & 0o777, 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&tokens_in).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "nothing else is left: {files:?}");
    for file in &files {
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_rejected_token_is_dropped_on_disk_too_but_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let office = Office::new(HOUR);
    let (one, two) = (Tokens::new(Some(folder.path()), "k"), Tokens::new(Some(folder.path()), "k"));
    assert_eq!(office.token(&one).await.unwrap(), "t1");
    assert_eq!(office.token(&two).await.unwrap(), "t1");
    one.reject(&Secret::trimmed("t1")).await;
    assert_eq!(office.token(&one).await.unwrap(), "t2");
    // The other process learns of it only now; the good token on disk stays and is taken.
    two.reject(&Secret::trimmed("t1")).await;
    assert_eq!(office.token(&two).await.unwrap(), "t2");
    one.reject(&Secret::trimmed("t1")).await;
    assert_eq!(office.token(&one).await.unwrap(), "t2");
    assert_eq!(office.given(), 2);
}

#[tokio::test]
async fn a_file_that_is_odd_or_open_to_others_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let office = Office::new(HOUR);
    let tokens = || Tokens::new(Some(folder.path()), "k");
    office.token(&tokens()).await.unwrap();
    let file = tokens().file.unwrap();
    let good = fs::read_to_string(&file).unwrap();
    let far = "2999-01-01T00:00:00Z";
    let mut ahead: serde_json::Value = serde_json::from_str(&good).unwrap();
    (ahead["ends_at"], ahead["renew_at"]) = (far.into(), far.into());
    for text in ["", "{", "[]", &good.replace("\"version\":1", "\"version\":2"), &ahead.to_string()] {
        let before = office.given();
        fs::write(&file, text).unwrap();
        office.token(&tokens()).await.unwrap();
        assert_eq!(office.given(), before + 1, "{text}");
    }
    let before = office.given();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    office.token(&tokens()).await.unwrap();
    assert_eq!(office.given(), before + 1);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "written anew");
    // A folder that cannot be written is no reason to fail.
    let nowhere = Tokens::new(Some(Path::new("/proc/nowhere")), "k");
    assert!(office.token(&nowhere).await.is_ok());
}

#[test]
fn nothing_shows_the_token() {
    let granted = Granted { token: Secret::trimmed("s3cret"), lives: HOUR };
    let tokens = Tokens { key: "k".to_owned(), file: None, held: RwLock::new(Some(Held::of(&granted))) };
    assert!(!format!("{tokens:?} {granted:?}").contains("s3cret"));
}
