//! Requests that end before their fetch, and the deliveries that are prepaid then.

use tokio::{runtime::Handle, time::timeout};
use transcript_core::{
    accounts::{ChatParams, V1Admission, V1Endpoint},
    chat::Chat,
    supplier::SupplyReason,
};

use super::*;
use crate::simulation::world::CrashPlan;

/// A request for the video.
pub(super) fn request<'a>(
    life: &'a ProcessLife,
    account: &'a SimAccount,
    idempotency_key: Option<&str>,
) -> PaidRequest<'a> {
    let (accounts, idempotency_key) = (&life.accounts[0], idempotency_key.map(str::to_owned));
    PaidRequest { life, accounts, account, video: video(), lang: None, idempotency_key }
}

/// Sends a request whose client disconnects after two of the five seconds of its fetch, and lets the fetch end.
pub(super) async fn abandon(request: &PaidRequest<'_>) {
    abandon_fetch(request, SupplierStep::give(&["en"])).await;
}

/// As [`abandon`], with this result of the fetch. Later fetches succeed.
async fn abandon_fetch(request: &PaidRequest<'_>, step: SupplierStep) {
    let step = step.after(Duration::from_secs(5));
    script_captions(request.life, &[step, SupplierStep::give(&["en"])]);
    assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
    advance(10).await;
}

#[test]
fn slow_fetch_is_charged_once_and_delivered_to_repeat() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(60))]);
        // The second call takes the hold of the first one back.
        for _ in 0..2 {
            let refused = request(&life, &account, None).send(None).await;
            let Some(AccountAnswer::Refused(refused)) = refused else { panic!("{refused:?}") };
            assert!(refused.message().contains("your next request for the transcript is free"), "{refused}");
            assert_eq!(remaining(&life, &account).await, 0);
        }
        advance(60).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
        check_refused(ready(&life, &account, by_id(&video())).await, 402, "");
    });
}

#[test]
fn disconnected_caller_is_charged_and_next_delivery_is_prepaid() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, idempotency_key);
            abandon(&request).await;
            assert_eq!(remaining(&life, &account).await, 1);
            let key = new_key(&life).await;
            check(&keyed(&life, &key, video()).await, ScenarioResult::Archived);
            assert_eq!(
                request.send(None).await.unwrap(),
                AccountAnswer::New {
                    from_cache: true,
                    left: Some(if idempotency_key.is_some() { 0 } else { 1 }),
                }
            );
            assert_eq!(remaining(&life, &account).await, 1, "the delivery was prepaid");
            assert_eq!(
                call(&life, &account, video()).await,
                AccountAnswer::New { from_cache: true, left: Some(0) },
                "only one delivery was prepaid"
            );
        });
    }
}

#[test]
fn prepaid_delivery_covers_transcript_that_is_fetched_again() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, idempotency_key);
            abandon(&request).await;
            assert_eq!(remaining(&life, &account).await, 1);
            // As if the repeat were fetched by another server that does not see this transcript.
            life.world.archive.delete(&video()).await.unwrap();
            let answer = request.send(None).await;
            assert!(matches!(answer, Some(AccountAnswer::New { from_cache: false, .. })), "{answer:?}");
            assert_eq!(fetch_count(&life, &video()), 2);
            assert_eq!(remaining(&life, &account).await, 1, "the delivery was prepaid");
        });
    }
}

#[test]
fn each_abandoned_fetch_prepays_one_delivery() {
    for (second, left) in [(SupplierStep::give(&["en"]), 0), (SupplierStep::fail(SupplyReason::Timeout), 1)] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, None);
            abandon(&request).await;
            // As if the second fetch were that of another server that does not see this transcript.
            life.world.archive.delete(&video()).await.unwrap();
            abandon_fetch(&request, second).await;
            for _ in left..2 {
                let delivered = request.send(None).await;
                assert!(matches!(delivered, Some(AccountAnswer::New { .. })), "{delivered:?}");
                assert_eq!(remaining(&life, &account).await, left, "the delivery was prepaid");
            }
            let next = call(&life, &account, video()).await;
            assert_eq!(matches!(next, AccountAnswer::New { .. }), left > 0, "{next:?}");
            assert_eq!(remaining(&life, &account).await, 0);
        });
    }
}

