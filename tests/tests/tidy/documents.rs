//! Documents: every local link, anchor, test and setting that they name exists, and every page is listed.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use anyhow::{Context as _, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{SourceFile, Violation, apply, check_planted, none, root, tree};

/// A local link or image of a document.
struct LinkTarget {
    line: usize,
    /// The path as written; empty for a link within the document.
    path: String,
    anchor: Option<String>,
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

/// The local links and images of a document.
fn targets(source: &SourceFile) -> Vec<LinkTarget> {
    let mut found = Vec::new();
    for (event, range) in parser(&source.text).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let (target, anchor) = match dest_url.split_once('#') {
                Some((target, anchor)) => (target, Some(anchor.to_owned())),
                None => (&*dest_url, None),
            };
            let path = target.split('?').next().unwrap_or_default();
            if !path.contains(':') && !path.starts_with("//") {
                let before = source.text.get(..range.start).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                found.push(LinkTarget { line, path: path.to_owned(), anchor });
            }
        }
    }
    found
}

/// The anchors of a document's headings, as forges and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let (mut found, mut counts) = (HashSet::new(), HashMap::<String, usize>::new());
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some(title) = heading.take() else { continue };
                let slug: String = title
                    .to_lowercase()
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                    .map(|c| if c == ' ' { '-' } else { c })
                    .collect();
                let count = counts.entry(slug.clone()).or_default();
                found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    found
}

/// A path from the tree's root, without `.` and `..`; `None` if it leads out of the tree.
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

/// Every local link whose file is missing, or whose anchor is no heading of a Markdown file.
///
/// `read` returns the text of a Markdown file, an empty text for another file or folder, and `None` for a missing one.
fn broken_links(source: &SourceFile, read: impl Fn(&str) -> Option<String>) -> Vec<Violation> {
    let problem = |target: &LinkTarget| {
        let path = match target.path.as_str() {
            "" => Some(source.path.clone()),
            path => resolve(&source.path, path),
        };
        let Some(text) = path.as_deref().and_then(&read) else {
            return Some(format!("{} does not exist: correct the link", target.path));
        };
        let anchor = target.anchor.as_deref().filter(|_| path.is_some_and(|path| path.ends_with(".md")))?;
        let is_missing = !anchors(&text).contains(anchor);
        is_missing.then(|| format!("{} has no heading #{anchor}: correct the link", target.path))
    };
    targets(source)
        .into_iter()
        .filter_map(|target| Some(source.violation(target.line, problem(&target)?)))
        .collect()
}

/// The paths from the tree's root that a document links to.
fn linked(list: &SourceFile) -> HashSet<String> {
    targets(list).iter().filter_map(|target| resolve(&list.path, &target.path)).collect()
}

/// Every document of a folder that the folder's list does not link to.
fn unlisted_documents(sources: &[SourceFile], folder: &str, list: &str) -> Vec<Violation> {
    let Some(list) = sources.iter().find(|source| source.path == list) else {
        return Vec::new();
    };
    let listed = linked(list);
    sources
        .iter()
        .filter(|source| {
            source.is_within(folder) && source.has_extension(&["md"]) && source.path != list.path
        })
        .filter(|source| !listed.contains(&source.path))
        .map(|source| source.violation(1, format!("{} does not link to it", list.path)))
        .collect()
}

/// Every module of the acceptance tests that the list of them does not link to.
fn unlisted_modules(sources: &[SourceFile]) -> Vec<Violation> {
    let Some(list) = sources.iter().find(|source| source.path == "tests/README.md") else {
        return Vec::new();
    };
    let listed = linked(list);
    let folder = |source: &SourceFile| source.path.strip_suffix("/mod.rs").map(ToOwned::to_owned);
    sources
        .iter()
        .filter_map(|source| Some((source, folder(source)?)))
        .filter(|(_, folder)| folder.strip_prefix("tests/tests/").is_some_and(|name| !name.contains('/')))
        .filter(|(_, folder)| !listed.contains(folder))
        .map(|(source, folder)| source.violation(1, format!("{} does not link to {folder}", list.path)))
        .collect()
}

/// The alternatives of a path with `{a,b}`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (names, after))) => {
            names.split(',').map(|name| format!("{before}{name}{after}")).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// Every path in the column `test`, the last of its table, that does not exist.
///
/// `…` is a folder of the path before.
fn missing_tests(source: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, row) in source.lines().skip_while(|(_, line)| !line.ends_with("| test |")) {
        let Some((_, column)) = row.strip_suffix(" |").and_then(|row| row.rsplit_once(" | ")) else {
            continue;
        };
        let mut last = String::new();
        for path in column.split('`').skip(1).step_by(2).flat_map(alternatives) {
            let found = match path.strip_prefix("…/") {
                None => Some(path.clone()).filter(|path| exists(path)),
                Some(rest) => Path::new(&last)
                    .ancestors()
                    .skip(1)
                    .map(|folder| folder.join(rest).display().to_string())
                    .find(|path| exists(path)),
            };
            match found {
                Some(found) => last = found,
                None => {
                    violations.push(source.violation(number, format!("{path} does not exist: correct it")))
                }
            }
        }
    }
    violations
}

