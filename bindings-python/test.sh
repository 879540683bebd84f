#!/usr/bin/env bash
# Builds the Python package, installs it into a virtual environment in the target folder, and runs its tests against
# the replay proxy with recorded platform responses, and against the built server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"
venv="$target/python"

# The caller's VERBATIM_ settings must not affect the tests.
recordings="${VERBATIM_RECORDINGS:-}"
while IFS= read -r name; do unset "$name"; done < <(compgen -e VERBATIM_ || true)
if [ -n "$recordings" ]; then export VERBATIM_RECORDINGS="$recordings"; fi

# maturin, pytest, type checkers and the runtime dependencies of the tests.
../tests/venv.sh "$venv" requirements.txt

echo "python: building the wheel"
# The profile and target folder of the workspace, so that nothing is compiled twice.
../tests/programs.sh
rm -rf "$target/wheels-of-tests"
CARGO="$PWD/cargo.sh" "$venv/bin/maturin" build --quiet --profile dev --interpreter "$venv/bin/python" --compatibility linux \
  --out "$target/wheels-of-tests"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels-of-tests/*.whl

echo "python: tests"
# `-P` imports the installed package, not the adjacent folder. pytest ends a test that hangs; `timeout` ends a pytest
# that hangs.
timeout --kill-after=10 1800 "$venv/bin/python" -P -m pytest -p no:cacheprovider "$@"
