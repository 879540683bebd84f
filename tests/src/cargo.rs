//! Cargo, from within a program that Cargo has started.

use std::process::Command;

/// Cargo as a person runs it, in the folder of the workspace.
///
/// A program that Cargo starts is told of its own package, in variables. Build scripts of others watch some of these, and
/// would be run anew with all that rests on them built again; and once more when a person's own command comes next.
///
/// # Examples
/// ```no_run
/// let built = verbatim_tests::cargo().args(["build", "--package", "reference-server"]).status()?.success();
/// # std::io::Result::Ok(())
/// ```
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| told.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    cargo
}
