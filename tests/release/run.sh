#!/usr/bin/env bash
# Makes a release in a copy of the tree, and checks the workflows with actionlint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/release-test"
rm -rf "$folder"
mkdir -p "$folder"

# A copy of the tracked files in a new repository: the tags of the checkout do not matter.
git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory "$folder"
cd "$folder"
git init --quiet
git config user.name Release
git config user.email release@example.org
git add --all
git commit --quiet --message "before"

fails() { # TEXT ARGUMENT...: the release is refused with this text
  local text="$1"
  shift
  if output="$(./release.sh "$@" 2>&1)"; then echo "accepted: $*" >&2; exit 1; fi
  grep -q -- "$text" <<<"$output" || { echo "$*: $output" >&2; exit 1; }
}

version=9.8.7
fails "is no version" 1.0
fails "is no version" "1.0.0; true"
output="$(./release.sh --dry-run "$version")"
grep -q "nothing has been changed" <<<"$output"
[ -z "$(git status --porcelain)" ] || { echo "the dry run changed files" >&2; exit 1; }
echo >>README.md
fails "commit them first" "$version"
git checkout --quiet README.md

old="$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["packages"][0]["version"])')"
./release.sh "$version"
[ "$(git describe --exact-match)" = "v$version" ]
grep -q "^## \[$version\] - $(date -u +%Y)" CHANGELOG.md
cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys

versions = {package["name"]: package["version"] for package in json.load(sys.stdin)["packages"]}
wrong = {name: version for name, version in versions.items() if version not in (sys.argv[1], "0.0.0")}
assert not wrong, wrong
' "$version"
# No file still names the old version, except those about another release, and lock files of other tools.
if git grep -nE "(^|[^0-9.])${old//./\\.}([^0-9.]|$)" -- ':!CHANGELOG.md' ':!Cargo.lock' ':!*package-lock.json' \
  ':!docs/python/wheels.md' ':!README.md' ':!fuzz' ':!RELEASING.md' ':!docs/decisions'; then
  echo "release.sh does not know the files above" >&2
  exit 1
fi
fails "the tag v$version exists" "$version"
fails "has no entry" 9.8.8

cd - >/dev/null
command -v go >/dev/null || tests/apt.sh golang-go
# Without shellcheck and pyflakes: their findings would depend on what the machine has.
GOBIN="$folder/bin" tests/retry.sh go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.9
"$folder/bin/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
rm -rf "$folder"
echo "release: a dry run, a release and the workflows are fine"
