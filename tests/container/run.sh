#!/usr/bin/env bash
# Builds the container image around the program of the tests, unpacks it, and starts the server in it as its user on a
# read-only file system. Requires root: no container engine is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
folder="$target/container"
command -v buildah >/dev/null || DEBIAN_FRONTEND=noninteractive tests/apt.sh buildah

fail() { echo "container: $*" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder"/{layers,root}
tests/programs.sh
echo "licences of libraries" >"$folder/notices"
THIRD_PARTY_LICENSES="$folder/notices" deploy/container/build.sh "$target/debug/verbatim" "$folder/image.tar"
tar -xf "$folder/image.tar" -C "$folder/layers"

# What an engine reads: the layers in their order, the user, the environment and the command.
python3 - "$folder" "$target/debug/verbatim" <<'PYTHON'
import json, pathlib, subprocess, sys

folder = pathlib.Path(sys.argv[1])
layers = folder / "layers"
manifest, = json.loads((layers / "manifest.json").read_text())
version = subprocess.check_output([sys.argv[2], "-V"], text=True).split()[1]
assert manifest["RepoTags"] == [f"docker.io/library/verbatim:{version}"], manifest
config = json.loads((layers / manifest["Config"]).read_text())["config"]
assert config["User"] == "65532:65532" and config["Healthcheck"]["Test"][0] == "CMD", config
for layer in manifest["Layers"]:
    subprocess.run(["tar", "-xf", layers / layer, "-C", folder / "root"], check=True)
shells = [path for path in (folder / "root").rglob("*") if path.name in ("sh", "bash", "dash", "busybox")]
assert not shells, shells
(folder / "environment").write_text("\n".join(config["Env"]) + "\n")
(folder / "command").write_text("\n".join(config["Entrypoint"] + config["Cmd"]) + "\n")
(folder / "health").write_text("\n".join(config["Healthcheck"]["Test"][1:]) + "\n")
PYTHON
cmp "$folder/notices" "$folder/root/usr/share/doc/verbatim/THIRD-PARTY-LICENSES"
cmp LICENSE-MIT "$folder/root/usr/share/doc/verbatim/LICENSE-MIT"
# An engine makes a new volume with the owner and the permissions of the image's folder.
cp -a "$folder/root/var/lib/verbatim" "$folder/data"
owner="$(stat --format='%a %u %g' "$folder/data")"
[ "$owner" = "700 65532 65532" ] || fail "the data folder of the image: $owner"

# run COMMAND...: in the image, in a separate mount namespace; all but the volume and /tmp is read-only.
run() {
  mapfile -t environment < <(sed 's/^VERBATIM_SERVER__LISTEN=.*/VERBATIM_SERVER__LISTEN=127.0.0.1:'"${port:-0}"'/' "$folder/environment")
  exec env -i "${environment[@]}" unshare --mount sh -c '
    set -e
    folder="$1"; shift
    mount --bind "$folder/root" "$folder/root"
    mount --bind "$folder/data" "$folder/root/var/lib/verbatim"
    mount -t tmpfs tmpfs "$folder/root/tmp"
    mount -o remount,bind,ro "$folder/root"
    exec /usr/sbin/chroot --userspec=65532:65532 "$folder/root" "$@"
  ' sh "$folder" "$@"
}

mapfile -t command <"$folder/command"
mapfile -t health <"$folder/health"
(run "${command[@]}") >"$folder/out" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
address="$(tests/server_address.sh "$folder/out" "$server")" || { cat "$folder/out" >&2; fail "no server"; }
port="${address##*:}"
(run "${health[@]}") >/dev/null || fail "the health check fails while the server serves"
curl --silent --show-error --fail "$address/docs" >/dev/null
(run "${health[0]}" check-config) >"$folder/settings"
kill "$server"
wait "$server" || { cat "$folder/out" >&2; fail "the server ended with status $?"; }
if (run "${health[@]}") >/dev/null 2>&1; then fail "the health check succeeds without a server"; fi
[ -s "$folder/data/verbatim.db" ] || fail "no data"
rm -rf "$folder/root" "$folder/layers"
echo "container: started as its user on a read-only file system"