/// Another server fetched the transcript after the database lost the lease, and delivered it as prepaid.
#[test]
fn failed_fetch_pays_for_prepaid_delivery_that_was_used() {
    for ledger_is_down in [false, true] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, None);
            let step = SupplierStep::fail(SupplyReason::Timeout).after(Duration::from_secs(9));
            script_captions(&life, &[step]);
            assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
            advance(1).await;
            import_default(&life, "en").await;
            let delivered = AccountAnswer::New { from_cache: true, left: Some(1) };
            assert_eq!(request.send(None).await, Some(delivered));
            if ledger_is_down {
                life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger." });
            }
            advance(20).await;
            life.world.gate.set_faults(FaultPlan::NoFaults);
            // Longer than an open hold, which would count as charged.
            advance(120).await;
            life.world.ledger.expire(life.now(), 100).await.unwrap();
            assert_eq!(remaining(&life, &account).await, 1, "the delivery was paid");
            let next = call(&life, &account, video()).await;
            assert_eq!(next, AccountAnswer::New { from_cache: true, left: Some(0) });
        });
    }
}

/// The prepaid delivery is used at once, and the hold beside it is released after 3 s.
const SLOW_SETTLE: FaultPlan =
    FaultPlan::SlowStore { stores: "ledger.settle", delay: Duration::from_secs(1) };

#[test]
fn replay_of_prepaid_response_is_free() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        abandon(&request(&life, &account, None)).await;
        life.world.gate.set_faults(SLOW_SETTLE);
        let request = request(&life, &account, Some("k"));
        let replay = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            request.send(None).await
        };
        let (first, replay) = tokio::join!(request.send(None), replay);
        assert!(matches!(first, Some(AccountAnswer::New { from_cache: true, .. })), "{first:?}");
        assert_eq!(replay, Some(AccountAnswer::Replayed));
        life.world.gate.set_faults(FaultPlan::NoFaults);
        assert_eq!(remaining(&life, &account).await, 1, "the delivery was prepaid");
    });
}

/// A server crashes after it used a prepaid delivery, and before it releases the hold of the request.
#[test]
fn replay_of_prepaid_response_after_crash_is_free() {
    let world = SimWorld::new(with_credits([2, 0, 0, 0]));
    let begin = |life| async move {
        let account = new_account(&life).await;
        abandon(&request(&life, &account, None)).await;
        account
    };
    let account = world.run_process(1, None, begin).unwrap();
    world.gate.set_faults(SLOW_SETTLE);
    let (crash, dying) = (CrashPlan::After(Duration::from_millis(2_500)), account.clone());
    let lived = world.run_process(1, Some(crash), |life| async move {
        call_with(&life, &dying, video(), Some("k")).await
    });
    assert_eq!(lived, None);
    world.gate.set_faults(FaultPlan::NoFaults);
    world.run_process(1, None, |life| async move {
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, AccountAnswer::Replayed);
        advance(60).await;
        life.world.ledger.expire(life.now(), 100).await.unwrap();
        assert_eq!(remaining(&life, &account).await, 1, "the delivery was prepaid");
        end_all(&life).await;
    });
    assert!(world.oracle.violations().is_empty(), "{}", world.oracle.violations().join("\n"));
}

#[test]
fn repeat_during_fetch_pays_once() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(9))]);
            let request = request(&life, &account, idempotency_key);
            for _ in 0..3 {
                assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
                advance(1).await;
                assert_eq!(remaining(&life, &account).await, 0);
            }
            let delivered = AccountAnswer::New { from_cache: false, left: Some(0) };
            assert_eq!(request.send(None).await, Some(delivered));
            assert_eq!(fetch_count(&life, &video()), 1);
            check_refused(ready(&life, &account, by_id(&video())).await, 402, "");
        });
    }
}

#[test]
fn abandoned_fetch_without_transcript_is_free() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        abandon_fetch(&request(&life, &account, None), SupplierStep::fail(SupplyReason::Timeout)).await;
        assert_eq!(remaining(&life, &account).await, 1);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(0) });
        check_refused(ready(&life, &account, by_id(&video())).await, 402, "");
    });
}

