#!/usr/bin/env bash
# Installs what the tests of the bindings for phones need: a JDK of version 17 or later, Maven, and clang for the header.
set -euo pipefail
missing=()
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
command -v clang >/dev/null || missing+=(clang)
command -v python3 >/dev/null || missing+=(python3)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"
fi
