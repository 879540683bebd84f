//! The AAR: an archive with the classes, the libraries of four ABIs, the rules for R8 and a manifest.

use std::{fs, path::Path};

use anyhow::Result;
use uniffi::TargetLanguage;

use crate::{
    generate,
    jvm::{self, FEATURES},
    tools::{self, LIBRARY, crate_folder, run},
};

/// The ABIs that Android has.
const ABIS: &[&str] = &["arm64-v8a", "armeabi-v7a", "x86_64", "x86"];
/// The oldest Android that is supported, as its API level.
const OLDEST: &str = "24";

const MANIFEST: &str = concat!(
    "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\" package=\"dev.verbatim\">\n",
    "    <uses-permission android:name=\"android.permission.INTERNET\" />\n",
    "</manifest>\n"
);

/// Packs `verbatim.aar` into a folder.
///
/// # Errors
/// When a tool is missing or fails.
pub(crate) fn pack(folder: &Path) -> Result<()> {
    let folder = tools::folder(folder)?;
    let work = tools::fresh(&tools::target_folder().join("kotlin/android"))?;
    let archive = work.join("aar");
    let features = FEATURES.join(",");
    let jni = archive.join("jni").display().to_string();
    let mut arguments = vec!["ndk", "--platform", OLDEST, "--output-dir", &jni];
    for abi in ABIS {
        arguments.extend(["--target", abi]);
    }
    // From NDK r28 on its linker aligns for pages of 16 KB by itself. The symbols stay until the bindings are generated.
    arguments.extend(["build", "--package", "bindings-uniffi", "--lib", "--profile", "phone"]);
    arguments.extend(["--no-default-features", "--features", &features]);
    run("cargo", arguments, &crate_folder())?;
    let library = |abi: &str| archive.join("jni").join(abi).join(format!("lib{LIBRARY}.so"));
    let described = library("arm64-v8a");
    generate::bindings(&described, TargetLanguage::Kotlin, &work.join("generated"))?;
    for abi in ABIS {
        run("llvm-strip", ["--strip-unneeded".as_ref(), library(abi).as_os_str()], &work)?;
    }
    jvm::compile(&work)?;
    fs::copy(work.join("target/verbatim-jvm.jar"), archive.join("classes.jar"))?;
    fs::copy(crate_folder().join("kotlin/consumer-rules.pro"), archive.join("proguard.txt"))?;
    fs::write(archive.join("AndroidManifest.xml"), MANIFEST)?;
    fs::write(archive.join("R.txt"), "")?;
    let to = folder.join("verbatim.aar").display().to_string();
    let from = archive.display().to_string();
    run("jar", ["--create", "--no-manifest", "--file", &to, "-C", &from, "."], &work)
}
