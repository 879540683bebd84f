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

# The address of the repository: a release is refused without a final one, and all packages name the same.
address=https://example.org/verbatim
set_repository() {
  sed -i "s|^repository = .*|repository = \"$1\"|" Cargo.toml
  git commit --quiet --all --allow-empty --message "address"
}
set_repository https://repository.invalid/verbatim
fails "is not final" 9.8.7
set_repository "$address"

version=9.8.7
fails "is no version" 1.0
fails "is no version" "1.0.0; true"
fails "is no version" 9.8.7-rc..1
fails "is lower than the current version" 0.0.1
output="$(./release.sh --dry-run "$version")"
grep -q "nothing has been changed" <<<"$output"
unchanged() { [ -z "$(git status --porcelain)" ] || { echo "$1 changed files" >&2; exit 1; }; }
unchanged "the dry run"
# Cargo refuses a number with a zero before it, after the files have been written.
fails "9.8.7-01" 9.8.7-01
unchanged "the failed run"
before="$(git rev-parse HEAD)"
git config tag.gpgSign true
git config gpg.program false
fails "failed to sign" "$version-rc.1"
unchanged "the failed tag"
[ "$(git rev-parse HEAD)" = "$before" ] || { echo "the failed tag left its commit" >&2; exit 1; }
git config tag.gpgSign false
echo >>README.md
fails "commit them first" "$version"
git checkout --quiet README.md

old="$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["packages"][0]["version"])')"
# A release may have no entry besides those of its last pre-release; its notes have them.
./release.sh "$version-rc.1"
fails "has no entry" "$version-rc.2"
./release.sh "$version"
for release in "$version-rc.1" "$version"; do
  ./release.sh --notes "$release" >"$folder.notes"
  grep -q '^- ' "$folder.notes" || { echo "the notes of $release have no entry" >&2; exit 1; }
done
grep -q "^## \[$version-rc.1\]" "$folder.notes" || { echo "the notes do not name the pre-release" >&2; exit 1; }
rm "$folder.notes"
grep -q "^const RELEASE_DATE: &str = \"$(date -u +%Y)-" reference-server/src/command/shell.rs
head -n 1 deploy/verbatim-admin.8 | grep -q " $(date -u +%F) "
[ "$(git describe --exact-match)" = "v$version" ]
grep -q "^## \[$version\] - $(date -u +%Y)" CHANGELOG.md
cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys

versions = {package["name"]: package["version"] for package in json.load(sys.stdin)["packages"]}
wrong = {name: version for name, version in versions.items() if version not in (sys.argv[1], "0.0.0")}
assert not wrong, wrong
' "$version"
# No file still names the old version, except those about another release, and lock files of other tools.
if git grep -nE "(^|[^0-9.])(${old//./\\.}|$version-rc)([^0-9.]|$)" -- \
  ':!CHANGELOG.md' ':!Cargo.lock' ':!*package-lock.json' ':!docs/python/wheels.md' ':!README.md' ':!fuzz' ':!RELEASING.md' ':!docs/decisions'; then
  echo "release.sh does not know the files above" >&2
  exit 1
fi
if git grep -n 'repository\.invalid' -- ':!release.sh' ':!tests/release' ':!.github'; then
  echo "release.sh did not write the address of the repository into the files above" >&2
  exit 1
fi
fails "the tag v$version exists" "$version"
fails "has no entry" 9.8.8
fails "is lower than the current version" "$version-rc.2"

cd - >/dev/null
command -v go >/dev/null || tests/apt.sh golang-go
# Without shellcheck and pyflakes: their findings would depend on what the machine has.
GOBIN="$folder/bin" tests/retry.sh go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.9
"$folder/bin/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
if grep -E '^ *(- )?uses:' .github/workflows/release.yml | grep -vE '@[0-9a-f]{40} # '; then
  echo "release.yml does not name the actions above by commit" >&2
  exit 1
fi

# Neither a release nor a change passes without a check for known vulnerabilities.
for workflow in release:tests/supply-chain/run.sh test:./test; do
  grep -qF -- "- run: REQUIRE_ADVISORIES=1 ${workflow#*:}" ".github/workflows/${workflow%%:*}.yml" ||
    { echo "${workflow%%:*}.yml passes without the database of vulnerabilities" >&2; exit 1; }
done
if REQUIRE_ADVISORIES=1 ADVISORY_DB="$folder/none" tests/supply-chain/run.sh 2>"$folder/errors"; then
  echo "the check of dependencies passes without the database of vulnerabilities" >&2
  exit 1
fi
grep -q "vulnerabilities are not checked" "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }

# The names in SHA256SUMS are those that GitHub gives the files.
mkdir -p "$folder/files/packages"
touch "$folder/files/packages/verbatim_1.0.0~rc.1-1_amd64.deb" "$folder/files/verbatim-1.0.0rc1.whl"
sed -n '/- name: checksums/,/- name: licences/s/^ \{10\}//p' .github/workflows/release.yml >"$folder/checksums"
(cd "$folder/files" && bash -e "$folder/checksums" && sha256sum --check --quiet SHA256SUMS)
names="$(sed 's/.*  //' "$folder/files/SHA256SUMS" | paste -sd ' ')"
[ "$names" = "verbatim-1.0.0rc1.whl verbatim_1.0.0.rc.1-1_amd64.deb" ] || { echo "checksums of: $names" >&2; exit 1; }
rm -rf "$folder"
echo "release: a dry run, a release and the workflows are fine"
