#!/usr/bin/env bash
# Packs the Swift package for Linux, and runs its tests with a server beside them. Arguments: the program `phones`, the library,
# the folder of our programs, and a folder to work in.
set -euo pipefail
phones="$(realpath "$1")"; library="$(realpath "$2")"; programs="$(realpath "$3")"; work="$(realpath -m "$4")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$phones" swift "$work/package" "$library"
# As a compiler of Apple's finds the module: beside those of other libraries, in a folder of its own.
echo '@import VerbatimFFI;' | clang -fsyntax-only -x objective-c -Wall -Werror -fmodules -fmodules-cache-path="$work/modules" -I "$work/package" -

if ! "$here/toolchain.sh" run "$work" true; then
  echo "phones: SWIFT'S TESTS DO NOT RUN"
  exit
fi

data="$(mktemp -d)"
server=
trap '[ -z "$server" ] || { kill "$server" && wait "$server" || true; }; rm -rf "$data"' EXIT
touch "$data/said"
printf '1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n' >"$data/quiet.srt"
"$programs/verbatim" import "$data/quiet.srt" --data "$data" --video https://youtu.be/dQw4w9WgXcQ --lang en
VERBATIM_LOG__LEVEL=warn "$programs/verbatim" serve --data "$data" --listen 127.0.0.1:0 >"$data/said" &
server=$!
# It says where it listens once it does.
address=
for _ in {1..600}; do
  address="$(sed -n 's/.* listening on //p' "$data/said")"
  if [ -n "$address" ] || ! kill -0 "$server"; then break; fi
  sleep 0.1
done
[ -n "$address" ]

if ! "$here/toolchain.sh" run "$work/package" VERBATIM_TEST_SERVER="$address" \
  swift test -Xlinker "-L$work/package/lib" -Xlinker "-rpath=$work/package/lib" >"$work/said" 2>&1; then
  cat "$work/said" >&2
  exit 1
fi
grep -o 'Executed .* tests.*failures' "$work/said" | tail -n 1
