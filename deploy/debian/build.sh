#!/usr/bin/env bash
# build.sh PROGRAM FOLDER: puts the program, its settings, completions, manual pages, the systemd unit and verbatim-admin
# into a Debian package in FOLDER. It requires debhelper. DEBFULLNAME and DEBEMAIL are the maintainer; REVISION counts
# the packages of one version of the program (default 1). The package requires the C library of the system on which the
# program was built, or a later one.
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
cp "$repository/CHANGELOG.md" "$repository/deploy/verbatim.toml" "$repository/deploy/verbatim-admin" "$source"
install -m 755 "$program" "$source/verbatim"
"$program" completions bash >"$source/completions/verbatim"
"$program" completions zsh >"$source/completions/_verbatim"
"$program" completions fish >"$source/completions/verbatim.fish"
"$program" man-pages "$source/man"
cp "$repository/deploy/verbatim-admin.8" "$source/man"
# Without the steps of an installation by hand at its beginning.
sed -e '/^\[Unit\]/,$!d' -e 's|/usr/local/bin/|/usr/bin/|' "$repository/deploy/verbatim.service" \
  >"$source/debian/verbatim.service"
sed -i "s|@MAINTAINER@|$DEBFULLNAME <$DEBEMAIL>|" "$source/debian/control"
version="$("$program" -V | cut -d ' ' -f 2)"
# A ~ sorts before the end of a version: 1.0.0~rc.1 is older than 1.0.0.
version="${version/-/"~"}"
{ echo "verbatim ($version-${REVISION:-1}) unstable; urgency=medium"
  echo
  echo "  * New release. /usr/share/doc/verbatim/changelog.gz has the changes."
  echo
  echo " -- $DEBFULLNAME <$DEBEMAIL>  $(date -R ${SOURCE_DATE_EPOCH:+--date=@$SOURCE_DATE_EPOCH})"
} >"$source/debian/changelog"
sed -e '/^$/s/.*/./' -e 's/^/ /' "$repository/LICENSE-MIT" >"$work/mit"
sed -i -e "/@MIT@/r $work/mit" -e '/@MIT@/d' "$source/debian/copyright"
# The licences of the compiled-in libraries: deploy/licences/build.sh writes them, or THIRD_PARTY_LICENSES names them.
notices="${CARGO_TARGET_DIR:-$repository/target}/third-party/verbatim"
if [ -n "${THIRD_PARTY_LICENSES:-}" ] || [ -e "$notices" ]; then
  cp "${THIRD_PARTY_LICENSES:-$notices}" "$source/THIRD-PARTY-LICENSES"
  echo THIRD-PARTY-LICENSES >"$source/debian/verbatim.docs"
else
  echo "debian: THIRD-PARTY-LICENSES is left out; deploy/licences/build.sh writes it" >&2
fi
(cd "$source" && DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >&2)
mv "$work"/*.deb "$folder"
ls "$folder"/verbatim_*.deb
