//! What the stripped library takes, feature by feature.

use std::{fs, path::Path, process::Command};

use anyhow::Result;

use crate::tools;

/// The builds, each with its features.
const BUILDS: &[(&str, &[&str])] = &[
    ("archive and suppliers of the app's own, in memory", &[]),
    ("+ `sqlite`: storage in files", &["sqlite"]),
    ("+ `upstream`: the built-in suppliers, HTTP and TLS", &["sqlite", "upstream"]),
    ("+ `service`: servers, as client and as supplier", &["service", "sqlite", "upstream"]),
    ("+ `chat-model`: a model behind a service", &["chat-model", "service", "sqlite", "upstream"]),
];

/// Prints the table in Markdown.
///
/// # Errors
/// When a build fails.
pub(crate) fn table() -> Result<()> {
    tools::say("| features | bytes, stripped | gzip -9 | added |\n|---|---|---|---|\n");
    let work = tools::fresh(&tools::target_folder().join("sizes"))?;
    let mut before = None;
    for (name, features) in BUILDS {
        let library = tools::build(features, None)?;
        let small = work.join("library");
        tools::stripped(&library, &small)?;
        let size = fs::metadata(&small)?.len();
        let added = before.map_or(0, |before: u64| size.saturating_sub(before));
        tools::say(&format!("| {name} | {size} | {} | {added} |\n", packed(&small)?));
        before = Some(size);
    }
    Ok(())
}

/// How many bytes a download of the file takes.
fn packed(file: &Path) -> Result<usize> {
    let output = Command::new("gzip").arg("-9").stdin(fs::File::open(file)?).output()?;
    Ok(output.stdout.len())
}
