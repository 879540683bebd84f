#!/usr/bin/env bash
# What calls from Kotlin cost, and a long transcript as records and as JSON. Wants a JDK of 17 or later and Maven.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../../target}")"
work="$target/kotlin/bench"
if [ "${1:-}" != "--built" ]; then
  cargo build --package bindings-uniffi --lib --profile phone --features testing
  cargo build --package bindings-uniffi --bin phones --features shipping
fi
rm -rf "$work/generated"
"$target/debug/phones" generate "$target/phone/libverbatim_phone.so" kotlin "$work/generated"
mvn --batch-mode --quiet compile -Dbench.target="$work"
mvn --batch-mode --quiet exec:java -Dbench.target="$work" -Djna.library.path="$target/phone"
