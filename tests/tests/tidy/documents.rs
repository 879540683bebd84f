//! What a document points to is there.

use std::collections::HashSet;

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{Offence, Source, apply, check_planted, none, root, tree};

/// The local targets of a document's links and images, with the lines that they stand on.
fn targets(source: &Source) -> Vec<(usize, String)> {
    let parser = Parser::new_ext(&source.text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
    let mut found = Vec::new();
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let path = dest_url.split(['#', '?']).next().unwrap_or_default();
            let is_local = !path.is_empty() && !path.contains(':') && !path.starts_with("//");
            if is_local {
                let before = source.text.get(..range.start).unwrap_or_default();
                found.push((before.matches('\n').count() + 1, path.to_owned()));
            }
        }
    }
    found
}

/// A path from the tree's root, without `.` and `..`; none when it leads out of the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.rsplit_once('/').map(|(folder, _)| folder.split('/').collect()).unwrap_or_default(),
    };
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

fn broken_links(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<Offence> {
    let broken = |target: &str| !resolve(&source.path, target).is_some_and(|path| exists(&path));
    targets(source)
        .into_iter()
        .filter(|(_, target)| broken(target))
        .map(|(line, target)| source.offence(line, format!("{target} is not there: mend the link")))
        .collect()
}

/// Every decision that the list of decisions does not link to.
fn unlisted_decisions(sources: &[Source]) -> Vec<Offence> {
    let Some(list) = sources.iter().find(|source| source.path == "docs/decisions/README.md") else {
        return Vec::new();
    };
    let listed: HashSet<String> =
        targets(list).iter().filter_map(|(_, target)| resolve(&list.path, target)).collect();
    sources
        .iter()
        .filter(|source| source.is_within("docs/decisions") && source.path != list.path)
        .filter(|source| !listed.contains(&source.path))
        .map(|source| source.offence(1, format!("no line of {} links to it", list.path)))
        .collect()
}

/// Every module of the acceptance tests that the list of them does not link to.
fn unlisted_modules(sources: &[Source]) -> Vec<Offence> {
    let Some(list) = sources.iter().find(|source| source.path == "tests/README.md") else {
        return Vec::new();
    };
    let listed: HashSet<String> =
        targets(list).iter().filter_map(|(_, target)| resolve(&list.path, target)).collect();
    let folder = |source: &Source| source.path.strip_suffix("/mod.rs").map(ToOwned::to_owned);
    sources
        .iter()
        .filter_map(|source| Some((source, folder(source)?)))
        .filter(|(_, folder)| folder.strip_prefix("tests/tests/").is_some_and(|name| !name.contains('/')))
        .filter(|(_, folder)| !listed.contains(folder))
        .map(|(source, folder)| source.offence(1, format!("no line of {} links to {folder}", list.path)))
        .collect()
}

#[test]
fn links_between_documents_resolve() -> Result<()> {
    let root = root()?;
    let exists = |path: &str| root.join(path).exists();
    // A tree without a document has no broken link.
    if tree()?.iter().any(|source| source.has_extension(&["md"])) {
        apply(|source| source.has_extension(&["md"]), |source| broken_links(source, exists))?;
    }
    Ok(())
}

#[test]
fn every_decision_is_listed() -> Result<()> {
    none(unlisted_decisions(&tree()?))
}

#[test]
fn every_module_of_the_tests_is_listed() -> Result<()> {
    none(unlisted_modules(&tree()?))
}

#[test]
fn a_broken_link_is_caught() {
    let text = "[a](b.md) and [c](../d.md#part)\n\n![e](missing.png)\n[f](https://a.test/x) [g](#here)\n\n[h]: ../../../i\n\n[h]\n";
    let exists = |path: &str| ["docs/b.md", "d.md"].contains(&path);
    check_planted(|source| broken_links(source, exists), "docs/a.md", text, &[3, 8]);
}

#[test]
fn an_unlisted_decision_is_caught() {
    let list = Source::new("docs/decisions/README.md", "- [first](0001-first.md)\n");
    let sources = [
        list,
        Source::new("docs/decisions/0001-first.md", ""),
        Source::new("docs/decisions/0002-second.md", ""),
    ];
    let offences = unlisted_decisions(&sources);
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].path, "docs/decisions/0002-second.md");
}

#[test]
fn an_unlisted_module_is_caught() {
    let list = Source::new("tests/README.md", "| [`tests/first`](tests/first) | first |\n");
    let sources = [
        list,
        Source::new("tests/tests/first/mod.rs", ""),
        Source::new("tests/tests/first/part/mod.rs", ""),
        Source::new("tests/tests/second/mod.rs", ""),
        Source::new("tests/src/replay/mod.rs", ""),
    ];
    let offences = unlisted_modules(&sources);
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].path, "tests/tests/second/mod.rs");
}
