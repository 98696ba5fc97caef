//! What every cloud must do, checked through the trait against the sandbox. A cloud joins by a row in [`stage::stages`].

mod reach;
mod stage;

use std::sync::Mutex;
use std::time::Duration;

use gpuprov::cloud::{Deletion, ErrorKind, Journal, Recheck, Which};
use gpuprov::model::handle::{Handle, Resource, ResourceKind};
use gpuprov::model::machine::{MachineState, SshAddress};
use gpuprov::model::mark::{Claim, Mark};
use gpuprov::model::offer::Offer;
use gpuprov::model::offer_key::OfferKey;
use gpuprov::model::secret::Secret;
use gpuprov::model::spec::MachineSpec;
use gpuprov::model::want::Cluster;
use gpuprov::provision::wait::disagreement;
use tokio::net::TcpStream;

use self::reach::{forward, log_in};
use self::stage::{Set, Stage, WRONG, stages};

#[derive(Default)]
struct Noted(Mutex<Vec<Resource>>);

impl Journal for Noted {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        self.0.lock().unwrap().push(resource.clone());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_say_what_they_cost_and_can_be_asked_for_again() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let batch = set.cloud.offers(&set.want).await.unwrap();
        assert!(!batch.offers.is_empty() && !batch.known_gpus.is_empty(), "{}", stage.name);
        for offer in &batch.offers {
            assert_eq!(offer.price_per_hour, offer.price_parts.total(), "{}: {offer:?}", stage.name);
            assert!(offer.disk_gb >= set.want.disk_gb && offer.sandbox, "{}: {offer:?}", stage.name);
            assert!(offer.id.len() <= 200, "{}: {}", stage.name, offer.id);
            let key = OfferKey::decode(&offer.id).unwrap();
            assert_eq!(key.account, offer.account, "{}", stage.name);
            assert_eq!(
                (key.instance_type, key.gpu_count, key.zone, key.price, key.spot, key.disk_gb),
                (
                    offer.instance_type.clone(),
                    offer.gpu_count,
                    offer.zone.clone(),
                    offer.price_per_hour,
                    offer.spot,
                    offer.disk_gb
                ),
                "{}",
                stage.name
            );
        }
        let offer = set.cheapest().await;
        let key = OfferKey::decode(&offer.id).unwrap();
        match set.cloud.recheck(&key, &set.want).await.unwrap() {
            Recheck::Offered(fresh) => {
                assert_eq!(
                    (fresh.price_per_hour, fresh.zone, fresh.id),
                    (offer.price_per_hour, offer.zone, offer.id)
                );
            }
            Recheck::Gone(why) => panic!("{}: {why}", stage.name),
        }
        let nowhere = OfferKey { zone: Some("XX-NOWHERE-9".to_owned()), own: Some("1.1".to_owned()), ..key };
        let gone = set.cloud.recheck(&nowhere, &set.want).await.unwrap();
        assert!(matches!(gone, Recheck::Gone(_)), "{}", stage.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_made_found_reached_and_deleted() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let offer = set.cheapest().await;
        let (key, public) = set.key().await;
        let mark = set.mark();
        let spec = MachineSpec {
            name: "dev".parse().unwrap(),
            public_key: public,
            image: None,
            env: vec![("GREETING".to_owned(), Secret::new("hello".to_owned()))],
            ports: Vec::new(),
            cluster: Cluster::Off,
        };
        let preview = set.cloud.preview(&offer, &spec, &mark);
        assert!(!preview.body.to_string().contains("hello"), "{}: a value in the dry run", stage.name);

        let noted = Noted::default();
        let created = set.cloud.create(&offer, &spec, &mark, &noted).await.unwrap();
        let handle = created.handle;
        let machine = noted.0.lock().unwrap().iter().find(|made| made.kind == ResourceKind::Machine).cloned();
        assert_eq!(
            machine.map(|made| made.id),
            Some(handle.id.clone()),
            "{}: not in the journal",
            stage.name
        );
        assert_eq!(set.sandbox.alive().len(), 1, "{}", stage.name);

        let address = reachable(&stage, &set, &handle, &offer).await;
        log_in(&key, &address).await;
        forward(&key, &address).await;
        finds(&stage, &set, &handle, &mark).await;

        let handle = Handle {
            side: noted
                .0
                .lock()
                .unwrap()
                .iter()
                .filter(|made| made.kind != ResourceKind::Machine)
                .cloned()
                .collect(),
            ..handle
        };
        for _ in 0..2 {
            delete(&stage, &set, &handle).await;
            let look = set.cloud.inspect(&handle).await.unwrap();
            assert_eq!(look.state, MachineState::Gone, "{}", stage.name);
        }
        assert!(set.sandbox.alive().is_empty(), "{}", stage.name);
        let left = set.sandbox.verda().left();
        assert!(left.is_empty(), "{}: {left:#?}", stage.name);
        let left = set.sandbox.nebius().left();
        assert!(left.is_empty(), "{}: {left:#?}", stage.name);
        // An operation may end a little after its machine.
        for _ in 0..100 {
            if set.sandbox.gcp().left().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left = set.sandbox.gcp().left();
        assert!(left.is_empty(), "{}: {left:#?}", stage.name);
        let harmed = [set.sandbox.gcp().harmed().len(), set.sandbox.verda().harmed().len()];
        assert_eq!(harmed, [0, 0], "{}", stage.name);
        assert!(
            set.cloud.find(&Which::AnyMarked).await.unwrap().is_empty(),
            "{}: something is left",
            stage.name
        );
        assert!(set.sandbox.rejected().is_empty(), "{}: {:#?}", stage.name, set.sandbox.rejected());
        let foreign = set.sandbox.ledger().iter().filter(|entry| entry.alive).count();
        assert!(foreign > 0, "{}: the foreign machine is gone", stage.name);
    }
}

/// Looks until an address is told, and holds what was sold against the offer.
async fn reachable(stage: &Stage, set: &Set, handle: &Handle, offer: &Offer) -> SshAddress {
    for _ in 0..200 {
        let look = set.cloud.inspect(handle).await.unwrap();
        assert!(look.failed.is_none(), "{}: {look:?}", stage.name);
        assert_eq!(disagreement(offer, &look.sold), None, "{}", stage.name);
        if let Some(address) = look.ssh.into_iter().next()
            && TcpStream::connect((address.host(), address.port())).await.is_ok()
        {
            return address;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}: never reachable", stage.name);
}

async fn finds(stage: &Stage, set: &Set, handle: &Handle, mark: &Mark) {
    let claim = Which::Claim(mark.installation.clone(), mark.claim);
    let mut found = Vec::new();
    for _ in 0..100 {
        found = set.cloud.find(&claim).await.unwrap();
        if !found.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let machines: Vec<_> = found.iter().filter(|found| found.kind == ResourceKind::Machine).collect();
    assert_eq!(machines.len(), 1, "{}: {found:?}", stage.name);
    assert_eq!((&machines[0].handle.id, &machines[0].mark), (&handle.id, mark), "{}", stage.name);
    for (which, count) in [
        (Which::Installation(mark.installation.clone()), 1),
        (Which::AnyMarked, 1),
        (Which::Claim(mark.installation.clone(), Claim::random().unwrap()), 0),
        (Which::Installation("another".parse().unwrap()), 0),
    ] {
        let found = set.cloud.find(&which).await.unwrap();
        let machines = found.iter().filter(|found| found.kind == ResourceKind::Machine).count();
        assert_eq!(machines, count, "{}: {which:?}", stage.name);
    }
}

async fn delete(stage: &Stage, set: &Set, handle: &Handle) {
    for _ in 0..200 {
        if set.cloud.delete(handle).await.unwrap() == Deletion::Gone {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}: never gone", stage.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_told_apart() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let mine = set.cloud.check().await.unwrap();
        assert!(mine.is_same(&set.cloud.identity()), "{}", stage.name);
        assert!(!mine.is_same(&set.stranger.identity()), "{}", stage.name);
        let wrong = set.stranger.check().await.unwrap_err();
        assert_eq!(wrong.kind, ErrorKind::Auth, "{}: {wrong}", stage.name);
        let wrong = set.stranger.offers(&set.want).await.unwrap_err();
        assert_eq!(wrong.kind, ErrorKind::Auth, "{}: {wrong}", stage.name);
        assert!(!format!("{wrong:?}").contains(WRONG), "{}", stage.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_was_is_gone() {
    for stage in stages() {
        let set = Set::up(&stage).await;
        let never = Handle::new(stage.never);
        assert_eq!(set.cloud.inspect(&never).await.unwrap().state, MachineState::Gone, "{}", stage.name);
        assert_eq!(set.cloud.delete(&never).await.unwrap(), Deletion::Gone, "{}", stage.name);
        for odd in ["", ".", "..", "a/b", "?x=1"] {
            let look = set.cloud.inspect(&Handle::new(odd)).await;
            assert!(look.is_err() || look.unwrap().state == MachineState::Gone, "{}: {odd}", stage.name);
        }
        assert!(
            set.sandbox.ledger().iter().any(|entry| entry.alive),
            "{}: the foreign machine is gone",
            stage.name
        );
    }
}
