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
# At the second level the pages and the OpenAPI document of the server take minutes to compile; few targets run them.
level=2
case " $* " in *" --crate-name reference_server "*) level=1 ;; esac
exec "$rustc" "$@" -C "opt-level=$level" -C overflow-checks=on -C debug-assertions=on -C passes=sancov-module \
  -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
  -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares \
  -C llvm-args=-simplifycfg-branch-fold-threshold=0
