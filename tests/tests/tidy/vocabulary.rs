//! The words of `docs/glossary.md`: banned words stay out, and one public type name has one meaning.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{Item, Visibility};

use super::{
    SourceFile, Violation, apply, check_planted,
    functions::{is_test_only, is_test_program, parse},
    none, tree,
    words::contains_word,
};

/// The document that lists the banned words, between two marks.
const GLOSSARY: &str = "docs/glossary.md";
const LIST_BEGIN: &str = "<!-- banned words: begin -->";
const LIST_END: &str = "<!-- banned words: end -->";

/// Kinds of files that are read for banned words.
const READ: &[&str] = &[
    "rs", "md", "toml", "py", "pyi", "kt", "swift", "sh", "js", "mjs", "css", "html", "yml", "lua", "c",
    "json", "service",
];

/// Files and folders that may contain any word, with the reason.
const FREE: &[(&str, &str)] = &[
    (GLOSSARY, "it lists the banned words"),
    ("docs/decisions/0037-plain-names.md", "it names what was renamed"),
    ("storage-sqlx/migrations", "released migrations never change"),
    ("tests/recordings", "recorded responses and what people say in them"),
    ("tests/chat/talks", "transcripts of the chat tests"),
    ("tests/tests/tidy", "tests of these rules plant violations"),
    ("tests/chat/quantities", "transcripts of the chat tests"),
    ("transcript-core/src/chat/common_words.rs", "common words of spoken English"),
    ("transcript-core/src/chat/content_words.rs", "words of spoken English"),
    ("transcript-core/src/chat/verify/exceptions.rs", "words of spoken languages"),
    ("transcript-core/src/chat/verify/negation_words.rs", "negating words of spoken English"),
    ("transcript-core/src/chat/verify/quoted_negation_tests.rs", "sentences of transcripts and models"),
    ("transcript-core/src/chat/prompt.rs", "text for chat models, measured as it is"),
    ("reference-server/src/page/altcha", "released files of another project"),
];

/// Words that a path may contain, with the reason: wire, SQL and speech keep what they say.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("storage-sqlx", "wish", "a column of the archive"),
    ("reference-server/src/command", "wish", "a JSON key that commands print"),
    ("tests/tests/server", "wish", "a JSON key that commands print"),
    ("bindings-python", "wish", "a key of the records that Python stores exchange"),
    ("transcript-core/src/chat/verify/quoted_negation.rs", "hardly", "a word of spoken English"),
    ("upstream-reqwest/src/stripe", "anew", "part of an idempotency key at Stripe"),
];

/// Identifiers that are never used, in code and in paths.
const BANNED_IDENTIFIERS: &[&str] =
    &["ask", "asks", "asked", "told", "heard", "seen", "wish", "errand", "pace", "patience"];
/// Beginnings of identifiers that are never used.
const BANNED_PREFIXES: &[&str] = &["what_", "who_", "whoever_", "whose_", "nobody_"];
/// Parts of identifiers that are never used.
const BANNED_PARTS: &[&str] = &["_who_", "surface_a", "surface_b"];

/// Places whose types mirror those of the core, or the other side's, under the same names.
const MIRRORS: &[(&str, &str)] = &[
    ("bindings-uniffi", "records for Kotlin and Swift"),
    ("bindings-python", "classes for Python"),
    ("transcript-core/src/body", "JSON bodies of the core's types"),
    ("transcript-core/src/wire", "JSON bodies of the core's types"),
    ("verbatim/src/options", "options of the adapters"),
    ("verbatim/src/chat", "options of the adapters"),
    ("verbatim/src/storage_copy", "stands in for the adapter where a build lacks it"),
    ("reference-server/src/config", "settings that fill the options"),
    ("storage-sqlx/src/postgres", "the twin of the SQLite side"),
];

fn is_free(source: &SourceFile) -> bool {
    FREE.iter().any(|(path, _)| source.is_under(path))
}

/// The banned words, in lower case, from the glossary's list.
fn banned_words(glossary: &str) -> Result<Vec<String>> {
    let (_, rest) = glossary.split_once(LIST_BEGIN).context("the list of banned words has no beginning")?;
    let (list, _) = rest.split_once(LIST_END).context("the list of banned words has no end")?;
    let words: Vec<_> = list
        .lines()
        .map(|line| line.trim().to_lowercase())
        .filter(|line| !line.is_empty() && !line.starts_with("```"))
        .collect();
    anyhow::ensure!(!words.is_empty(), "the list of banned words is empty");
    Ok(words)
}

fn banned(source: &SourceFile, words: &[String]) -> Vec<Violation> {
    let is_allowed =
        |word: &str| ALLOWED.iter().any(|(path, allowed, _)| word == *allowed && source.is_under(path));
    let found = |text: &str| {
        let text = text.to_lowercase();
        words.iter().find(|word| contains_word(&text, word) && !is_allowed(word)).cloned()
    };
    source
        .lines()
        // A pinned wire name keeps its spelling.
        .filter(|(_, text)| !text.contains("rename"))
        .filter_map(|(line, text)| {
            let word = found(text)?;
            Some(source.violation(line, format!("\"{word}\" is a banned word: see {GLOSSARY}")))
        })
        .collect()
}

/// Every identifier of the tokens, in order.
fn identifiers(tokens: TokenStream, found: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident),
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn is_banned_identifier(name: &str) -> bool {
    BANNED_IDENTIFIERS.contains(&name)
        || BANNED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || BANNED_PARTS.iter().any(|part| name.contains(part))
}

