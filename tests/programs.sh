#!/usr/bin/env bash
# Builds the programs `verbatim` and `replay` into target/debug. With the packages and features of the workspace tests,
# cargo finds all libraries as these have built them; with fewer, it would build most of them once more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --quiet --workspace --all-features --bin verbatim --bin replay
