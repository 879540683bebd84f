#!/usr/bin/env bash
# Packs the jar, installs it for an empty Maven project, and runs the example program: the steps of the documentation.
# Arguments: the packager program, the library, and a work folder.
set -euo pipefail
packager="$(realpath "$1")"; library="$(realpath "$2")"; work="$(realpath -m "$3")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
rm -rf "$work"
mkdir -p "$work"

# As in a release, with the libraries of the other machines, here stubs, and the licences.
others=(linux-aarch64/libverbatim_phone.so darwin-{aarch64,x86-64}/libverbatim_phone.dylib)
others+=(win32-x86-64/verbatim_phone.dll)
for other in "${others[@]}"; do
  mkdir -p "$work/others/${other%/*}"
  echo "$other" >"$work/others/$other"
done
mv "$work/others/win32-x86-64" "$work/"
if "$packager" jvm "$work/packed" "$library" "$work/others" >"$work/log" 2>&1; then
  echo "a jar without the library for Windows must be refused" >&2
  exit 1
fi
grep -q "win32-x86-64/verbatim_phone.dll does not exist" "$work/log" || { cat "$work/log" >&2; exit 1; }
mv "$work/win32-x86-64" "$work/others/"
echo "licences of libraries" >"$work/notices"
THIRD_PARTY_LICENSES="$work/notices" "$packager" jvm "$work/packed" "$library" "$work/others"
python3 -m zipfile --extract "$work/packed/verbatim-jvm.jar" "$work/jar"
for other in "${others[@]}"; do cmp "$work/others/$other" "$work/jar/$other"; done
cmp "$work/notices" "$work/jar/META-INF/dev.verbatim/THIRD-PARTY-LICENSES"
cmp "$here/../../../LICENSE-MIT" "$work/jar/META-INF/dev.verbatim/LICENSE-MIT"
# What Maven Central requires beside the classes: sources, of which some are generated, and documentation.
for part in sources:dev/verbatim/Transcripts.kt sources:dev/verbatim/verbatim_phone.kt javadoc:dev/verbatim/Transcripts.html; do
  python3 -m zipfile --extract "$work/packed/verbatim-jvm-${part%%:*}.jar" "$work/${part%%:*}"
  [ -s "$work/${part%%:*}/${part#*:}" ] || { echo "verbatim-jvm-${part%%:*}.jar has no ${part#*:}" >&2; exit 1; }
done
mvn --batch-mode --quiet install:install-file -Dfile="$work/packed/verbatim-jvm.jar" -DpomFile="$work/packed/verbatim-jvm.pom"
cp -r "$here/pom.xml" "$here/src" "$work/"
cd "$work"
mvn --batch-mode --quiet compile

run_example() { mvn --batch-mode --quiet exec:java -Dexec.args="$work/folder $*"; }
captions="$work/captions.srt"
printf '1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n' >"$captions"
link=https://youtu.be/dQw4w9WgXcQ

expect_output() { # expect_output TEXT OUTPUT
  if ! grep -qF -- "$1" <<<"$2"; then
    echo "expected '$1' in the output: $2" >&2
    exit 1
  fi
}
expect_output "ADDED" "$(run_example "import $link $captions")"
expect_output "1m 1s	The café is closed." "$(run_example "get $link")"
expect_output "t=61s	The café is closed." "$(run_example "search cafe closed")"
answers="$(run_example "many $link nothing")"
expect_output "$link	It is so quiet here." "$answers"
expect_output "nothing	" "$answers"
if failed="$(run_example "get nothing" 2>&1)"; then
  echo "an invalid link must fail, got: $failed" >&2
  exit 1
fi
