#!/usr/bin/env bash
# Builds the library, generates its bindings for Kotlin, Swift and Python, and runs their tests: Kotlin's through Maven,
# and the packed jar from a program that has nothing else of ours; Python's against the layer alone; Swift's as the package
# for Linux, where there is a Swift.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"
programs="$target/debug"
root="$(realpath ..)"
work="$target/kotlin/tests"

# Settings of whoever runs this are not those of the tests.
while IFS= read -r name; do unset "$name"; done < <(compgen -e VERBATIM_ || true)

echo "phones: building the library and the programs of the tests"
# As the tests of the whole workspace are built, so that little is compiled twice.
(cd .. && cargo build --quiet --workspace --all-features --lib --bin phones --bin verbatim --bin replay)
library="$programs/libverbatim_phone.so"
phones="$programs/phones"

echo "phones: generating"
rm -rf "$work/generated" "$work/resources" "$target/uniffi-python"
"$phones" generate "$library" kotlin "$work/generated"
"$phones" generate "$library" python "$target/uniffi-python"
mkdir -p "$work/resources/linux-x86-64"
cp "$library" "$work/resources/linux-x86-64/"

echo "phones: Python over the layer"
cp "$library" "$target/uniffi-python/"
PYTHONPATH="$target/uniffi-python" python3 smoke.py

echo "phones: Kotlin"
(cd kotlin/library && mvn --batch-mode --quiet test \
  -Dverbatim.generated="$work/generated" -Dverbatim.resources="$work/resources" -Dverbatim.target="$work/target" \
  -Dverbatim.programs="$programs" -Dverbatim.root="$root" "$@")

echo "phones: the jar, from an empty project"
kotlin/example/test.sh "$phones" "$library" "$target/kotlin/example"

echo "phones: the AAR, of stand-ins for Android's libraries"
kotlin/aar.sh "$phones" "$work/target/classes" "$target/kotlin/aar-tests"

echo "phones: Swift"
swift/test.sh "$phones" "$library" "$programs" "$target/swift/tests"
