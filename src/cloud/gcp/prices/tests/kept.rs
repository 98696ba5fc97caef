//! Fetching, keeping, refusing.

use std::fs;
use std::sync::Mutex;

use super::*;
use crate::http::ClientOptions;
use crate::http::canned::{Canned, Reply};

/// What both servers say; changed while the test goes on.
#[derive(Clone)]
struct World {
    gpuhunt: Arc<Mutex<Reply>>,
    skypilot: Arc<Mutex<Reply>>,
}

fn body(bytes: &[u8], headers: &str) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", bytes.len());
    Reply::Raw([head.as_bytes(), bytes].concat())
}

fn zip(rows: &[String]) -> Reply {
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    body(&packed(&[("gcp.csv", hunted(&rows).as_bytes())]), "")
}

fn l4_rows() -> Vec<String> {
    let zones = ["us-central1-a", "us-central1-b", "us-central1-c", "us-east1-b"];
    zones.iter().map(|zone| hunted_row("g2-standard-4", 1, zone, false, 0.706_832)).collect()
}

impl World {
    async fn start() -> (Self, Canned) {
        let world = World {
            gpuhunt: Arc::new(Mutex::new(zip(&l4_rows()))),
            skypilot: Arc::new(Mutex::new(body(SAMPLE.as_bytes(), ""))),
        };
        let served = world.clone();
        let server = Canned::start(move |asked, _| match asked.line.as_str() {
            "GET /prices/gpuhunt/catalog.zip" => served.gpuhunt.lock().unwrap().clone(),
            "GET /prices/skypilot/vms.csv" => served.skypilot.lock().unwrap().clone(),
            other => panic!("{other}"),
        })
        .await;
        (world, server)
    }

    fn gpuhunt(&self, reply: Reply) {
        *self.gpuhunt.lock().unwrap() = reply;
    }

    fn skypilot(&self, reply: Reply) {
        *self.skypilot.lock().unwrap() = reply;
    }
}

fn catalogues(server: &Canned, cache: Option<&std::path::Path>) -> Catalogues {
    let setup = Setup {
        account: "gcp/default".parse().unwrap(),
        endpoint: server.base.clone(),
        loopback: true,
        timeout: Duration::from_secs(2),
        secret_mark: "0123456789abcdef".to_owned(),
        cache: cache.map(std::path::Path::to_owned),
        grace: None,
        poll: None,
        boot_timeout: None,
    };
    let options = ClientOptions { backoff: Duration::from_millis(1), ..ClientOptions::default() };
    Catalogues::new(&setup, Some(&server.base), &Client::new(options))
}

fn l4() -> Vec<&'static Shape> {
    vec![find("g2-standard-4", 1).unwrap()]
}

fn l4_price(prices: &Prices) -> Option<(i64, bool)> {
    micros(prices, "g2-standard-4", 1, "us-central1-a", false)
}

/// Makes what is kept older, by rewriting the time in it.
fn age(cache: &std::path::Path, by: jiff::Span) {
    for entry in fs::read_dir(cache.join("gcp-prices")).unwrap().flatten() {
        let mut kept: serde_json::Value = serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap();
        for field in ["fetched_at", "as_of"] {
            let at: Timestamp = kept[field].as_str().unwrap().parse().unwrap();
            kept[field] = at.checked_sub(by).unwrap().to_string().into();
        }
        fs::write(entry.path(), kept.to_string()).unwrap();
    }
}

fn hours(count: i64) -> jiff::Span {
    jiff::Span::new().hours(count)
}

#[tokio::test]
async fn each_is_fetched_once_an_hour_by_whoever_comes() {
    let (_, server) = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let first = catalogues(&server, Some(folder.path()));
    for _ in 0..3 {
        let prices = first.prices(&l4()).await;
        assert_eq!(l4_price(&prices), Some((706_832, false)));
        assert_eq!(prices.notes, [""; 0]);
    }
    let another = catalogues(&server, Some(folder.path()));
    another.prices(&l4()).await;
    assert_eq!(server.lines(), ["GET /prices/gpuhunt/catalog.zip"]);
    age(folder.path(), hours(2));
    catalogues(&server, Some(folder.path())).prices(&l4()).await;
    assert_eq!(server.lines().len(), 2);
    // H200 is only in the other one, and so are machines without a GPU; both are asked for at once.
    let h200 = find("a3-ultragpu-8g", 8).unwrap();
    let both = catalogues(&server, Some(folder.path())).prices(&[l4()[0], h200]).await;
    assert_eq!(server.lines().len(), 3);
    assert!(micros(&both, "a3-ultragpu-8g", 8, "us-east4-b", true).is_some() && l4_price(&both).is_some());
}

#[tokio::test]
async fn two_accounts_fetch_once() {
    let (world, server) = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let account = || catalogues(&server, Some(folder.path()));
    let ask = async |account: Catalogues| l4_price(&account.prices(&l4()).await);
    let both = futures_util::future::join(ask(account()), ask(account())).await;
    assert_eq!(both, (Some((706_832, false)), Some((706_832, false))));
    assert_eq!(server.lines().len(), 1);
    world.gpuhunt(Reply::Answer(404, String::new(), String::new()));
    age(folder.path(), hours(2));
    let (one, two) = (account(), account());
    let machines = l4();
    let (one, two) = futures_util::future::join(one.prices(&machines), two.prices(&machines)).await;
    assert!(one.notes[0].contains("404") && two.notes[0].contains("404"));
}

