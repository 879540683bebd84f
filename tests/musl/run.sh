#!/usr/bin/env bash
# run.sh [x86_64|aarch64]...: builds the static programs, both without an argument, and uses each in an empty file system.
#
# The programs are built as for a release, in a Debian system with the packages of Rust and its standard library, which
# cargo compiles for musl; zig, from PyPI, compiles the C libraries and links. aarch64 runs in qemu. Requires root on
# Debian, x86-64 and 8 GB of disk. FEATURES are those of the program (default otel). PROFILE=dev builds in a fraction of
# the time, for a program that is neither small nor fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/musl"
system="$folder/system"
features="${FEATURES-otel}"
profile="${PROFILE:-dist}"
if [ $# -eq 0 ]; then set -- x86_64 aarch64; fi

fail() { echo "musl: $*" >&2; exit 1; }
mkdir -p "$folder"
command -v mmdebstrap >/dev/null || DEBIAN_FRONTEND=noninteractive tests/apt.sh mmdebstrap

if [ ! -e "$folder/ready" ]; then
  rm -rf "$system"
  # Debian testing: the stable release has an older Rust. Its lists expire after a week, which mirrors may exceed.
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "5"' \
    --include=ca-certificates,cargo,rust-src,gcc,libc6-dev,python3-venv,qemu-user forky "$system"
  # A machine may have more root certificates than Debian.
  cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
  chroot "$system" python3 -m venv /tools
  tests/retry.sh chroot "$system" /tools/bin/pip install --quiet --disable-pip-version-check \
    cargo-zigbuild==0.24.1 ziglang==0.15.2
  mkdir -p "$system"/{source,target}
  touch "$folder/ready"
fi

# build TARGET: the program for a target, in the system, which sees this tree read-only.
build() {
  # RUSTC_BOOTSTRAP allows a stable Rust to compile the standard library. Debian has no start files of musl beside it;
  # zig has them, and links a program at fixed addresses without -pie.
  unshare --mount sh -c '
    set -e
    system="$1" tree="$2"; shift 2
    mount --rbind /dev "$system/dev"
    mount -t proc proc "$system/proc"
    mount --bind "$tree" "$system/source"
    mount -o remount,bind,ro "$system/source"
    exec chroot "$system" env --chdir=/source PATH=/tools/bin:/usr/bin:/bin CARGO_HOME=/cargo CARGO_TARGET_DIR=/target \
      RUSTC_BOOTSTRAP=1 "$@"
  ' sh "$system" "$PWD" cargo-zigbuild rustc --locked -Z build-std=std,panic_unwind --profile "$profile" \
    --package verbatim-reference-server --bin verbatim --features "$features" --target "$1" \
    -- -C link-self-contained=no -C link-arg=-pie
}

for architecture in "$@"; do
  case "$architecture" in
    x86_64 | aarch64) ;;
    *) fail "unknown architecture: $architecture; allowed: x86_64, aarch64" ;;
  esac
  target="$architecture-unknown-linux-musl"
  build "$target"
  program="$folder/verbatim-$target"
  cp "$system/target/$target/${profile/#dev/debug}/verbatim" "$program"
  if [ "$architecture" = "$(uname -m)" ]; then
    tests/musl/try.sh "$program"
  else
    tests/musl/try.sh "$program" "$system/usr/bin/qemu-$architecture"
  fi
done
