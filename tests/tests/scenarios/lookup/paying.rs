//! Payers, amounts and times of charges.

use std::{collections::BTreeMap, time::Duration};

use tokio::task::JoinSet;
use transcript_core::{Timestamp, lookup::FailureReason, supplier::SupplyReason};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, end, fetch_count, keyed, look_up_on, new_key,
        other_video, run_scenario, run_scenario_with, script_captions, service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::{SimCaller, Target},
        supplier::SupplierStep,
        world::{NOON_MS, SimWorld, WorldConfig},
    },
};

#[test]
fn new_transcript_is_charged_once() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::New);
        let usage = answer.key.unwrap();
        assert_eq!((usage.used, usage.allowance, usage.remaining), (1, 25, 24));
        check(&keyed(&life, &key, video()).await, ScenarioResult::Archived);
        assert_eq!((spent(&life, &key), service_spent(&life)), (1, 1));
    });
}

#[test]
fn concurrent_500_lookups_are_charged_once() {
    let world = SimWorld::new(WorldConfig::default());
    run_scenario_with(&world, 2, |life| async move {
        let mut keys = Vec::new();
        for _ in 0..50 {
            keys.push(new_key(&life).await);
        }
        let mut callers = JoinSet::new();
        for number in 0..500 {
            let (life, key) = (life.clone(), keys[number % keys.len()].clone());
            callers.spawn(async move {
                look_up_on(&life, number % 2, SimCaller::Key(key), Target::new(video())).await
            });
        }
        let answers = callers.join_all().await;
        let new = answers.iter().filter(|answer| end(answer) == ScenarioResult::New).count();
        let archived = answers.iter().filter(|answer| end(answer) == ScenarioResult::Archived).count();
        assert_eq!((new, archived), (1, 499));
        let paid: u64 = keys.iter().map(|key| spent(&life, key)).sum();
        assert_eq!((paid, service_spent(&life), fetch_count(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn waiter_without_allowance_fails_and_next_waiter_pays() {
    let mut config = WorldConfig::default();
    config.lookup.free_per_month = 1;
    run_scenario(config, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, ScenarioResult::New);
        // The flight starts with the caller that cannot pay.
        let (first, second, third) = tokio::join!(
            keyed(&life, &poor, video()),
            keyed(&life, &rich, video()),
            keyed(&life, &poor, video()),
        );
        check(&first, ScenarioResult::None(FailureReason::KeyAllowance));
        check_message(&first, "2026-12-01T00:00:00Z");
        check(&second, ScenarioResult::New);
        check(&third, ScenarioResult::Archived);
        assert_eq!((spent(&life, &poor), spent(&life, &rich), fetch_count(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn key_allowance_is_reported_before_daily_cap() {
    let mut config = WorldConfig::default();
    config.lookup.free_per_month = 1;
    config.lookup.service_per_day = 1;
    run_scenario(config, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, ScenarioResult::New);
        check(&keyed(&life, &poor, video()).await, ScenarioResult::None(FailureReason::KeyAllowance));
        check(&keyed(&life, &rich, video()).await, ScenarioResult::None(FailureReason::DailyCap));
        assert_eq!((spent(&life, &rich), fetch_count(&life, &video())), (0, 0));
        // The cap is daily, the allowance monthly.
        advance(12 * 3_600).await;
        check(&keyed(&life, &poor, video()).await, ScenarioResult::None(FailureReason::KeyAllowance));
        check(&keyed(&life, &rich, video()).await, ScenarioResult::New);
    });
}

#[test]
fn failed_fetch_charges_service_and_not_key() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Timeout)]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::None(FailureReason::FetchError));
        assert_eq!(answer.key.unwrap().used, 0);
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
    });
}

/// Across the end of a month and a day: a hold of the old period is spent in it.
#[test]
fn period_reset_during_fetch_charges_old_period() {
    let month_end = NOON_MS + 10 * 86_400_000 + 43_200_000;
    let start = Timestamp::from_millis(month_end - 5_000);
    let mut config = WorldConfig { start, ..WorldConfig::default() };
    config.lookup.free_per_month = 1;
    config.lookup.service_per_day = 1;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(10))]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::New);
        assert!(life.now().as_millis() > month_end);
        let usage = answer.key.unwrap();
        assert_eq!((usage.used, usage.remaining), (0, 1), "the new month must be unused");
        check(&keyed(&life, &key, other_video()).await, ScenarioResult::New);
        let spent_in = |entries: Vec<transcript_core::ledger::Entry>| {
            let mut buckets: BTreeMap<String, u64> = BTreeMap::new();
            for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
                *buckets.entry(entry.pool.bucket().unwrap().to_owned()).or_default() += entry.amount;
            }
            buckets.into_iter().collect::<Vec<_>>()
        };
        let check = async |wallet: &transcript_core::ids::WalletId, expect: [&str; 2]| {
            let page =
                life.world.ledger.entries(wallet, transcript_core::PageRequest::first()).await.unwrap();
            let expect = expect.map(|bucket| (bucket.to_owned(), 1));
            assert_eq!(spent_in(page.items), expect);
        };
        check(&key.wallet, ["month/2026-11", "month/2026-12"]).await;
        let service = transcript_core::ids::WalletId::new("service");
        check(&service, ["day/2026-11-30", "day/2026-12-01"]).await;
    });
}

#[test]
fn withdrawal_during_fetch_releases_payment() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        let withdraw = async {
            advance(2).await;
            life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(keyed(&life, &key, video()), withdraw);
        check(&answer, ScenarioResult::None(FailureReason::NoCaptions));
        check_message(&answer, "withdrawn by the operator");
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        check(&unkeyed(&life, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        assert_eq!(fetch_count(&life, &video()), 1, "a withdrawn video was fetched again");
    });
}
