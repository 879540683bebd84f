//! Packages the Swift package: the part that all systems share, and the package for Linux.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    generate,
    jvm::FEATURES,
    tools::{self, LIBRARY, crate_folder},
};

/// Packages the Swift package for Linux into a folder, including the library of this machine.
///
/// Without a library, one is built with the profile `phone`.
///
/// # Errors
/// If a tool is missing or fails.
pub(crate) fn pack(folder: &Path, library: Option<PathBuf>) -> Result<()> {
    let library = match library {
        Some(library) => library.canonicalize()?,
        None => tools::build(FEATURES, None)?,
    };
    let folder = tools::folder(folder)?;
    package(&library, &folder, &tools::empty_folder(&folder.join("VerbatimFFI"))?)?;
    tools::copy_stripped(&library, &folder.join("lib").join(format!("lib{LIBRARY}.so")))
}

/// Writes the Swift package into a folder, and the header with its module map into another one.
///
/// The package has `Package.swift`, the generated and hand-written sources and their tests.
///
/// # Errors
/// If the library is stripped, or a folder cannot be written.
pub(crate) fn package(library: &Path, folder: &Path, headers: &Path) -> Result<()> {
    let package = crate_folder().join("swift");
    // Old files must go, because Swift compiles every file in the folder.
    for (part, parent) in [("Sources/Verbatim", "Sources"), ("Tests/VerbatimTests", "Tests")] {
        tools::empty_folder(&folder.join(parent))?;
        let to = tools::folder(&folder.join(part))?;
        for source in fs::read_dir(package.join(part))? {
            let source = source?;
            fs::copy(source.path(), to.join(source.file_name()))?;
        }
    }
    fs::copy(package.join("Package.swift"), folder.join("Package.swift"))?;
    generate::swift_package(library, &folder.join("Sources/Verbatim"), headers)
}
