//! `gpuprov completions`: the scripts in the shells that are there.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use crate::support::{Ran, World, finish};

/// A world that knows two machines and a second account; our program is in PATH.
async fn world() -> World {
    let mut world = World::new().await;
    world.config("[account.\"runpod/lab\"]\napi_key = \"rpa_lab\"\n");
    for name in ["dev", "train-1"] {
        // Names are all that is looked at: not even a broken record is in the way.
        world.write(&format!(".local/state/gpuprov/machines/{name}.json"), "{");
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_gpuprov")).parent().unwrap();
    let mut path = OsString::from(program);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    world.set("PATH", path);
    world
}

/// Types `line` in bash, whose words break at `:` and `=`, and returns what a Tab would offer.
async fn bash(world: &World, line: &str) -> Vec<String> {
    let mut shell = world.program("bash");
    shell.arg("-c").arg(
        r#"source <(gpuprov completions bash)
        [[ $(complete -p gpuprov) == *_gpuprov* ]] || exit 9
        COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
        COMP_LINE=$1 COMP_POINT=${#1}
        read -ra COMP_WORDS <<<"$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _gpuprov
        (( ${#COMPREPLY[@]} )) && printf '%s\n' "${COMPREPLY[@]}"
        exit 0"#,
    );
    shell.arg("bash").arg(line);
    let ran = finish(shell).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line}: {ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_knows_machines_accounts_and_gpus() {
    let world = world().await;
    for (line, offered) in [
        ("gpuprov prov", &["provision"][..]),
        ("gpuprov ssh d", &["dev"]),
        ("gpuprov ssh root@d", &["root@dev"]),
        ("gpuprov rm ", &["dev", "train-1"]),
        ("gpuprov ls dev t", &["train-1"]),
        ("gpuprov provision --gpus RTX409", &["RTX4090", "RTX4090-48GB", "RTX4090D", "RTX4090D-48GB"]),
        ("gpuprov provision --gpus l40", &["L40", "L40S"]),
        ("gpuprov provision --gpus H100,l40s", &["H100,L40S"]),
        ("gpuprov provision --gpus=l40s", &["L40S"]),
        ("gpuprov offers --cloud run", &["runpod", "runpod/default", "runpod/lab"]),
        ("gpuprov offers --cloud runpod/l", &["runpod/lab"]),
        ("gpuprov provision --ttl", &["--ttl"]),
        ("gpuprov completions b", &["bash"]),
        ("gpuprov ssh nobody", &[]),
        ("gpuprov offers --gpus RTX4090:", &[]),
    ] {
        let mut answers = bash(&world, line).await;
        answers.retain(|answer| !answer.starts_with('-') || line.contains("--ttl"));
        assert_eq!(answers, offered, "{line}");
    }
    assert_eq!(world.sandbox.requests().len(), 0, "a cloud was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_quick_and_nothing_stands_in_its_way() {
    let world = world().await;
    world.write(".config/gpuprov/config.toml", "this is no configuration");
    let begun = Instant::now();
    let ran = world.run("completions bash -- gpuprov ssh d").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\n"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    // The sandbox's machines, of which there are none: no daemon is started for a Tab.
    let ran = world.run("completions bash -- gpuprov --sandbox ssh d").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert!(!world.home().join(".cache").exists());
    assert_eq!(world.run("completions tcsh").await.code, 2);
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&format!("completion {shell}")).await;
        assert!(script.code == 0 && script.stdout.contains(&format!("completions {shell} --")), "{script:?}");
    }
}

async fn shell(world: &World, program: &str, script: &str) -> Option<Ran> {
    let path = std::env::var_os("PATH").unwrap();
    if !std::env::split_paths(&path).any(|folder| folder.join(program).exists()) {
        return None;
    }
    let mut shell = world.program(program);
    shell.arg("-c").arg(script);
    Some(finish(shell).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn fish_and_zsh_take_their_scripts_where_they_are_there() {
    let world = world().await;
    let fish = "gpuprov completions fish | source; complete -C 'gpuprov ssh d'; complete -C 'gpuprov offers --cloud runpod/l'";
    if let Some(ran) = shell(&world, "fish", fish).await {
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\nrunpod/lab\n"), "{ran:?}");
    }
    // What zsh's own `compadd` would get.
    let zsh = r#"autoload -Uz compinit; compinit -u -D; source <(gpuprov completions zsh)
        compadd() { print -rl -- "${values[@]}" }
        words=(gpuprov ssh d); CURRENT=3; _gpuprov
        words=(gpuprov offers --cloud runpod/l); CURRENT=4; _gpuprov
        print -r -- $_comps[gpuprov]"#;
    if let Some(ran) = shell(&world, "zsh", zsh).await {
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "dev\nrunpod/lab\n_gpuprov\n"), "{ran:?}");
    }
}
