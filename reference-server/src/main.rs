//! The `verbatim` command.

use std::process::ExitCode;

/// Bodies are made on one thread and dropped on another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reference_server::run(std::env::args_os())
}
