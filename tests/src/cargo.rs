//! Cargo, started by a program that Cargo has started.

use std::process::Command;

/// Cargo as a user runs it, in the folder of the workspace.
///
/// Cargo describes a program's own package to it in variables. Build scripts of dependencies watch some of these: with
/// other values they, and all that depends on them, would be built again, and once more in the user's next build.
///
/// # Examples
/// ```no_run
/// let built = verbatim_tests::cargo().args(["build", "--package", "verbatim-reference-server"]).status()?.success();
/// # std::io::Result::Ok(())
/// ```
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    for (name, _) in std::env::vars_os() {
        let variable = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    cargo
}
