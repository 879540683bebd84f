//! Seeded simulations of lookups: thousands of small worlds in virtual time. Stores fail before or after
//! the effect, are slow or hang, and processes crash at any await.
//!
//! The same seed gives the identical run. `VERBATIM_SEED=n` replays one seed and prints its trace;
//! `VERBATIM_SEEDS=from..to` runs that range instead of the default one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod accounts;
pub(crate) mod fault_plan;
pub(crate) mod faulty;
pub(crate) mod listener;
mod lossy_idempotency;
mod mutation;
pub(crate) mod ops;
pub(crate) mod oracle;
pub(crate) mod payments;
pub(crate) mod run;
pub(crate) mod seeded_rng;
mod servers;
pub(crate) mod store_gate;
pub(crate) mod supplier;
pub(crate) mod world;

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use fault_plan::FaultPlan;
use mutation::Mutation;
use run::{SimReport, run};
use transcript_core::{
    PageRequest, Timestamp,
    archive::{CompactRequest, PutRequest, TrackSelector, VectorsKey, VerifyArchiveRequest, content_digest},
    ids::{HoldId, WalletId},
    ledger::{HoldOutcome, HoldRequest, Leg, Pool, Terms},
    lookup::FailureReason,
    time::LEASE_MAX,
    transcript::VideoMetadata,
};
use world::{SimWorld, WorldConfig};

/// Seeds of every test run.
const SEEDS: Range<u64> = 0..3_000;

/// The seeds that the environment selects, if any.
fn selected_seeds() -> Option<Range<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a seed must be a number");
    if let Ok(seed) = std::env::var("VERBATIM_SEED") {
        let seed = number(&seed);
        return Some(seed..seed + 1);
    }
    let seeds = std::env::var("VERBATIM_SEEDS").ok()?;
    let (from, to) = seeds.split_once("..").expect("a seed range must be written from..to");
    Some(number(from)..number(to))
}

/// The first seed of a range whose run has a violation; uses several threads.
fn first_failing_seed(seeds: Range<u64>, run: impl Fn(u64) -> SimReport + Sync) -> Option<u64> {
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let threads = thread::available_parallelism().map_or(2, usize::from).min(4);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end.min(failed.load(Ordering::Relaxed)) {
                        return;
                    }
                    if !run(seed).violations.is_empty() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Some(failed.into_inner()).filter(|seed| *seed != u64::MAX)
}

/// Fails if a run of the selected seeds, or of these, has a violation. `run` gets a seed and whether to trace it.
fn check_seeds(seeds: Range<u64>, run: impl Fn(u64, bool) -> SimReport + Sync) {
    let seeds = selected_seeds().unwrap_or(seeds);
    let replay = seeds.end - seeds.start == 1;
    let failed = if replay { Some(seeds.start) } else { first_failing_seed(seeds, |seed| run(seed, false)) };
    let Some(seed) = failed else { return };
    let report = run(seed, true);
    if replay || !report.violations.is_empty() {
        eprintln!("{}", report.trace.join("\n"));
    }
    let violations = report.violations.join("\n");
    assert!(report.violations.is_empty(), "seed {seed}: {violations}\nreplay it with VERBATIM_SEED={seed}");
}

