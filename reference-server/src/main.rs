//! The `verbatim` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    reference_server::run(std::env::args_os())
}
