//! Work that outlasts its callers, and processes that crash.

use std::time::Duration;

use transcript_core::{
    lookup::FailureReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, keyed, look_up_on, new_key,
        retry_after_s, run_scenario, run_scenario_with, script_captions, service_spent, spent, unkeyed,
        video,
    },
    simulation::{
        ops::{SimCaller, SimRequest, Target},
        supplier::SupplierStep,
        world::{CrashPlan, SimWorld, WorldConfig},
    },
};

#[test]
fn long_fetch_reports_progress_until_archived() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(100))]);
        // Progress is unknown: the estimate is the elapsed time.
        for again in [25, 50, 60] {
            let before = life.now();
            let answer = keyed(&life, &key, video()).await;
            check(&answer, ScenarioResult::None(FailureReason::FetchError));
            check_message(&answer, &format!("still being transcribed. Try again in {again} seconds"));
            assert_eq!(retry_after_s(&answer), Some(again));
            assert_eq!(life.now().since(before), Duration::from_secs(25));
        }
        advance(26).await;
        check(&keyed(&life, &key, video()).await, ScenarioResult::Archived);
        assert_eq!((spent(&life, &key), fetch_count(&life, &video())), (1, 1));
    });
}

#[test]
fn fetch_outlives_disconnected_caller_and_is_settled() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        let (caller, target) = (SimCaller::Key(key.clone()), Target::new(video()));
        let request =
            SimRequest { life: &life, lookup: &life.lookups[0], caller, target, peek: false, fair: true };
        assert!(request.send(Some(Duration::from_secs(1))).await.is_none());
        advance(5).await;
        check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
        assert_eq!((spent(&life, &key), service_spent(&life)), (1, 1));
    });
}

#[test]
fn disconnected_waiter_is_not_charged() {
    let world = SimWorld::new(WorldConfig::default());
    run_scenario_with(&world, 2, |life| async move {
        let (first, second) = (new_key(&life).await, new_key(&life).await);
        script_captions(
            &life,
            &[SupplierStep::fail(transcript_core::supplier::SupplyReason::Timeout)
                .after(Duration::from_secs(5))],
        );
        let failing = look_up_on(&life, 0, SimCaller::Key(first.clone()), Target::new(video()));
        let leaving = async {
            let (caller, target) = (SimCaller::Key(second.clone()), Target::new(video()));
            let lookup = &life.lookups[1];
            let request = SimRequest { life: &life, lookup, caller, target, peek: false, fair: true };
            assert!(request.send(Some(Duration::from_secs(2))).await.is_none());
        };
        let (answer, ()) = tokio::join!(failing, leaving);
        check(&answer, ScenarioResult::None(FailureReason::FetchError));
        advance(60).await;
        assert_eq!(fetch_count(&life, &video()), 1);
        assert_eq!(life.world.oracle.sums(&second.wallet).held, 0);
    });
}

#[test]
fn fetch_of_other_server_is_awaited() {
    let world = SimWorld::new(WorldConfig::default());
    run_scenario_with(&world, 2, |life| async move {
        let (first, second) = (new_key(&life).await, new_key(&life).await);
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(20))]);
        let (one, other) = tokio::join!(
            look_up_on(&life, 0, SimCaller::Key(first.clone()), Target::new(video())),
            look_up_on(&life, 1, SimCaller::Key(second.clone()), Target::new(video())),
        );
        check(&one, ScenarioResult::New);
        check(&other, ScenarioResult::Archived);
        assert_eq!((spent(&life, &first), spent(&life, &second), fetch_count(&life, &video())), (1, 0, 1));
    });
}

#[test]
fn crashed_process_is_not_charged() {
    let world = SimWorld::new(WorldConfig::default());
    let key = world.run_process(1, None, |life| async move { new_key(&life).await }).unwrap();
    let died = world.run_process(1, Some(CrashPlan::After(Duration::from_secs(3))), |life| {
        let key = key.clone();
        async move {
            script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(10))]);
            keyed(&life, &key, video()).await
        }
    });
    assert!(died.is_none());
    assert_eq!(fetch_count_in(&world), 1);
    run_scenario_with(&world, 1, |life| async move {
        // The lookup waits for the lease of the crashed process, whose hold is open for longer.
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::New);
        assert_eq!(answer.key.unwrap().used, 2);
        advance(60).await;
        // The next hold of the wallet expires it.
        let other = VideoId::new(Platform::YouTube, "dyke-walk-1").unwrap();
        let answer = keyed(&life, &key, other).await;
        check(&answer, ScenarioResult::New);
        assert_eq!(answer.key.unwrap().used, 2);
        let sums = life.world.oracle.sums(&key.wallet);
        assert_eq!((sums.spent, sums.expired), (2, 1));
    });
}

fn fetch_count_in(world: &SimWorld) -> u64 {
    world.oracle.fetch_count(&video())
}
