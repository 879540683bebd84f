#!/usr/bin/env bash
# central.sh FOLDER ARCHIVE: puts the jar, the AAR and what belongs to them into an archive for the upload to Maven
# Central, each file with its signature and checksums. FOLDER has the files of a release; GPG_KEY is the key of the
# signatures (default: the first one). It requires gpg and a JDK.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
folder="$(realpath "$1")"
archive="$(realpath -m "$2")"
fail() { echo "central: $*" >&2; exit 1; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# add ARTIFACT NAME: the POM and the archive NAME, with the sources and the documentation, which both have in common.
add() {
  local version type to part file
  ! grep --fixed-strings '.invalid/' "$folder/$2.pom" >&2 ||
    fail "the address of the repository is not final: RELEASING.md, \"Before the first release\""
  version="$(sed -n '0,/<version>/s/.*<version>\(.*\)<.*/\1/p' "$folder/$2.pom")"
  type="$(sed -n 's/.*<packaging>\(.*\)<.*/\1/p' "$folder/$2.pom")"
  to="$work/dev/verbatim/$1/$version"
  mkdir -p "$to"
  to+="/$1-$version"
  cp "$folder/$2.pom" "$to.pom"
  cp "$folder/$2.${type:-jar}" "$to.${type:-jar}"
  for part in sources javadoc; do cp "$folder/verbatim-jvm-$part.jar" "$to-$part.jar"; done
  for file in "$to"*; do
    gpg --batch --quiet ${GPG_KEY:+--local-user "$GPG_KEY"} --armor --detach-sign "$file"
    md5sum "$file" | cut -d ' ' -f 1 >"$file.md5"
    sha1sum "$file" | cut -d ' ' -f 1 >"$file.sha1"
  done
}

add verbatim-jvm verbatim-jvm
add verbatim-android verbatim
rm -f "$archive"
jar --create --no-manifest --file "$archive" -C "$work" dev
