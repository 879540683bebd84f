#!/usr/bin/env bash
# venv.sh FOLDER REQUIREMENTS [OPTION...]: creates a Python virtual environment from a requirements file, unless FOLDER
# already contains it. Options are passed to pip. Prints nothing on standard output.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$1"
requirements="$2"
shift 2
mkdir -p "$(dirname "$venv")"
# Tests run in parallel: one installs, the others wait.
exec 9>"$venv.lock"
flock 9
if cmp -s "$requirements" "$venv/installed.txt"; then exit; fi
echo "installing the packages of $requirements" >&2
rm -rf "$venv"
# Without python3-venv the module `venv` exists, but cannot install pip.
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  "$here/apt.sh" python3 python3-venv
fi
python3 -m venv "$venv" >&2
# To compile all modules takes half of the time; Python compiles what it imports.
"$here/retry.sh" "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile "$@" --requirement "$requirements" >&2
cp "$requirements" "$venv/installed.txt"
