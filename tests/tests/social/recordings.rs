//! Recordings outside the repository: original responses of the platforms.

use std::{collections::BTreeSet, fmt, path::Path};

use anyhow::{Context as _, Result, ensure};
use transcript_core::transcript::VideoMetadata;

/// The folder of a platform's recordings; `None` if `VERBATIM_RECORDINGS` is not set.
pub(crate) fn folder(platform: &str) -> Option<std::path::PathBuf> {
    let named = std::env::var_os("VERBATIM_RECORDINGS");
    if named.is_none() {
        eprintln!("not checked: VERBATIM_RECORDINGS is not set");
    }
    named.map(|folder| Path::new(&folder).join(platform))
}

/// Fails if a file has no row, or a row no file.
fn check_rows<R>(platform: &str, rows: &[(&str, R)]) -> Result<()> {
    let Some(folder) = folder(platform) else { return Ok(()) };
    let named: BTreeSet<_> = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
    ensure!(named.len() == rows.len(), "a file has two rows");
    let mut files = BTreeSet::new();
    for file in std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let name = file?.file_name().to_string_lossy().into_owned();
        if name != "INDEX.md" {
            files.insert(name);
        }
    }
    ensure!(files == named, "files and rows differ: {:?}", files.symmetric_difference(&named));
    Ok(())
}

/// Each file with its row; empty without recordings.
pub(crate) fn read_all<'a, R: Copy>(
    platform: &str,
    rows: &[(&'a str, R)],
) -> Result<Vec<(&'a str, Vec<u8>, R)>> {
    let Some(folder) = folder(platform) else { return Ok(Vec::new()) };
    let read = |(name, row): &(&'a str, R)| {
        Ok((*name, std::fs::read(folder.join(name)).with_context(|| (*name).to_owned())?, *row))
    };
    rows.iter().map(read).collect()
}

/// Fails unless a post has the metadata that all recorded ones have; the URLs of profiles begin with `profiles`.
pub(crate) fn check_metadata(metadata: &VideoMetadata, profiles: &str) -> Result<()> {
    metadata.check()?;
    let id = metadata.author_id.as_deref().context("no author")?;
    ensure!(!id.is_empty() && id.bytes().all(|c| c.is_ascii_digit()), "{id}");
    ensure!(metadata.author_url.as_ref().is_some_and(|url| url.starts_with(profiles)), "{metadata:?}");
    let years = metadata.published_at.context("no time")?.to_string();
    ensure!(("2013".."2027").contains(&years.get(..4).context("no year")?), "{years}");
    ensure!(metadata.thumbnail_url.is_some() && metadata.description.is_some(), "{metadata:?}");
    Ok(())
}

/// Checks each file by its row, and fails with all mismatches.
#[expect(clippy::future_not_send, reason = "each test waits for it on one thread")]
pub(crate) async fn check_files<R: Copy + fmt::Debug>(
    platform: &str,
    rows: &[(&str, R)],
    check: impl AsyncFn(&str, Vec<u8>, R) -> Result<()>,
) -> Result<()> {
    check_rows(platform, rows)?;
    let mut mismatches = Vec::new();
    for (name, bytes, row) in read_all(platform, rows)? {
        if let Err(error) = check(name, bytes, row).await {
            mismatches.push(format!("{name}, {row:?}: {error:#}"));
        }
    }
    ensure!(mismatches.is_empty(), "{} files:\n{}", mismatches.len(), mismatches.join("\n"));
    Ok(())
}
