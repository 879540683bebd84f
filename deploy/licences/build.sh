#!/usr/bin/env bash
# build.sh [NAME]...: writes the licences of the libraries in the program (verbatim), the wheels (_native) and the
# packages for Kotlin and Swift (verbatim_phone) into files of these names in target/third-party, from where the scripts
# that build the packages take them. It installs cargo-about, and takes some minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
folder="$target/third-party"
tools="$target/third-party-tools"
if [ $# -eq 0 ]; then set -- verbatim _native verbatim_phone; fi

tests/retry.sh cargo install --quiet --locked --features cli --root "$tools" --target-dir "$tools/build" \
  cargo-about@0.9.3
rm -rf "$tools/build"
mkdir -p "$folder"

for name in "$@"; do
  case "$name" in
    verbatim) options=(--manifest-path reference-server/Cargo.toml --features otel) ;;
    _native) options=(--manifest-path bindings-python/Cargo.toml) ;;
    verbatim_phone) options=(--manifest-path bindings-uniffi/Cargo.toml) ;;
    *) echo "licences: unknown name: $name; allowed: verbatim, _native, verbatim_phone" >&2; exit 2 ;;
  esac
  "$tools/bin/cargo-about" generate --locked --fail --config deploy/licences/about.toml "${options[@]}" \
    --output-file "$folder/$name.new" deploy/licences/about.hbs
  if [ "$name" = verbatim ]; then
    # The pages have scripts of another project.
    {
      printf '%s\nMIT License (MIT)\n\naltcha  https://altcha.org\n\n' "$(printf '=%.0s' {1..80})"
      cat reference-server/src/page/altcha/LICENSE.txt
      echo
    } >>"$folder/$name.new"
  fi
  # A settings file that matches nothing would leave libraries out.
  for library in serde tokio rustls zstd-sys; do
    grep -q "^$library [0-9]" "$folder/$name.new" || { echo "licences: $name has no $library" >&2; exit 1; }
  done
  mv "$folder/$name.new" "$folder/$name"
  echo "licences: $folder/$name, $(stat --format=%s "$folder/$name") bytes"
done
