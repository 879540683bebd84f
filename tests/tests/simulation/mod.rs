//! Seeded simulations of the look-up: thousands of small worlds in virtual time, whose stores fail before
//! or after taking effect, are slow, hang, and whose processes die at any await.
//!
//! The same seed gives the same run, to the letter. `VERBATIM_SEED=n` replays one seed and prints what
//! happened; `VERBATIM_SEEDS=from..to` runs that range instead of the usual one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod accounts;
pub(crate) mod clock;
pub(crate) mod dice;
pub(crate) mod faulty;
mod forgetful;
pub(crate) mod gate;
pub(crate) mod listener;
mod mutation;
pub(crate) mod ops;
pub(crate) mod oracle;
pub(crate) mod paying;
pub(crate) mod run;
mod servers;
pub(crate) mod supplier;
pub(crate) mod weather;
pub(crate) mod world;

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use mutation::Mutation;
use run::run;
use transcript_core::lookup::FailureReason;

/// How many seeds every test run has.
const SEEDS: Range<u64> = 0..3_000;

/// The seeds that the environment asks for, where it does.
fn wanted_seeds() -> Option<Range<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a seed is a number");
    if let Ok(seed) = std::env::var("VERBATIM_SEED") {
        let seed = number(&seed);
        return Some(seed..seed + 1);
    }
    let seeds = std::env::var("VERBATIM_SEEDS").ok()?;
    let (from, to) = seeds.split_once("..").expect("a range of seeds is written from..to");
    Some(number(from)..number(to))
}

/// The first seed of a range, over all threads, whose run the oracle finds wrong.
fn first_wrong(seeds: Range<u64>, mutation: Option<Mutation>) -> Option<u64> {
    let (next, wrong) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let threads = thread::available_parallelism().map_or(2, usize::from).min(4);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end.min(wrong.load(Ordering::Relaxed)) {
                        return;
                    }
                    if !run(seed, mutation, false).wrongs.is_empty() {
                        wrong.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Some(wrong.into_inner()).filter(|seed| *seed != u64::MAX)
}

#[test]
fn every_seed_ends_well() {
    let seeds = wanted_seeds().unwrap_or(SEEDS);
    let replay = seeds.end - seeds.start == 1;
    let wrong = if replay { Some(seeds.start) } else { first_wrong(seeds, None) };
    let Some(seed) = wrong else { return };
    let report = run(seed, None, true);
    if replay || !report.wrongs.is_empty() {
        eprintln!("{}", report.trace.join("\n"));
    }
    let wrongs = report.wrongs.join("\n");
    assert!(report.wrongs.is_empty(), "seed {seed}: {wrongs}\nreplay it with VERBATIM_SEED={seed}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..60 {
        let (first, second) = (run(seed, None, true), run(seed, None, true));
        assert!(first.trace.len() > 20, "seed {seed} does nothing");
        for (place, (one, other)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {place}");
        }
        assert_eq!(first, second, "seed {seed}");
    }
}

/// A simulation that never comes to what it is for proves nothing.
#[test]
fn the_seeds_come_to_everything() {
    let reasons = FailureReason::ALL.map(FailureReason::as_str);
    // Only the watch page has visitors with allowances.
    let reasons = reasons.into_iter().filter(|reason| *reason != "allowance");
    let entries = ["Spent", "Charged", "Returned", "Expired"];
    let others = ["new", "archived", "death", "still being transcribed"];
    let suppliers = ["a supplier rests", "a supplier recovers", "left alone for now", "all places are taken"];
    let accounts = ["replayed", "charged at hand", "rotated", "recovered", "paid a plan", "bought a pack"];
    let refusals = [400, 401, 402, 404, 409, 500].map(|code| format!("refused {code}"));
    let others = others.into_iter().chain(entries).chain(suppliers).chain(accounts);
    let calls = [
        "archive.keep",
        "archive.claim",
        "archive.unclaim",
        "ledger.hold",
        "ledger.settle",
        "ledger.spend",
        "replies.begin",
    ];
    let faults = calls.iter().flat_map(|call| ["before", "after"].map(|when| format!("{call} fails {when}")));
    let all = reasons.chain(others).map(str::to_owned).chain(faults).chain(refusals);
    let mut missing: BTreeSet<_> = all.collect();
    for seed in 0..1_200 {
        let reached = run(seed, None, false).reached;
        missing.retain(|what| !reached.contains(what));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no seed comes to {missing:?}");
}

#[test]
fn the_oracle_catches_every_mutation() {
    for mutation in Mutation::ALL {
        let caught = first_wrong(SEEDS, Some(mutation));
        assert!(caught.is_some(), "{mutation:?} was not caught");
    }
}
