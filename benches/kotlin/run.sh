#!/usr/bin/env bash
# Measures the cost of calls from Kotlin, and of a long transcript as records and as JSON. Requires JDK 17 or later and
# Maven.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../../target}")"
work="$target/kotlin/bench"
if [ "${1:-}" != "--built" ]; then
  cargo build --package verbatim-bindings-uniffi --lib --profile phone --features testing
  cargo build --package verbatim-bindings-uniffi --bin packager --features shipping
fi
rm -rf "$work/generated"
"$target/debug/packager" generate "$target/phone/libverbatim_phone.so" kotlin "$work/generated"
mvn --batch-mode --quiet compile -Dbench.target="$work"
mvn --batch-mode --quiet exec:java -Dbench.target="$work" -Djna.library.path="$target/phone"
