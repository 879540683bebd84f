#!/usr/bin/env bash
# apt.sh PACKAGE...: installs packages of the Debian system. Prints nothing on standard output.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
"$here/retry.sh" apt-get update -q >&2
"$here/retry.sh" apt-get install -qy --no-install-recommends "$@" >&2
