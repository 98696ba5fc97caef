//! The machines as this computer knows them: whether plain ssh finds them, and what their records say.

use jiff::Timestamp;

use super::Checks;
use super::local::files;
use crate::cli::context::App;
use crate::model::machine::MachineState;
use crate::ssh::examine::destination;
use crate::state::abandoned::Watch;
use crate::state::machines::{Entry, Registry};

/// Asks ssh itself whether it finds our machines through the user's configuration.
pub(super) async fn ssh_config(app: &App, checks: &mut Checks) {
    const NAME: &str = "ssh config";
    let files = files(app);
    let first = files.as_ref().and_then(|files| files.blocks().ok()?.into_iter().next());
    let (Some(ssh), Some(files), Some(name)) = (app.program("ssh"), files, first) else {
        return checks.good(NAME, "no machine to look for; `provision` adds what plain ssh needs");
    };
    let ours = match destination(&ssh, Some(&files.config_file()), name.as_str()).await {
        Ok(ours) => ours,
        Err(why) => {
            let file = files.config_file();
            let message = format!("ssh does not take `{}`: {why}", file.display());
            return checks.bad(NAME, message, format!("`gpuprov ssh {name}` writes it again"));
        }
    };
    if app.config.ssh.manage_config == Some(false) {
        return checks.good(NAME, "left alone, because `ssh.manage_config` is false");
    }
    match destination(&ssh, None, name.as_str()).await {
        Ok(plain) if plain == ours => checks.good(NAME, format!("`ssh {name}` goes to the machine")),
        Ok(_) => checks.bad(
            NAME,
            format!("plain `ssh {name}` does not go to the machine: our Include is not in effect"),
            format!("make `Include \"{}/*.conf\"` the first line of ~/.ssh/config", files.dir().display()),
        ),
        Err(why) => {
            checks.bad(NAME, format!("ssh does not take your configuration: {why}"), "correct ~/.ssh/config")
        }
    }
}

/// Looks for records that need somebody: unreadable ones, interrupted machines, claims without an answer.
pub(super) fn records(app: &App, checks: &mut Checks) {
    let open =
        Registry::open(&app.paths.state).and_then(|registry| registry.list().map(|list| (registry, list)));
    let (registry, entries) = match open {
        Ok(opened) => opened,
        Err(error) => return checks.bad("records", error.to_string(), "make the state directory readable"),
    };
    let mut wrong = false;
    for entry in &entries {
        match entry {
            Entry::Unreadable(unreadable) => {
                wrong = true;
                let message = format!(
                    "`{}` cannot be read ({}); its machine may still run",
                    unreadable.name, unreadable.why
                );
                let fix = if unreadable.newer {
                    "update gpuprov".to_owned()
                } else {
                    format!("look at the cloud's own page, then `gpuprov rm --forget {}`", unreadable.name)
                };
                checks.bad("records", message, fix);
            }
            Entry::Record(record) => {
                let on_its_way = matches!(record.state, MachineState::Creating | MachineState::Deleting);
                let on_its_way = on_its_way || record.state == MachineState::Booting;
                if on_its_way && !registry.is_held(&record.name) {
                    wrong = true;
                    let message = format!(
                        "`{}` was interrupted while `{}`; it may cost money",
                        record.name, record.state
                    );
                    checks.bad("records", message, format!("gpuprov rm {}", record.name));
                }
            }
        }
    }
    if !wrong {
        checks.good(
            "records",
            match entries.len() {
                0 => "no machines".to_owned(),
                1 => "1 machine".to_owned(),
                count => format!("{count} machines"),
            },
        );
    }
    match Watch::open(&app.paths.state).and_then(|watch| watch.peek(Timestamp::now())) {
        Err(error) => checks.bad("claims", error.to_string(), "make the state directory readable"),
        Ok(claims) if claims.is_empty() => checks.good("claims", "no create is without an answer"),
        Ok(claims) => {
            for claim in claims {
                let message = format!(
                    "a create of `{}` at {} got no answer on {}; every `gpuprov ls` looks for its machine until {}",
                    claim.name,
                    claim.account,
                    claim.since.strftime("%Y-%m-%d %H:%M"),
                    claim.until.strftime("%Y-%m-%d %H:%M")
                );
                checks.bad("claims", message, "gpuprov ls");
            }
        }
    }
}
