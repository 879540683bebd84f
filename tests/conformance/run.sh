#!/usr/bin/env bash
# Checks the running server against the OpenAPI documents of its APIs: validates and lints the documents, and lets
# schemathesis send valid and invalid requests with all checks. SEED=n selects other requests, EXAMPLES=n their number for
# each operation. Archived responses are decoded in every encoding by independent decoders, and subtitle files are parsed
# by independent libraries and ffmpeg.
#
# No request leaves this machine: the proxy setting for the platforms names a closed port.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$(pwd)"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
cd tests/conformance
venv="$target/conformance"
seed="${SEED:-20261120}"
work="$(mktemp -d)"
server=""

finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

fail() {
  printf 'conformance: %s\n' "$*" >&2
  exit 1
}

verbatim() { env "${clean[@]}" "$target/debug/verbatim" "$@" --data "$work/data"; }

# start NAME=VALUE...: starts a server with these settings; sets $server and $address.
start() {
  : >"$work/out"
  env "${clean[@]}" VERBATIM_LOG__LEVEL=warn VERBATIM_UPSTREAM__PROXY=http://127.0.0.1:1 \
    VERBATIM_UPSTREAM__RETRIES=0 "$@" \
    "$target/debug/verbatim" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/out" 2>>"$work/err" &
  server=$!
  address="$("$root/tests/server_address.sh" "$work/out" "$server")" || { cat "$work/err" >&2; fail "no server"; }
}

# stop: stops the server, which must exit with status 0 and must not have panicked.
stop() {
  kill -TERM "$server"
  local code=0
  wait "$server" || code=$?
  server=""
  if [ "$code" -ne 0 ] || grep -q panicked "$work/err"; then
    cat "$work/err" >&2
    fail "the server exited with status $code or panicked"
  fi
}

# account EMAIL: creates an account; prints its key.
account() { "$venv/bin/python" account.py "$address" "$work/data/outbox" "$1"; }

# order KEY: creates an order in the sandbox; prints its id and the token of its page, separated by a slash.
order() {
  "$venv/bin/python" -c '
import json, sys, urllib.request
address, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
request = urllib.request.Request(f"{address}/api/v1/buy-credits", data=b"{\"pack\": \"50k\"}", headers=headers)
page = json.load(urllib.request.urlopen(request))["checkout_url"]
print(page.split("/checkout/")[1].replace("/sandbox?token=", "/"))' "$address" "$1"
}

# The document that check reads.
document="$work/openapi.json"

# check NAME ARGUMENT...: runs schemathesis against the server.
check() {
  local name="$1" began=$SECONDS
  shift
  if ! "$venv/bin/st" --config-file schemathesis.toml --no-color run "$document" --url "$address" \
    --seed "$seed" --max-examples "${EXAMPLES:-100}" "$@" >"$work/log" 2>&1; then
    # A request that reproduces a finding may be very long.
    cut -c1-2000 "$work/log"
    fail "$name: schemathesis has findings (seed $seed)"
  fi
  printf '  %-36s %s in %ss\n' "$name" "$(sed -n '/^Test cases:/{n;s/^ *//p}' "$work/log")" $((SECONDS - began))
}

# The caller's VERBATIM_ settings must not affect the server.
clean=()
while IFS= read -r name; do clean+=(-u "$name"); done < <(compgen -e VERBATIM_ || true)

# The tools, in the versions of requirements.txt.
../venv.sh "$venv" requirements.txt
command -v ffmpeg >/dev/null || ../apt.sh ffmpeg
spectral="$(spectral/install.sh)"
"$root/tests/programs.sh"
verbatim import "$root/docs/examples/lighthouse.vtt" --video https://youtu.be/dQw4w9WgXcQ --lang en >/dev/null
"$venv/bin/python" -c 'for n in range(3500): print(f"{n+1}\n00:{n//60:02}:{n%60:02},000 --> 00:{n//60:02}:{n%60:02},900\nThis is line {n*n}.\n")' \
  >"$work/long.srt"
verbatim import "$work/long.srt" --video https://youtu.be/longlonglon --lang en >/dev/null
verbatim import "$root/docs/examples/lighthouse.vtt" --video https://youtu.be/withdrawn00 --lang en >/dev/null
verbatim archive withdraw https://youtu.be/withdrawn00 >/dev/null
key="$(verbatim keys create)"

# Every caption recording with text, and the additional recordings if present.
recordings=()
for file in "$root"/tests/recordings/youtube/captions/*.{json3,xml} \
  "${VERBATIM_RECORDINGS:-none}"/{youtube/timedtext,tiktok,x}/*.{json3,xml,vtt}; do
  case "${file##*/}" in no-words.json3 | empty_transcript.xml | '*'*) ;; *) recordings+=("$file") ;; esac
