//! Stores that are away: an answer all the same, nothing charged, and all is well afterwards.

use transcript_core::lookup::FailureReason;

use crate::{
    scenarios::{End, asks, check, check_message, keyed, new_key, other_video, play, spent, unkeyed, video},
    simulation::{weather::Weather, world::Plan},
};

/// A miss with a key while these stores are away, and again when they are back.
fn check_away(stores: &'static str) {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        life.world.gate.set_weather(Weather::Away { stores });
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::None(FailureReason::FetchError));
        check_message(&answer, "nothing was charged");
        assert_eq!(asks(&life, &video()), 0);
        life.world.gate.set_weather(Weather::Calm);
        check(&keyed(&life, &key, video()).await, End::New);
        assert_eq!(spent(&life, &key), 1);
    });
}

#[test]
fn a_miss_is_answered_whichever_store_is_away() {
    for stores in ["archive", "ledger", "directory", "limiter", ""] {
        check_away(stores);
    }
}

#[test]
fn what_is_archived_needs_the_archive_alone() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, video()).await, End::New);
        for stores in ["ledger", "directory", "limiter"] {
            life.world.gate.set_weather(Weather::Away { stores });
            check(&unkeyed(&life, video()).await, End::Archived);
            check(&keyed(&life, &key, video()).await, End::Archived);
        }
        life.world.gate.set_weather(Weather::Away { stores: "archive" });
        check(&unkeyed(&life, video()).await, End::None(FailureReason::FetchError));
        life.world.gate.set_weather(Weather::Calm);
    });
}

#[test]
fn a_miss_without_a_key_is_answered_without_the_ledger() {
    play(Plan::default(), |life| async move {
        for stores in ["ledger", "directory"] {
            life.world.gate.set_weather(Weather::Away { stores });
            check(&unkeyed(&life, other_video()).await, End::None(FailureReason::NeedsVerification));
        }
        life.world.gate.set_weather(Weather::Calm);
    });
}

/// The ledger goes away between the hold and the settlement: the hold expires, the transcript stays.
#[test]
fn a_settlement_that_fails_is_the_operators_loss() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        let away = async {
            crate::scenarios::pass(0).await;
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            life.world.gate.set_weather(Weather::Away { stores: "ledger.settle" });
        };
        let (caller, target) =
            (crate::simulation::ops::Caller::Stranger("nobody"), crate::simulation::ops::Target::of(video()));
        let (answer, ()) = tokio::join!(keyed(&life, &key, video()), away);
        check(&answer, End::New);
        crate::scenarios::pass(120).await;
        life.world.gate.set_weather(Weather::Calm);
        life.world.ledger.expire(life.now(), 100).await.unwrap();
        let sums = life.world.oracle.sums(&key.wallet);
        assert_eq!((sums.spent, sums.expired), (0, 1));
        check(&crate::scenarios::ask(&life, caller, target).await, End::Archived);
        life.world.oracle.forgive(&key.wallet, &video());
    });
}
