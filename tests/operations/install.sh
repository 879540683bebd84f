#!/usr/bin/env bash
# Installs the OpenMetrics parser of Prometheus into target/operations, and prints the path of its Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/operations"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
echo "$venv/bin/python"
