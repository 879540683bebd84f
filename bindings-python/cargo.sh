#!/usr/bin/env bash
# What maturin calls as `cargo` in test.sh. The module is built with the packages and features of the workspace tests:
# alone it has other features, and cargo would compile its libraries and a hundred others once more. That it also builds
# alone, as in a wheel, is checked by tests/features.sh.
set -euo pipefail
if [ "${1:-}" = rustc ]; then
  set -- build --workspace --exclude verbatim-benches --all-features --lib --message-format json-render-diagnostics
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
fi
unset CARGO
exec cargo "$@"
