#!/usr/bin/env bash
# Packs the jar, gives it to an empty Maven project, and runs the program of that project: what somebody does who has
# only the documentation. Arguments: the program `phones`, the library, and a folder to work in.
set -euo pipefail
phones="$(realpath "$1")"; library="$(realpath "$2")"; work="$(realpath -m "$3")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
rm -rf "$work"
mkdir -p "$work"

"$phones" jvm "$work/packed" "$library"
mvn --batch-mode --quiet install:install-file -Dfile="$work/packed/verbatim-jvm.jar" -DpomFile="$work/packed/verbatim-jvm.pom"
cp -r "$here/pom.xml" "$here/src" "$work/"
cd "$work"
mvn --batch-mode --quiet compile

words() { mvn --batch-mode --quiet exec:java -Dexec.args="$work/folder $*"; }
captions="$work/captions.srt"
printf '1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n' >"$captions"
link=https://youtu.be/dQw4w9WgXcQ

said() { # What is said must be in what was printed.
  if ! grep -qF -- "$1" <<<"$2"; then
    echo "expected '$1' in: $2" >&2
    exit 1
  fi
}
said "ADDED" "$(words "import $link $captions")"
said "1m 1s	The café is closed." "$(words "get $link")"
said "t=61s	The café is closed." "$(words "search cafe closed")"
answers="$(words "many $link nothing")"
said "$link	It is so quiet here." "$answers"
said "nothing	" "$answers"
if failed="$(words "get nothing" 2>&1)"; then
  echo "a link that is none must fail: $failed" >&2
  exit 1
fi
