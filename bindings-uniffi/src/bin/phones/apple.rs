//! The xcframework and the Swift package around it. It runs on macOS with Xcode only.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    generate,
    jvm::FEATURES,
    tools::{self, LIBRARY, crate_folder, run, target_folder},
};

/// The slices, each with the targets that are joined in it.
const SLICES: &[(&str, &[&str])] = &[
    ("ios", &["aarch64-apple-ios"]),
    ("ios-simulator", &["aarch64-apple-ios-sim", "x86_64-apple-ios"]),
    ("macos", &["aarch64-apple-darwin", "x86_64-apple-darwin"]),
];

/// Packs `VerbatimFFI.xcframework` and the Swift package into a folder.
///
/// # Errors
/// When a tool is missing or fails.
pub(crate) fn pack(folder: &Path) -> Result<()> {
    let folder = tools::folder(folder)?;
    let work = tools::fresh(&target_folder().join("swift"))?;
    // The headers lie in a folder of their own, for another library's in the same app have a module map, too.
    let headers = work.join("headers/VerbatimFFI");
    fs::create_dir_all(&headers)?;
    let sources = folder.join("Sources/Verbatim");
    fs::create_dir_all(&sources)?;
    let mut arguments = vec!["-create-xcframework".to_owned()];
    for (name, targets) in SLICES {
        let mut libraries = Vec::new();
        for target in *targets {
            tools::build(FEATURES, Some(target))?;
            libraries.push(target_folder().join(target).join("phone").join(format!("lib{LIBRARY}.a")));
        }
        let first = libraries.first().context("a slice has a target")?;
        generate::swift_package(first, &sources, &headers)?;
        let fat = work.join(name).join(format!("lib{LIBRARY}.a"));
        fs::create_dir_all(work.join(name))?;
        let mut join = vec!["-create".to_owned()];
        join.extend(libraries.iter().map(|library| library.display().to_string()));
        join.extend(["-output".to_owned(), fat.display().to_string()]);
        run("lipo", join, &work)?;
        hide_sqlite(&fat, &work)?;
        arguments.extend(["-library".to_owned(), fat.display().to_string()]);
        arguments.extend(["-headers".to_owned(), work.join("headers").display().to_string()]);
    }
    let framework = tools::fresh(&folder.join("VerbatimFFI.xcframework"))?;
    fs::remove_dir_all(&framework)?;
    arguments.extend(["-output".to_owned(), framework.display().to_string()]);
    run("xcodebuild", arguments, &work)?;
    let package = crate_folder().join("swift");
    fs::copy(package.join("Package.swift"), folder.join("Package.swift"))?;
    for source in fs::read_dir(package.join("Sources/Verbatim"))? {
        let source = source?;
        fs::copy(source.path(), sources.join(source.file_name()))?;
    }
    Ok(())
}

/// Keeps our SQLite's names to ourselves: an app has the system's, and two of one name are one in a static library.
fn hide_sqlite(library: &Path, work: &Path) -> Result<()> {
    let list = work.join("hidden.txt");
    fs::write(&list, "_sqlite3_*\n")?;
    let arguments =
        ["-unexported_symbols_list".to_owned(), list.display().to_string(), library.display().to_string()];
    run("nmedit", ["-p".to_owned()].into_iter().chain(arguments), work)
}
