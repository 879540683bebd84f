#!/usr/bin/env bash
# Installs the test dependencies of the mobile bindings: JDK 17 or later, Maven, Swift, clang, which compiles Swift's
# header and stub libraries for Android, and gpg and zip, which sign and pack a release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
missing=()
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
command -v clang >/dev/null || missing+=(clang)
command -v gpg >/dev/null || missing+=(gnupg)
command -v zip >/dev/null || missing+=(zip)
command -v python3 >/dev/null || missing+=(python3)
if [ ${#missing[@]} -gt 0 ]; then
  ../tests/apt.sh "${missing[@]}"
fi
# Swift is not available for every system. Without it, test.sh reports that the Swift tests do not run.
swift/toolchain.sh install || echo "mobile: Swift installation failed" >&2
