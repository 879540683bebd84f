#!/usr/bin/env bash
# Installs the browser of the tests, what drives it and what looks for barriers in its pages into target/browser, and prints
# that folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/browser"
cd "$here"
mkdir -p "$folder"
# Tests run beside each other: one of them installs, the others wait.
exec 9>"$folder.lock"
flock 9

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
# Without a font for it, a right-to-left script would be boxes in the pictures.
[ -n "$(compgen -G '/usr/share/fonts/truetype/noto/NotoSansHebrew*')" ] || missing+=(fonts-noto-core)
if [ ${#missing[@]} -gt 0 ]; then
  { apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"; } >&2
fi
if ! cmp -s package.json "$folder/installed.json"; then
  rm -rf "$folder/node_modules"
  cp package.json "$folder/package.json"
  # Both are programs without parts of others: two pinned versions are the whole of it.
  (cd "$folder" && npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
  cp package.json "$folder/installed.json"
fi
echo "$folder"
