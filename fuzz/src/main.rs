//! The fuzzer of the target that `FUZZ_TARGET` names; without a name it prints all names. `run.sh` builds and runs
//! it.

#![no_main]

use std::{env, process, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use verbatim_fuzz::{FuzzTarget, TARGETS};

static TARGET: OnceLock<FuzzTarget> = OnceLock::new();

fuzz_target!(
    init: TARGET.set(prepare()).expect("the fuzzer starts once"),
    |input: &[u8]| (TARGET.get().expect("it is set at the start").run)(input)
);

/// The target; its seeds are written before libFuzzer reads its corpus.
fn prepare() -> FuzzTarget {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        print_names();
        process::exit(i32::from(!name.is_empty()));
    };
    if let Some(folder) = env::var_os("FUZZ_SEEDS") {
        target.write_seeds(folder.as_ref()).expect("the folder of seeds is writable");
    }
    *target
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn print_names() {
    for target in TARGETS {
        println!("{}", target.name);
    }
}
