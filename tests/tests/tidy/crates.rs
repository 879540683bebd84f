//! Dependencies point inward, and every crate inherits the workspace's settings.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{SourceFile, Violation, apply, check_planted, none, tree};

/// Libraries for programs outside the workspace, with the oldest Rust that builds each.
pub(super) const LIBRARIES: [(&str, &str); 5] = [
    ("verbatim-transcript-core", "1.88"),
    ("verbatim-storage-sqlx", "1.94"),
    ("verbatim-upstream-reqwest", "1.88"),
    ("verbatim-embedder-model2vec", "1.88"),
    ("verbatim-transcripts", "1.94"),
];

/// Packages with the workspace dependencies that each may have, by their keys in the root manifest.
///
/// A crate that is not listed must be added.
const INWARD: &[(&str, &[&str])] = &[
    ("verbatim-transcript-core", &[]),
    ("verbatim-storage-sqlx", &["transcript-core", "verbatim-tests-postgres"]),
    ("verbatim-tests-postgres", &[]),
    ("verbatim-upstream-reqwest", &["transcript-core"]),
    ("verbatim-embedder-model2vec", &["transcript-core"]),
    ("verbatim-transcripts", &["transcript-core", "storage-sqlx", "upstream-reqwest", "embedder-model2vec"]),
    ("verbatim-reference-server", &["transcript-core", "verbatim"]),
    ("verbatim-bindings-python", &["transcript-core", "verbatim"]),
    ("verbatim-bindings-uniffi", &["transcript-core", "verbatim"]),
    (
        "verbatim-tests",
        &[
            "transcript-core",
            "storage-sqlx",
            "upstream-reqwest",
            "embedder-model2vec",
            "verbatim",
            "reference-server",
            "verbatim-tests-postgres",
        ],
    ),
    (
        "verbatim-benches",
        &[
            "transcript-core",
            "storage-sqlx",
            "upstream-reqwest",
            "verbatim",
            "reference-server",
            "verbatim-tests",
            "verbatim-tests-postgres",
        ],
    ),
    ("verbatim-fuzz", &["transcript-core", "upstream-reqwest", "verbatim", "reference-server"]),
];

/// Libraries that a single crate may depend on, so that they can be replaced.
const CONFINED: &[(&str, &str)] = &[
    ("sqlx", "verbatim-storage-sqlx"),
    ("rusqlite", "verbatim-storage-sqlx"),
    ("reqwest", "verbatim-upstream-reqwest"),
];

/// Crates that depend on the libraries directly: the benches compare against them, and the tests run the samples of the
/// documentation.
const UNCONFINED: [&str; 2] = ["verbatim-benches", "verbatim-tests"];

/// The dependencies of a manifest, target-specific ones included.
fn dependencies(manifest: &Table) -> Vec<String> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let named = |table: &Table| -> Vec<String> {
        let tables = KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table());
        tables
            .flatten()
            .map(|(name, value)| value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned())
            .collect()
    };
    let targets = manifest.get("target").and_then(Value::as_table);
    let target_tables = targets.into_iter().flatten().filter_map(|(_, table)| table.as_table());
    named(manifest).into_iter().chain(target_tables.flat_map(named)).collect()
}

fn is_manifest(source: &SourceFile) -> bool {
    source.path.ends_with("/Cargo.toml")
}

fn name(manifest: &Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

/// The line on which a manifest first names a dependency.
fn find_line(source: &SourceFile, dependency: &str) -> usize {
    let found = source.lines().find(|(_, text)| text.starts_with(dependency));
    found.map_or(1, |(line, _)| line)
}

fn outward_dependencies(source: &SourceFile) -> Vec<Violation> {
    let Ok(manifest) = source.text.parse::<Table>() else {
        return vec![source.violation(1, "no valid TOML")];
    };
    let Some(package) = name(&manifest) else { return Vec::new() };
    let Some((_, allowed)) = INWARD.iter().find(|(crate_name, _)| *crate_name == package) else {
        return vec![source.violation(1, format!("{package} is not listed in INWARD: add it"))];
    };
    let mut violations = Vec::new();
    for dependency in dependencies(&manifest) {
        let is_ours = INWARD
            .iter()
            .any(|(crate_name, keys)| *crate_name == dependency || keys.contains(&dependency.as_str()));
        let line = find_line(source, &dependency);
        if is_ours && !allowed.contains(&dependency.as_str()) {
            violations.push(source.violation(line, format!("{package} must not depend on {dependency}")));
        }
        if let Some((_, owner)) = CONFINED.iter().find(|(library, _)| *library == dependency)
            && *owner != package
            && !UNCONFINED.contains(&package)
        {
            violations.push(source.violation(line, format!("only {owner} may depend on {dependency}")));
        }
    }
    violations
}

fn uninherited_settings(source: &SourceFile) -> Vec<Violation> {
    let manifest = source.text.parse::<Table>().unwrap_or_default();
    let inherited = |table: &str, key: &str| {
        manifest.get(table).and_then(|table| table.get(key)).and_then(workspace_flag).unwrap_or(false)
    };
    let lints = manifest.get("lints").and_then(workspace_flag).unwrap_or(false);
    let mut violations = Vec::new();
    if !lints {
        violations.push(
            source.violation(1, "add `[lints] workspace = true`: it enables the docs and safety rules"),
        );
    }
    let package = |key: &str| manifest.get("package").and_then(|package| package.get(key)?.as_str());
    let library = LIBRARIES.iter().find(|(name, _)| package("name") == Some(name));
    for key in ["version", "edition", "rust-version", "license"] {
        if key == "rust-version"
            && let Some((_, oldest)) = library
        {
            if package(key) != Some(oldest) {
                violations.push(source.violation(1, format!("write `{key} = \"{oldest}\"`")));
            }
        } else if !inherited("package", key) {
            violations.push(
                source.violation(1, format!("write `{key}.workspace = true`: the workspace defines it")),
            );
        }
    }
    violations
}

fn workspace_flag(value: &Value) -> Option<bool> {
    value.get("workspace")?.as_bool()
}

/// Dependencies with their own version instead of the workspace's.
fn unshared_versions(source: &SourceFile) -> Vec<Violation> {
    let manifest = source.text.parse::<Table>().unwrap_or_default();
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    tables
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table())
        .flatten()
        .filter(|(_, value)| !workspace_flag(value).unwrap_or(false))
        .map(|(name, _)| {
            let advice = format!("{name}: move its version to [workspace.dependencies] of the root");
            source.violation(find_line(source, name), advice)
        })
        .collect()
}

