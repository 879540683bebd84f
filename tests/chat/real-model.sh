#!/usr/bin/env bash
# Sends the questions of tests/chat/talks to a real small language model, end to end over HTTP, and prints the figures of
# docs/chat.md. Not part of `./test`: building llama-cpp-python from source takes a quarter of an hour.
#
# usage: real-model.sh [QUESTIONS_PER_TALK]
# CHAT_MODEL_VENV: an existing virtual environment with both packages of requirements.txt.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here/../.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
venv="${CHAT_MODEL_VENV:-$target/chat-model}"
if [ -z "${CHAT_MODEL_VENV:-}" ]; then
  tests/venv.sh "$venv" "$here/requirements.txt" --no-binary llama-cpp-python
fi
cargo build --quiet --release --package verbatim-reference-server --bin verbatim
exec "$venv/bin/python" "$here/real_model.py" "$target/release/verbatim" "$here/talks" "${1:-8}"
