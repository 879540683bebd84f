#!/usr/bin/env bash
# retry.sh COMMAND...: runs a command that downloads packages, up to four times: registries drop connections.
set -uo pipefail
for pause in 5 20 60; do
  "$@" && exit
  echo "retry.sh: $1 failed; again in $pause seconds" >&2
  sleep "$pause"
  "$(dirname "${BASH_SOURCE[0]}")/null.sh"
done
exec "$@"
