//! What we promise each other about the working tree, as tests.
//!
//! A rule is a pure function from a file to its offences, so that it can be shown to catch one: each has
//! a test that applies it to the tree and a test that plants an offence.

mod crates;
mod documents;
mod functions;
mod purity;
mod words;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use ignore::WalkBuilder;

/// One file of the working tree, with its path from the root, with slashes.
#[derive(Debug)]
pub(crate) struct Source {
    path: String,
    text: String,
}

/// A breach of a rule: where, and how it is mended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offence {
    path: String,
    line: usize,
    mend: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn offence(&self, line: usize, mend: impl Into<String>) -> Offence {
        Offence { path: self.path.clone(), line, mend: mend.into() }
    }

    /// The lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(place, line)| (place + 1, line))
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

    fn is_within(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.mend)
    }
}

/// The root of the working tree.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("the tests lie in the root of the tree")?.to_owned())
}

/// Every text file that version control would see, in order.
fn tree() -> Result<Vec<Source>> {
    let root = root()?;
    let mut sources = Vec::new();
    let mut walk = WalkBuilder::new(&root);
    // Only the tree's own ignore files count: what one person ignores everywhere is still in the tree.
    walk.hidden(false).parents(false).git_global(false).git_exclude(false).require_git(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    walk.sort_by_file_path(Path::cmp);
    for entry in walk.build() {
        let entry = entry?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        // What is not UTF-8 is not text, and nothing here is said about it.
        if let Ok(text) = std::fs::read_to_string(entry.path()) {
            let path = entry.path().strip_prefix(&root)?;
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            sources.push(Source { path: parts.join("/"), text });
        }
    }
    Ok(sources)
}

/// Applies a rule to every file that it is about.
fn apply(about: impl Fn(&Source) -> bool, rule: impl Fn(&Source) -> Vec<Offence>) -> Result<()> {
    let sources = tree()?;
    let files: Vec<_> = sources.iter().filter(|source| about(source)).collect();
    anyhow::ensure!(!files.is_empty(), "the rule looked at no file at all");
    none(files.into_iter().flat_map(rule).collect())
}

/// Fails with all offences, each on a line of its own.
fn none(offences: Vec<Offence>) -> Result<()> {
    let list: Vec<_> = offences.iter().map(ToString::to_string).collect();
    anyhow::ensure!(list.is_empty(), "{} to mend:\n{}", list.len(), list.join("\n"));
    Ok(())
}

/// Fails unless a rule finds exactly the offences on these lines of a planted file.
#[track_caller]
fn check_planted(rule: impl Fn(&Source) -> Vec<Offence>, path: &str, text: &str, lines: &[usize]) {
    let found: Vec<_> = rule(&Source::new(path, text)).into_iter().map(|offence| offence.line).collect();
    assert_eq!(found, lines, "in:\n{text}");
}

#[test]
fn the_walk_sees_the_tree_and_nothing_that_was_built() -> Result<()> {
    let sources = tree()?;
    let has = |path: &str| sources.iter().any(|source| source.path == path);
    assert!(has("Cargo.toml") && has("tests/tests/tidy/mod.rs") && has(".gitignore"));
    assert!(!sources.iter().any(|source| source.is_within("target") || source.is_within(".git")));
    Ok(())
}