done
"$venv/bin/python" subtitles.py "$target/debug/verbatim" "${recordings[@]}"

# High limits, so that rate limits do not hide other findings.
high_limits=(VERBATIM_LIMITS__MINT_PER_NETWORK_PER_DAY=100000 VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR=100000
  VERBATIM_LIMITS__MISSES_PER_NETWORK_PER_MINUTE=100000 VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR=100000
  VERBATIM_PLANS__FREE__CREDITS=100000 VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE=100000)
# client NAME ARGUMENT...: runs the v1 API client that was written from the specification.
client() {
  printf '  %-36s ' "specification, $1"
  shift
  "$venv/bin/python" v1_api.py "$1" "$address" "$work/data/outbox" "${@:2}"
}

# This call invalidates the key that all calls of a run share.
rotation=/api/v1/rotate-key
start "${high_limits[@]}"
"$venv/bin/python" -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' \
  "$address/openapi.json" >"$work/openapi.json"
for file in "$work/openapi.json" "$root"/docs/{,admin-}openapi.json; do
  printf '  %-36s ' "${file##*/} of $([ "$file" = "$work/openapi.json" ] && echo the server || echo docs/)"
  "$venv/bin/python" validate.py "$file"
  # Warnings count: the documents have none.
  "$spectral" lint --quiet --ruleset spectral/ruleset.yaml --fail-severity hint "$file" ||
    fail "spectral has findings"
done
printf '  %-36s ' "archived responses"
"$venv/bin/python" encodings.py "$address" dQw4w9WgXcQ longlonglon
# Accounts first: the checks use up the network's limit of verification attempts per minute.
ann="$(account ann@example.org)"
ben="$(account ben@example.org)"
cem="$(account cem@example.org)"
SANDBOX_PAGE="$(order "$ann")"
export SANDBOX_PAGE
check "without a key" --warnings off
check "with a key" --header "Authorization: Bearer $key" --exclude-path-regex '^/api/v1/'
check "with an account's key" --header "Authorization: Bearer $ann" --include-path-regex '^/api/v1/' \
  --exclude-path "$rotation" --phases examples,coverage,fuzzing --warnings off
check "rotating an account's key" --header "Authorization: Bearer $ben" --include-path "$rotation" \
  --phases examples,coverage,fuzzing --warnings off
stop

start "${high_limits[@]}" VERBATIM_PLANS__FREE__CREDITS=200
client "all endpoints" all dQw4w9WgXcQ withdrawn00 unreachable
stop

# Earlier accounts came from the same network, so the registration limit is raised; other limits are the defaults.
start VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR=100000
client "limits" limited
stop

start
check "with the default limits" --warnings off --phases examples,coverage
stop

export WEBHOOK_SECRET=whsec_conformance
start "${high_limits[@]}" VERBATIM_STRIPE__SECRET_KEY=sk_conformance "VERBATIM_STRIPE__WEBHOOK_SECRETS=$WEBHOOK_SECRET" \
  VERBATIM_STRIPE__API_URL=http://127.0.0.1:1
check "Stripe events" --include-path /api/v1/webhooks/stripe --phases examples,coverage,fuzzing
stop

start "${high_limits[@]}" VERBATIM_LIMITS__FREE_PER_MONTH=0
check "with a spent allowance" --header "Authorization: Bearer $key" --include-path /api/transcript \
  --phases examples,coverage
stop

start "${high_limits[@]}" VERBATIM_PLANS__FREE__CREDITS=1
client "without credits" spent dQw4w9WgXcQ
stop

start "${high_limits[@]}" VERBATIM_PLANS__FREE__CREDITS=0
check "with an account without credits" --header "Authorization: Bearer $cem" \
  --include-path /api/v1/transcript --phases examples,coverage
stop
token="$(verbatim admin-tokens create ann)"
# The line with the address is on the level info.
start VERBATIM_ADMIN__LISTEN=127.0.0.1:0 VERBATIM_LOG__LEVEL=info
for _ in $(seq 100); do grep -q "the admin API is served" "$work/err" && break; sleep 0.1; done
address="$(sed -n 's|.*the admin API is served at \(http://[^/]*\)/admin.*|\1|p' "$work/err")"
document="$root/docs/admin-openapi.json"
check "admin API without a token" --phases examples,coverage --warnings off
check "admin API" --header "Authorization: Bearer $token" --phases examples,coverage --warnings off
stop
echo "conformance: the server matches its OpenAPI documents, and subtitles parse in other libraries"
