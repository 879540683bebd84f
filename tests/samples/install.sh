#!/usr/bin/env bash
# Installs the runtimes of the documentation samples: curl, Python, and Node 18 or newer, for `fetch`.
set -euo pipefail
missing=()
command -v curl >/dev/null || missing+=(curl)
command -v python3 >/dev/null || missing+=(python3)
command -v node >/dev/null || missing+=(nodejs)
if [ ${#missing[@]} -gt 0 ]; then
  "$(dirname "${BASH_SOURCE[0]}")/../apt.sh" "${missing[@]}"
fi
