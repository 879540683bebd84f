#!/usr/bin/env bash
# Installs the SMTP server for the tests into target/smtp, and prints the path of its Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/smtp"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
echo "$venv/bin/python"
