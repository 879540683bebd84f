#!/usr/bin/env bash
# Fuzzes each target for SECONDS seconds: fuzz/run.sh SECONDS [TARGET…]. Without targets, all of them. With 0 seconds it
# only builds them.
# FUZZ_JOBS targets run at a time (default 2), with the priority FUZZ_NICE (default 19, the lowest; programs beside them
# must not use all processors then, because an input that takes 20 s is a finding). FUZZ_SEED is the seed of the mutations
# (default: random). Exits 1 if one has a finding; its input is in target/fuzz/findings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SECONDS_EACH=${1:?usage: fuzz/run.sh SECONDS [TARGET…]}
shift
FOLDER="${CARGO_TARGET_DIR:-$PWD/target}"
FUZZER="$FOLDER/debug/fuzz"
export SECONDS_EACH FOLDER FUZZER

# libFuzzer is C++.
if ! command -v c++ >/dev/null; then
  tests/apt.sh build-essential
fi
RUSTC_WORKSPACE_WRAPPER="$PWD/fuzz/rustc.sh" cargo build --workspace --exclude verbatim-benches --all-features --bin fuzz
[ "$SECONDS_EACH" != 0 ] || exit 0

# One line for a target; more if it has a finding.
run_target() {
  local name=$1 work="$FOLDER/fuzz" status=0
  local log="$work/log/$name" findings="$work/findings/$name"
  mkdir -p "$work/corpus/$name" "$findings" "$work/log"
  # A run of the seeds takes milliseconds; the limit of 20 s leaves room for a busy machine.
  FUZZ_TARGET="$name" FUZZ_SEEDS="$work/seeds/$name" nice -n "${FUZZ_NICE:-19}" "$FUZZER" -max_total_time="$SECONDS_EACH" -seed="${FUZZ_SEED:-0}" \
    -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -artifact_prefix="$findings/" \
    "$work/corpus/$name" "$work/seeds/$name" >"$log" 2>&1 || status=$?
  # cov: edges reached, of the seeds and at the end.
  local first last runs
  first=$(sed -n 's/.*INITED cov: \([0-9]*\).*/\1/p' "$log")
  last=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "$status" -eq 0 ]; then
    echo "$name: ${runs} runs, coverage ${first} -> ${last}"
    return 0
  fi
  echo "$name: FINDING (exit status $status), see $log"
  grep -m 1 -A 3 "panicked at\|ERROR: libFuzzer" "$log" || tail -n 20 "$log"
  for input in "$findings"/*; do
    echo "  repeat: FUZZ_TARGET=$name $FUZZER $input"
  done
  return 1
}
export -f run_target

if [ $# -eq 0 ]; then
  mapfile -t targets < <("$FUZZER")
  set -- "${targets[@]}"
fi
printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-2}" -n 1 bash -c 'run_target "$1"' _ || exit 1
