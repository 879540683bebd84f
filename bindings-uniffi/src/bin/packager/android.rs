//! Packages the AAR: classes, libraries of four ABIs, R8 rules and a manifest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use goblin::elf::{
    Elf,
    header::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64},
    program_header::PT_LOAD,
};
use uniffi::TargetLanguage;

use crate::{
    generate,
    jvm::{self, FEATURES},
    tools::{self, LIBRARY, crate_folder, run},
};

/// The ABIs of Android, with their machine in ELF.
const ABIS: &[(&str, u16)] =
    &[("arm64-v8a", EM_AARCH64), ("armeabi-v7a", EM_ARM), ("x86_64", EM_X86_64), ("x86", EM_386)];
/// Oldest supported Android, as its API level.
const OLDEST: &str = "24";
/// Maximum page size of 64-bit devices.
///
/// From Android 15 on, they do not load a library aligned for smaller pages.
const PAGE_SIZE_MAX: u64 = 16 * 1024;

/// Builds and packages `verbatim.aar` and its POM into a folder.
///
/// # Errors
/// If a tool is missing or fails, or a device could not load a library.
pub(crate) fn pack(folder: &Path) -> Result<()> {
    let work = tools::empty_folder(&tools::target_folder().join("kotlin/android"))?;
    let libraries = work.join("jni");
    let to = libraries.display().to_string();
    let mut arguments = vec!["ndk", "--platform", OLDEST, "--output-dir", &to];
    for (abi, _) in ABIS {
        arguments.extend(["--target", abi]);
    }
    // The bindings are generated from the symbols, so stripping comes later.
    let build = tools::build_arguments(FEATURES);
    run("cargo", arguments.into_iter().chain(build.iter().map(String::as_str)), &crate_folder())?;
    generate::bindings(&library(&libraries, "arm64-v8a"), TargetLanguage::Kotlin, &work.join("generated"))?;
    for (abi, _) in ABIS {
        run("llvm-strip", ["--strip-unneeded".as_ref(), library(&libraries, abi).as_os_str()], &work)?;
    }
    jvm::compile(&work)?;
    package(folder, &libraries, &work.join("target/verbatim-jvm.jar"))
}

fn library(libraries: &Path, abi: &str) -> PathBuf {
    libraries.join(abi).join(format!("lib{LIBRARY}.so"))
}

/// Packages existing libraries and classes into `verbatim.aar`, and writes its POM beside it.
///
/// Each library is in a folder named after its ABI.
///
/// # Errors
/// If a library is missing, or a device with its ABI could not load it.
pub(crate) fn package(folder: &Path, libraries: &Path, classes: &Path) -> Result<()> {
    let folder = tools::folder(folder)?;
    let archive = tools::empty_folder(&tools::target_folder().join("kotlin/aar"))?;
    for (abi, machine) in ABIS {
        let from = library(libraries, abi);
        check_loadable(&from, *machine).with_context(|| format!("{} cannot be packed", from.display()))?;
        let to = library(&archive.join("jni"), abi);
        tools::folder(&archive.join("jni").join(abi))?;
        fs::copy(from, to)?;
    }
    fs::copy(classes, archive.join("classes.jar"))
        .with_context(|| format!("{} cannot be copied", classes.display()))?;
    fs::copy(crate_folder().join("kotlin/consumer-rules.pro"), archive.join("proguard.txt"))?;
    fs::write(archive.join("AndroidManifest.xml"), manifest())?;
    tools::copy_licences(&archive.join(tools::LICENCES))?;
    // An AAR requires the list of resources, which is empty here.
    fs::write(archive.join("R.txt"), "")?;
    let to = folder.join("verbatim.aar").display().to_string();
    let from = archive.display().to_string();
    run("jar", ["--create", "--no-manifest", "--file", &to, "-C", &from, "."], &archive)?;
    fs::copy(crate_folder().join("kotlin/android/pom.xml"), folder.join("verbatim.pom"))?;
    Ok(())
}

/// Checks that a device with this machine can load the library.
fn check_loadable(library: &Path, machine: u16) -> Result<()> {
    let bytes = fs::read(library)?;
    let elf = Elf::parse(&bytes)?;
    ensure!(elf.header.e_machine == machine, "it is for another machine than its folder says");
    let aligned = elf.program_headers.iter().filter(|header| header.p_type == PT_LOAD).map(|it| it.p_align);
    let least = aligned.min().context("it has no segment to load")?;
    ensure!(
        !elf.is_64 || least >= PAGE_SIZE_MAX,
        "it is aligned for pages of {least} bytes, but devices have pages of {PAGE_SIZE_MAX}: \
         link it with an NDK of r28 or later"
    );
    Ok(())
}

fn manifest() -> String {
    let android = "http://schemas.android.com/apk/res/android";
    format!(
        "<manifest xmlns:android=\"{android}\" package=\"dev.verbatim\">\n    \
         <uses-sdk android:minSdkVersion=\"{OLDEST}\" />\n    \
         <uses-permission android:name=\"android.permission.INTERNET\" />\n\
         </manifest>\n"
    )
}
