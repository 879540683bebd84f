#!/usr/bin/env bash
# Installs ffmpeg, and the speech recogniser of the tests into target/speech; prints the Python that runs it.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/speech"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
# Tests run beside each other: one of them installs, the others wait.
exec 9>"$venv.lock"
flock 9
# It speaks, and it reads whatever is listened to.
if ! command -v ffmpeg >/dev/null; then
  { apt-get update -q && apt-get install -qy --no-install-recommends ffmpeg; } >&2
fi
echo "$venv/bin/python"
