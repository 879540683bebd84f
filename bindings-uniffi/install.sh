#!/usr/bin/env bash
# Installs what the tests of the bindings for phones need: a JDK of version 17 or later, Maven, clang for
# Swift's header and for stand-ins of Android's libraries, and Swift.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
missing=()
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
command -v clang >/dev/null || missing+=(clang)
command -v python3 >/dev/null || missing+=(python3)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"
fi
# It may be that there is none for this system; then the tests say that they are without it.
swift/toolchain.sh install || echo "phones: Swift could not be installed" >&2
