#!/usr/bin/env bash
# Builds the wheels for Linux and the source distribution into target/wheels: all of them, or those that are named.
# Needs a Rust toolchain, and maturin and ziglang from PyPI. docs/python/wheels.md has the other systems.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"

build() { maturin build --profile dist --strip --zig --out "$target/wheels" "$@"; }
for_target() { rustup target add "$1" && build --target "$@"; }

if [ $# -eq 0 ]; then set -- x86_64 aarch64 musl-x86_64 musl-aarch64 freethreaded sdist; fi
for what in "$@"; do
  echo "== $what"
  case "$what" in
    x86_64 | aarch64) for_target "$what-unknown-linux-gnu" --compatibility manylinux2014 ;;
    musl-*) for_target "${what#musl-}-unknown-linux-musl" --compatibility musllinux_1_2 ;;
    freethreaded) for_target x86_64-unknown-linux-gnu --compatibility manylinux2014 --no-default-features --interpreter python3.14t ;;
    sdist) maturin sdist --out "$target/wheels" ;;
    *)
      echo "there is no $what: it is x86_64, aarch64, musl-x86_64, musl-aarch64, freethreaded or sdist" >&2
      exit 2
      ;;
  esac
done
