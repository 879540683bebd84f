#!/usr/bin/env bash
# Builds the Debian package around the program of the tests, and installs, starts, upgrades, removes and purges it in a
# small Debian system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
folder="$target/debian"
missing=()
for package in debhelper lintian mmdebstrap; do
  dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -qx 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] || DEBIAN_FRONTEND=noninteractive tests/apt.sh "${missing[@]}"

fail() { echo "debian: $*" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder"
tests/programs.sh
# xz takes most of a minute.
# Larger than what the package tools leave uncompressed.
seq 2000 >"$folder/notices"
export THIRD_PARTY_LICENSES="$folder/notices"
package="$(DPKG_DEB_COMPRESSOR_TYPE=gzip DEBFULLNAME=Tests DEBEMAIL=tests@verbatim.invalid deploy/debian/build.sh "$target/debug/verbatim" "$folder" 2>"$folder/log")" ||
  { tail -n 30 "$folder/log" >&2; fail "the package was not built"; }
dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/doc/verbatim/THIRD-PARTY-LICENSES | cmp - "$folder/notices" ||
  fail "the licences of libraries are not in the package"
findings="$(lintian --allow-root --fail-on error,warning "$package")" || { echo "$findings" >&2; fail "lintian has findings"; }

# A pre-release must be older than its release: the package of a program that only prints another version.
mkdir "$folder/candidate"
printf '#!/bin/sh\n[ "$1" = -V ] || exec "%s" "$@"\necho verbatim 9.8.7-rc.1\n' "$target/debug/verbatim" \
  >"$folder/candidate/verbatim"
chmod 755 "$folder/candidate/verbatim"
deploy/debian/build.sh "$folder/candidate/verbatim" "$folder/candidate" >/dev/null 2>"$folder/log" ||
  { tail -n 30 "$folder/log" >&2; fail "the package of a pre-release was not built"; }
version="$(dpkg-deb --field "$folder"/candidate/*.deb Version)"
dpkg --compare-versions "$version" lt 9.8.7-1 || fail "the pre-release $version is not older than 9.8.7-1"

# The next version, with another settings file.
dpkg-deb --raw-extract "$package" "$folder/next"
sed -i 's/^Version: .*/&+next/' "$folder/next/DEBIAN/control"
echo "# A line of the next version." >>"$folder/next/etc/verbatim/verbatim.toml"
dpkg-deb -Znone --build "$folder/next" "$folder/next.deb" >/dev/null

root="$folder/root"
. /etc/os-release
mmdebstrap --quiet --variant=minbase --include=ca-certificates,procps,systemd "$VERSION_CODENAME" "$root"
cp "$package" "$root/package.deb"
cp "$folder/next.deb" "$root/"
# With /proc, which systemd-tmpfiles requires.
inside() { unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"' "$root" "$@"; }
states() { inside stat --format='%a %U %G' "$1"; }

# On a running system the installation starts the service. This policy refuses that, and records who may read the
# settings file.
mkdir -p "$root/run/systemd/system"
printf '#!/bin/sh\necho "$2 $(stat --format="%%a %%U %%G" /etc/verbatim/verbatim.toml)" >>/run/starts\nexit 101\n' \
  >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
inside dpkg --install /package.deb >"$folder/out" 2>&1 || { cat "$folder/out" >&2; fail "the package was not installed"; }
[ "$(cat "$root/run/starts")" = "start 640 root verbatim" ] || fail "the service starts with: $(cat "$root/run/starts")"
rm -r "$root/usr/sbin/policy-rc.d" "$root/run/systemd/system"
inside verbatim --version | grep '^verbatim ' >/dev/null
[ "$(states /etc/verbatim/verbatim.toml)" = "640 root verbatim" ] || fail "settings: $(states /etc/verbatim/verbatim.toml)"
[ "$(states /var/lib/verbatim)" = "700 verbatim verbatim" ] || fail "data: $(states /var/lib/verbatim)"
inside test -s /usr/share/man/man1/verbatim.1.gz
inside test -s /usr/share/man/man8/verbatim-admin.8.gz
inside systemctl is-enabled verbatim.service >/dev/null || fail "the service is not enabled"
# Some systems cannot be read without a running systemd; a wrong unit is named in the output.
problems="$(inside systemd-analyze verify /lib/systemd/system/verbatim.service 2>&1 | grep verbatim.service || true)"
[ -z "$problems" ] || fail "$problems"

# Operator commands use the stores and settings of the service. As a shell command, the address would end at its &.
secrets="$root/etc/verbatim/secrets.env"
install -m 600 /dev/null "$secrets"
echo 'VERBATIM_STORAGE__URL=postgres://verbatim@127.0.0.1:1/verbatim?sslmode=disable&application_name=a' >"$secrets"
create_key() { inside verbatim-admin keys create >"$folder/out" 2>&1; }
if create_key; then fail "a key was created beside the database of secrets.env"; fi
grep -q "127.0.0.1:1 cannot be reached" "$folder/out" || { cat "$folder/out" >&2; fail "secrets.env was not read"; }
[ ! -e "$root/var/lib/verbatim/verbatim.db" ] || fail "files were created beside the database of secrets.env"
echo 'VERBATIM_STORAGE__URL="postgres://\"' >"$secrets"
if create_key; then fail "an ambiguous value was accepted"; fi
grep -q "secrets.env, line 1" "$folder/out" || { cat "$folder/out" >&2; fail "the ambiguous value is not named"; }
printf '# Secrets.\nVERBATIM_SERVER__BASE_URL = "https://secret.example.org"\n' >"$secrets"
base_url() { inside verbatim-admin check-config | sed -n 's/^server.base_url *= "\([^"]*\)".*/\1/p'; }
[ "$(base_url)" = https://secret.example.org ] || fail "secrets.env was not read: $(base_url)"
key="$(inside verbatim-admin keys create)"
[ "$(states /var/lib/verbatim/verbatim.db)" = "600 verbatim verbatim" ] || fail "data: $(states /var/lib/verbatim/verbatim.db)"

# The command of the unit, as its user.
command="$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/verbatim.service")"
VERBATIM_SERVER__LISTEN=127.0.0.1:0 chroot --userspec=verbatim:verbatim "$root" $command >"$folder/out" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
address="$(tests/server_address.sh "$folder/out" "$server")" || { cat "$folder/out" >&2; fail "no server"; }
curl --silent --show-error --fail "$address/healthz" >/dev/null
curl --silent --show-error --fail --header "Authorization: Bearer $key" "$address/api/keys/me" >/dev/null ||
  fail "the server does not know the key of the operator"
kill "$server"
wait "$server" || fail "the server ended with status $?"
[ -s "$root/var/lib/verbatim/verbatim.db" ] || fail "no data"

sed -i 's/^#server.base_url = .*/server.base_url = "https:\/\/transcripts.example.org"/' "$root/etc/verbatim/verbatim.toml"
inside dpkg --force-confold --install /next.deb >/dev/null 2>&1
grep -q '^server.base_url = "https://transcripts.example.org"' "$root/etc/verbatim/verbatim.toml" || fail "the upgrade replaced changed settings"
[ "$(states /etc/verbatim/verbatim.toml)" = "640 root verbatim" ] || fail "settings after the upgrade: $(states /etc/verbatim/verbatim.toml)"
: >"$secrets"
[ "$(base_url)" = https://transcripts.example.org ] || fail "the settings file was not read: $(base_url)"
inside verbatim-admin ledger audit >/dev/null

inside dpkg --remove verbatim >/dev/null
[ ! -e "$root/usr/bin/verbatim" ] || fail "the program is left after its removal"
[ -e "$root/etc/verbatim/verbatim.toml" ] || fail "settings are removed before a purge"
inside dpkg --purge verbatim >"$folder/purge"
grep -q "are kept" "$folder/purge" || fail "the purge does not name the data"
[ ! -e "$root/etc/verbatim" ] || fail "settings are left after a purge"
[ -s "$root/var/lib/verbatim/verbatim.db" ] || fail "the purge deleted the data"
rm -rf "$root" "$folder/next"
echo "debian: installed, started, upgraded, removed and purged"
