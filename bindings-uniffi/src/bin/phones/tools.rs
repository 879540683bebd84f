//! Running the tools that packing takes.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// The library's name, without what a system puts around it.
pub(crate) const LIBRARY: &str = "verbatim_phone";

/// Tells whoever runs this.
pub(crate) fn say(text: &str) {
    // Whoever closed the pipe wants to hear no more.
    let _closed = std::io::stdout().write_all(text.as_bytes());
}

/// The folder of the crate.
pub(crate) fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => crate_folder().join("../target"),
    }
}

/// Runs a program to its end.
///
/// # Errors
/// When it is not there, or ends with a failure.
pub(crate) fn run(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    let status = command.status().with_context(|| format!("{program} cannot be run: is it installed?"))?;
    ensure!(status.success(), "{program} ended with {status}: {command:?}");
    Ok(())
}

/// What cargo is told so that it builds the library with the profile for phones.
pub(crate) fn build_arguments(features: &[&str]) -> Vec<String> {
    let fixed =
        ["build", "--package", "bindings-uniffi", "--lib", "--profile", "phone", "--no-default-features"];
    let mut arguments = fixed.map(str::to_owned).to_vec();
    arguments.extend(["--features".to_owned(), features.join(",")]);
    arguments
}

/// Builds the library with the profile for phones; where it lies.
///
/// # Errors
/// When the compiler fails.
pub(crate) fn build(features: &[&str], target: Option<&str>) -> Result<PathBuf> {
    let mut arguments = build_arguments(features);
    if let Some(target) = target {
        arguments.extend(["--target".to_owned(), target.to_owned()]);
    }
    run("cargo", arguments, &crate_folder())?;
    let folder = target_folder();
    let folder = target.map_or(folder.clone(), |target| folder.join(target)).join("phone");
    let names = [format!("lib{LIBRARY}.so"), format!("lib{LIBRARY}.dylib"), format!("{LIBRARY}.dll")];
    let library = names.iter().map(|name| folder.join(name)).find(|library| library.exists());
    library.context("the compiler left no library")
}

/// A copy without symbols.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn stripped(library: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(library, to).with_context(|| format!("{} cannot be copied", library.display()))?;
    let keep = if cfg!(target_os = "macos") { "-x" } else { "--strip-unneeded" };
    run("strip", [OsStr::new(keep), to.as_os_str()], Path::new("."))
}

/// An empty folder at this place.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn fresh(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}

/// The folder, made where it is not there.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn folder(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}
