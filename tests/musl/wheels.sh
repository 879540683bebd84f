#!/usr/bin/env bash
# wheels.sh [x86_64|aarch64|musl-x86_64|musl-aarch64]...: builds the wheels, all without an argument, and uses them.
#
# They are built as for a release, in the system of system.sh; those for aarch64 run in qemu, beside a Python of the
# stable release. Debian has no CPython for musl, so that one is compiled from its source package. PROFILE=dev builds in
# a fraction of the time, for a wheel that is neither small nor fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/musl"
system="$folder/system"
if [ $# -eq 0 ]; then set -- x86_64 aarch64 musl-x86_64 musl-aarch64; fi

fail() { echo "musl: $*" >&2; exit 1; }

# The packages for aarch64 are only unpacked: nothing of them runs without qemu. musl is its dynamic loader.
create_aarch64() {
  rm -rf "$folder/aarch64"
  mmdebstrap --quiet --architectures=arm64 --variant=extract --aptopt='Acquire::Retries "5"' \
    --include=base-files,musl,python3,python3-pip-whl trixie "$folder/aarch64"
  mkdir -p "$folder/aarch64/etc/ssl/certs"
  cp /etc/ssl/certs/ca-certificates.crt "$folder/aarch64/etc/ssl/certs/"
  cp "$system/usr/bin/qemu-aarch64" "$folder/aarch64/qemu"
  mv "$folder/aarch64" "$system/aarch64"
}

for name in "$@"; do
  # Of the compiler's libraries nothing may be needed: Alpine installs none of them. glibc has several files.
  case "$name" in
    x86_64 | aarch64) kind=manylinux2014_ needs='lib(c|dl|m|pthread|rt|util)\.so|ld-linux-' ;;
    musl-x86_64 | musl-aarch64) kind=musllinux_1_2_ needs='libc\.' ;;
    *) fail "unknown wheel: $name; allowed: x86_64, aarch64, musl-x86_64, musl-aarch64" ;;
  esac
  rm -f "$system/target/wheels/"*"-abi3-$kind${name#musl-}".*
  tests/musl/system.sh bindings-python/wheels.sh "$name"
  wheel="$(echo "$system/target/wheels/"*"-abi3-$kind${name#musl-}".*)"
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' "$wheel" "$folder/module-$name"
  needed="$(readelf --dynamic "$folder/module-$name"/verbatim_transcripts/*.so | grep NEEDED)"
  if grep -vE "\[($needs)" <<<"$needed"; then fail "$wheel needs more than the C library"; fi
  if [[ "$name" = *aarch64 && ! -e "$system/aarch64" ]]; then create_aarch64; fi
  tests/musl/system.sh tests/musl/try_wheel.sh "${wheel#"$system"}"
  echo "musl: $wheel, $(stat --format=%s "$wheel") bytes"
done
