#!/usr/bin/env bash
# Checks that the libraries build without features and with each feature alone, without warnings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

features() {
  cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
packages = json.load(sys.stdin)["packages"]
features = next(package["features"] for package in packages if package["name"] == sys.argv[1])
print(*sorted(set(features) - {"default"}))
' "$1"
}

for package in transcript-core storage-sqlx upstream-reqwest embedder-model2vec transcripts bindings-uniffi; do
  package="verbatim-$package"
  cargo clippy --quiet -p "$package" --lib --no-default-features -- -D warnings
  for feature in $(features "$package"); do
    echo "$package: $feature"
    cargo clippy --quiet -p "$package" --lib --no-default-features --features "$feature" -- -D warnings
  done
done
