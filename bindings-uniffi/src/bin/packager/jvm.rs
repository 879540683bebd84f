//! Packages the jar for programs on a JVM: the Kotlin layer and the library of this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use uniffi::TargetLanguage;

use crate::{
    generate,
    tools::{self, crate_folder, run},
};

/// Features of the packaged library.
pub(crate) const FEATURES: &[&str] =
    &["chat-model", "local-service", "search", "service", "sqlite", "upstream"];

/// The supported machines: operating system, processor, JNA's name of the folder for their library, and its file.
const MACHINES: &[(&str, &str, &str, &str)] = &[
    ("linux", "x86_64", "linux-x86-64", "libverbatim_phone.so"),
    ("linux", "aarch64", "linux-aarch64", "libverbatim_phone.so"),
    ("macos", "x86_64", "darwin-x86-64", "libverbatim_phone.dylib"),
    ("macos", "aarch64", "darwin-aarch64", "libverbatim_phone.dylib"),
    ("windows", "x86_64", "win32-x86-64", "verbatim_phone.dll"),
];

/// JNA's path of the library for this machine.
fn library_path() -> Result<PathBuf> {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let found = MACHINES.iter().find(|(os, processor, ..)| (*os, *processor) == (system, machine));
    let (_, _, folder, file) =
        found.with_context(|| format!("unsupported machine: {system} on {machine}"))?;
    Ok(Path::new(folder).join(file))
}

/// Builds the library of this machine with the profile `phone`, strips it, and puts it into a folder, at JNA's path.
///
/// # Errors
/// If a tool is missing or fails.
pub(crate) fn build_library(folder: &Path) -> Result<()> {
    let library = tools::build(FEATURES, None)?;
    tools::copy_stripped(&library, &tools::folder(folder)?.join(library_path()?))
}

/// Copies the libraries of all other machines, which `build_library` made there.
fn copy_others(others: &Path, resources: &Path) -> Result<()> {
    let this = library_path()?;
    for (_, _, folder, file) in MACHINES {
        let path = Path::new(folder).join(file);
        if path == this {
            continue;
        }
        let from = others.join(&path);
        ensure!(from.is_file(), "{} does not exist", from.display());
        tools::folder(&resources.join(folder))?;
        fs::copy(from, resources.join(path))?;
    }
    Ok(())
}

/// Packages `verbatim-jvm.jar`, its sources, its documentation and its POM into a folder.
///
/// Without a library, one is built with the profile `phone`. `others` has the libraries of all other machines, each at
/// JNA's path; without it, the jar serves this machine only.
///
/// # Errors
/// If a tool is missing or fails, or a library is missing in `others`.
pub(crate) fn pack(folder: &Path, library: Option<PathBuf>, others: Option<&Path>) -> Result<()> {
    let library = match library {
        Some(library) => library.canonicalize()?,
        None => tools::build(FEATURES, None)?,
    };
    let folder = tools::folder(folder)?;
    let work = tools::empty_folder(&tools::target_folder().join("kotlin/jvm"))?;
    let resources = work.join("resources");
    if let Some(others) = others {
        copy_others(others, &resources)?;
    }
    generate::bindings(&library, TargetLanguage::Kotlin, &work.join("generated"))?;
    tools::copy_stripped(&library, &resources.join(library_path()?))?;
    tools::copy_licences(&resources.join(tools::LICENCES))?;
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