/// Every old name of a renamed setting, in the form of Markdown and of doc comments.
fn renamed_settings(source: &SourceFile, old: &[&str]) -> Vec<Violation> {
    let found = |line: &str| old.iter().find(|name| line.contains(&format!("`{name}`"))).copied();
    let advice = |name| format!("{name} was renamed: use the new name");
    source.lines().filter_map(|(number, line)| Some(source.violation(number, advice(found(line)?)))).collect()
}

#[test]
fn documents_tests_of_threat_model_exist() -> Result<()> {
    let root = root()?;
    apply(
        |source| source.path == "SECURITY.md",
        |source| missing_tests(source, |path| root.join(path).exists()),
    )
}

#[test]
fn documents_name_no_renamed_setting() -> Result<()> {
    let reader = std::fs::read_to_string(root()?.join("reference-server/src/config/reader.rs"))?;
    let list = reader.split_once("const RENAMED").and_then(|(_, rest)| rest.split_once("];"));
    let (list, _) = list.context("reader.rs has no list of renamed settings")?;
    let old: Vec<&str> =
        list.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next()).collect();
    anyhow::ensure!(old.contains(&"suppliers.rest_after"), "{old:?}");
    let is_past = |source: &SourceFile| source.path == "CHANGELOG.md" || source.is_within("docs/decisions");
    apply(
        |source| {
            source.has_extension(&["md", "rs"]) && !is_past(source) && !source.is_within("tests/tests/tidy")
        },
        |source| renamed_settings(source, &old),
    )
}

#[test]
fn documents_missing_test_is_reported() {
    let text = "| a | `none.rs` |\n\n| a | test |\n|---|---|\n| b | `x/y/a.rs`, `…/b.rs`, `…/z/c.rs` |\n\
                | c | `x/y/{a,b}.rs` (all) |\n| d | `x/y/{a,c}.rs` |\n| e | `x/y/a.rs`, `…/c.rs` |\n";
    let exists = |path: &str| ["x/y/a.rs", "x/y/b.rs", "x/z/c.rs"].contains(&path);
    check_planted(|source| missing_tests(source, exists), "SECURITY.md", text, &[7, 8]);
}

#[test]
fn documents_renamed_setting_is_reported() {
    let text =
        "// `suppliers.rest_after` and\n// `suppliers.rest_after_all`, suppliers.rest\n// `suppliers.rest`\n";
    let old = ["suppliers.rest_after", "suppliers.rest"];
    check_planted(|source| renamed_settings(source, &old), "a.rs", text, &[1, 3]);
}

#[test]
fn documents_links_and_anchors_resolve() -> Result<()> {
    let root = root()?;
    let read = |path: &str| {
        let path = root.join(path);
        match path.extension() {
            Some(extension) if extension == "md" => std::fs::read_to_string(path).ok(),
            _ => path.exists().then(String::new),
        }
    };
    apply(|source| source.has_extension(&["md"]), |source| broken_links(source, read))
}

#[test]
fn documents_every_decision_is_listed() -> Result<()> {
    none(unlisted_documents(&tree()?, "docs/decisions", "docs/decisions/README.md"))
}

#[test]
fn documents_every_page_is_a_chapter() -> Result<()> {
    none(unlisted_documents(&tree()?, "docs", "docs/SUMMARY.md"))
}

#[test]
fn documents_every_test_module_is_listed() -> Result<()> {
    none(unlisted_modules(&tree()?))
}

#[test]
fn documents_broken_link_is_reported() {
    let text = "[a](b.md) and [c](../d.md#part)\n\n![e](missing.png)\n[f](https://a.test/x) [g](#here)\n\n[h]: ../../../i\n\n[h]\n";
    let read =
        |path: &str| ["docs/b.md", "d.md", "docs/a.md"].contains(&path).then(|| "# Part\n# Here".to_owned());
    check_planted(|source| broken_links(source, read), "docs/a.md", text, &[3, 8]);
}

#[test]
fn documents_broken_anchor_is_reported() {
    let text =
        "[a](b.md#one-two) [b](b.md#part)\n[c](#here)\n[d](b.md#part-1)\n[e](c.rs#L1)\n[f](b.md#part-2)\n";
    let read = |path: &str| match path {
        "docs/b.md" => Some("# One, `two`!\n## Part\n## Part\n".to_owned()),
        "docs/a.md" => Some(text.to_owned()),
        "docs/c.rs" => Some(String::new()),
        _ => None,
    };
    check_planted(|source| broken_links(source, read), "docs/a.md", text, &[2, 5]);
}

#[test]
fn documents_unlisted_page_is_reported() {
    let list = SourceFile::new("docs/decisions/README.md", "- [first](0001-first.md)\n");
    let sources = [
        list,
        SourceFile::new("docs/decisions/0001-first.md", ""),
        SourceFile::new("docs/decisions/0002-second.md", ""),
    ];
    let violations = unlisted_documents(&sources, "docs/decisions", "docs/decisions/README.md");
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "docs/decisions/0002-second.md");
}

#[test]
fn documents_unlisted_test_module_is_reported() {
    let list = SourceFile::new("tests/README.md", "| [`tests/first`](tests/first) | first |\n");
    let sources = [
        list,
        SourceFile::new("tests/tests/first/mod.rs", ""),
        SourceFile::new("tests/tests/first/part/mod.rs", ""),
        SourceFile::new("tests/tests/second/mod.rs", ""),
        SourceFile::new("tests/src/replay/mod.rs", ""),
    ];
    let violations = unlisted_modules(&sources);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "tests/tests/second/mod.rs");
}
