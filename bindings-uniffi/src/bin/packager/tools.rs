//! Runs the tools for packaging.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// Name of the library, without the prefix and suffix of a system.
pub(crate) const LIBRARY: &str = "verbatim_phone";

/// Folder of the licences in the jar and the AAR, under a name that no other library of an app uses.
pub(crate) const LICENCES: &str = "META-INF/dev.verbatim";

/// Writes to the standard output.
pub(crate) fn print(text: &str) {
    // A closed pipe is no error.
    let _closed = std::io::stdout().write_all(text.as_bytes());
}

/// Folder of the crate.
pub(crate) fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Cargo's target folder.
pub(crate) fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => crate_folder().join("../target"),
    }
}

/// Runs a program until it ends.
///
/// # Errors
/// If it cannot be started or fails.
pub(crate) fn run(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    let status = command.status().with_context(|| format!("cannot run {program}: is it installed?"))?;
    ensure!(status.success(), "{program} failed with {status}: {command:?}");
    Ok(())
}

/// Arguments for cargo to build the library with the profile `phone`.
pub(crate) fn build_arguments(features: &[&str]) -> Vec<String> {
    let fixed = [
        "build",
        "--package",
        "verbatim-bindings-uniffi",
        "--lib",
        "--profile",
        "phone",
        "--no-default-features",
    ];
    let mut arguments = fixed.map(str::to_owned).to_vec();
    arguments.extend(["--features".to_owned(), features.join(",")]);
    arguments
}

/// Builds the library with the profile `phone` and returns its path.
///
/// # Errors
/// If the build fails.
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
    library.context("cargo built no library")
}

/// Copies a library without its symbols.
///
/// # Errors
/// If it cannot be copied or stripped.
pub(crate) fn copy_stripped(library: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(library, to).with_context(|| format!("{} cannot be copied", library.display()))?;
    // There, symbols are in a file beside the library.
    if cfg!(windows) {
        return Ok(());
    }
    let keep = if cfg!(target_os = "macos") { "-x" } else { "--strip-unneeded" };
    run("strip", [OsStr::new(keep), to.as_os_str()], Path::new("."))
}

/// Copies the licences of the project into a folder, and those of the libraries in `verbatim_phone`.
///
/// `deploy/licences/build.sh` writes the latter; without them, packages are for local use only. The variable
/// `THIRD_PARTY_LICENSES` names another file.
///
/// # Errors
/// If a file cannot be copied, or the file of the variable does not exist.
pub(crate) fn copy_licences(to: &Path) -> Result<()> {
    let to = folder(to)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(crate_folder().join("..").join(name), to.join(name))?;
    }
    let default = target_folder().join("third-party").join(LIBRARY);
    let named = std::env::var_os("THIRD_PARTY_LICENSES").map(PathBuf::from);
    if let Some(notices) = named.or_else(|| default.exists().then_some(default)) {
        fs::copy(&notices, to.join("THIRD-PARTY-LICENSES"))
            .with_context(|| format!("{} cannot be copied", notices.display()))?;
    } else {
        print("packager: THIRD-PARTY-LICENSES is left out; deploy/licences/build.sh writes it\n");
    }
    Ok(())
}

/// Creates an empty folder; deletes an existing one.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn empty_folder(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}

/// Creates a folder if it does not exist.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn folder(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}
