//! The `verbatim` command.

fn main() {}
