#!/usr/bin/env bash
# Builds the Linux wheels and the source distribution into target/wheels: all of them, or those given as arguments.
# Requires a Rust toolchain, and maturin and ziglang from PyPI. docs/python/wheels.md covers other systems. PROFILE=dev
# builds without optimisation, in less time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(realpath -m "${CARGO_TARGET_DIR:-../target}")"

# Scripts call the parsers in loops: speed comes before size.
export CARGO_PROFILE_DIST_OPT_LEVEL=3
# The licences of the compiled-in libraries: deploy/licences/build.sh writes them. pyproject.toml includes the file.
if [ -e "$target/third-party/_native" ]; then
  trap 'rm -f THIRD-PARTY-LICENSES' EXIT
  cp "$target/third-party/_native" THIRD-PARTY-LICENSES
else
  echo "wheels: THIRD-PARTY-LICENSES is left out; deploy/licences/build.sh writes it" >&2
fi
build() { maturin build --profile "${PROFILE:-dist}" --strip --zig --out "$target/wheels" "$@"; }
# Without rustup, cargo must compile the standard library for other targets, as in tests/musl/system.sh.
for_target() {
  if command -v rustup >/dev/null; then rustup target add "$1"; fi
  build --target "$@"
}

if [ $# -eq 0 ]; then set -- x86_64 aarch64 musl-x86_64 musl-aarch64 freethreaded sdist; fi
for target_name in "$@"; do
  echo "== $target_name"
  case "$target_name" in
    x86_64 | aarch64) for_target "$target_name-unknown-linux-gnu" --compatibility manylinux2014 ;;
    musl-*) for_target "${target_name#musl-}-unknown-linux-musl" --compatibility musllinux_1_2 ;;
    freethreaded) for_target x86_64-unknown-linux-gnu --compatibility manylinux2014 --no-default-features --interpreter python3.14t ;;
    sdist) maturin sdist --out "$target/wheels" ;;
    *)
      echo "unknown wheel: $target_name; allowed: x86_64, aarch64, musl-x86_64, musl-aarch64, freethreaded, sdist" >&2
      exit 2
      ;;
  esac
done
