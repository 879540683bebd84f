#!/usr/bin/env bash
# Installs the proxies of the tests, if they are missing: Varnish, nginx, HAProxy and Caddy.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/proxies"
mkdir -p "$folder"
# Tests run in parallel: one installs, the others wait.
exec 9>"$folder.lock"
flock 9
export PATH="$PATH:/usr/sbin:/sbin"

missing=()
command -v varnishd >/dev/null || missing+=(varnish)
# Varnish compiles its configuration.
command -v cc >/dev/null || missing+=(build-essential)
command -v nginx >/dev/null || missing+=(nginx)
command -v haproxy >/dev/null || missing+=(haproxy)
command -v caddy >/dev/null || missing+=(caddy)
if [ ${#missing[@]} -gt 0 ]; then
  # The services of these packages must not start.
  printf '#!/bin/sh\nexit 101\n' > "$folder/policy-rc.d"
  chmod +x "$folder/policy-rc.d"
  [ -e /usr/sbin/policy-rc.d ] || { cp "$folder/policy-rc.d" /usr/sbin/policy-rc.d; trap 'rm /usr/sbin/policy-rc.d' EXIT; }
  "$here/../apt.sh" "${missing[@]}"
fi
