//! The Swift package: what of it is the same on every system, and the one for Linux.

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

/// Packs the Swift package into a folder, with the library of this Linux machine. Without a library, one is built with the
/// profile for phones.
///
/// # Errors
/// When a tool is missing or fails.
pub(crate) fn pack(folder: &Path, library: Option<PathBuf>) -> Result<()> {
    let library = match library {
        Some(library) => library.canonicalize()?,
        None => tools::build(FEATURES, None)?,
    };
    let folder = tools::folder(folder)?;
    package(&library, &folder, &tools::fresh(&folder.join("VerbatimFFI"))?)?;
    tools::stripped(&library, &folder.join("lib").join(format!("lib{LIBRARY}.so")))
}

/// Puts into a folder the package's description, its sources, generated and written, and their tests; and into another
/// the header with its module map.
///
/// # Errors
/// When the library has no symbols, or a folder cannot be written.
pub(crate) fn package(library: &Path, folder: &Path, headers: &Path) -> Result<()> {
    let package = crate_folder().join("swift");
    // Also what an older version left behind: Swift compiles whatever lies there.
    for (part, place) in [("Sources/Verbatim", "Sources"), ("Tests/VerbatimTests", "Tests")] {
        tools::fresh(&folder.join(place))?;
        let to = tools::folder(&folder.join(part))?;
        for source in fs::read_dir(package.join(part))? {
            let source = source?;
            fs::copy(source.path(), to.join(source.file_name()))?;
        }
    }
    fs::copy(package.join("Package.swift"), folder.join("Package.swift"))?;
    generate::swift_package(library, &folder.join("Sources/Verbatim"), headers)
}
