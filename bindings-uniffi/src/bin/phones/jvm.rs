//! The jar for programs on a JVM: the Kotlin layer, and the library of this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use uniffi::TargetLanguage;

use crate::{
    generate,
    tools::{self, LIBRARY, crate_folder, run},
};

/// What a phone gets: storage, suppliers, servers, chat models.
pub(crate) const FEATURES: &[&str] = &["chat-model", "service", "sqlite", "upstream"];

/// How JNA names the folder of a machine's libraries.
fn machine() -> Result<&'static str> {
    Ok(match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x86-64",
        ("linux", "aarch64") => "linux-aarch64",
        ("macos", "x86_64") => "darwin-x86-64",
        ("macos", "aarch64") => "darwin-aarch64",
        ("windows", "x86_64") => "win32-x86-64",
        (system, machine) => bail!("there is no name for {system} on {machine}"),
    })
}

/// Packs `verbatim-jvm.jar` and its POM into a folder. Without a library, one is built with the profile for phones.
///
/// # Errors
/// When a tool is missing or fails.
pub(crate) fn pack(folder: &Path, library: Option<PathBuf>) -> Result<()> {
    let library = match library {
        Some(library) => library.canonicalize()?,
        None => tools::build(FEATURES, None)?,
    };
    let folder = tools::folder(folder)?;
    let work = tools::fresh(&tools::target_folder().join("kotlin/jvm"))?;
    generate::bindings(&library, TargetLanguage::Kotlin, &work.join("generated"))?;
    let name = library.file_name().map_or_else(|| format!("lib{LIBRARY}.so").into(), ToOwned::to_owned);
    tools::stripped(&library, &work.join("resources").join(machine()?).join(name))?;
    compile(&work)?;
    fs::copy(work.join("target/verbatim-jvm.jar"), folder.join("verbatim-jvm.jar"))?;
    fs::copy(crate_folder().join("kotlin/library/pom.xml"), folder.join("verbatim-jvm.pom"))?;
    Ok(())
}

/// Compiles the generated and the written Kotlin into `target/verbatim-jvm.jar`.
///
/// # Errors
/// When Maven is missing or fails.
pub(crate) fn compile(work: &Path) -> Result<()> {
    let project = crate_folder().join("kotlin/library");
    let of = |name: &str, path: &Path| format!("-D{name}={}", path.display());
    let arguments = [
        "--batch-mode".to_owned(),
        "--quiet".to_owned(),
        of("verbatim.generated", &work.join("generated")),
        of("verbatim.resources", &work.join("resources")),
        of("verbatim.target", &work.join("target")),
        // Whoever packs has the tests behind them.
        "-Dmaven.test.skip=true".to_owned(),
        "package".to_owned(),
    ];
    run("mvn", arguments, &project)
}
