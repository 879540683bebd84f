#!/usr/bin/env bash
# Installs the official client of the Model Context Protocol into target/mcp, and prints the path of its Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/mcp"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
echo "$venv/bin/python"
