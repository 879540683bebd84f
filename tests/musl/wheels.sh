#!/usr/bin/env bash
# wheels.sh [x86_64|aarch64]...: builds the wheels for musl, both without an argument, and tries the x86-64 one.
#
# They are built as for a release, in the system of system.sh. Debian has no CPython for musl, so that one is compiled
# from its source package there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/musl"
if [ $# -eq 0 ]; then set -- x86_64 aarch64; fi

fail() { echo "musl: $*" >&2; exit 1; }

for architecture in "$@"; do
  case "$architecture" in
    x86_64 | aarch64) ;;
    *) fail "unknown architecture: $architecture; allowed: x86_64, aarch64" ;;
  esac
  tests/musl/system.sh bindings-python/wheels.sh "musl-$architecture"
  wheel="$(cd "$folder/system" && ls -t target/wheels/*musllinux*"$architecture".whl | head -n 1)"
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' \
    "$folder/system/$wheel" "$folder/module-$architecture"
  # Also of the compiler's libraries nothing may be needed: Alpine installs none of them.
  needed="$(readelf --dynamic "$folder/module-$architecture"/verbatim_transcripts/*.so | grep NEEDED)"
  if grep -v '\[libc\.' <<<"$needed"; then fail "$wheel needs more than the C library"; fi
  if [ "$architecture" = "$(uname -m)" ]; then
    tests/musl/system.sh tests/musl/try_wheel.sh "/$wheel"
  fi
  echo "musl: $wheel, $(stat --format=%s "$folder/system/$wheel") bytes"
done
