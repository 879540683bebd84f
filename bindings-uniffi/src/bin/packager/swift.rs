//! Packages the Swift package: the part that all systems share, the package for Linux, and the released package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};
use transcript_core::hex;

use crate::{
    generate,
    jvm::FEATURES,
    tools::{self, LIBRARY, crate_folder, run},
};

/// The xcframework in `Package.swift` of a local package.
const LOCAL_FRAMEWORK: &str = "path: \"VerbatimFFI.xcframework\"";
/// Name of the archive of the xcframework.
const ARCHIVE: &str = "VerbatimFFI.xcframework.zip";

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
    tools::copy_licences(folder)?;
    generate::swift_package(library, &folder.join("Sources/Verbatim"), headers)
}

/// Moves the xcframework of a Swift package into an archive, and names its address and checksum in `Package.swift`.
///
/// The archive is written into `archives`, for upload to the folder `url`. The package is then what its repository
/// contains.
///
/// # Errors
/// If the address is not final, the folder is no local package with an xcframework, or `zip` is missing.
pub(crate) fn release(folder: &Path, url: &str, archives: &Path) -> Result<()> {
    ensure!(
        url.starts_with("https://") && !url.contains(".invalid"),
        "{url} is no final address: see RELEASING.md, \"Before the first release\""
    );
    let manifest = folder.join("Package.swift");
    let text =
        fs::read_to_string(&manifest).with_context(|| format!("{} cannot be read", manifest.display()))?;
    ensure!(text.contains(LOCAL_FRAMEWORK), "{} names no local xcframework", manifest.display());
    let archive = tools::folder(archives)?.join(ARCHIVE);
    if archive.exists() {
        // `zip` would add to it.
        fs::remove_file(&archive)?;
    }
    let to = archive.display().to_string();
    run("zip", ["-q", "-r", "-X", "-y", &to, "VerbatimFFI.xcframework"], folder)?;
    // `swift package compute-checksum` prints the same.
    let checksum = hex::encode(&Sha256::digest(fs::read(&archive)?));
    let url = url.trim_end_matches('/');
    let remote = format!("url: \"{url}/{ARCHIVE}\", checksum: \"{checksum}\"");
    fs::write(&manifest, text.replace(LOCAL_FRAMEWORK, &remote))?;
    fs::remove_dir_all(folder.join("VerbatimFFI.xcframework"))?;
    Ok(())
}
