//! Modules of a crate import from their own layer and from those below.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::Result;

use super::{
    SourceFile, Violation,
    functions::parse,
    none,
    purity::{for_each_path, test_modules},
    tree,
};

struct CrateLayers {
    /// Folder of the sources.
    folder: &'static str,
    /// The modules of each layer, from the lowest.
    layers: &'static [&'static [&'static str]],
    /// Files that import from a higher layer, with the module that they import from.
    exceptions: &'static [(&'static str, &'static str)],
}

const SERVER: CrateLayers = CrateLayers {
    folder: "reference-server/src",
    layers: &[
        &["config", "messages"],
        &["api"],
        &["altcha", "mail", "traces"],
        &["log", "response_cache"],
        &["docs", "operations", "page"],
        &["state"],
        &["mcp"],
        &["routes"],
        &["admin", "metrics", "openapi"],
        &["background"],
        &["serve"],
        &["command"],
        &["embedded_server"],
        &["testing"],
        &["fuzzing"],
    ],
    exceptions: &[],
};

const CORE: CrateLayers = CrateLayers {
    folder: "transcript-core/src",
    layers: &[
        &[
            "debug_fields",
            "display",
            "error",
            "failure_log",
            "headers",
            "hex",
            "ids",
            "keyed_digest",
            "names",
            "page",
            "retry",
            "tasks",
            "text",
            "time",
        ],
        &["transcript", "video"],
        &["body", "captions"],
        &["admin", "archive", "directory", "ledger", "limits", "supplier"],
        &["engine"],
        &["accounts", "chat", "lookup"],
        &["search"],
        &["wire"],
        &["service"],
        &["memory", "test_doubles", "testing"],
    ],
    exceptions: &[],
};

/// Import from another module of the crate.
#[derive(Debug, PartialEq, Eq)]
struct ModuleImport {
    module: String,
    line: usize,
}

/// The module of the root that a path leads to, named in the module at `place`.
fn root_module<'a>(path: &'a str, place: &[String]) -> Option<&'a str> {
    let mut names = path.split("::").peekable();
    let mut base: &[String] = match names.next()? {
        "crate" => &[],
        "super" => place.split_last().map_or(&[], |(_, parents)| parents),
        _ => return None,
    };
    while names.next_if_eq(&"super").is_some() {
        base = base.split_last().map_or(&[], |(_, parents)| parents);
    }
    // Below the root a path stays in its module.
    names.next().filter(|_| base.is_empty())
}

/// Module path of a file, from the root of the crate. The root itself has none.
fn module_path(folder: &str, path: &str) -> Vec<String> {
    let inner = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/').trim_end_matches(".rs");
    let names = inner.split('/').filter(|name| !matches!(*name, "mod" | "lib" | "main"));
    names.map(str::to_owned).collect()
}

/// The imports of a file from other modules of its crate.
fn module_imports(folder: &str, source: &SourceFile, modules: &BTreeSet<String>) -> Vec<ModuleImport> {
    let Ok(file) = parse(source) else { return Vec::new() };
    let own = module_path(folder, &source.path);
    let mut found = Vec::new();
    for_each_path(&file, |path, inner, line| {
        let module = root_module(path, &[own.as_slice(), inner].concat());
        // Other names of the root are its own items.
        let is_other =
            |module: &&str| modules.contains(*module) && own.first().is_some_and(|own| own != module);
        if let Some(module) = module.filter(is_other) {
            found.push(ModuleImport { module: module.to_owned(), line });
        }
    });
    found.dedup();
    found
}

