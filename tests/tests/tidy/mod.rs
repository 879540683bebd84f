//! Rules of the working tree, as tests.
//!
//! A rule is a pure function from a file to its violations. Each rule has a test that applies it to the tree and a test
//! that plants a violation.

mod crates;
mod dependencies;
mod documents;
mod functions;
mod layers;
mod oracles;
mod purity;
mod vocabulary;
mod words;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use ignore::WalkBuilder;

/// One file of the working tree, with its path from the root, with slashes.
#[derive(Debug)]
pub(crate) struct SourceFile {
    path: String,
    text: String,
}

/// A violation of a rule: where it is, and how to correct it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    advice: String,
}

impl SourceFile {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn violation(&self, line: usize, advice: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, advice: advice.into() }
    }

    /// The lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn has_extension(&self, extensions: &[&str]) -> bool {
        Path::new(&self.path)
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| extensions.contains(&extension))
    }

    fn is_rust(&self) -> bool {
        self.has_extension(&["rs"])
    }

    /// Whether the file is `path`, or in the folder `path`; the extension may be left out.
    fn is_under(&self, path: &str) -> bool {
        self.path.strip_suffix(".rs").unwrap_or(&self.path) == path
            || self.path == path
            || self.is_within(path)
    }

    fn is_within(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

/// The root of the working tree.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("the tests are not in a folder of the tree")?.to_owned())
}

/// Every text file that version control includes, in order of the paths.
fn tree() -> Result<Vec<SourceFile>> {
    let root = root()?;
    let mut sources = Vec::new();
    let mut walk = WalkBuilder::new(&root);
    // Only the ignore files of the tree count: a file that one machine ignores globally is still in the tree.
    walk.hidden(false).parents(false).git_global(false).git_exclude(false).require_git(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    walk.sort_by_file_path(Path::cmp);
    for entry in walk.build() {
        let entry = entry?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        // A file that is not UTF-8 is not text and no rule applies to it.
        if let Ok(text) = std::fs::read_to_string(entry.path()) {
            let path = entry.path().strip_prefix(&root)?;
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            sources.push(SourceFile { path: parts.join("/"), text });
        }
    }
    Ok(sources)
}

/// Applies a rule to every file that `about` selects.
fn apply(about: impl Fn(&SourceFile) -> bool, rule: impl Fn(&SourceFile) -> Vec<Violation>) -> Result<()> {
    let sources = tree()?;
    let files: Vec<_> = sources.iter().filter(|source| about(source)).collect();
    anyhow::ensure!(!files.is_empty(), "the rule was applied to no file");
    none(files.into_iter().flat_map(rule).collect())
}

/// Fails with all violations, each on its own line.
fn none(violations: Vec<Violation>) -> Result<()> {
    let list: Vec<_> = violations.iter().map(ToString::to_string).collect();
    anyhow::ensure!(list.is_empty(), "{} violations:\n{}", list.len(), list.join("\n"));
    Ok(())
}

/// Fails unless a rule reports exactly these lines of a planted file.
#[track_caller]
fn check_planted(rule: impl Fn(&SourceFile) -> Vec<Violation>, path: &str, text: &str, lines: &[usize]) {
    let found: Vec<_> =
        rule(&SourceFile::new(path, text)).into_iter().map(|violation| violation.line).collect();
    assert_eq!(found, lines, "in:\n{text}");
}

#[test]
fn tidy_walk_skips_build_output() -> Result<()> {
    let sources = tree()?;
    let has = |path: &str| sources.iter().any(|source| source.path == path);
    assert!(has("Cargo.toml") && has("tests/tests/tidy/mod.rs") && has(".gitignore"));
    assert!(!sources.iter().any(|source| source.is_within("target") || source.is_within(".git")));
    Ok(())
}
