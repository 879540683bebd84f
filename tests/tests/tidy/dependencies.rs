//! Weight of the libraries for other programs: how many packages they compile, and which Rust they need.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use toml::{Table, Value};

use super::{SourceFile, Violation, check_planted, crates::LIBRARIES, none, tree};

/// Document with the table of packages.
const DOCUMENT: &str = "verbatim/README.md";
/// The system whose packages are counted.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Features that no table lists: the default ones, and the entry points of the fuzz targets.
const UNLISTED_FEATURES: [&str; 2] = ["default", "fuzzing"];

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

/// Every feature of a manifest that the table of features in the README beside it lacks.
fn unlisted_features(manifest: &SourceFile, readme: &str) -> Vec<Violation> {
    let Ok(table) = manifest.text.parse::<Table>() else {
        return vec![manifest.violation(1, "no valid TOML")];
    };
    let features = table.get("features").and_then(Value::as_table);
    let names = features.into_iter().flatten().map(|(name, _)| name.as_str());
    let is_listed = |name: &str| readme.lines().any(|line| line.starts_with(&format!("| `{name}` |")));
    names
        .filter(|name| !UNLISTED_FEATURES.contains(name) && !is_listed(name))
        .map(|name| {
            let found = manifest.lines().find(|(_, text)| text.starts_with(&format!("{name} = ")));
            let line = found.map_or(1, |(line, _)| line);
            manifest.violation(line, format!("the table of features in README.md lacks {name}"))
        })
        .collect()
}

#[test]
fn dependencies_every_feature_is_documented() -> Result<()> {
    let sources = tree()?;
    let (mut checked, mut violations) = (0, Vec::new());
    for manifest in sources.iter().filter(|source| source.path.ends_with("/Cargo.toml")) {
        let readme = manifest.path.replace("Cargo.toml", "README.md");
        let readme = sources.iter().find(|source| source.path == readme);
        let Some(readme) = readme.filter(|readme| readme.text.contains("| feature | default |")) else {
            continue;
        };
        checked += 1;
        violations.extend(unlisted_features(manifest, &readme.text));
    }
    ensure!(checked > 5, "{checked} documents have a table of features");
    none(violations)
}

#[test]
fn dependencies_undocumented_feature_is_reported() {
    let text = "[features]\ndefault = []\nfuzzing = []\none = []\ntwo = [\"one\"]\n";
    check_planted(|manifest| unlisted_features(manifest, "| `one` | yes | x |"), "a/Cargo.toml", text, &[5]);
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
