#!/usr/bin/env bash
# server_address.sh OUTPUT PID: waits until the server with this pid has written to the file OUTPUT where it listens, and
# prints the address. Fails if the server ends, or does not listen within a minute.
set -euo pipefail
output="$1" server="$2"
for _ in $(seq 600); do
  address="$(sed -n 's/^verbatim .* listening on //p' "$output")"
  if [ -n "$address" ]; then
    echo "$address"
    exit
  fi
  kill -0 "$server" 2>/dev/null || { echo "the server ended before it listened" >&2; exit 1; }
  sleep 0.1
done
echo "the server did not listen within a minute" >&2
exit 1
