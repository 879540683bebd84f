#!/usr/bin/env bash
# Checks what the project depends on, and writes what its programs contain (SBOM) into target/supply-chain/sbom.
#
# cargo-deny checks licences, sources and bans (deny.toml), and known vulnerabilities. These are in the database of
# RustSec, which is a Git repository: if it cannot be reached, they are not checked, and the output says so, or, with
# REQUIRE_ADVISORIES=1, the check fails. ADVISORY_DB=FOLDER uses a clone of it instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(realpath -m "${CARGO_TARGET_DIR:-target}")/supply-chain"
database=https://github.com/RustSec/advisory-db

if [ -n "${ADVISORY_DB:-}" ]; then
  clone="$(realpath "$ADVISORY_DB")"
  # Git reads the clone in place of the address.
  export GIT_CONFIG_COUNT=2
  export GIT_CONFIG_KEY_0="url.file://$clone.insteadOf" GIT_CONFIG_VALUE_0="$database"
  export GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*'
fi
rm -rf "$folder/advisory-db"
if ! timeout 60 git clone --quiet --depth 1 "$database" "$folder/advisory-db"; then
  echo "supply chain: vulnerabilities are not checked, because $database cannot be reached;" \
    "set ADVISORY_DB to a clone of it" >&2
  [ -z "${REQUIRE_ADVISORIES:-}" ] || exit 1
fi

# Built programs of cargo-deny and cargo-audit: they are as large as the project to compile.
venv="$folder/venv"
tests/venv.sh "$venv" tests/supply-chain/requirements.txt
# Without optimisation and debug information: it builds in less than half of the time, and the check takes seconds
# either way.
CARGO_PROFILE_DEV_DEBUG=false tests/retry.sh cargo install --quiet --debug --locked --root "$folder" --target-dir "$folder/build" cargo-cyclonedx@0.5.9
PATH="$venv/bin:$folder/bin:$PATH"

cargo deny check licenses sources bans
if [ -d "$folder/advisory-db" ]; then
  cargo deny check advisories
  # A fetch by cargo-audit itself would ignore a clone that is named by ADVISORY_DB.
  # As in deny.toml: paste is unmaintained.
  cargo audit --deny warnings --ignore RUSTSEC-2024-0436 --no-fetch --db "$folder/advisory-db"
fi

# The installed programs suffice; what they were built from takes a gigabyte.
rm -rf "$folder/build"

# One file for each program and library that is distributed, with the dependencies on all systems that it is built for.
# The tool writes the files of all packages beside their manifests. Only the server is built with another feature.
rm -rf "$folder/sbom"
mkdir -p "$folder/sbom"
for name in reference-server/verbatim bindings-python/_native bindings-uniffi/verbatim_phone; do
  features=()
  [ "$name" != reference-server/verbatim ] || features=(--features otel)
  cargo cyclonedx --quiet --format json --spec-version 1.5 --describe binaries --no-build-deps --target all \
    --manifest-path "$(dirname "$name")/Cargo.toml" "${features[@]}"
  mv "$name"_*.cdx.json "$folder/sbom/$(basename "$name").cdx.json"
  rm -f ./*/*.cdx.json
done
for name in verbatim _native verbatim_phone; do
  python3 - "$folder/sbom/$name.cdx.json" <<'CHECK'
import json, sys

sbom = json.load(open(sys.argv[1]))
names = {component["name"] for component in sbom["components"]}
unlicensed = [component["name"] for component in sbom["components"] if not component.get("licenses")]
assert sbom["bomFormat"] == "CycloneDX", sbom["bomFormat"]
# Also those of other systems, and of the feature with which the server is built.
expected = {"verbatim-transcript-core", "tokio", "serde", "windows-sys", "security-framework"}
if sys.argv[1].endswith("/verbatim.cdx.json"):
    expected.add("opentelemetry-otlp")
assert expected <= names, f"{sys.argv[1]}: without {expected - names}"
assert not unlicensed, f"{sys.argv[1]}: without a licence: {unlicensed}"
print(f"{sys.argv[1]}: {len(names)} components")
CHECK
done
