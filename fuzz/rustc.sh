#!/bin/sh
# Compiles the crates of the workspace with coverage counters for libFuzzer. cargo calls it (RUSTC_WORKSPACE_WRAPPER);
# dependencies stay as the tests build them. All flags are stable.
rustc=$1
shift
case " $* " in
  *" --crate-name transcript_core "* | *" --crate-name upstream_reqwest "* | *" --crate-name verbatim "* | \
    *" --crate-name reference_server "* | *" --crate-name verbatim_fuzz "* | *" --crate-name fuzz "*) ;;
  # Without parsers of foreign bytes, or a build script.
  *) exec "$rustc" "$@" ;;
esac
# The first level, and none for the server, whose pages few targets run: at the second one the build takes longer than the
# fuzzing of the test command.
level=1
case " $* " in *" --crate-name reference_server "*) level=0 ;; esac
exec "$rustc" "$@" -C "opt-level=$level" -C overflow-checks=on -C debug-assertions=on -C passes=sancov-module \
  -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
  -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares \
  -C llvm-args=-simplifycfg-branch-fold-threshold=0
