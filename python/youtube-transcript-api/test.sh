#!/usr/bin/env bash
# Installs this package next to the wheel of bindings-python/test.sh, and runs its tests and the unmodified tests from
# the source distribution of youtube-transcript-api.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../../target}")"
venv="$target/python"
peer="$target/youtube-transcript-api"
version=1.2.5

"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement tests/requirements.txt
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .

if [ ! -e "$peer/$version" ]; then
  rm -rf "$peer"
  mkdir -p "$peer"
  "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$peer" "youtube-transcript-api==$version"
  tar -xzf "$peer"/*.tar.gz -C "$peer" --strip-components=2 --wildcards '*/youtube_transcript_api/test'
  touch "$peer/$version"
fi
# The peer's tests run with the conftest.py of this package.
rm -rf "$peer/run"
mkdir -p "$peer/run"
cp -r "$peer/test" "$peer/run/peer"
cp tests/*.py "$peer/run/"
cd "$peer/run"
# The tests call the command by name.
PATH="$venv/bin:$PATH" timeout --kill-after=10 600 "$venv/bin/python" -m pytest -q -p no:cacheprovider --timeout 60 \
  --rootdir . test_*.py peer "$@"