/// Every licence of a package that differs from the one at the root. Packages for Python cannot have links to these.
fn changed_licences(sources: &[SourceFile]) -> Vec<Violation> {
    let changed = |source: &&SourceFile| {
        let name = source.path.rsplit_once('/').map(|(_, name)| name);
        let original = sources.iter().find(|other| Some(other.path.as_str()) == name);
        original.is_some_and(|original| original.path.starts_with("LICENSE-") && original.text != source.text)
    };
    let report = |source: &SourceFile| source.violation(1, "copy the file of this name from the root");
    sources.iter().filter(changed).map(report).collect()
}

#[test]
fn tidy_licences_of_packages_equal_those_of_root() -> Result<()> {
    none(changed_licences(&tree()?))
}

#[test]
fn tidy_dependencies_point_inward() -> Result<()> {
    apply(is_manifest, outward_dependencies)
}

#[test]
fn tidy_crates_inherit_workspace_settings() -> Result<()> {
    apply(is_manifest, uninherited_settings)
}

#[test]
fn tidy_dependency_versions_are_shared() -> Result<()> {
    apply(is_manifest, unshared_versions)
}

#[test]
fn tidy_crates_are_workspace_members() -> Result<()> {
    let sources = tree()?;
    let root = sources.iter().find(|source| source.path == "Cargo.toml").context("the root's manifest")?;
    let manifest: Table = root.text.parse()?;
    let members = manifest.get("workspace").and_then(|table| table.get("members")).and_then(Value::as_array);
    let members: Vec<_> = members.into_iter().flatten().filter_map(Value::as_str).collect();
    let outside = |source: &&SourceFile| {
        let folder = source.path.trim_end_matches("/Cargo.toml");
        is_manifest(source) && !members.contains(&folder)
    };
    none(
        sources
            .iter()
            .filter(outside)
            .map(|source| source.violation(1, "not a member of the workspace"))
            .collect(),
    )
}

#[test]
fn tidy_outward_dependency_is_reported() {
    let check = |package: &str, rest: &str, lines: &[usize]| {
        let text = format!("[package]\nname = \"{package}\"\n{rest}");
        check_planted(outward_dependencies, "a/Cargo.toml", &text, lines);
    };
    check("verbatim-transcript-core", "[dependencies]\nserde = \"1\"\n", &[]);
    check("verbatim-transcript-core", "[dependencies]\nverbatim.workspace = true\n", &[4]);
    check("verbatim-storage-sqlx", "[dependencies]\nsqlx = \"1\"\ntranscript-core.workspace = true\n", &[]);
    check("verbatim-reference-server", "[dependencies]\nstorage-sqlx = { path = \"x\" }\n", &[4]);
    check("verbatim-transcripts", "[dev-dependencies]\nsqlx.workspace = true\n", &[4]);
    check(
        "verbatim-transcripts",
        "[target.'cfg(unix)'.dependencies]\nhttp = { package = \"reqwest\" }\n",
        &[1],
    );
    check("stranger", "[dependencies]\n", &[1]);
    check_planted(outward_dependencies, "a/Cargo.toml", "[package", &[1]);
}

#[test]
fn tidy_changed_licence_is_reported() {
    let sources = [
        SourceFile::new("LICENSE-MIT", "MIT"),
        SourceFile::new("a/LICENSE-MIT", "MIT"),
        SourceFile::new("b/LICENSE-MIT", "another"),
        SourceFile::new("c/LICENSE.txt", "another"),
    ];
    let violations = changed_licences(&sources);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "b/LICENSE-MIT");
}

#[test]
fn tidy_uninherited_settings_are_reported() {
    let inherited = "version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n";
    let text = format!("[package]\n{inherited}license.workspace = true\n[lints]\nworkspace = true\n");
    check_planted(uninherited_settings, "a/Cargo.toml", &text, &[]);
    check_planted(uninherited_settings, "a/Cargo.toml", &format!("[package]\n{inherited}"), &[1, 1]);
    let library = text.replacen("[package]", "[package]\nname = \"verbatim-transcripts\"", 1);
    check_planted(uninherited_settings, "a/Cargo.toml", &library, &[1]);
    let own = library.replacen("rust-version.workspace = true", "rust-version = \"1.94\"", 1);
    check_planted(uninherited_settings, "a/Cargo.toml", &own, &[]);
    check_planted(unshared_versions, "a/Cargo.toml", "[dependencies]\na.workspace = true\nb = \"1\"\n", &[3]);
}
