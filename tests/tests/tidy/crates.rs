//! Dependencies point inward, and every crate is held to the workspace's rules.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{Offence, Source, apply, check_planted, none, tree};

/// What a crate of the workspace may know of the others. A crate that is not listed must be added.
const INWARD: &[(&str, &[&str])] = &[
    ("transcript-core", &[]),
    ("storage-sqlx", &["transcript-core", "verbatim-tests-postgres"]),
    ("verbatim-tests-postgres", &[]),
    ("upstream-reqwest", &["transcript-core"]),
    ("verbatim", &["transcript-core", "storage-sqlx", "upstream-reqwest"]),
    ("reference-server", &["transcript-core", "verbatim"]),
    ("bindings-python", &["transcript-core", "verbatim"]),
    ("bindings-uniffi", &["transcript-core", "verbatim"]),
    (
        "verbatim-tests",
        &[
            "transcript-core",
            "storage-sqlx",
            "upstream-reqwest",
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
];

/// What only one crate may know, so that it can be exchanged.
const CONFINED: &[(&str, &str)] =
    &[("sqlx", "storage-sqlx"), ("rusqlite", "storage-sqlx"), ("reqwest", "upstream-reqwest")];

/// What measures ours beside the libraries alone, and is part of nothing.
const MEASURES: &str = "verbatim-benches";

/// The tables of a manifest that name dependencies, those of single targets among them.
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
    let of_targets = targets.into_iter().flatten().filter_map(|(_, table)| table.as_table());
    named(manifest).into_iter().chain(of_targets.flat_map(named)).collect()
}

fn is_manifest(source: &Source) -> bool {
    source.path.ends_with("/Cargo.toml")
}

fn name(manifest: &Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

/// The line on which a manifest first names this dependency.
fn line_of(source: &Source, dependency: &str) -> usize {
    let found = source.lines().find(|(_, text)| text.starts_with(dependency));
    found.map_or(1, |(line, _)| line)
}

fn outward(source: &Source) -> Vec<Offence> {
    let Ok(manifest) = source.text.parse::<Table>() else {
        return vec![source.offence(1, "no valid TOML")];
    };
    let Some(package) = name(&manifest) else { return Vec::new() };
    let Some((_, allowed)) = INWARD.iter().find(|(crate_name, _)| *crate_name == package) else {
        return vec![
            source.offence(1, format!("{package} has no place among the crates: list it in INWARD")),
        ];
    };
    let mut offences = Vec::new();
    for dependency in dependencies(&manifest) {
        let ours = INWARD.iter().any(|(crate_name, _)| *crate_name == dependency);
        let line = line_of(source, &dependency);
        if ours && !allowed.contains(&dependency.as_str()) {
            offences.push(source.offence(line, format!("{package} must not know {dependency}")));
        }
        if let Some((_, owner)) = CONFINED.iter().find(|(library, _)| *library == dependency)
            && *owner != package
            && package != MEASURES
        {
            offences.push(source.offence(line, format!("only {owner} may know {dependency}")));
        }
    }
    offences
}

fn unheld(source: &Source) -> Vec<Offence> {
    let manifest = source.text.parse::<Table>().unwrap_or_default();
    let held = |table: &str, key: &str| {
        manifest.get(table).and_then(|table| table.get(key)).and_then(flag_of_workspace).unwrap_or(false)
    };
    let lints = manifest.get("lints").and_then(flag_of_workspace).unwrap_or(false);
    let mut offences = Vec::new();
    if !lints {
        offences
            .push(source.offence(1, "add `[lints] workspace = true`: the docs and safety rules are there"));
    }
    for key in ["version", "edition", "rust-version", "license"] {
        if !held("package", key) {
            offences.push(source.offence(1, format!("write `{key}.workspace = true`: there is one {key}")));
        }
    }
    offences
}

fn flag_of_workspace(value: &Value) -> Option<bool> {
    value.get("workspace")?.as_bool()
}

/// Dependencies with a version of their own, instead of the workspace's.
fn unshared(source: &Source) -> Vec<Offence> {
    let manifest = source.text.parse::<Table>().unwrap_or_default();
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    tables
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table())
        .flatten()
        .filter(|(_, value)| !flag_of_workspace(value).unwrap_or(false))
        .map(|(name, _)| {
            let mend = format!("{name} belongs into [workspace.dependencies] of the root");
            source.offence(line_of(source, name), mend)
        })
        .collect()
}

#[test]
fn dependencies_point_inward() -> Result<()> {
    apply(is_manifest, outward)
}

#[test]
fn every_crate_takes_the_workspaces_rules() -> Result<()> {
    apply(is_manifest, unheld)
}

#[test]
fn every_version_is_named_once() -> Result<()> {
    apply(is_manifest, unshared)
}

#[test]
fn every_crate_is_a_member() -> Result<()> {
    let sources = tree()?;
    let root = sources.iter().find(|source| source.path == "Cargo.toml").context("the root's manifest")?;
    let manifest: Table = root.text.parse()?;
    let members = manifest.get("workspace").and_then(|table| table.get("members")).and_then(Value::as_array);
    let members: Vec<_> = members.into_iter().flatten().filter_map(Value::as_str).collect();
    let outside = |source: &&Source| {
        let folder = source.path.trim_end_matches("/Cargo.toml");
        is_manifest(source) && !members.contains(&folder)
    };
    none(
        sources
            .iter()
            .filter(outside)
            .map(|source| source.offence(1, "no member of the workspace"))
            .collect(),
    )
}

#[test]
fn an_outward_dependency_is_caught() {
    let check = |package: &str, rest: &str, lines: &[usize]| {
        let text = format!("[package]\nname = \"{package}\"\n{rest}");
        check_planted(outward, "a/Cargo.toml", &text, lines);
    };
    check("transcript-core", "[dependencies]\nserde = \"1\"\n", &[]);
    check("transcript-core", "[dependencies]\nverbatim.workspace = true\n", &[4]);
    check("storage-sqlx", "[dependencies]\nsqlx = \"1\"\ntranscript-core.workspace = true\n", &[]);
    check("reference-server", "[dependencies]\nstorage-sqlx = { path = \"x\" }\n", &[4]);
    check("verbatim", "[dev-dependencies]\nsqlx.workspace = true\n", &[4]);
    check("verbatim", "[target.'cfg(unix)'.dependencies]\nhttp = { package = \"reqwest\" }\n", &[1]);
    check("stranger", "[dependencies]\n", &[1]);
    check_planted(outward, "a/Cargo.toml", "[package", &[1]);
}

#[test]
fn a_crate_with_rules_of_its_own_is_caught() {
    let held = "version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n";
    let text = format!("[package]\n{held}license.workspace = true\n[lints]\nworkspace = true\n");
    check_planted(unheld, "a/Cargo.toml", &text, &[]);
    check_planted(unheld, "a/Cargo.toml", &format!("[package]\n{held}"), &[1, 1]);
    check_planted(unshared, "a/Cargo.toml", "[dependencies]\na.workspace = true\nb = \"1\"\n", &[3]);
}
