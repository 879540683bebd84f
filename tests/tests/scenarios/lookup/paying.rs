//! Who pays, how much, and when.

use std::{collections::BTreeMap, time::Duration};

use tokio::task::JoinSet;
use transcript_core::{Timestamp, lookup::FailureReason, supplier::SupplyReason};

use crate::{
    scenarios::{
        End, ask_engine, asks, captions_do, check, check_message, end, keyed, new_key, other_video, pass,
        play, play_with, service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::{Caller, Target},
        supplier::Act,
        world::{NOON_MS, Plan, World},
    },
};

#[test]
fn a_new_transcript_costs_one_once() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::New);
        let usage = answer.key.unwrap();
        assert_eq!((usage.used, usage.allowance, usage.remaining), (1, 25, 24));
        check(&keyed(&life, &key, video()).await, End::Archived);
        assert_eq!((spent(&life, &key), service_spent(&life)), (1, 1));
    });
}

#[test]
fn five_hundred_at_once_cost_one_in_total() {
    let world = World::new(Plan::default());
    play_with(&world, 2, |life| async move {
        let mut keys = Vec::new();
        for _ in 0..50 {
            keys.push(new_key(&life).await);
        }
        let mut callers = JoinSet::new();
        for number in 0..500 {
            let (life, key) = (life.clone(), keys[number % keys.len()].clone());
            callers.spawn(async move {
                ask_engine(&life, number % 2, Caller::Key(key), Target::of(video())).await
            });
        }
        let answers = callers.join_all().await;
        let new = answers.iter().filter(|answer| end(answer) == End::New).count();
        let archived = answers.iter().filter(|answer| end(answer) == End::Archived).count();
        assert_eq!((new, archived), (1, 499));
        let paid: u64 = keys.iter().map(|key| spent(&life, key)).sum();
        assert_eq!((paid, service_spent(&life), asks(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn who_cannot_pay_is_answered_alone_and_the_next_takes_over() {
    let mut plan = Plan::default();
    plan.lookup.free_per_month = 1;
    play(plan, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, End::New);
        // The errand begins with the one who cannot pay.
        let (first, second, third) = tokio::join!(
            keyed(&life, &poor, video()),
            keyed(&life, &rich, video()),
            keyed(&life, &poor, video()),
        );
        check(&first, End::None(FailureReason::KeyAllowance));
        check_message(&first, "2026-12-01T00:00:00Z");
        check(&second, End::New);
        check(&third, End::Archived);
        assert_eq!((spent(&life, &poor), spent(&life, &rich), asks(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn the_keys_allowance_is_told_before_the_daily_cap() {
    let mut plan = Plan::default();
    plan.lookup.free_per_month = 1;
    plan.lookup.service_per_day = 1;
    play(plan, |life| async move {
        let (poor, rich) = (new_key(&life).await, new_key(&life).await);
        check(&keyed(&life, &poor, other_video()).await, End::New);
        check(&keyed(&life, &poor, video()).await, End::None(FailureReason::KeyAllowance));
        check(&keyed(&life, &rich, video()).await, End::None(FailureReason::DailyCap));
        assert_eq!((spent(&life, &rich), asks(&life, &video())), (0, 0));
        // The cap is daily, the allowance monthly.
        pass(12 * 3_600).await;
        check(&keyed(&life, &poor, video()).await, End::None(FailureReason::KeyAllowance));
        check(&keyed(&life, &rich, video()).await, End::New);
    });
}

#[test]
fn a_failure_costs_the_service_and_not_the_key() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::Timeout)]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::None(FailureReason::FetchError));
        assert_eq!(answer.key.unwrap().used, 0);
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
    });
}

/// The last moments of a month and of a day: what is held in the old period is spent in it.
#[test]
fn a_reset_under_way_leaves_the_new_period_untouched() {
    let month_end = NOON_MS + 10 * 86_400_000 + 43_200_000;
    let start = Timestamp::from_millis(month_end - 5_000);
    let mut plan = Plan { start, ..Plan::default() };
    plan.lookup.free_per_month = 1;
    plan.lookup.service_per_day = 1;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(10))]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::New);
        assert!(life.now().as_millis() > month_end);
        let usage = answer.key.unwrap();
        assert_eq!((usage.used, usage.remaining), (0, 1), "the new month is untouched");
        check(&keyed(&life, &key, other_video()).await, End::New);
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
fn a_withdrawal_under_way_returns_the_payment() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(5))]);
        let withdraw = async {
            pass(2).await;
            life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(keyed(&life, &key, video()), withdraw);
        check(&answer, End::None(FailureReason::NoCaptions));
        check_message(&answer, "withdrawn by the operator");
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        check(&unkeyed(&life, video()).await, End::None(FailureReason::NoCaptions));
        assert_eq!(asks(&life, &video()), 1, "what is withdrawn is never fetched again");
    });
}
