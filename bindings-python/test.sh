#!/usr/bin/env bash
# Builds the Python package into the target folder, installs it into an environment of its own there, and runs its
# tests: against recorded answers of the platforms through the replay proxy, and against the built server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"
venv="$target/python"

# Settings of whoever runs this are not those of the tests.
recordings="${VERBATIM_RECORDINGS:-}"
while IFS= read -r name; do unset "$name"; done < <(compgen -e VERBATIM_ || true)
if [ -n "$recordings" ]; then export VERBATIM_RECORDINGS="$recordings"; fi

# maturin, pytest, the type checkers and what the package is run in.
../tests/venv.sh "$venv" requirements.txt

echo "python: building the wheel"
# The same profile and target folder as all the rest, so that nothing is compiled twice.
(cd .. && cargo build --quiet --package verbatim-tests --bin replay && cargo build --quiet --package reference-server --bin verbatim)
rm -rf "$target/wheels-of-tests"
"$venv/bin/maturin" build --quiet --profile dev --interpreter "$venv/bin/python" --compatibility linux \
  --out "$target/wheels-of-tests"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels-of-tests/*.whl

echo "python: tests"
# What is tested is what was installed, not the folder beside the tests. A test that hangs fails by itself; whatever
# holds up even that ends here.
timeout --kill-after=10 1800 "$venv/bin/python" -P -m pytest -p no:cacheprovider "$@"
