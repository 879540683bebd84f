//! What is loaded into a server before anything else, to change what the machine tells it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// A library, compiled from `source` (a path in the folder of the tests) into `folder`, where it is not yet.
pub(crate) fn library(source: &str, folder: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.file_stem().context("a source has a name")?;
    let library = folder.join(name).with_extension("so");
    if !library.exists() {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1"]).arg(&source).arg("-o").arg(&library);
        let compiled = compiler.status().context("cc cannot be run")?;
        ensure!(compiled.success(), "cc does not compile {}", source.display());
    }
    Ok(library)
}
