//! Libraries that are preloaded into a server to change what the operating system returns to it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// Compiles `source` (a path in the folder of the tests) to a library in `folder`, unless it exists.
pub(crate) fn compile_library(source: &str, folder: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.file_stem().context("the source has no file name")?;
    let library = folder.join(name).with_extension("so");
    if !library.exists() {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1"]).arg(&source).arg("-o").arg(&library);
        let compiled = compiler.status().context("cc cannot be run")?;
        ensure!(compiled.success(), "cc failed to compile {}", source.display());
    }
    Ok(library)
}
