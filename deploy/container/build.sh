#!/usr/bin/env bash
# build.sh PROGRAM ARCHIVE: builds a container image around the program, without a container engine and without a shell
# in the image: the program, the C library of this Debian system, root certificates, and a user without privileges.
# ARCHIVE is a file for `docker load` and `podman load`. It requires buildah. TAG is the name of the image (default
# verbatim:VERSION, as the chart expects). FORMAT=oci writes an OCI archive, which has no health check.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
program="$(realpath "$1")"
archive="$(realpath -m "$2")"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Neither a daemon nor namespaces are required, and the storage of other images is not touched.
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

# The unpacked packages contain their licences too.
root="$work/root"
mkdir -p "$work/packages" "$root"
chmod 755 "$work"
(cd "$work/packages" && "$here/../../tests/retry.sh" apt-get download -qq -o APT::Sandbox::User=root libc6 libgcc-s1 ca-certificates >&2)
for package in "$work/packages"/*.deb; do dpkg-deb --extract "$package" "$root"; done
# Conversions between encodings of the C library, which the program does not use; 8 MB.
find "$root" -type d -name gconv -prune -exec rm -rf {} +
mkdir -p "$root"/{etc/ssl/certs,usr/local/bin,tmp,var/lib/verbatim}
cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root"/usr/{sbin,share/{ca-certificates,man,lintian,doc-base}} "$root"/{sbin,etc/ca-certificates}
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
# A user id without an account on any system.
echo "verbatim:x:65532:65532::/var/lib/verbatim:/sbin/nologin" >"$root/etc/passwd"
echo "verbatim:x:65532:" >"$root/etc/group"
install -m 755 "$program" "$root/usr/local/bin/verbatim"
strip --strip-unneeded "$root/usr/local/bin/verbatim"
# The licences of the compiled-in libraries: deploy/licences/build.sh writes them, or THIRD_PARTY_LICENSES names them.
repository="$here/../.."
licences="$root/usr/share/doc/verbatim"
install -D -m 644 -t "$licences" "$repository/LICENSE-MIT" "$repository/LICENSE-APACHE"
notices="${CARGO_TARGET_DIR:-$repository/target}/third-party/verbatim"
if [ -n "${THIRD_PARTY_LICENSES:-}" ] || [ -e "$notices" ]; then
  install -m 644 "${THIRD_PARTY_LICENSES:-$notices}" "$licences/THIRD-PARTY-LICENSES"
else
  echo "container: THIRD-PARTY-LICENSES is left out; deploy/licences/build.sh writes it" >&2
fi
chmod 1777 "$root/tmp"
chmod 700 "$root/var/lib/verbatim"

version="$("$program" -V | cut -d ' ' -f 2)"
format="${FORMAT:-docker}"
container="$(buildah from --format "$format" scratch)"
buildah add --quiet "$container" "$root" / >/dev/null
# `buildah add` gives every file to root. A new volume gets the owner of this folder.
mounted="$(buildah mount "$container")"
chown 65532:65532 "$mounted/var/lib/verbatim"
buildah umount "$container" >/dev/null
buildah config --user 65532:65532 --entrypoint '["/usr/local/bin/verbatim"]' --cmd serve --port 8080 \
  --volume /var/lib/verbatim --stop-signal SIGTERM \
  --env VERBATIM_DATA=/var/lib/verbatim --env VERBATIM_SERVER__LISTEN=0.0.0.0:8080 --env VERBATIM_LOG__FORMAT=json \
  --label org.opencontainers.image.title=verbatim --label "org.opencontainers.image.licenses=MIT OR Apache-2.0" \
  --label "org.opencontainers.image.version=$version" "$container"
if [ "$format" = docker ]; then
  buildah config --healthcheck 'CMD /usr/local/bin/verbatim health' --healthcheck-interval 30s \
    --healthcheck-timeout 10s --healthcheck-start-period 30s "$container"
fi
rm -f "$archive"
buildah commit --quiet --format "$format" "$container" "$format-archive:$archive:${TAG:-verbatim:$version}" >/dev/null
