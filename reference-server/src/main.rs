//! The `verbatim` command.

use std::process::ExitCode;

/// The system's allocator is slow at freeing memory that another thread allocated.
///
/// Response bodies are allocated and freed on different threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reference_server::run(std::env::args_os())
}
