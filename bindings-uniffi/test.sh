#!/usr/bin/env bash
# Builds the library, generates the bindings for Kotlin, Swift and Python, and runs their tests: Kotlin through Maven,
# and the packed jar in a separate project; Python against the generated bindings; the Swift package for Linux, if Swift
# is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"
programs="$target/debug"
root="$(realpath ..)"
work="$target/kotlin/tests"

# The caller's VERBATIM_ settings must not affect the tests.
while IFS= read -r name; do unset "$name"; done < <(compgen -e VERBATIM_ || true)

echo "mobile: building the library and the test programs"
# The features and profile of the workspace tests, so that little is compiled twice.
(cd .. && cargo build --quiet --workspace --exclude verbatim-benches --all-features --lib --bin packager --bin verbatim --bin replay)
library="$programs/libverbatim_phone.so"
packager="$programs/packager"

echo "mobile: generating the bindings"
rm -rf "$work/generated" "$work/resources" "$target/uniffi-python"
"$packager" generate "$library" kotlin "$work/generated"
"$packager" generate "$library" python "$target/uniffi-python"
mkdir -p "$work/resources/linux-x86-64"
cp "$library" "$work/resources/linux-x86-64/"

echo "mobile: Python smoke test"
cp "$library" "$target/uniffi-python/"
PYTHONPATH="$target/uniffi-python" python3 smoke.py

echo "mobile: Kotlin tests"
(cd kotlin/library && mvn --batch-mode --quiet test \
  -Dverbatim.generated="$work/generated" -Dverbatim.resources="$work/resources" -Dverbatim.target="$work/target" \
  -Dverbatim.programs="$programs" -Dverbatim.root="$root" "$@")

echo "mobile: the packed jar in an empty project"
kotlin/example/test.sh "$packager" "$library" "$target/kotlin/example"

echo "mobile: the AAR, with stub libraries"
kotlin/aar.sh "$packager" "$work/target/classes" "$target/kotlin/aar-tests"

echo "mobile: the archive for Maven Central"
kotlin/central_test.sh "$target/kotlin/example/packed" "$target/kotlin/aar-tests/packed" "$target/kotlin/central"

echo "mobile: Swift tests"
swift/test.sh "$packager" "$library" "$programs" "$target/swift/tests"
