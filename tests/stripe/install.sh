#!/usr/bin/env bash
# Installs Stripe's test tools into target/stripe, and prints that folder: stripe-mock, which accepts every request of
# Stripe's API, the OpenAPI description, and the Python library.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/stripe"
mock=v0.203.0
# The Go toolchain for stripe-mock if the installed Go is older than `go_minor_min`.
go_minor_min=22
toolchain=v0.0.1-go1.24.4.linux
cd "$here"
mkdir -p "$folder"
# Tests run in parallel: one installs, the others wait.
exec 9>"$folder.lock"
flock 9

"$here/../venv.sh" "$folder/venv" "$here/requirements.txt"

if [ "$(cat "$folder/mock.txt" 2>/dev/null)" != "$mock" ]; then
  if ! command -v go >/dev/null; then
    "$here/../apt.sh" golang-go ca-certificates
  fi
  export GOPATH="$folder/go" GOBIN="$folder/bin" GOFLAGS=-modcacherw
  go=go
  if [ "$(go env GOVERSION | sed 's/^go1\.\([0-9]*\).*/\1/')" -lt "$go_minor_min" ]; then
    # A newer Go, which is available as a module; its programs must be made executable.
    name="golang.org/toolchain@$toolchain-$(go env GOARCH)"
    (cd "$folder" && "$here/../retry.sh" go mod download "$name")
    chmod -R +x "$GOPATH/pkg/mod/$name/bin" "$GOPATH/pkg/mod/$name/pkg/tool"
    go="$GOPATH/pkg/mod/$name/bin/go"
  fi
  "$here/../retry.sh" "$go" install "github.com/stripe/stripe-mock@$mock" >&2
  cp "$GOPATH/pkg/mod/github.com/stripe/stripe-mock@$mock/embedded/openapi/spec3.json" "$folder/spec3.json"
  chmod u+w "$folder/spec3.json"
  rm -rf "$GOPATH"
  echo "$mock" >"$folder/mock.txt"
fi
echo "$folder"
