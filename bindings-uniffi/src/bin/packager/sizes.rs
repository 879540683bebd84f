//! Measures the size of the stripped library by feature.

use std::{fs, path::Path, process::Command};

use anyhow::Result;

use crate::tools;

/// The measured builds, with their features.
const BUILDS: &[(&str, &[&str])] = &[
    ("archive in memory, custom suppliers", &[]),
    ("+ `sqlite`: storage in files", &["sqlite"]),
    ("+ `upstream`: the built-in suppliers, HTTP and TLS", &["sqlite", "upstream"]),
    ("+ `chat`: search, and questions about a video", &["chat", "sqlite", "upstream"]),
    ("+ `service`: servers, as client and as supplier", &["service", "sqlite", "upstream"]),
    ("+ `local-service`: the service in the process", &["local-service", "service", "sqlite", "upstream"]),
    (
        "+ `chat-model`: a model of a service",
        &["chat-model", "local-service", "service", "sqlite", "upstream"],
    ),
    (
        "+ `search`: search in the whole archive",
        &["chat-model", "local-service", "search", "service", "sqlite", "upstream"],
    ),
];

/// Prints the sizes as a Markdown table.
///
/// # Errors
/// If a build fails.
pub(crate) fn print_table() -> Result<()> {
    tools::print("| features | bytes, stripped | gzip -9 | added |\n|---|---|---|---|\n");
    let work = tools::empty_folder(&tools::target_folder().join("sizes"))?;
    let mut before = None;
    for (name, features) in BUILDS {
        let library = tools::build(features, None)?;
        let stripped = work.join("library");
        tools::copy_stripped(&library, &stripped)?;
        let size = fs::metadata(&stripped)?.len();
        let added = before.map_or(0, |before: u64| size.saturating_sub(before));
        tools::print(&format!("| {name} | {size} | {} | {added} |\n", gzip_size(&stripped)?));
        before = Some(size);
    }
    Ok(())
}

/// Size of the file after `gzip -9`, about the size of a download.
fn gzip_size(file: &Path) -> Result<usize> {
    let output = Command::new("gzip").arg("-9").stdin(fs::File::open(file)?).output()?;
    Ok(output.stdout.len())
}
