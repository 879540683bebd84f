//! The core uses no sockets, files, clock, environment or randomness: traits provide them.

use std::collections::HashSet;

use anyhow::Result;
use syn::{
    Item, ItemMod, ItemUse, Macro, UseTree,
    visit::{self, Visit},
};

use super::{
    SourceFile, Violation, check_planted,
    functions::{attributes, is_test_only, parse},
    none, tree,
};

/// Paths that the core must not name: the beginning of a path, or the end of one for `…::now`.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::os",
    "std::thread",
    "std::time::Instant",
    "tokio::net",
    "tokio::fs",
    "tokio::process",
    "tokio::signal",
    "tokio::runtime::Builder",
    "tokio::runtime::Runtime",
    "rand",
    "getrandom",
    "fastrand",
    "jiff::Zoned::now",
    "jiff::Timestamp::now",
    "SystemTime::now",
    "Instant::now",
];

/// Addresses are values: naming one opens no socket.
const ALLOWED: &[&str] = &["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr"];

/// tokio's clock is the engine's timer: it can be paused, and it is not a source of the time of day.
const TIMER: &[&str] = &["tokio::time::Instant::now"];

fn forbidden(path: &str) -> Option<&'static str> {
    let begins = |whole: &str, start: &str| {
        whole.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    if ALLOWED.iter().chain(TIMER).any(|allowed| begins(path, allowed)) {
        return None;
    }
    FORBIDDEN
        .iter()
        .find(|name| begins(path, name) || name.ends_with("::now") && path.ends_with(&format!("::{name}")))
        .copied()
}

/// The line that a path begins on.
pub(super) fn line(path: &syn::Path) -> usize {
    path.segments.first().map_or(1, |segment| segment.ident.span().start().line)
}

/// Every full path that a use declaration imports.
fn imports(tree: &UseTree, before: &str, found: &mut Vec<String>) {
    let join =
        |name: &syn::Ident| if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
    match tree {
        UseTree::Path(path) => imports(&path.tree, &join(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => found.push(before.to_owned()),
        UseTree::Name(name) => found.push(join(&name.ident)),
        UseTree::Rename(rename) if rename.ident == "self" => found.push(before.to_owned()),
        UseTree::Rename(rename) => found.push(join(&rename.ident)),
        UseTree::Glob(_) => found.push(before.to_owned()),
        UseTree::Group(group) => group.items.iter().for_each(|item| imports(item, before, found)),
    }
}

/// Calls `check` with each path that a file names outside of tests, the modules of the file around it, and its line.
pub(super) fn for_each_path(file: &syn::File, check: impl FnMut(&str, &[String], usize)) {
    PathVisitor { modules: Vec::new(), check }.visit_file(file);
}

struct PathVisitor<F> {
    modules: Vec<String>,
    check: F,
}

impl<'ast, F: FnMut(&str, &[String], usize)> Visit<'ast> for PathVisitor<F> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.modules.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.modules.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut paths = Vec::new();
        imports(&item.tree, "", &mut paths);
        for path in paths {
            (self.check)(&path, &self.modules, item.use_token.span.start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        (self.check)(&names.join("::"), &self.modules, line(path));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        // The contents of a macro are not parsed; its text is searched for paths.
        let text: String = item.tokens.to_string().split_whitespace().collect();
        let paths = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let paths = paths.map(|path| path.trim_start_matches(':'));
        for path in paths.filter(|path| path.contains("::")) {
            (self.check)(path, &self.modules, line(&item.path));
        }
        visit::visit_macro(self, item);
    }
}

fn impurities(source: &SourceFile) -> Vec<Violation> {
    let file = match parse(source) {
        Ok(file) => file,
        Err(violations) => return violations,
    };
    let mut violations = Vec::new();
    // Whether `Instant` is tokio's, imported by the file.
    let mut is_timer = false;
    for_each_path(&file, |path, _, line| {
        is_timer |= path == "tokio::time::Instant";
        if let Some(name) = forbidden(path).filter(|_| !is_timer || path != "Instant::now") {
            let advice = format!("the core names {name}: pass it in through a trait (Clock, Random, a port)");
            violations.push(source.violation(line, advice));
        }
    });
    violations
}

/// The files that a file declares as modules for test builds only: `#[cfg(test)] mod tests;`.
pub(super) fn test_modules(source: &SourceFile) -> Vec<String> {
    let Ok(file) = parse(source) else { return Vec::new() };
    let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let folder = match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        name => format!("{folder}/{}", name.trim_end_matches(".rs")),
    };
    let outside = |item: &Item| match item {
        Item::Mod(ItemMod { attrs, ident, content: None, .. }) if is_test_only(attrs) => {
            Some(ident.to_string())
        }
        _ => None,
    };
    file.items
        .iter()
        .filter_map(outside)
        .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")])
        .collect()
}

#[test]
fn tidy_core_has_no_io_clock_or_randomness() -> Result<()> {
    let sources = tree()?;
    let core: Vec<_> =
        sources.iter().filter(|source| source.is_rust() && source.is_within("transcript-core/src")).collect();
    assert!(!core.is_empty());
    let tests: HashSet<String> = core.iter().flat_map(|source| test_modules(source)).collect();
    let is_test = |source: &SourceFile| tests.iter().any(|start| source.path.starts_with(start.as_str()));
    none(core.into_iter().filter(|source| !is_test(source)).flat_map(impurities).collect())
}

#[test]
fn tidy_impurity_is_reported() {
    let check = |text: &str, lines: &[usize]| check_planted(impurities, "a.rs", text, lines);
    check("use std::fs;", &[1]);
    check("use std::{fmt, net::{IpAddr, TcpStream}};", &[1]);
    check("use std::net::IpAddr;\nfn f() -> std::net::Ipv6Addr { todo() }", &[]);
    check("use std::env::{self as surroundings};", &[1]);
    check("use tokio::*;\nuse tokio::fs::*;", &[2]);
    check("fn f() {\n    let _ = std::process::id();\n}", &[2]);
    check("fn f() {\n    let _ = ::std::env::var(\"A\");\n}", &[2]);
    check("use std::time;\nfn f() { time::SystemTime::now(); }", &[2]);
    check("use std::time::SystemTime;\nfn f(time: SystemTime) {\n    SystemTime::now();\n}", &[3]);
    check("use tokio::time::Instant;\nfn f() { Instant::now(); tokio::time::Instant::now(); }", &[]);
    check("fn f() { Instant::now(); }", &[1]);
    check("fn f() { format!(\"{:?}\", rand::random::<u8>()); }", &[1]);
    check("use crate::random::Rand;\nstruct A { rand: u8 }\nfn f(operand: u8) { g(operand) }", &[]);
    check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}", &[]);
    check("#[cfg(feature = \"testing\")]\nmod tests {\n    use std::fs;\n}", &[3]);
}

#[test]
fn tidy_test_modules_are_found() {
    let source = SourceFile::new("a/src/b.rs", "mod c;\n#[cfg(test)]\nmod tests;\n");
    assert_eq!(test_modules(&source), ["a/src/b/tests.rs", "a/src/b/tests/"]);
}
