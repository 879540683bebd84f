//! Generates the bindings of a language from the metadata in the library.

use std::{fs, path::Path};

use anyhow::{Result, anyhow, bail};
use uniffi::{GenerateOptions, SwiftBindingsOptions, TargetLanguage, generate, generate_swift_bindings};

use crate::{
    comments::{self, CommentLanguage},
    patch_kotlin,
    tools::crate_folder,
};

/// Parses the name of a language.
///
/// # Errors
/// If it is unknown.
pub(crate) fn parse_language(name: &str) -> Result<TargetLanguage> {
    Ok(match name {
        "kotlin" => TargetLanguage::Kotlin,
        "swift" => TargetLanguage::Swift,
        "python" => TargetLanguage::Python,
        _ => bail!("unknown language {name}: use kotlin, swift or python"),
    })
}

fn to_utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{} is not UTF-8", path.display()))
}

/// Generates the bindings into a folder. The library must not be stripped.
///
/// # Errors
/// If it is stripped, or the folder cannot be written.
pub(crate) fn bindings(library: &Path, language: TargetLanguage, folder: &Path) -> Result<()> {
    let is_kotlin = matches!(language, TargetLanguage::Kotlin);
    generate(GenerateOptions {
        languages: vec![language],
        source: to_utf8(library)?.into(),
        out_dir: to_utf8(folder)?.into(),
        config_override: Some(to_utf8(&crate_folder().join("bindgen.toml"))?.into()),
        ..GenerateOptions::default()
    })?;
    if is_kotlin {
        let file = folder.join("dev/verbatim/verbatim_phone.kt");
        let patched = patch_kotlin::patch(&fs::read_to_string(&file)?)?;
        fs::write(&file, comments::rewrite(&patched, CommentLanguage::Kotlin)?)?;
    }
    Ok(())
}

/// Generates the sources of the Swift package, and its header with the module map.
///
/// # Errors
/// As [`bindings`].
pub(crate) fn swift_package(library: &Path, sources: &Path, headers: &Path) -> Result<()> {
    let options = |folder: &Path| -> Result<SwiftBindingsOptions> {
        Ok(SwiftBindingsOptions {
            source: to_utf8(library)?.into(),
            out_dir: to_utf8(folder)?.into(),
            config: Some(to_utf8(&crate_folder().join("bindgen.toml"))?.into()),
            // An xcframework of libraries has a folder with headers, so the module is not a framework module.
            xcframework: false,
            // The name in uniffi.toml, which the generated sources import.
            module_name: Some("VerbatimFFI".to_owned()),
            modulemap_filename: Some("module.modulemap".to_owned()),
            ..SwiftBindingsOptions::default()
        })
    };
    generate_swift_bindings(SwiftBindingsOptions { generate_swift_sources: true, ..options(sources)? })?;
    let file = sources.join("Verbatim.swift");
    fs::write(&file, comments::rewrite(&fs::read_to_string(&file)?, CommentLanguage::Swift)?)?;
    generate_swift_bindings(SwiftBindingsOptions {
        generate_headers: true,
        generate_modulemap: true,
        ..options(headers)?
    })
}
