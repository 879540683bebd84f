//! Work that takes longer than its callers, and processes that die.

use std::time::Duration;

use transcript_core::lookup::FailureReason;

use crate::{
    scenarios::{
        End, again_after, ask_engine, asks, captions_do, check, check_message, keyed, new_key, pass, play,
        play_with, service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::{Asking, Caller, Target},
        supplier::Act,
        world::{Death, Plan, World},
    },
};

#[test]
fn still_transcribing_then_ready() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(100))]);
        // Nothing is known of how far it is: it may take as long as it took.
        for again in [25, 50, 60] {
            let before = life.now();
            let answer = keyed(&life, &key, video()).await;
            check(&answer, End::None(FailureReason::FetchError));
            check_message(&answer, &format!("still being transcribed: please ask again in {again} seconds"));
            assert_eq!(again_after(&answer), Some(again));
            assert_eq!(life.now().since(before), Duration::from_secs(25));
        }
        pass(26).await;
        check(&keyed(&life, &key, video()).await, End::Archived);
        assert_eq!((spent(&life, &key), asks(&life, &video())), (1, 1));
    });
}

#[test]
fn the_work_outlives_its_caller_and_is_settled() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(5))]);
        let (caller, target) = (Caller::Key(key.clone()), Target::of(video()));
        let asking =
            Asking { life: &life, lookup: &life.lookups[0], caller, target, peek: false, fair: true };
        assert!(asking.ask(Some(Duration::from_secs(1))).await.is_none());
        pass(5).await;
        check(&unkeyed(&life, video()).await, End::Archived);
        assert_eq!((spent(&life, &key), service_spent(&life)), (1, 1));
    });
}

#[test]
fn who_left_before_their_turn_does_not_pay() {
    let world = World::new(Plan::default());
    play_with(&world, 2, |life| async move {
        let (first, second) = (new_key(&life).await, new_key(&life).await);
        captions_do(
            &life,
            &[Act::fail(transcript_core::supplier::SupplyReason::Timeout).after(Duration::from_secs(5))],
        );
        let failing = ask_engine(&life, 0, Caller::Key(first.clone()), Target::of(video()));
        let leaving = async {
            let (caller, target) = (Caller::Key(second.clone()), Target::of(video()));
            let lookup = &life.lookups[1];
            let asking = Asking { life: &life, lookup, caller, target, peek: false, fair: true };
            assert!(asking.ask(Some(Duration::from_secs(2))).await.is_none());
        };
        let (answer, ()) = tokio::join!(failing, leaving);
        check(&answer, End::None(FailureReason::FetchError));
        pass(60).await;
        assert_eq!(asks(&life, &video()), 1);
        assert_eq!(life.world.oracle.sums(&second.wallet).held, 0);
    });
}

#[test]
fn another_machines_work_is_waited_for() {
    let world = World::new(Plan::default());
    play_with(&world, 2, |life| async move {
        let (first, second) = (new_key(&life).await, new_key(&life).await);
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(20))]);
        let (one, other) = tokio::join!(
            ask_engine(&life, 0, Caller::Key(first.clone()), Target::of(video())),
            ask_engine(&life, 1, Caller::Key(second.clone()), Target::of(video())),
        );
        check(&one, End::New);
        check(&other, End::Archived);
        assert_eq!((spent(&life, &first), spent(&life, &second), asks(&life, &video())), (1, 0, 1));
    });
}

#[test]
fn a_dead_process_costs_nobody_anything() {
    let world = World::new(Plan::default());
    let key = world.live(1, None, |life| async move { new_key(&life).await }).unwrap();
    let died = world.live(1, Some(Death::After(Duration::from_secs(3))), |life| {
        let key = key.clone();
        async move {
            captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(10))]);
            keyed(&life, &key, video()).await
        }
    });
    assert!(died.is_none());
    assert_eq!(asks_in(&world), 1);
    play_with(&world, 1, |life| async move {
        // The dead process still has the lease, and its hold is still open.
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::None(FailureReason::FetchError));
        check_message(&answer, "still being transcribed");
        assert_eq!(again_after(&answer), Some(25));
        assert_eq!(answer.key.unwrap().used, 1);
        pass(36).await;
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::New);
        assert_eq!(answer.key.unwrap().used, 1);
        let sums = life.world.oracle.sums(&key.wallet);
        assert_eq!((sums.spent, sums.expired), (1, 1));
    });
}

fn asks_in(world: &World) -> u64 {
    world.oracle.asks(&video())
}
