#!/usr/bin/env bash
# release.sh VERSION: writes VERSION everywhere, closes the changelog, commits and tags. Publishes nothing.
#   --dry-run: prints what would change, and changes nothing
#   --notes: prints the changes of VERSION, and those of its pre-releases
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "release: $*" >&2; exit 2; }

dry_run=""
notes=""
version=""
for argument in "$@"; do
  case "$argument" in
    --dry-run) dry_run=1 ;;
    --notes) notes=1 ;;
    -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) [ -z "$version" ] || fail "one version, please"; version="$argument" ;;
  esac
done
[[ "$version" =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$ ]] ||
  fail "'$version' is no version such as 0.2.0 or 1.0.0-rc.1"
if [ -n "$notes" ]; then
  awk -v version="$version" '
    index($0, "## [" version "]") == 1 { found = 1; next }
    /^## \[/ { found = index($0, "## [" version "-") == 1 }
    found
  ' CHANGELOG.md
  exit
fi
current="$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)"
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes; commit them first"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version exists"
# sort takes a ~ for older than the end of a version. The first release has the current version.
lowest="$(printf '%s\n' "${version/-/"~"}" "${current/-/"~"}" | sort --version-sort | head -n 1)"
[ "$lowest" = "${current/-/"~"}" ] || fail "$version is lower than the current version, $current"
# Not a pipe: grep -q ends at the first entry, and sed would then fail with a broken pipe.
unreleased="$(sed -n '/^## \[Unreleased\]/,/^## \[/p' CHANGELOG.md)"
# A release may be the same as its last pre-release.
[[ "$current" == "$version"-* ]] || grep -q '^- ' <<<"$unreleased" || fail "[Unreleased] of CHANGELOG.md has no entry"

# Packages name the address of the repository in every version, so that a release needs the final one.
repository="$(sed -n '/^\[workspace.package\]/,/^$/s/^repository = "\(.*\)"/\1/p' Cargo.toml)"
[[ "$repository" == https://* && "$repository" != *.invalid* ]] ||
  fail "repository of [workspace.package] in Cargo.toml is not final: RELEASING.md, \"Before the first release\""

# The files that name the version of the project. tests/release/run.sh fails if another file does.
files=(
  Cargo.toml
  bindings-uniffi/kotlin/android/pom.xml
  bindings-uniffi/kotlin/example/pom.xml
  bindings-uniffi/kotlin/library/pom.xml
  bindings-uniffi/kotlin/library/src/test/kotlin/dev/verbatim/EngineTest.kt
  benches/kotlin/pom.xml
  deploy/helm/verbatim/Chart.yaml
  docs/admin-openapi.json
  docs/getting-started.md
  docs/mobile/kotlin.md
  docs/openapi.json
  docs/specification.md
  python/youtube-transcript-api/pyproject.toml
  reference-server/src/routes/document/examples.rs
)
today="$(date -u +%F)"
pattern="${current//./\\.}"
# A dry run and a run that fails change nothing.
trap 'git checkout --quiet HEAD -- .' EXIT
# Only the version of the project: the first one of a POM, and in Cargo.toml those next to a name or a path.
for file in "${files[@]}"; do
  case "$file" in
    Cargo.toml) sed -i -E "s/^version = \"$pattern\"/version = \"$version\"/; s/version = \"$pattern\", path/version = \"$version\", path/" "$file" ;;
    *.pom | */pom.xml) sed -i "0,/<version>$pattern</s//<version>$version</" "$file" ;;
    *) sed -i -E "s/(^|[^0-9.])$pattern([^0-9.]|\$)/\1$version\2/" "$file" ;;
  esac
done
# The files whose formats cannot read the address of the repository from Cargo.toml.
sed -i "s|https://repository\.invalid/verbatim|$repository|g" bindings-python/pyproject.toml \
  python/youtube-transcript-api/pyproject.toml bindings-uniffi/kotlin/{android,library}/pom.xml
sed -i "s/^## \[Unreleased\]\$/## [Unreleased]\n\n## [$version] - $today/" CHANGELOG.md
# The date of the manual pages.
sed -i -E "/^const RELEASE_DATE: /s/\"[0-9-]+\"/\"$today\"/" reference-server/src/command/shell.rs
sed -i -E "1s/ [0-9]{4}-[0-9]{2}-[0-9]{2} / $today /" deploy/verbatim-admin.8
# Writes the version of the workspace into Cargo.lock, and changes no dependency.
cargo metadata --quiet --format-version 1 >/dev/null

if [ -n "$dry_run" ]; then
  git --no-pager diff --stat
  echo "release: $current -> $version; nothing has been changed"
else
  git commit --quiet --all --message "release: $version"
  trap 'git reset --quiet --hard HEAD~1' EXIT
  git tag --annotate "v$version" --message "Verbatim $version"
  trap - EXIT
  echo "release: v$version is committed and tagged; RELEASING.md has the next steps"
fi