/// Fails unless all runs of a seed are equal, with a trace of more lines than these.
fn check_same_runs(seeds: Range<u64>, lines: usize, run: impl Fn(u64) -> SimReport) {
    for seed in seeds {
        let (first, second) = (run(seed), run(seed));
        assert!(first.trace.len() > lines, "seed {seed} does nothing");
        for (index, (one, other)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {index}");
        }
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Fails unless these seeds cover all cases.
fn check_reached(mut missing: BTreeSet<String>, seeds: Range<u64>, run: impl Fn(u64) -> SimReport) {
    for seed in seeds {
        let reached = run(seed).reached;
        missing.retain(|what| !reached.contains(what));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no seed covers {missing:?}");
}

#[test]
fn simulation_every_seed_has_no_violation() {
    check_seeds(SEEDS, |seed, traced| run(seed, None, traced));
}

#[test]
fn simulation_same_seed_same_run() {
    check_same_runs(0..60, 20, |seed| run(seed, None, true));
}

/// A simulation proves something only if its seeds cover every case.
#[test]
fn simulation_seeds_cover_every_case() {
    let reasons = FailureReason::ALL.map(FailureReason::as_str);
    // Only the watch page has visitors with allowances.
    let reasons = reasons.into_iter().filter(|reason| *reason != "allowance");
    let entries = ["Spent", "Charged", "Returned", "Expired"];
    let others = ["new", "archived", "crash", "still being transcribed"];
    let suppliers = ["breaker opened", "breaker closed", "is paused", "all permits taken"];
    let accounts = ["replayed", "charged from cache", "rotated", "recovered", "paid a plan", "bought a pack"];
    let refusals = [400, 401, 402, 404, 409, 500].map(|code| format!("refused {code}"));
    let others = others.into_iter().chain(entries).chain(suppliers).chain(accounts);
    let calls = [
        "archive.put",
        "archive.put_and_release",
        "archive.acquire_lease",
        "archive.release_lease",
        "ledger.hold",
        "ledger.settle",
        "ledger.spend",
        "idempotency.begin",
    ];
    let faults = calls.iter().flat_map(|call| ["before", "after"].map(|when| format!("{call} fails {when}")));
    let all = reasons.chain(others).map(str::to_owned).chain(faults).chain(refusals);
    check_reached(all.collect(), 0..1_200, |seed| run(seed, None, false));
}

/// The archive's own methods are used behind the gate, and with a defect too; those that read or maintain can fail.
#[tokio::test]
async fn simulation_archive_methods_are_those_of_store() {
    for mutation in [None, Some(Mutation::LoseGrant)] {
        let world = SimWorld::new(WorldConfig { mutation, ..WorldConfig::default() });
        let (archive, video, now) = (&world.archive, ops::videos()[0].clone(), Timestamp::from_millis(0));
        let transcript = supplier::transcript(&video, "en", "captions", 0);
        let (content_sha256, selector) = (content_digest(&transcript), TrackSelector::Default);
        let request = PutRequest {
            video: video.clone(),
            selectors: vec![selector.clone()],
            transcript: Arc::new(transcript),
            known_tracks: Vec::new(),
            metadata: VideoMetadata::default(),
            parser_version: 1,
            replace: false,
            now,
        };
        // The store lists the videos that change from the first call on.
        assert!(archive.unindexed_videos(9).await.unwrap().is_empty(), "{mutation:?}");
        let _ = archive.put(request).await.unwrap();
        let key = VectorsKey { video: video.clone(), content_sha256, texts_sha256: [0; 32] };
        archive.put_vectors(&key, vec![1]).await.unwrap();
        let page = || PageRequest { after: None, limit: 10 };
        let body = || archive.stored_body(&video, &selector);
        let verify = || archive.verify(VerifyArchiveRequest { page: page(), delete_damaged: false });
        let compact = || archive.compact(CompactRequest { stored_before: now, page: page() });
        assert_eq!(archive.vectors(&key).await.unwrap(), Some(vec![1]), "{mutation:?}");
        assert_eq!(archive.unindexed_videos(9).await.unwrap().len(), 1, "{mutation:?}");
        assert!(body().await.unwrap().is_some());
        assert_eq!(verify().await.unwrap().scanned, 1);
        let _ = compact().await.unwrap();
        world.gate.set_faults(FaultPlan::StoreDown { stores: "archive." });
        assert!(archive.vectors(&key).await.is_err() && body().await.is_err());
        assert!(verify().await.is_err() && compact().await.is_err());
    }
}

/// A method that the stores override is theirs behind the gate, and with a defect too.
#[tokio::test]
async fn simulation_ledger_shortens_holds_of_store() {
    for mutation in [None, Some(Mutation::LoseGrant)] {
        let world = SimWorld::new(WorldConfig { mutation, ..WorldConfig::default() });
        let now = Timestamp::from_millis(0);
        let pool = Pool::Allowance { bucket: "day/1970-01-01".to_owned(), limit: 1 };
        let terms = Terms { pools: vec![pool], resets_at: None };
        let hold = HoldRequest {
            id: HoldId::new("h"),
            legs: vec![Leg { wallet: WalletId::new("w"), terms, amount: 1 }],
            now,
            expires_at: now.plus(100 * LEASE_MAX),
            memo: String::new(),
        };
        let held = world.ledger.hold(hold).await.unwrap();
        assert!(matches!(held, HoldOutcome::Held { .. }), "{held:?}");
        let latest = now.plus(LEASE_MAX);
        world.ledger.shorten_holds(latest).await.unwrap();
        assert_eq!(world.ledger.expire(latest, 10).await.unwrap(), 1, "{mutation:?}");
    }
}

#[test]
fn oracle_detects_every_mutation() {
    for mutation in Mutation::ALL {
        let caught = first_failing_seed(SEEDS, |seed| run(seed, Some(mutation), false));
        assert!(caught.is_some(), "{mutation:?} was not caught");
    }
}
