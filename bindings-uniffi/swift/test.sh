#!/usr/bin/env bash
# Packs the Swift package for Linux, and runs its tests against a local server. Arguments: the packager program, the
# library, the folder of the built programs, and a work folder.
set -euo pipefail
packager="$(realpath "$1")"; library="$(realpath "$2")"; programs="$(realpath "$3")"; work="$(realpath -m "$4")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$packager" swift "$work/package" "$library"
# Imports the module as Apple's compilers do: from a folder next to the modules of other libraries.
echo '@import VerbatimFFI;' | clang -fsyntax-only -x objective-c -Wall -Werror -fmodules -fmodules-cache-path="$work/modules" -I "$work/package" -

# The package of a release, with a stub of the xcframework.
rm -rf "$work/release" "$work/archives"
"$packager" swift "$work/release" "$library"
mkdir "$work/release/VerbatimFFI.xcframework"
echo stub >"$work/release/VerbatimFFI.xcframework/Info.plist"
if "$packager" release-swift "$work/release" https://example.invalid/v1 "$work/archives" >"$work/release.log" 2>&1; then
  echo "an address that is not final must be refused" >&2
  exit 1
fi
grep -q "is no final address" "$work/release.log" || { cat "$work/release.log" >&2; exit 1; }
"$packager" release-swift "$work/release" https://example.org/v1 "$work/archives"
checksum="$(sha256sum "$work/archives/VerbatimFFI.xcframework.zip" | cut -d ' ' -f 1)"
remote="url: \"https://example.org/v1/VerbatimFFI.xcframework.zip\", checksum: \"$checksum\""
grep -qF -- "$remote" "$work/release/Package.swift" || { cat "$work/release/Package.swift" >&2; exit 1; }
[ ! -e "$work/release/VerbatimFFI.xcframework" ]
cmp "$here/../../LICENSE-MIT" "$work/release/LICENSE-MIT"
python3 -m zipfile --list "$work/archives/VerbatimFFI.xcframework.zip" | grep 'VerbatimFFI.xcframework/Info.plist' >/dev/null

if ! "$here/toolchain.sh" run "$work" true; then
  echo "mobile: SWIFT TESTS DO NOT RUN"
  exit
fi

data="$(mktemp -d)"
server=
replay=
trap 'for process in $server $replay; do kill -INT "$process" && wait "$process" || true; done; rm -rf "$data"' EXIT
touch "$data/server.log"
printf '1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n' >"$data/quiet.srt"
"$programs/verbatim" import "$data/quiet.srt" --data "$data" --video https://youtu.be/dQw4w9WgXcQ --lang en
VERBATIM_LOG__LEVEL=warn "$programs/verbatim" serve --data "$data" --listen 127.0.0.1:0 >"$data/server.log" &
server=$!
address="$("$here/../../tests/server_address.sh" "$data/server.log" "$server")"

# Recorded responses of YouTube. The tests may run in another root, so they get a copy of the certificate.
recordings="$here/../../tests/recordings"
"$programs/replay" --recordings "$recordings/youtube" --recordings "$recordings/youtube-lists" \
  >"$data/replay.log" 2>"$data/unexpected.log" &
replay=$!
for _ in {1..600}; do
  if grep -q '^ca ' "$data/replay.log" || ! kill -0 "$replay"; then break; fi
  sleep 0.1
done
cp "$(sed -n 's/^ca //p' "$data/replay.log")" "$work/package/replay-ca.pem"

if ! "$here/toolchain.sh" run "$work/package" VERBATIM_TEST_SERVER="$address" \
  VERBATIM_TEST_PROXY="$(sed -n 's/^proxy //p' "$data/replay.log")" VERBATIM_TEST_CA="$work/package/replay-ca.pem" \
  swift test -Xlinker "-L$work/package/lib" -Xlinker "-rpath=$work/package/lib" >"$work/test.log" 2>&1; then
  cat "$work/test.log" >&2
  exit 1
fi
grep -o 'Executed .* tests.*failures' "$work/test.log" | tail -n 1
