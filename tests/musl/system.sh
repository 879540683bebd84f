#!/usr/bin/env bash
# system.sh COMMAND...: runs a command in a Debian system, which sees this tree read-only.
#
# The system has the packages of Rust and its standard library, which cargo compiles for musl; zig, from PyPI, compiles
# the C libraries and links. The command runs in /source, the tree; cargo builds into /target. Requires root on Debian,
# x86-64 and 10 GB of disk. The first call creates the system, in the folder `musl/system` of the target folder.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/musl"
system="$folder/system"
mkdir -p "$folder"
# The system of another version of this script is replaced.
ready="$folder/ready-$(cksum <tests/musl/system.sh | cut -d ' ' -f 1)"

if [ ! -e "$ready" ]; then
  command -v mmdebstrap >/dev/null || DEBIAN_FRONTEND=noninteractive tests/apt.sh mmdebstrap
  rm -rf "$system"
  # Debian testing: the stable release has an older Rust. Its lists expire after a week, which mirrors may exceed.
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "5"' \
    --include=ca-certificates,cargo,rust-src,gcc,libc6-dev,python3-venv,qemu-user forky "$system"
  # A machine may have more root certificates than Debian.
  cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
  chroot "$system" python3 -m venv /tools
  tests/retry.sh chroot "$system" /tools/bin/pip install --quiet --disable-pip-version-check \
    cargo-zigbuild==0.24.1 maturin==1.16.0 ziglang==0.15.2
  mkdir -p "$system"/{source,target}
  rm -f "$folder"/ready*
  touch "$ready"
fi

# RUSTC_BOOTSTRAP allows a stable Rust to compile the standard library.
exec unshare --mount sh -c '
  set -e
  system="$1" tree="$2"; shift 2
  mount --rbind /dev "$system/dev"
  mount -t proc proc "$system/proc"
  mount --bind "$tree" "$system/source"
  mount -o remount,bind,ro "$system/source"
  exec chroot "$system" env --chdir=/source PATH=/tools/bin:/usr/sbin:/usr/bin:/bin CARGO_HOME=/cargo \
    CARGO_TARGET_DIR=/target TMPDIR=/tmp RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind "$@"
' sh "$system" "$PWD" "$@"
