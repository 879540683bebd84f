#!/usr/bin/env bash
# Checks that each library builds without warnings as its users choose it: without features, and with the default ones.
# The server is checked without features only: the test command checks it with all, and nearly all are default ones.
# With `--each` both also with each feature alone. Tests are not checked: they need the default features.
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

check() { cargo clippy --quiet --lib "$@" -- -D warnings; }

for package in transcript-core storage-sqlx upstream-reqwest embedder-model2vec transcripts bindings-uniffi \
  reference-server; do
  package="verbatim-$package"
  echo "$package"
  check -p "$package" --no-default-features
  [ "${1:-}" = --each ] || continue
  for feature in $(features "$package"); do
    echo "$package: $feature"
    check -p "$package" --no-default-features --features "$feature"
  done
done

# The other libraries have no default features. The tests use the Python package with the features of the workspace; a
# wheel has the default ones.
for package in storage-sqlx transcripts bindings-python bindings-uniffi; do
  echo "verbatim-$package, default features"
  check -p "verbatim-$package"
done
