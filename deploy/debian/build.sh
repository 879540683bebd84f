#!/usr/bin/env bash
# build.sh PROGRAM FOLDER: puts the program, its settings, completions, manual pages and the systemd unit into a Debian
# package in FOLDER. It requires debhelper. DEBFULLNAME and DEBEMAIL are the maintainer; REVISION counts the packages of
# one version of the program (default 1). The package requires the C library of the system on which the program was
# built, or a later one.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
program="$(realpath "$1")"
mkdir -p "$2"
folder="$(realpath "$2")"
repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
: "${DEBFULLNAME:=$(id -un)}" "${DEBEMAIL:=$(id -un)@$(hostname)}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
source="$work/verbatim"
mkdir -p "$source/completions"
cp -r "$repository/deploy/debian" "$source/debian"
rm "$source/debian/build.sh"
cp "$repository/CHANGELOG.md" "$repository/deploy/verbatim.toml" "$source"
install -m 755 "$program" "$source/verbatim"
"$program" completions bash >"$source/completions/verbatim"
"$program" completions zsh >"$source/completions/_verbatim"
"$program" completions fish >"$source/completions/verbatim.fish"
"$program" man-pages "$source/man"
# Without the steps of an installation by hand at its beginning.
sed -e '/^\[Unit\]/,$!d' -e 's|/usr/local/bin/|/usr/bin/|' "$repository/deploy/verbatim.service" \
  >"$source/debian/verbatim.service"
sed -i "s|@MAINTAINER@|$DEBFULLNAME <$DEBEMAIL>|" "$source/debian/control"
version="$("$program" -V | cut -d ' ' -f 2)"
{ echo "verbatim ($version-${REVISION:-1}) unstable; urgency=medium"
  echo
  echo "  * New release. /usr/share/doc/verbatim/changelog.gz has the changes."
  echo
  echo " -- $DEBFULLNAME <$DEBEMAIL>  $(date -R ${SOURCE_DATE_EPOCH:+--date=@$SOURCE_DATE_EPOCH})"
} >"$source/debian/changelog"
sed -e '/^$/s/.*/./' -e 's/^/ /' "$repository/LICENSE-MIT" >"$work/mit"
sed -i -e "/@MIT@/r $work/mit" -e '/@MIT@/d' "$source/debian/copyright"
(cd "$source" && DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >&2)
mv "$work"/*.deb "$folder"
ls "$folder"/verbatim_*.deb
