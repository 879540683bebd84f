#!/usr/bin/env bash
# Installs what reads metrics for the tests into target/operations, and prints the Python that runs it.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/operations"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
echo "$venv/bin/python"
