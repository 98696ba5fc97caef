//! The main line: offers, provision, ssh, ls, rm.

use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_from_the_list_to_its_end() {
    let world = World::new().await;
    let offers = world.run("offers --gpus RTX4090:1").await;
    assert_eq!(offers.code, 0, "{offers:?}");
    assert!(offers.stdout.lines().nth(1).unwrap().starts_with("0.3469"), "{}", offers.stdout);

    let made = world.provision("dev").await;
    assert_eq!(made.stdout, "dev\n");
    let smi = world.run("ssh dev -- nvidia-smi --query-gpu=name --format=csv,noheader").await;
    assert_eq!((smi.code, smi.stdout.as_str()), (0, "NVIDIA GeForce RTX 4090\n"), "{smi:?}");
    let list = world.run("ls").await;
    assert!(list.stdout.contains("running"), "{list:?}");

    let removed = world.run("rm dev --yes").await;
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "dev\n"), "{removed:?}");
    assert!(removed.stderr.contains("it cost "), "{}", removed.stderr);
    world.assert_empty();
}
