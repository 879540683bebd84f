#!/usr/bin/env bash
# Installs yt-dlp into target/ytdlp, and prints the path of the program.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/ytdlp"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
echo "$venv/bin/yt-dlp"