/// A request without a language may archive a transcript in another one, which it does not get.
#[test]
fn abandoned_fetch_of_other_language_is_free_and_counted() {
    // The client waits, or disconnects during the fetch, or after it and before the error.
    for (takes_s, give_up_s, tracks_delay_s) in [(60, None, 0), (60, Some(2), 0), (5, Some(8), 1)] {
        let mut config = with_credits([2, 0, 0, 0]);
        config.accounts.attempts_per_account_per_hour = 1;
        run_scenario(config, |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::give(&["he"]).after(Duration::from_secs(takes_s))]);
            let delay = Duration::from_secs(tracks_delay_s);
            life.world.gate.set_faults(FaultPlan::SlowStore { stores: "archive.tracks", delay });
            let first = request(&life, &account, None).send(give_up_s.map(Duration::from_secs)).await;
            assert!(first.is_none() == give_up_s.is_some(), "{first:?}");
            advance(70).await;
            life.world.gate.set_faults(FaultPlan::NoFaults);
            assert_eq!(remaining(&life, &account).await, 2);
            check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: he;");
            check_refused(ready(&life, &account, by_id(&other_video())).await, 429, "were not waited for");
            let hebrew = PaidRequest { lang: Some("he"), ..request(&life, &account, None) };
            let delivered = AccountAnswer::New { from_cache: true, left: Some(1) };
            assert_eq!(hebrew.send(None).await, Some(delivered));
        });
    }
}

/// The default transcript is archived in another language, so English is fetched by its name.
#[test]
fn abandoned_fetch_of_english_beside_other_default_is_prepaid() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let (account, key) = (new_account(&life).await, new_key(&life).await);
            script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"])]);
            check(&keyed(&life, &key, video()).await, ScenarioResult::New);
            let request = request(&life, &account, idempotency_key);
            script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(9))]);
            // A repeat takes the hold back.
            for _ in 0..2 {
                assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
                advance(1).await;
                assert_eq!(remaining(&life, &account).await, 1);
            }
            advance(10).await;
            assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (2, 1));
            let delivered = request.send(None).await;
            assert!(matches!(delivered, Some(AccountAnswer::New { from_cache: true, .. })), "{delivered:?}");
            assert_eq!(remaining(&life, &account).await, 1, "the delivery was prepaid");
            let next = call(&life, &account, video()).await;
            assert_eq!(next, AccountAnswer::New { from_cache: true, left: Some(0) });
        });
    }
}

/// A request for any language gets the transcript, so its repeat is covered by the same credit.
#[test]
fn abandoned_fetch_of_any_language_is_charged_and_repeat_pays_once() {
    // The client repeats its request during the fetch, or after it.
    for pause_s in [1, 20] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::give(&["he"]).after(Duration::from_secs(9))]);
            let any = || TranscriptParams { any_language: true, ..by_id(&video()) };
            let abandoned = timeout(Duration::from_secs(2), ready(&life, &account, any())).await;
            assert!(abandoned.is_err(), "{abandoned:?}");
            advance(pause_s).await;
            assert_eq!(remaining(&life, &account).await, 1);
            let repeated = ready(&life, &account, any()).await.unwrap();
            assert_eq!(repeated.stored.transcript.track.language.as_str(), "he");
            let answer = answer_of(&repeated);
            repeated.deliver(answer).await.unwrap();
            assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (1, 1));
        });
    }
}

/// The request for English would release the hold when it fails.
#[test]
fn request_for_english_leaves_hold_of_request_for_any_language() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["he"]).after(Duration::from_secs(9))]);
        let any = TranscriptParams { any_language: true, ..by_id(&video()) };
        let abandoned = timeout(Duration::from_secs(2), ready(&life, &account, any)).await;
        assert!(abandoned.is_err(), "{abandoned:?}");
        check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: he;");
        advance(1).await;
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (1, 1));
    });
}

/// Sends a question; returns whether it was answered within these seconds, after which its client disconnects.
async fn is_answered(life: &ProcessLife, account: &SimAccount, seconds: u64) -> bool {
    let guard = account.admit_unkeyed(&life.accounts[0], V1Endpoint::Chat).await.unwrap();
    let (video_id, message) = (video().id().to_owned(), "How long?".to_owned());
    let params = ChatParams { video_id, message, history: Vec::new() };
    let chat = Chat::extractive(Handle::current());
    let answer = life.accounts[0].delivery.chat(guard, &chat, params, |_| (reply("answer"), ()));
    timeout(Duration::from_secs(seconds), answer).await.is_ok_and(|answer| answer.is_ok())
}

/// Sends a question whose client disconnects after two of the five seconds of the fetch, and lets the fetch end.
async fn abandon_question(life: &ProcessLife, account: &SimAccount, language: &'static str) {
    script_captions(life, &[SupplierStep::give(&[language]).after(Duration::from_secs(5))]);
    assert!(!is_answered(life, account, 2).await);
    advance(10).await;
}