/// A violation for each identifier of a file for which there is advice.
pub(super) fn check_identifiers(
    source: &SourceFile,
    advice: impl Fn(&str) -> Option<String>,
) -> Vec<Violation> {
    let tokens: TokenStream = match source.text.parse() {
        Ok(tokens) => tokens,
        Err(error) => return vec![source.violation(1, format!("no valid Rust: {error}"))],
    };
    let mut found = Vec::new();
    identifiers(tokens, &mut found);
    let violation =
        |ident: Ident| Some(source.violation(ident.span().start().line, advice(&ident.to_string())?));
    found.into_iter().filter_map(violation).collect()
}

fn banned_identifiers(source: &SourceFile) -> Vec<Violation> {
    check_identifiers(source, |name| {
        is_banned_identifier(name).then(|| format!("{name}: see the naming rules of {GLOSSARY}"))
    })
}

/// The types that a file makes public, with their lines.
fn public_types(source: &SourceFile) -> Vec<(String, usize)> {
    fn collect(items: &[Item], found: &mut Vec<(String, usize)>) {
        for item in items {
            let (visibility, ident, attributes) = match item {
                Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
                Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
                Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
                Item::Type(item) => (&item.vis, &item.ident, &item.attrs),
                Item::Mod(item) if !is_test_only(&item.attrs) => {
                    if let Some((_, items)) = &item.content {
                        collect(items, found);
                    }
                    continue;
                }
                _ => continue,
            };
            if matches!(visibility, Visibility::Public(_)) && !is_test_only(attributes) {
                found.push((ident.to_string(), ident.span().start().line));
            }
        }
    }
    let Ok(file) = parse(source) else { return Vec::new() };
    let mut found = Vec::new();
    collect(&file.items, &mut found);
    found
}

/// Every public type whose name another public type has already, mirrors left out.
fn repeated_types<'a>(sources: impl IntoIterator<Item = &'a SourceFile>) -> Vec<Violation> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut violations = Vec::new();
    for source in sources {
        if MIRRORS.iter().any(|(path, _)| source.is_under(path)) {
            continue;
        }
        for (name, line) in public_types(source) {
            let here = format!("{}:{line}", source.path);
            if let Some(other) = first.get(&name) {
                violations.push(
                    source
                        .violation(line, format!("{name} is also defined at {other}: one name, one meaning")),
                );
            } else {
                first.insert(name, here);
            }
        }
    }
    violations
}

fn is_published(source: &SourceFile) -> bool {
    source.is_rust()
        && !is_test_program(source)
        && !["tests", "benches", "reference-server"].iter().any(|folder| source.is_within(folder))
}

#[test]
fn vocabulary_tree_has_no_banned_words() -> Result<()> {
    let sources = tree()?;
    let glossary = sources.iter().find(|source| source.path == GLOSSARY).context("no glossary")?;
    let words = banned_words(&glossary.text)?;
    apply(|source| source.has_extension(READ) && !is_free(source), |source| banned(source, &words))
}

#[test]
fn vocabulary_tree_has_no_banned_identifiers() -> Result<()> {
    apply(|source| source.is_rust() && !source.is_within("tests/tests/tidy"), banned_identifiers)
}

#[test]
fn vocabulary_public_type_names_are_unique() -> Result<()> {
    let sources = tree()?;
    let published: Vec<_> = sources.iter().filter(|source| is_published(source)).collect();
    anyhow::ensure!(!published.is_empty(), "no published source was read");
    none(repeated_types(published))
}

#[test]
fn vocabulary_banned_word_is_reported() {
    let words = ["whoever".to_owned(), "in vain".to_owned()];
    let check = |text: &str, lines: &[usize]| {
        check_planted(|source| banned(source, &words), "a.md", text, lines);
    };
    check("fine\nWhoever asks\nit fails in vain.\n", &[2, 3]);
    check("whoevers in vainglory\n#[serde(rename = \"whoever\")]\n", &[]);
}

#[test]
fn vocabulary_list_is_read_from_glossary() -> Result<()> {
    let glossary = format!("x\n{LIST_BEGIN}\n\n```text\nBell\nin vain\n```\n{LIST_END}\nwhoever\n");
    assert_eq!(banned_words(&glossary)?, ["bell", "in vain"]);
    assert!(banned_words("whoever").is_err());
    assert!(banned_words(&format!("{LIST_BEGIN}\n{LIST_END}")).is_err());
    Ok(())
}

#[test]
fn vocabulary_banned_identifier_is_reported() {
    let text =
        "fn what_is_kept() {\n    let wish = 1;\n    // asked and seen\n    f(\"wish\", see_who_left);\n}\n";
    check_planted(banned_identifiers, "a.rs", text, &[1, 2, 4]);
    check_planted(banned_identifiers, "a.rs", "fn whatever(wishlist: u8, asking: u8) {}\n", &[]);
}

#[test]
fn vocabulary_repeated_public_type_is_reported() {
    let sources = [
        SourceFile::new(
            "a/src/lib.rs",
            "pub struct One;\npub(crate) struct Two;\nmod m {\n    pub enum Three {}\n}\n",
        ),
        SourceFile::new("b/src/lib.rs", "pub struct Two;\npub trait One {}\npub type Three = u8;\n"),
        SourceFile::new("bindings-uniffi/src/lib.rs", "pub struct One;\n"),
    ];
    let lines: Vec<_> = repeated_types(&sources).into_iter().map(|found| (found.path, found.line)).collect();
    assert_eq!(lines, [("b/src/lib.rs".to_owned(), 2), ("b/src/lib.rs".to_owned(), 3)]);
}