fn violations(rule: &CrateLayers, sources: &[SourceFile]) -> Vec<Violation> {
    let sources: Vec<_> =
        sources.iter().filter(|source| source.is_rust() && source.is_within(rule.folder)).collect();
    let tests: HashSet<String> = sources.iter().flat_map(|source| test_modules(source)).collect();
    let is_test = |source: &SourceFile| tests.iter().any(|start| source.path.starts_with(start.as_str()));
    let sources: Vec<_> = sources.into_iter().filter(|source| !is_test(source)).collect();
    let layers: BTreeMap<&str, usize> = rule
        .layers
        .iter()
        .enumerate()
        .flat_map(|(layer, names)| names.iter().map(move |name| (*name, layer)))
        .collect();
    let modules: BTreeSet<String> = sources
        .iter()
        .filter_map(|source| module_path(rule.folder, &source.path).into_iter().next())
        .collect();
    let mut unused: BTreeSet<_> = rule.exceptions.iter().collect();
    let mut found = Vec::new();
    for source in sources {
        let Some(own) = module_path(rule.folder, &source.path).into_iter().next() else { continue };
        let Some(layer) = layers.get(own.as_str()) else {
            found.push(source.violation(1, format!("{own} is in no layer: add it to the table of layers")));
            continue;
        };
        for ModuleImport { module, line } in module_imports(rule.folder, source, &modules) {
            if layers.get(module.as_str()).is_none_or(|other| other <= layer) {
                continue;
            }
            let inner = source.path.strip_prefix(rule.folder).unwrap_or_default().trim_start_matches('/');
            let exception = rule.exceptions.iter().find(|(path, name)| *path == inner && *name == module);
            match exception {
                Some(exception) => {
                    unused.remove(exception);
                }
                None => {
                    let advice = format!(
                        "{own} imports from {module}, a higher layer: move the item down, or pass it in"
                    );
                    found.push(source.violation(line, advice));
                }
            }
        }
    }
    found.extend(unused.into_iter().map(|(path, module)| Violation {
        path: format!("{}/{path}", rule.folder),
        line: 1,
        advice: format!("the exception for {module} is not needed: remove it from the list"),
    }));
    found
}

#[test]
fn tidy_server_imports_from_lower_layers() -> Result<()> {
    none(violations(&SERVER, &tree()?))
}

#[test]
fn tidy_core_imports_from_lower_layers() -> Result<()> {
    none(violations(&CORE, &tree()?))
}

#[test]
fn tidy_import_from_higher_layer_is_reported() {
    let rule =
        |exceptions| CrateLayers { folder: "a/src", layers: &[&["low"], &["high", "side"]], exceptions };
    let check = |exceptions, path: &str, text: &str, lines: &[usize]| {
        let others =
            ["lib", "low/mod", "high", "side"].map(|name| SourceFile::new(&format!("a/src/{name}.rs"), ""));
        let sources: Vec<_> = others.into_iter().chain([SourceFile::new(path, text)]).collect();
        let found: Vec<_> =
            violations(&rule(exceptions), &sources).into_iter().map(|violation| violation.line).collect();
        assert_eq!(found, lines, "in {path}:\n{text}");
    };
    let low = |text, lines: &[usize]| check(&[], "a/src/low/inner.rs", text, lines);
    low("use crate::high::Item;", &[1]);
    low("use crate::{low::Item, high};", &[1]);
    low("use super::super::high;", &[1]);
    low("use super::high;", &[]);
    low("use crate::Item;", &[]);
    low("fn f() {\n    crate::high::f();\n}", &[2]);
    low("fn f() {\n    format!(\"{}\", crate::high::f());\n}", &[2]);
    low("mod inner {\n    use super::super::super::high::Item;\n}", &[2]);
    low("#[cfg(all(test, feature = \"testing\"))]\nmod tests {\n    use crate::high::Item;\n}", &[]);
    low("#[cfg(test)]\nmod tests {\n    use crate::high::Item;\n}", &[]);
    check(&[], "a/src/high/inner.rs", "use crate::{low, side};", &[]);
    check(&[], "a/src/lib.rs", "use crate::high;", &[]);
    check(&[], "a/src/new.rs", "", &[1]);
    check(&[("low/inner.rs", "high")], "a/src/low/inner.rs", "use crate::high;", &[]);
    check(&[("low/inner.rs", "high")], "a/src/low/inner.rs", "use crate::low;", &[1]);
}