/// A question may cost less than its transcript: its hold does not pay for a delivery.
#[test]
fn abandoned_question_prepays_no_dearer_transcript() {
    for (per_message, per_transcript) in [(0, 1), (1, 5)] {
        let mut config = with_credits([6, 0, 0, 0]);
        config.accounts.credits_per_message = per_message;
        config.accounts.credits_per_transcript = per_transcript;
        // The oracle knows prices of one credit only.
        SimWorld::new(config).run_process(1, None, |life| async move {
            let account = new_account(&life).await;
            abandon_question(&life, &account, "en").await;
            assert_eq!(remaining(&life, &account).await, 6 - per_message);
            let left = Some(6 - per_message - per_transcript);
            let answer = call(&life, &account, video()).await;
            assert_eq!(answer, AccountAnswer::New { from_cache: true, left });
            end_all(&life).await;
        });
    }
}

#[test]
fn abandoned_question_prepays_transcript_in_any_language() {
    for idempotency_key in [None, Some("k")] {
        SimWorld::new(with_credits([6, 0, 0, 0])).run_process(1, None, |life| async move {
            let account = new_account(&life).await;
            abandon_question(&life, &account, "he").await;
            assert_eq!(remaining(&life, &account).await, 5);
            check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: he;");
            let hebrew = PaidRequest { lang: Some("he"), ..request(&life, &account, idempotency_key) };
            let delivered = hebrew.send(None).await;
            assert!(matches!(delivered, Some(AccountAnswer::New { from_cache: true, .. })), "{delivered:?}");
            assert_eq!(remaining(&life, &account).await, 5, "the delivery was prepaid");
            let next = PaidRequest { lang: Some("he"), ..request(&life, &account, None) }.send(None).await;
            assert_eq!(next, Some(AccountAnswer::New { from_cache: true, left: Some(4) }));
            end_all(&life).await;
        });
    }
}

/// The credit of a question that still fetches pays for one delivery: a transcript, or its answer.
#[test]
fn question_after_use_of_its_prepaid_transcript_costs_a_credit() {
    SimWorld::new(with_credits([6, 0, 0, 0])).run_process(1, None, |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"])]);
        let french = PaidRequest { lang: Some("fr"), ..request(&life, &account, None) };
        assert_eq!(french.send(None).await, Some(AccountAnswer::New { from_cache: false, left: Some(5) }));
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(9))]);
        assert!(!is_answered(&life, &account, 2).await);
        advance(1).await;
        assert_eq!(french.send(None).await, Some(AccountAnswer::New { from_cache: true, left: Some(4) }));
        assert!(is_answered(&life, &account, 20).await);
        advance(10).await;
        assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (2, 3));
        end_all(&life).await;
    });
}

/// A response that is not delivered gives the prepaid transcript back as it was: in any language.
#[test]
fn undelivered_response_returns_prepaid_transcript_in_any_language() {
    SimWorld::new(with_credits([2, 0, 0, 0])).run_process(1, None, |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"])]);
        let french = PaidRequest { lang: Some("fr"), ..request(&life, &account, None) };
        assert_eq!(french.send(None).await, Some(AccountAnswer::New { from_cache: false, left: Some(1) }));
        abandon_question(&life, &account, "en").await;
        let admitted = account.admit(&life.accounts[0], V1Endpoint::Transcript, Some("k"), "fr").await;
        let Ok(V1Admission::Admitted(guard)) = admitted else { panic!("not admitted") };
        let params = TranscriptParams { lang: Some("fr".to_owned()), ..by_id(&video()) };
        drop(life.accounts[0].delivery.transcript(*guard, params).await.unwrap());
        advance(1).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
        end_all(&life).await;
    });
}

#[test]
fn disconnected_waiter_of_another_fetch_is_free() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let (account, key) = (new_account(&life).await, new_key(&life).await);
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        let late = async {
            advance(1).await;
            request(&life, &account, None).send(Some(Duration::from_secs(2))).await
        };
        let (first, late) = tokio::join!(keyed(&life, &key, video()), late);
        check(&first, ScenarioResult::New);
        assert_eq!((late, remaining(&life, &account).await), (None, 1));
    });
}

#[test]
fn undelivered_response_is_charged_and_prepaid() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        assert_eq!((ready.from_cache, ready.credits_remaining), (false, Some(0)));
        drop(ready);
        // The charge runs on the engine's runtime.
        advance(1).await;
        assert_eq!(remaining(&life, &account).await, 0);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
    });
}
