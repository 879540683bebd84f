#!/usr/bin/env bash
# Installs the OpenMetrics parser of Prometheus and promtool into target/operations, and prints the path of its Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/operations"
"$here/../venv.sh" "$venv" "$here/requirements.txt"

promtool="$venv/bin/promtool"
if [ ! -x "$promtool" ] && command -v promtool >/dev/null; then
  ln -sf "$(command -v promtool)" "$promtool"
elif [ ! -x "$promtool" ]; then
  # Unpacked and not installed: the package starts a server.
  unpacked="$(mktemp -d)"
  trap 'rm -rf "$unpacked"' EXIT
  cd "$unpacked"
  [ "$(id -u)" != 0 ] || "$here/../retry.sh" apt-get update -q >&2
  "$here/../retry.sh" apt-get download -q prometheus >&2
  dpkg-deb --extract prometheus_*.deb . >&2
  mv usr/bin/promtool "$promtool"
fi
echo "$venv/bin/python"