#[tokio::test]
async fn the_age_is_what_the_source_tells_of_it() {
    let (world, server) = World::start().await;
    let text = hunted(&l4_rows().iter().map(String::as_str).collect::<Vec<_>>());
    let told = |headers: &str| body(&packed(&[("gcp.csv", text.as_bytes())]), headers);
    world.gpuhunt(told("last-modified: Mon, 02 Nov 2020 08:05:00 GMT\r\n"));
    let prices = catalogues(&server, None).prices(&l4()).await;
    let Answer::Price(price) = answer(&prices, "g2-standard-4", 1, "us-central1-a", false) else { panic!() };
    assert_eq!(price.as_of.to_string(), "2020-11-02T08:05:00Z");
    assert!(prices.notes[0].contains("old"), "{:?}", prices.notes);
    world.gpuhunt(told("last-modified: soon\r\n"));
    let prices = catalogues(&server, None).prices(&l4()).await;
    let Answer::Price(price) = answer(&prices, "g2-standard-4", 1, "us-central1-a", false) else { panic!() };
    assert!(Timestamp::now().duration_since(price.as_of).as_secs() < 60);
}

#[tokio::test]
async fn the_last_good_copy_stands_in_with_its_age_for_a_week() {
    let (world, server) = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    catalogues(&server, Some(folder.path())).prices(&l4()).await;
    let half: Vec<String> = l4_rows().into_iter().take(2).collect();
    let cheap: Vec<String> = ["us-central1-a", "us-central1-b", "us-central1-c", "us-east1-b"]
        .iter()
        .map(|zone| hunted_row("g2-standard-4", 1, zone, false, 0.07))
        .collect();
    let bad = [
        (Reply::Close, "lost"),
        (body(b"<html>", ""), "no zip"),
        (Reply::Answer(404, String::new(), "x".to_owned()), "status 404"),
        (zip(&half), "only half"),
        (zip(&cheap), "far off"),
        (body(&packed(&[("gcp.csv", b"a,b\n1,2\n")]), ""), "header"),
        (zip(&[]), "no price"),
    ];
    for (reply, word) in bad.clone() {
        world.gpuhunt(reply);
        age(folder.path(), hours(3));
        let again = catalogues(&server, Some(folder.path()));
        let prices = again.prices(&l4()).await;
        assert_eq!(l4_price(&prices), Some((706_832, false)), "{word}");
        assert!(prices.notes[0].contains(word) && prices.notes[0].contains(" ago"), "{:?}", prices.notes);
        let asked = server.lines().len();
        again.prices(&l4()).await;
        assert_eq!(server.lines().len(), asked, "the re-checks of one command do not ask again");
        assert!(!server.lines().iter().any(|line| line.contains("skypilot")));
    }
    // A good one of the same size is taken again.
    world.gpuhunt(zip(&l4_rows()));
    assert_eq!(catalogues(&server, Some(folder.path())).prices(&l4()).await.notes, [""; 0]);
    world.gpuhunt(Reply::Close);
    age(folder.path(), hours(169));
    let prices = catalogues(&server, Some(folder.path())).prices(&l4()).await;
    assert_eq!(l4_price(&prices), Some((706_830, false)), "the other catalogue's");
}

#[tokio::test]
async fn one_stands_in_for_the_other_and_without_both_there_is_no_price() {
    let (world, server) = World::start().await;
    world.gpuhunt(Reply::Hang);
    let before = tokio::time::Instant::now();
    let prices = catalogues(&server, None).prices(&l4()).await;
    assert_eq!(l4_price(&prices), Some((706_830, false)));
    assert!(prices.notes[0].contains("gpuhunt's catalogue"), "{:?}", prices.notes);
    assert!(before.elapsed() < Duration::from_secs(2), "there is time left for it");
    world.gpuhunt(zip(&[hunted_row("n2-standard-8", 0, "us-east4-a", false, 0.437_511)]));
    world.skypilot(Reply::Answer(500, String::new(), String::new()));
    let machines = [find("n2-standard-8", 0).unwrap(), find("c3-highmem-8", 0).unwrap()];
    let prices = catalogues(&server, None).prices(&machines).await;
    assert_eq!(micros(&prices, "n2-standard-8", 0, "us-east4-a", false), Some((437_511, false)));
    assert_eq!(micros(&prices, "c3-highmem-8", 0, "us-east4-a", false), None);
    world.gpuhunt(Reply::Close);
    let prices = catalogues(&server, None).prices(&machines).await;
    assert!(prices.missing().unwrap().contains("status 500"));
}

#[tokio::test]
async fn a_broken_or_foreign_copy_on_disk_is_none() {
    let (world, server) = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    catalogues(&server, Some(folder.path())).prices(&l4()).await;
    world.gpuhunt(Reply::Close);
    let path = fs::read_dir(folder.path().join("gcp-prices")).unwrap().flatten().next().unwrap().path();
    let whole = fs::read(&path).unwrap();
    let later = serde_json::json!("2099-01-01T00:00:00Z");
    for (what, change) in
        [("version", serde_json::json!(2)), ("fetched_at", later), ("table", serde_json::json!(7))]
    {
        let mut kept: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        kept[what] = change;
        fs::write(&path, kept.to_string()).unwrap();
        let prices = catalogues(&server, Some(folder.path())).prices(&l4()).await;
        assert_eq!(l4_price(&prices), Some((706_830, false)), "{what}: the other catalogue's");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(
        l4_price(&catalogues(&server, Some(folder.path())).prices(&l4()).await),
        Some((706_832, false))
    );
}
