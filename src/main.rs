//! `gpuprov`: parse, run, print a failure, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gpuprov::cli::main().code())
}
