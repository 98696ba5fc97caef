//! `docs/reference.md`: every command, flag, variable, config key, exit code and kind, from the places that declare them.
//!
//! A test compares the page with this, so that it cannot fall behind.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::cli::Cli;
use crate::cli::failure::Exit;
use crate::cloud::ErrorKind;
use crate::provision::failure::Kind;
use crate::state::config::{
    Defaults, GcpTable, Key, NebiusTable, RunpodTable, SshTable, VastTable, VerdaTable, WaitTable,
};
use crate::state::env;

const HEAD: &str = "\
# Reference

Made from the program itself by `UPDATE_DOCS=1 cargo test --test it reference`; a test fails when it is not up to date. What the
JSON documents hold stands in [json.md](json.md), what to do about a failure in [errors.md](errors.md).

Lists are comma separated, and their flags can be given more than once. A DURATION is `200ms`, `90s`, `15m`, `2h`, `1d`, or a
bare number of seconds.
";

const CONFIG: &str = "\
A TOML file, `~/.config/gpuprov/config.toml` unless `--config` or a variable says otherwise; every key is optional. An unknown key
or a wrong type ends every command with code 2 and names file, line and the nearest key. A flag wins over its key. A cloud's table
holds for all its accounts; `[account.\"CLOUD/NAME\"]` takes the same keys for one account.
";

/// Returns the page.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    let mut cli = Cli::command();
    cli.build();
    page.push_str("\n## Commands\n");
    for command in shown(&cli) {
        write_command(&mut page, command, 3);
    }
    page.push_str("\n## Global options\n\n");
    cli.get_arguments().filter(|arg| is_listed(arg, true)).for_each(|arg| write_arg(&mut page, arg));
    page.push_str("\n## Variables\n\nAn empty variable counts as unset.\n\n");
    for variable in env::ALL {
        let secret = if variable.secret { " Secret." } else { "" };
        let _ = writeln!(page, "- `{}`: {}{secret}", variable.name, variable.doc);
    }
    let _ = write!(page, "\n## Config file\n\n{CONFIG}");
    for (name, keys) in tables() {
        let _ = writeln!(page, "\n### `[{name}]`\n");
        for Key { name, doc } in keys {
            let _ = writeln!(page, "- `{name}`: {}", doc.trim());
        }
    }
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for exit in EXITS {
        let _ = writeln!(page, "| {} | {} |", exit.code(), meaning_of_exit(exit));
    }
    page.push_str(
        "\n`gpuprov ssh` ends with the remote command's code; what goes wrong on this side is 255.\n",
    );
    page.push_str("\n## Kinds of failure\n\n| `kind` | meaning | code |\n|---|---|---|\n");
    for kind in kinds() {
        let code = if kind == Kind::Note { "-".to_owned() } else { Exit::of(kind).code().to_string() };
        let _ = writeln!(page, "| `{}` | {} | {code} |", kind.as_str(), meaning_of_kind(kind));
    }
    // An empty note leaves blank lines behind.
    while page.contains("\n\n\n") {
        page = page.replace("\n\n\n", "\n\n");
    }
    page
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn is_listed(arg: &Arg, global: bool) -> bool {
    let own = !matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
    own && !arg.is_hide_set() && (arg.is_global_set() || arg.get_id() == "version") == global
}

fn write_command(page: &mut String, command: &Command, depth: usize) {
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(page, "\n{} `{name}`\n", "#".repeat(depth));
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    about.split("\n\n").for_each(|paragraph| {
        let _ = writeln!(page, "{}\n", sentence(paragraph));
    });
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        let _ = writeln!(page, "Also: {}.\n", aliases.join(", "));
    }
    let _ = writeln!(page, "```text\n{}\n```\n", usage.join(" "));
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| is_listed(arg, false)).collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    headings.sort_by_key(Option::is_some);
    for (at, group) in headings.into_iter().enumerate() {
        if let Some(name) = group {
            let gap = if at > 0 { "\n" } else { "" };
            let _ = writeln!(page, "{gap}{name}:\n");
        }
        args.iter().filter(|arg| arg.get_help_heading() == group).for_each(|arg| write_arg(page, arg));
    }
    for command in shown(command) {
        write_command(page, command, depth + 1);
    }
}

