//! `--ttl` and `rm --expired`.

use std::time::Duration;

use gpuprov::sandbox::PodSeed;
use serde_json::json;

use crate::support::World;

/// A machine that another computer of the installation made.
fn unrecorded(world: &World, installation: &str, name: &str, claim: &str, expires: &str) -> String {
    let mark = format!("v1:{installation}:default:{name}:{claim}:{expires}:");
    let env = [("GPUPROV_MARK".to_owned(), mark)].into_iter().collect();
    let seed = PodSeed { name: name.to_owned(), env, ..PodSeed::default() };
    world.sandbox.add_pod(world.sandbox.runpod_key(), &seed).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_goes_and_everything_else_stays() {
    let mut world = World::new().await;
    world.set("GPUPROV_INSTALLATION", "team-ci");
    let brief = world.run("provision --gpus RTX4090:1 --name brief --ttl 1s").await;
    assert_eq!(brief.code, 0, "{brief:?}");
    assert!(
        brief.stderr.contains("`gpuprov rm --expired` does") && brief.stderr.contains("`team-ci`"),
        "{brief:?}"
    );
    let long = world.run("provision --gpus RTX4090:1 --name long --ttl 2h").await;
    assert!(long.stderr.contains("is to end in 1 h 59 m"), "{long:?}");
    world.provision("endless").await;
    let now = jiff::Timestamp::now().as_second();
    let over = unrecorded(&world, "team-ci", "over", "00000000000000a1", &(now - 60).to_string());
    let later = unrecorded(&world, "team-ci", "later", "00000000000000a2", &(now + 600).to_string());
    let theirs = unrecorded(&world, "other-team", "theirs", "00000000000000a3", &(now - 60).to_string());
    tokio::time::sleep(Duration::from_millis(400)).await;

    // The mark says the same as the record.
    let made = world.sandbox.ledger().into_iter().find(|entry| entry.name.contains("brief")).unwrap();
    let (_, list) = world.json("ls brief").await;
    let end: jiff::Timestamp = list["machines"][0]["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(made.env["GPUPROV_MARK"].contains(&format!(":{}:", end.as_second())), "{:?}", made.env);
    let table = world.run("ls").await.stdout;
    assert!(table.lines().next().unwrap().contains("ENDS IN"), "{table}");
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(
        row("brief").contains("over") && row("long").ends_with("1h") && row("over").contains("over"),
        "{table}"
    );

    // Without a terminal it wants a yes, and changes nothing before.
    assert_eq!(world.run("rm --expired").await.code, 2);
    let (code, removed) = world.json("rm --expired --yes").await;
    let mut names: Vec<&str> =
        removed["removed"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!((code, names), (0, vec!["brief", "over"]), "{removed}");
    let alive: Vec<String> = world.sandbox.alive().into_iter().map(|entry| entry.id).collect();
    assert!(!alive.contains(&over) && alive.contains(&later) && alive.contains(&theirs), "{alive:?}");
    assert_eq!(alive.len(), 4);
    let (code, again) = world.json("rm --expired --yes").await;
    assert_eq!((code, &again["removed"]), (0, &json!([])));
    assert_eq!(world.run("rm --all --yes").await.code, 0);
    assert_eq!(world.sandbox.alive().len(), 1, "only the other team's");
    world.assert_clean();
}
