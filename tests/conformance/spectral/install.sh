#!/usr/bin/env bash
# Installs spectral, a linter of OpenAPI documents, into target/spectral, and prints the path of its program.
#
# To update it: set the version in package.json, then run `npm install --package-lock-only --omit-lockfile-registry-resolved`.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../../target}")/spectral"
mkdir -p "$folder"
# One process installs, others wait.
exec 9>"$folder.lock"
flock 9

missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  "$here/../../apt.sh" "${missing[@]}"
fi
if ! cmp -s "$here/package-lock.json" "$folder/installed.json"; then
  cp "$here/package.json" "$here/package-lock.json" "$folder"
  (cd "$folder" && "$here/../../retry.sh" npm ci --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
  cp "$here/package-lock.json" "$folder/installed.json"
fi
echo "$folder/node_modules/.bin/spectral"
