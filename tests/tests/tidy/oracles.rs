//! What the ledger and the rate limits are compared with shares no arithmetic with them.

use anyhow::Result;

use super::{SourceFile, Violation, check_planted, none, tree, vocabulary::check_identifiers};

/// Files and folders that recompute the rules in another way.
const ORACLES: &[&str] = &[
    "transcript-core/src/ledger/audit.rs",
    "transcript-core/src/testing/ledger/model.rs",
    "transcript-core/src/testing/limit_model.rs",
    "tests/tests/simulation/oracle",
];

/// The modules with the arithmetic of the stores, and the stores in memory, which use it.
const SHARED: &[&str] = &["rules", "allocate", "MemoryLedger", "MemoryRateLimiter"];

fn is_part_of(source: &SourceFile, oracle: &str) -> bool {
    source.path == oracle || source.is_within(oracle)
}

fn shared_arithmetic(source: &SourceFile) -> Vec<Violation> {
    let advice = |name: &str| format!("{name}: an oracle must not use what it checks (decision 0040)");
    check_identifiers(source, |name| SHARED.contains(&name).then(|| advice(name)))
}

#[test]
fn tidy_oracles_share_no_arithmetic() -> Result<()> {
    let sources = tree()?;
    for oracle in ORACLES {
        let files: Vec<_> = sources.iter().filter(|source| is_part_of(source, oracle)).collect();
        anyhow::ensure!(!files.is_empty(), "{oracle} does not exist: correct ORACLES");
        none(files.into_iter().flat_map(shared_arithmetic).collect())?;
    }
    Ok(())
}

#[test]
fn tidy_shared_arithmetic_is_reported() {
    let check = |text: &str, lines: &[usize]| check_planted(shared_arithmetic, "a.rs", text, lines);
    check("//! [`crate::ledger::rules`]\nuse crate::ledger::{Pool, audit};\n", &[]);
    check("use crate::{\n    error::Result,\n    ledger::{Pool, allocate::{self, PoolShare}},\n};\n", &[3]);
    check("use crate::ledger::*;\nfn f() {\n    rules::balance();\n}\n", &[3]);
    check("use crate::limits::rules as windows;\n", &[1]);
    check("fn f() { let _ = vec![super::rules::take()]; }\n", &[1]);
    check("use transcript_core::memory::MemoryLedger;\n", &[1]);
}
