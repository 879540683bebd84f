#!/usr/bin/env bash
# Installs Chromium, Firefox, playwright-core and axe-core for the browser tests into target/browser, and prints that folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/browser"
cd "$here"
mkdir -p "$folder"
# Tests run in parallel: one installs, the others wait.
exec 9>"$folder.lock"
flock 9

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v firefox-esr >/dev/null || missing+=(firefox-esr)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
# Without this font, screenshots show boxes for Hebrew text.
[ -n "$(compgen -G '/usr/share/fonts/truetype/noto/NotoSansHebrew*')" ] || missing+=(fonts-noto-core)
if [ ${#missing[@]} -gt 0 ]; then
  "$here/../apt.sh" "${missing[@]}"
fi
# Later versions of playwright-core send Firefox commands that Debian's does not have yet.
if ! cmp -s package.json "$folder/installed.json"; then
  rm -rf "$folder/node_modules"
  cp package.json "$folder/package.json"
  # Both packages have no dependencies, so two pinned versions are a complete lock file.
  (cd "$folder" && "$here/../retry.sh" npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error) >&2
  cp package.json "$folder/installed.json"
fi
echo "$folder"
