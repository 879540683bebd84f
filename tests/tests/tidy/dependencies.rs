//! Weight of the libraries for other programs: how many packages they compile, and which Rust they need.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{crates::LIBRARIES, tree};

/// Document with the table of packages.
const DOCUMENT: &str = "verbatim/README.md";
/// The system whose packages are counted.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Packages that a build compiles, as `name vVERSION`.
fn packages(arguments: &str) -> Result<BTreeSet<String>> {
    let command = ["tree", "--locked", "--target", TARGET, "-e", "normal", "--prefix", "none"];
    let output = verbatim_tests::cargo().args(command).args(arguments.split_whitespace()).output()?;
    ensure!(output.status.success(), "cargo tree {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
}

/// Rows of the table: the number of packages, and the arguments of `cargo tree`.
fn rows(text: &str) -> Vec<(usize, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.strip_suffix("` |")?.split(" | ");
            let (_, number, arguments) = (cells.next()?, cells.next()?, cells.next()?);
            Some((number.parse().ok()?, arguments.strip_prefix('`')?))
        })
        .collect()
}

#[test]
fn dependencies_are_as_many_as_documented() -> Result<()> {
    let sources = tree()?;
    let document = sources.iter().find(|source| source.path == DOCUMENT).context(DOCUMENT)?;
    let rows = rows(&document.text);
    ensure!(rows.len() > 3, "the table of {DOCUMENT} is missing");
    for (documented, arguments) in rows {
        let packages = packages(arguments)?;
        ensure!(
            packages.len() == documented,
            "{arguments}: {} packages, and {documented} in {DOCUMENT}: remove the new ones, or correct the table: \
             {packages:?}",
            packages.len()
        );
    }
    Ok(())
}

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<PackageMetadata>,
}

#[derive(Deserialize)]
struct PackageMetadata {
    name: String,
    version: String,
    rust_version: Option<String>,
}

/// Major and minor version of Rust.
fn rust_version(text: &str) -> Result<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Ok((numbers.next().context("a major version")??, numbers.next().context("a minor version")??))
}

#[test]
fn dependencies_need_no_newer_rust_than_libraries() -> Result<()> {
    let metadata = ["metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET];
    let output = verbatim_tests::cargo().args(metadata).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    for (library, oldest) in LIBRARIES {
        let packages = packages(&format!("-p {library}"))?;
        let mut checked = 0;
        for package in packages {
            let is_named = |known: &&PackageMetadata| {
                package.split(' ').take(2).eq([known.name.as_str(), &format!("v{}", known.version)])
            };
            let known = metadata.packages.iter().find(is_named).with_context(|| package.clone())?;
            let Some(needed) = &known.rust_version else { continue };
            ensure!(
                rust_version(needed)? <= rust_version(oldest)?,
                "{package} needs Rust {needed}, and {library} promises {oldest}"
            );
            checked += 1;
        }
        ensure!(checked > 20, "{library}: its packages do not state their versions of Rust");
    }
    Ok(())
}
