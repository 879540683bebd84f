//! Unavailable stores: every lookup gets a response and no charge, and works again afterwards.

use transcript_core::lookup::FailureReason;

use crate::{
    scenarios::{
        ScenarioResult, check, check_message, fetch_count, keyed, new_key, other_video, run_scenario, spent,
        unkeyed, video,
    },
    simulation::{fault_plan::FaultPlan, world::WorldConfig},
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
            crate::scenarios::advance(0).await;
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger.settle" });
        };
        let (caller, target) = (
            crate::simulation::ops::SimCaller::InvalidKey("no key"),
            crate::simulation::ops::Target::new(video()),
        );
        let (answer, ()) = tokio::join!(keyed(&life, &key, video()), away);
        check(&answer, ScenarioResult::New);
        crate::scenarios::advance(120).await;
        life.world.gate.set_faults(FaultPlan::NoFaults);
        life.world.ledger.expire(life.now(), 100).await.unwrap();
        let sums = life.world.oracle.sums(&key.wallet);
        assert_eq!((sums.spent, sums.expired), (0, 1));
        check(&crate::scenarios::look_up_as(&life, caller, target).await, ScenarioResult::Archived);
        life.world.oracle.allow_unpaid(&key.wallet, &video());
    });
}
