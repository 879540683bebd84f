//! Unavailable stores: every lookup gets a response and no charge, and works again afterwards.

use std::time::Duration;

use transcript_core::{lookup::FailureReason, supplier::SupplyReason};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, keyed, look_up_as, new_key, other_video,
        run_scenario, script_captions, spent, unkeyed, video,
    },
    simulation::{
        fault_plan::FaultPlan,
        ops::{SimCaller, Target},
        supplier::SupplierStep,
        world::WorldConfig,
    },
};

/// Looks up with a key while these stores are unavailable, and again afterwards.
fn check_away(stores: &'static str) {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        life.world.gate.set_faults(FaultPlan::StoreDown { stores });
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::None(FailureReason::FetchError));
        check_message(&answer, "nothing was charged");
        assert_eq!(fetch_count(&life, &video()), 0);
        life.world.gate.set_faults(FaultPlan::NoFaults);
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        assert_eq!(spent(&life, &key), 1);
    });
}

#[test]
fn miss_with_any_store_unavailable_gets_response() {
    for stores in ["archive", "ledger", "directory", "limiter", ""] {
        check_away(stores);
    }
}

#[test]
fn archived_transcript_needs_only_archive() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        for stores in ["ledger", "directory", "limiter"] {
            life.world.gate.set_faults(FaultPlan::StoreDown { stores });
            check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
            check(&keyed(&life, &key, video()).await, ScenarioResult::Archived);
        }
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "archive" });
        check(&unkeyed(&life, video()).await, ScenarioResult::None(FailureReason::FetchError));
        life.world.gate.set_faults(FaultPlan::NoFaults);
    });
}

#[test]
fn miss_without_key_needs_no_ledger() {
    run_scenario(WorldConfig::default(), |life| async move {
        for stores in ["ledger", "directory"] {
            life.world.gate.set_faults(FaultPlan::StoreDown { stores });
            check(
                &unkeyed(&life, other_video()).await,
                ScenarioResult::None(FailureReason::NeedsVerification),
            );
        }
        life.world.gate.set_faults(FaultPlan::NoFaults);
    });
}

/// The ledger fails between hold and settle: the hold expires, the transcript stays archived.
#[test]
fn failed_settle_expires_hold_and_keeps_transcript() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        let away = async {
            advance(0).await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger.settle" });
        };
        let (caller, target) = (SimCaller::InvalidKey("no key"), Target::new(video()));
        let (answer, ()) = tokio::join!(keyed(&life, &key, video()), away);
        check(&answer, ScenarioResult::New);
        advance(120).await;
        life.world.gate.set_faults(FaultPlan::NoFaults);
        life.world.ledger.expire(life.now(), 100).await.unwrap();
        let sums = life.world.oracle.sums(&key.wallet);
        assert_eq!((sums.spent, sums.expired), (0, 1));
        check(&look_up_as(&life, caller, target).await, ScenarioResult::Archived);
        life.world.oracle.allow_unpaid(&key.wallet, &video());
    });
}

#[test]
fn failed_fetch_is_returned_before_slow_lease_release() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Timeout)]);
        let delay = Duration::from_secs(2);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "archive.release_lease", delay });
        let settled = async {
            advance(1).await;
            life.world.oracle.sums(&key.wallet).returned
        };
        let (answer, returned) = tokio::join!(keyed(&life, &key, video()), settled);
        check(&answer, ScenarioResult::None(FailureReason::FetchError));
        assert_eq!(returned, 1);
    });
}

/// A renewal may take effect between that of a slow put and its reply, and acquire the released lease again.
#[test]
fn put_releases_lease_unless_renewal_may_follow() {
    let mut config = WorldConfig { traced: true, ..WorldConfig::default() };
    config.engine.lease_heartbeat = Duration::from_secs(1);
    for (delay_ms, releases) in [(0, 0), (1_500, 1)] {
        run_scenario(config.clone(), |life| async move {
            let key = new_key(&life).await;
            let delay = Duration::from_millis(delay_ms);
            life.world.gate.set_faults(FaultPlan::SlowStore { stores: "archive.put_and_release", delay });
            check(&keyed(&life, &key, video()).await, ScenarioResult::New);
            advance(5).await;
            let trace = life.world.gate.take_trace();
            let released = trace.iter().filter(|line| line.contains("archive.release_lease")).count();
            assert_eq!(released, releases, "{trace:?}");
        });
    }
}

#[test]
fn lookup_past_deadline_starts_nothing() {
    let mut config = WorldConfig { traced: true, ..WorldConfig::default() };
    config.engine.wait_timeout = Duration::from_secs(1);
    // The limit of failed attempts is read before a fetch, and counted before a short link is resolved.
    for (target, started) in [
        (Target::new(video()), "archive.acquire_lease"),
        (Target::short("ZMplain1"), "short link ZMplain1 is resolved"),
    ] {
        run_scenario(config.clone(), |life| async move {
            let key = new_key(&life).await;
            let delay = Duration::from_secs(2);
            life.world.gate.set_faults(FaultPlan::SlowStore { stores: "limiter", delay });
            let answer = look_up_as(&life, SimCaller::Key(key.clone()), target).await;
            check(&answer, ScenarioResult::None(FailureReason::FetchError));
            check_message(&answer, "took too long");
            assert_eq!(life.lookups[0].transcripts().load().fetches, 0);
            advance(5).await;
            let trace = life.world.gate.take_trace();
            assert!(!trace.iter().any(|line| line.contains(started)), "{trace:?}");
            assert_eq!(life.world.oracle.sums(&key.wallet).held, 0);
        });
    }
}
