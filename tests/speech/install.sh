#!/usr/bin/env bash
# Installs ffmpeg, and speech recognition for the tests into target/speech; prints the path of its Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/speech"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
# Tests run in parallel: one installs, the others wait.
exec 9>"$venv.lock"
flock 9
# ffmpeg synthesises the speech of the tests, and decodes audio.
if ! command -v ffmpeg >/dev/null; then
  "$here/../apt.sh" ffmpeg
fi
echo "$venv/bin/python"
