#!/usr/bin/env bash
# Packs the five library crates as `cargo publish` does, and checks what a registry and its readers need.
# VERIFY=1 also builds each packed crate alone, which takes some minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

crates=(verbatim-transcript-core verbatim-storage-sqlx verbatim-upstream-reqwest verbatim-embedder-model2vec verbatim-transcripts)
options=(--allow-dirty --quiet)
[ -n "${VERIFY:-}" ] || options+=(--no-verify)

# One call packs all, because they depend on each other and are in no registry yet.
cargo package "${options[@]}" "${crates[@]/#/--package=}"

cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys, tarfile

metadata = json.load(sys.stdin)
packages = {package["name"]: package for package in metadata["packages"]}
for name in sys.argv[1:]:
    package = packages[name]
    fields = ("description", "documentation", "keywords", "categories", "license", "readme", "repository", "rust_version")
    for field in fields:
        assert package[field], f"{name}: {field} is missing"
    assert len(package["keywords"]) <= 5 and len(package["categories"]) <= 5, f"{name}: a registry accepts five of each"
    assert package["publish"] is None, f"{name}: publish is off"
    version = package["version"]
    folder = f"{name}-{version}"
    with tarfile.open(metadata["target_directory"] + f"/package/{folder}.crate") as crate:
        files = {member.name.removeprefix(folder + "/"): member for member in crate.getmembers()}
        manifest = crate.extractfile(f"{folder}/Cargo.toml").read().decode()
    size = sum(member.size for member in files.values())
    for file in ("README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"):
        assert file in files and files[file].size > 0, f"{name}: {file} is missing"
    assert "path = \"../" not in manifest, f"{name}: a dependency is a path only"
    assert not any(file.startswith(("tests/", "target/")) for file in files), f"{name}: files that no user needs"
    assert size < 10 * 2**20, f"{name}: {size} bytes; a registry accepts 10 MiB"
    print(f"{folder}: {len(files)} files, {size // 1024} KiB")
' "${crates[@]}"
