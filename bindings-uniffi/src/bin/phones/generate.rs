//! The bindings of one language, from the library's own description of itself.

use std::{fs, path::Path};

use anyhow::{Result, anyhow, bail};
use uniffi::{GenerateOptions, SwiftBindingsOptions, TargetLanguage, generate, generate_swift_bindings};

use crate::{mend, tools::crate_folder};

/// The language of this name.
///
/// # Errors
/// When there is none.
pub(crate) fn language(name: &str) -> Result<TargetLanguage> {
    Ok(match name {
        "kotlin" => TargetLanguage::Kotlin,
        "swift" => TargetLanguage::Swift,
        "python" => TargetLanguage::Python,
        _ => bail!("there are bindings for kotlin, swift and python, not for {name}"),
    })
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| anyhow!("{} is no text", path.display()))
}

/// Generates the bindings into a folder. The library must have its symbols.
///
/// # Errors
/// When it has none, or the folder cannot be written.
pub(crate) fn bindings(library: &Path, language: TargetLanguage, folder: &Path) -> Result<()> {
    let is_kotlin = matches!(language, TargetLanguage::Kotlin);
    generate(GenerateOptions {
        languages: vec![language],
        source: text(library)?.into(),
        out_dir: text(folder)?.into(),
        config_override: Some(text(&crate_folder().join("bindgen.toml"))?.into()),
        ..GenerateOptions::default()
    })?;
    if is_kotlin {
        let file = folder.join("dev/verbatim/verbatim_phone.kt");
        fs::write(&file, mend::kotlin(&fs::read_to_string(&file)?)?)?;
    }
    Ok(())
}

/// Generates what the Swift package takes: the sources, and the headers with their module map.
///
/// # Errors
/// As [`bindings`].
pub(crate) fn swift_package(library: &Path, sources: &Path, headers: &Path) -> Result<()> {
    let of = |folder: &Path| -> Result<SwiftBindingsOptions> {
        Ok(SwiftBindingsOptions {
            source: text(library)?.into(),
            out_dir: text(folder)?.into(),
            config: Some(text(&crate_folder().join("bindgen.toml"))?.into()),
            // With headers in a folder, as an xcframework of libraries has them, this module is that of no framework.
            xcframework: false,
            // As uniffi.toml names it, and the generated sources import it.
            module_name: Some("VerbatimFFI".to_owned()),
            modulemap_filename: Some("module.modulemap".to_owned()),
            ..SwiftBindingsOptions::default()
        })
    };
    generate_swift_bindings(SwiftBindingsOptions { generate_swift_sources: true, ..of(sources)? })?;
    generate_swift_bindings(SwiftBindingsOptions {
        generate_headers: true,
        generate_modulemap: true,
        ..of(headers)?
    })
}
