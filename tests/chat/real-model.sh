#!/usr/bin/env bash
# Asks a real small language model the questions of tests/chat/talks, end to end over HTTP, and prints the figures of
# docs/chat.md. Outside `./test`: llama-cpp-python is built from source for it, which takes a quarter of an hour.
#
# usage: real-model.sh [QUESTIONS_A_TALK]
# CHAT_MODEL_VENV names a folder in which both packages of requirements.txt are installed already.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here/../.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
venv="${CHAT_MODEL_VENV:-$target/chat-model}"
if [ -z "${CHAT_MODEL_VENV:-}" ]; then
  tests/venv.sh "$venv" "$here/requirements.txt" --no-binary llama-cpp-python
fi
cargo build --quiet --release --package reference-server --bin verbatim
exec "$venv/bin/python" "$here/real_model.py" "$target/release/verbatim" "$here/talks" "${1:-8}"
