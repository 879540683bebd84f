#!/usr/bin/env bash
# Installs the official client of the Model Context Protocol into target/mcp, and prints the Python that runs it.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/mcp"
cd "$here"
mkdir -p "$(dirname "$venv")"
# Tests run beside each other: one of them installs, the others wait.
exec 9>"$venv.lock"
flock 9
if ! cmp -s requirements.txt "$venv/installed.txt"; then
  rm -rf "$venv"
  # Without python3-venv the module is there, but cannot put pip into what it makes.
  if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    { apt-get update -q && apt-get install -qy --no-install-recommends python3 python3-venv; } >&2
  fi
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt >&2
  cp requirements.txt "$venv/installed.txt"
fi
echo "$venv/bin/python"
