#!/usr/bin/env bash
# run.sh [x86_64|aarch64]...: builds the static programs, both without an argument, and uses them in an empty file
# system.
#
# The programs are built as for a release, in the system of system.sh; aarch64 runs in qemu. FEATURES are those of the
# program (default otel). SMALL=1 builds programs without default features, as verbatim-small-…, and with FEATURES if
# set. PROFILE=dev builds in a fraction of the time, for a program that is neither small nor fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/musl"
system="$folder/system"
features="${FEATURES-otel}" small=()
if [ -n "${SMALL:-}" ]; then features="${FEATURES-}" small=(--no-default-features); fi
profile="${PROFILE:-dist}"
if [ $# -eq 0 ]; then set -- x86_64 aarch64; fi
# The system has no git.
export VERBATIM_COMMIT="${VERBATIM_COMMIT-$(git rev-parse --short=12 HEAD 2>/dev/null || true)}"

fail() { echo "musl: $*" >&2; exit 1; }

for architecture in "$@"; do
  case "$architecture" in
    x86_64 | aarch64) ;;
    *) fail "unknown architecture: $architecture; allowed: x86_64, aarch64" ;;
  esac
  target="$architecture-unknown-linux-musl"
  # Debian's Rust has no start files of musl; zig has them, and links a program at fixed addresses without -pie.
  tests/musl/system.sh cargo-zigbuild rustc --locked --profile "$profile" --package verbatim-reference-server \
    --bin verbatim "${small[@]}" --features "$features" --target "$target" -- -C link-self-contained=no -C link-arg=-pie
  program="$folder/verbatim${SMALL:+-small}-$target"
  cp "$system/target/$target/${profile/#dev/debug}/verbatim" "$program"
  if [ "$architecture" = "$(uname -m)" ]; then
    tests/musl/try.sh "$program"
  else
    tests/musl/try.sh "$program" "$system/usr/bin/qemu-$architecture"
  fi
done
