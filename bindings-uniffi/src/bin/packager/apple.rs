//! Packages the xcframework and its Swift package. Requires macOS with Xcode.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{
    jvm::FEATURES,
    swift,
    tools::{self, LIBRARY, run, target_folder},
};

/// Slices of the xcframework, with the targets joined in each.
const SLICES: &[(&str, &[&str])] = &[
    ("ios", &["aarch64-apple-ios"]),
    ("ios-simulator", &["aarch64-apple-ios-sim", "x86_64-apple-ios"]),
    ("macos", &["aarch64-apple-darwin", "x86_64-apple-darwin"]),
];

/// Builds and packages `VerbatimFFI.xcframework` and the Swift package into a folder.
///
/// # Errors
/// If a tool is missing or fails.
pub(crate) fn pack(folder: &Path) -> Result<()> {
    let folder = tools::folder(folder)?;
    let work = tools::empty_folder(&target_folder().join("swift/apple"))?;
    // The headers have their own folder, because other libraries of the app have a module map too.
    let headers = work.join("headers/VerbatimFFI");
    fs::create_dir_all(&headers)?;
    let mut metadata_library = None;
    let mut arguments = vec!["-create-xcframework".to_owned()];
    for (name, targets) in SLICES {
        let mut libraries = Vec::new();
        for target in *targets {
            tools::build(FEATURES, Some(target))?;
            let library = target_folder().join(target).join("phone").join(format!("lib{LIBRARY}.a"));
            libraries.push(hide_sqlite(&library, target, &work)?);
            // All libraries contain the same metadata.
            metadata_library = metadata_library.or(Some(library));
        }
        let fat = work.join(name).join(format!("lib{LIBRARY}.a"));
        fs::create_dir_all(work.join(name))?;
        let mut join = vec!["-create".to_owned()];
        join.extend(libraries.iter().map(|library| library.display().to_string()));
        join.extend(["-output".to_owned(), fat.display().to_string()]);
        run("lipo", join, &work)?;
        arguments.extend(["-library".to_owned(), fat.display().to_string()]);
        arguments.extend(["-headers".to_owned(), work.join("headers").display().to_string()]);
    }
    swift::package(&metadata_library.context("there are no slices")?, &folder, &headers)?;
    // The archive of the xcframework is distributed alone, too.
    tools::copy_licences(&headers)?;
    let framework = tools::empty_folder(&folder.join("VerbatimFFI.xcframework"))?;
    fs::remove_dir_all(&framework)?;
    arguments.extend(["-output".to_owned(), framework.display().to_string()]);
    run("xcodebuild", arguments, &work)
}

/// Makes SQLite's symbols local and returns the path of the resulting library.
///
/// The app has the system's SQLite, whose symbols would conflict in a static library.
fn hide_sqlite(library: &Path, target: &str, work: &Path) -> Result<PathBuf> {
    let folder = tools::empty_folder(&work.join(target))?;
    let (list, joined) = (folder.join("hidden.txt"), folder.join("joined.o"));
    fs::write(&list, "_sqlite3_*\n")?;
    let machine = if target.starts_with("aarch64") { "arm64" } else { "x86_64" };
    // Linking into one object resolves the calls of SQLite before its symbols become local.
    let fixed = ["-r", "-arch", machine, "-all_load", "-unexported_symbols_list"].map(OsStr::new);
    let named = [list.as_os_str(), OsStr::new("-o"), joined.as_os_str(), library.as_os_str()];
    run("ld", fixed.into_iter().chain(named), work)?;
    let hidden = folder.join(format!("lib{LIBRARY}.a"));
    run("libtool", ["-static".as_ref(), "-o".as_ref(), hidden.as_os_str(), joined.as_os_str()], work)?;
    Ok(hidden)
}
