#!/usr/bin/env bash
# Installs this package beside the wheel of the tests (bindings-python/test.sh), and runs its own tests and those of
# youtube-transcript-api, which are taken out of its source distribution as they are.
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
# Beside our conftest, under which they run.
rm -rf "$peer/run"
mkdir -p "$peer/run"
cp -r "$peer/test" "$peer/run/peer"
cp tests/conftest.py tests/platform_server.py tests/test_stand_in.py "$peer/run/"
cd "$peer/run"
# Its command is called by name.
PATH="$venv/bin:$PATH" timeout --kill-after=10 600 "$venv/bin/python" -m pytest -q -p no:cacheprovider --timeout 60 \
  --rootdir . test_stand_in.py peer "$@"
