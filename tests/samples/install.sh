#!/usr/bin/env bash
# Installs what runs the samples of the documentation: curl, Python, and Node with its fetch (18 or newer).
set -euo pipefail
missing=()
command -v curl >/dev/null || missing+=(curl)
command -v python3 >/dev/null || missing+=(python3)
command -v node >/dev/null || missing+=(nodejs)
if [ ${#missing[@]} -gt 0 ]; then
  { apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"; } >&2
fi