fn write_arg(page: &mut String, arg: &Arg) {
    let value = arg
        .get_value_names()
        .filter(|_| arg.get_action().takes_values())
        .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .unwrap_or_default();
    let mut spellings = Vec::new();
    spellings.extend(arg.get_short().map(|short| format!("-{short}")));
    spellings.extend(arg.get_long().map(|long| format!("--{long}")));
    spellings.extend(arg.get_all_aliases().unwrap_or_default().iter().map(|alias| format!("--{alias}")));
    let optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    let value = match (spellings.is_empty(), optional, value.as_str()) {
        (true, ..) => value,
        (_, _, "") => String::new(),
        (_, true, _) => format!("[={value}]"),
        _ => format!(" {value}"),
    };
    let spellings: Vec<String> = match spellings.is_empty() {
        true => vec![format!("`{value}`")],
        false => spellings.iter().map(|spelling| format!("`{spelling}{value}`")).collect(),
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut line = format!("- {}: {}", spellings.join(", "), sentence(&help));
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        let _ = write!(line, " One of {}.", values.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.display())).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(line, " Default: {}.", defaults.join(", "));
    }
    page.push_str(&line);
    page.push('\n');
}

/// Ends a help text, which has no full stop at its end, with one.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':']) { text.to_owned() } else { format!("{text}.") }
}

fn tables() -> [(&'static str, &'static [Key]); 8] {
    [
        ("defaults", Defaults::KEYS),
        ("ssh", SshTable::KEYS),
        ("wait", WaitTable::KEYS),
        ("runpod", RunpodTable::KEYS),
        ("vast", VastTable::KEYS),
        ("verda", VerdaTable::KEYS),
        ("gcp", GcpTable::KEYS),
        ("nebius", NebiusTable::KEYS),
    ]
}

const EXITS: [Exit; 9] = [
    Exit::Done,
    Exit::Failed,
    Exit::Usage,
    Exit::Nothing,
    Exit::Credentials,
    Exit::NotReady,
    Exit::LeftRunning,
    Exit::SetupFailed,
    Exit::Interrupted,
];

fn meaning_of_exit(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => {
            "done; an empty list is done too, and so is removing a machine that the cloud provably no longer has"
        }
        Exit::Failed => "failed, and nothing of it costs money",
        Exit::Usage => "wrong usage, or refused before any request that costs",
        Exit::Nothing => "nothing offered, no offer could be had, or only above the price limit",
        Exit::Credentials => "no account connected, or credentials refused by every account that could serve",
        Exit::NotReady => "created but not ready in time; removed again",
        Exit::LeftRunning => {
            "**something may still be running and cost money**; stderr names it. Wins over every other code"
        }
        Exit::SetupFailed => "the machine runs and is kept, but what was asked on top of it failed",
        Exit::Interrupted => "interrupted by INT, TERM or HUP, and nothing is left",
        Exit::Other(_) => "what another program ended with",
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    let ours = [
        Kind::Usage,
        Kind::Refused,
        Kind::Unsupported,
        Kind::NameTaken,
        Kind::NoAccount,
        Kind::NothingOffered,
        Kind::TooDear,
        Kind::NotReady,
        Kind::SetupFailed,
        Kind::LeftRunning,
        Kind::Removed,
        Kind::Local,
        Kind::Note,
    ];
    let clouds = [
        ErrorKind::NoCapacity,
        ErrorKind::Quota,
        ErrorKind::Auth,
        ErrorKind::Forbidden,
        ErrorKind::Balance,
        ErrorKind::Rejected,
        ErrorKind::RateLimited,
        ErrorKind::Unavailable,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Unreadable,
        ErrorKind::Timeout,
        ErrorKind::Interrupted,
    ];
    ours.into_iter().chain(clouds.map(Kind::Cloud))
}

fn meaning_of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Usage => "wrong usage",
        Kind::Refused => "refused before any request that costs",
        Kind::Unsupported => "a wish that no account can honour",
        Kind::NameTaken => "the name is taken",
        Kind::NoAccount => "no account is connected",
        Kind::NothingOffered => "no offer meets the wishes",
        Kind::TooDear => "only above the price limit",
        Kind::NotReady => "created but not ready in time; removed again",
        Kind::SetupFailed => "the machine runs, but what was asked on top of it failed",
        Kind::LeftRunning => "something may still be running and cost money",
        Kind::Removed => "removed by another command",
        Kind::Local => "something on this computer failed: a file, a program",
        Kind::Note => "a plain warning",
        Kind::Cloud(kind) => match kind {
            ErrorKind::NoCapacity => "the offer cannot be had now",
            ErrorKind::Quota => "a limit of the account",
            ErrorKind::Auth => "the credentials are not taken",
            ErrorKind::Forbidden => "the credentials lack a right",
            ErrorKind::Balance => "the account has no money",
            ErrorKind::Rejected => "the cloud says that the request is wrong",
            ErrorKind::RateLimited => "too many requests, also after waiting",
            ErrorKind::Unavailable => "the cloud is out of reach or broken",
            ErrorKind::NotFound => "it does not exist",
            ErrorKind::Conflict => "it clashes with the state of something",
            ErrorKind::Unreadable => "the cloud answered with something that cannot be read",
            ErrorKind::Timeout => "no answer in time",
            ErrorKind::Interrupted => "the user or another command stopped it",
        },
    }
}
