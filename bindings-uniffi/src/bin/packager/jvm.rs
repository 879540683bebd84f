//! Packages the jar for programs on a JVM: the Kotlin layer and the library of this machine.

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

/// Features of the packaged library.
pub(crate) const FEATURES: &[&str] = &["chat-model", "local-service", "service", "sqlite", "upstream"];

/// JNA's name of the folder for libraries of this machine.
fn machine_folder() -> Result<&'static str> {
    Ok(match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x86-64",
        ("linux", "aarch64") => "linux-aarch64",
        ("macos", "x86_64") => "darwin-x86-64",
        ("macos", "aarch64") => "darwin-aarch64",
        ("windows", "x86_64") => "win32-x86-64",
        (system, machine) => bail!("unsupported machine: {system} on {machine}"),
    })
}

/// Packages `verbatim-jvm.jar`, its sources, its documentation and its POM into a folder.
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
    let work = tools::empty_folder(&tools::target_folder().join("kotlin/jvm"))?;
    generate::bindings(&library, TargetLanguage::Kotlin, &work.join("generated"))?;
    let name = library.file_name().map_or_else(|| format!("lib{LIBRARY}.so").into(), ToOwned::to_owned);
    tools::copy_stripped(&library, &work.join("resources").join(machine_folder()?).join(name))?;
    compile(&work)?;
    maven(&work, "dokka:javadocJar")?;
    for name in ["verbatim-jvm.jar", "verbatim-jvm-javadoc.jar"] {
        fs::copy(work.join("target").join(name), folder.join(name))?;
    }
    let written = crate_folder().join("kotlin/library/src/main/kotlin");
    let mut arguments = vec!["--create".to_owned(), "--file".to_owned()];
    arguments.push(folder.join("verbatim-jvm-sources.jar").display().to_string());
    for sources in [written, work.join("generated")] {
        arguments.extend(["-C".to_owned(), sources.display().to_string(), ".".to_owned()]);
    }
    run("jar", arguments, &work)?;
    fs::copy(crate_folder().join("kotlin/library/pom.xml"), folder.join("verbatim-jvm.pom"))?;
    Ok(())
}

/// Compiles the generated and the hand-written Kotlin into `target/verbatim-jvm.jar`.
///
/// # Errors
/// If Maven is missing or fails.
pub(crate) fn compile(work: &Path) -> Result<()> {
    maven(work, "package")
}

fn maven(work: &Path, goal: &str) -> Result<()> {
    let project = crate_folder().join("kotlin/library");
    let property = |name: &str, path: &Path| format!("-D{name}={}", path.display());
    let arguments = [
        "--batch-mode".to_owned(),
        "--quiet".to_owned(),
        property("verbatim.generated", &work.join("generated")),
        property("verbatim.resources", &work.join("resources")),
        property("verbatim.target", &work.join("target")),
        // The tests run before packaging, in test.sh.
        "-Dmaven.test.skip=true".to_owned(),
        goal.to_owned(),
    ];
    run("mvn", arguments, &project)
}
