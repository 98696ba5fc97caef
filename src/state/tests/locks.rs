//! Locks. Two values opened by one process hold two open file descriptions, so threads stand for processes here.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::record;
use crate::model::machine::MachineName;
use crate::state::machines::Registry;
use crate::state::{LockError, Open};

fn dev() -> MachineName {
    "dev".parse().unwrap()
}

#[test]
fn a_held_name_is_refused_and_others_are_free() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    assert!(!registry.is_held(&dev()));
    let lock = registry.lock(&dev()).unwrap();
    assert!(registry.is_held(&dev()));
    assert!(matches!(registry.lock(&dev()), Err(LockError::Held(name)) if name == dev()));
    let _other = registry.lock(&"box".parse().unwrap()).unwrap();
    drop(lock);
    assert!(!registry.is_held(&dev()));
    let _again = registry.lock(&dev()).unwrap();
}

#[test]
fn of_eight_that_provision_one_name_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let (inside, starts) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..40 {
                    let Ok(lock) = registry.lock(&dev()) else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold one name");
                    if lock.read().unwrap().is_none() {
                        let open = Open::start(lock, record("dev")).unwrap();
                        starts.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(open);
                    } else {
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(starts.into_inner(), 1);
}

#[test]
fn looks_do_not_stand_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    drop(registry.lock(&dev()).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    registry.is_held(&dev());
                }
            });
        }
        let mut refused = 0;
        for _ in 0..200 {
            refused += usize::from(registry.lock(&dev()).is_err());
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0);
    });
}

#[test]
fn a_new_holder_finds_no_old_note() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let lock = registry.lock(&dev()).unwrap();
    assert!(!lock.is_wanted());
    registry.ask(&dev()).unwrap();
    registry.ask(&dev()).unwrap();
    assert!(lock.is_wanted());
    drop(lock);
    assert!(!registry.lock(&dev()).unwrap().is_wanted());
}

#[tokio::test(start_paused = true)]
async fn waiting_asks_the_holder_and_gets_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let open = Open::start(registry.lock(&dev()).unwrap(), record("dev")).unwrap();
    let holder = async {
        while !open.is_wanted() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        open.close().unwrap();
    };
    let name = dev();
    let waiter = registry.lock_within(&name, Duration::from_secs(60), true);
    let ((), lock) = tokio::join!(holder, waiter);
    let lock = lock.unwrap();
    assert!(lock.read().unwrap().is_none() && !lock.is_wanted());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_and_leaves_no_note_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let lock = registry.lock(&dev()).unwrap();
    let start = tokio::time::Instant::now();
    let waited = registry.lock_within(&dev(), Duration::from_secs(3), false).await;
    assert!(matches!(waited, Err(LockError::Held(_))));
    assert_eq!(start.elapsed().as_secs(), 3);
    assert!(!lock.is_wanted());
}
