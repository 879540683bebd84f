#!/usr/bin/env bash
# Builds the programs `verbatim` and `replay` into target/debug. With the packages and features of the workspace tests,
# cargo finds all libraries as these have built them; with other packages it would build most of them once more, because
# each adds features to libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --quiet --workspace --exclude verbatim-benches --all-features --bin verbatim --bin replay
