//! Costs of a transcript, and cases that are free.

use futures_util::future::join_all;
use transcript_core::{accounts::TranscriptParams, supplier::SupplyReason, time::LEASE_MAX};

use super::*;

#[test]
fn transcript_new_or_archived_costs_one_credit() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call(&life, &account, video()).await;
        assert_eq!(first, AccountAnswer::New { from_cache: false, left: Some(4) });
        let again = call(&life, &account, video()).await;
        assert_eq!(again, AccountAnswer::New { from_cache: true, left: Some(3) });
        assert_eq!(remaining(&life, &account).await, 3);
        assert_eq!(fetch_count(&life, &video()), 1);
    });
}

#[test]
fn transcript_archived_by_lookup_api_costs_credit_without_fetch() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (account, key) = (new_account(&life).await, new_key(&life).await);
        script_captions(&life, &[SupplierStep::give(&["en-GB", "fr"])]);
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        for lang in [None, Some("en"), Some("en-US"), Some("fr")] {
            let request = TranscriptParams { lang: lang.map(str::to_owned), ..by_id(&video()) };
            let ready = ready(&life, &account, request).await.unwrap();
            assert!(ready.from_cache, "{lang:?}");
            let found = ready.stored.transcript.track.language.as_str().to_owned();
            assert_eq!(found, if lang == Some("fr") { "fr" } else { "en-GB" });
            let answer = answer_of(&ready);
            ready.deliver(answer).await.unwrap();
        }
        assert_eq!(fetch_count(&life, &video()), 1);
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn concurrent_callers_share_fetch_and_each_pays() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let key = new_key(&life).await;
        let one = SimAccount::create(&life, "one@example.org").await;
        let two = SimAccount::create(&life, "two@example.org").await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(3))]);
        let late = async {
            advance(1).await;
            keyed(&life, &key, video()).await
        };
        let (first, second, keyed) =
            tokio::join!(call(&life, &one, video()), call(&life, &two, video()), late);
        assert_eq!(first, AccountAnswer::New { from_cache: false, left: Some(4) });
        assert_eq!(second, AccountAnswer::New { from_cache: false, left: Some(4) });
        check(&keyed, ScenarioResult::Archived);
        assert_eq!((fetch_count(&life, &video()), spent(&life, &key), service_spent(&life)), (1, 0, 0));
        assert_eq!((remaining(&life, &one).await, remaining(&life, &two).await), (4, 4));
    });
}

#[test]
fn failed_transcript_is_free_and_names_reason() {
    for (reason, code) in [
        (SupplyReason::NoCaptions, 404),
        (SupplyReason::Private, 404),
        (SupplyReason::NoLanguage(Vec::new()), 404),
        (SupplyReason::Throttled(None), 500),
        (SupplyReason::BotCheck, 500),
        (SupplyReason::Timeout, 500),
        (SupplyReason::Stale, 500),
        (SupplyReason::Misconfigured, 500),
    ] {
        run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::fail(reason.clone())]);
            // A second call at once: the held credit was released.
            for _ in 0..2 {
                check_refused(ready(&life, &account, by_id(&video())).await, code, "");
                assert_eq!(remaining(&life, &account).await, 1, "{reason:?}");
            }
        });
    }
}

#[test]
fn withdrawn_video_is_not_found() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        check_refused(ready(&life, &account, by_id(&video())).await, 404, "withdrawn by the operator");
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn missing_language_error_names_available_ones() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["fr", "ja"])]);
        // No translation was requested.
        for _ in 0..2 {
            check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: fr, ja;");
        }
        assert_eq!(fetch_count(&life, &video()), 1);
        let french = TranscriptParams { lang: Some("fr-CA".to_owned()), ..by_id(&video()) };
        let ready = ready(&life, &account, french).await.unwrap();
        assert!(ready.from_cache);
        drop(ready);
    });
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
            assert!(refused.message().contains("your next request gets it"), "{refused}");
            assert_eq!(remaining(&life, &account).await, 0);
        }
        advance(60).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
        check_refused(ready(&life, &account, by_id(&video())).await, 402, "");
    });
}

/// A request for the video.
fn request<'a>(
    life: &'a ProcessLife,
    account: &'a SimAccount,
    idempotency_key: Option<&str>,
) -> PaidRequest<'a> {
    let (accounts, idempotency_key) = (&life.accounts[0], idempotency_key.map(str::to_owned));
    PaidRequest { life, accounts, account, video: video(), lang: None, idempotency_key }
}

/// Sends a request whose client disconnects after two of the five seconds of its fetch, and lets the fetch end.
async fn abandon(request: &PaidRequest<'_>) {
    script_captions(request.life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
    assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
    advance(10).await;
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
fn prepaid_delivery_needs_no_credits() {
    for idempotency_key in [None, Some("k")] {
        run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            let request = request(&life, &account, idempotency_key);
            abandon(&request).await;
            let delivered = AccountAnswer::New { from_cache: true, left: Some(0) };
            assert_eq!(request.send(None).await, Some(delivered));
            let again = call(&life, &account, video()).await;
            assert!(matches!(again, AccountAnswer::Refused(V1Error::PaymentRequired { .. })), "{again:?}");
        });
    }
}

#[test]
fn prepaid_delivery_is_used_once_by_concurrent_calls() {
    run_scenario(with_credits([40, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        abandon(&request(&life, &account, None)).await;
        let calls = (0..16).map(|n| {
            let key = (n % 2 == 0).then(|| format!("k{n}"));
            let (life, account) = (&life, &account);
            async move { call_with(life, account, video(), key.as_deref()).await }
        });
        for answer in join_all(calls).await {
            assert!(matches!(answer, AccountAnswer::New { from_cache: true, .. }), "{answer:?}");
        }
        assert_eq!(
            remaining(&life, &account).await,
            40 - 16,
            "17 deliveries are paid, of which 16 were made"
        );
    });
}

#[test]
fn prepaid_delivery_ends_after_a_day() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        advance(25 * 3_600).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
    });
}

#[test]
fn prepaid_delivery_outlasts_sweeps_of_holds() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        for _ in 0..80 {
            advance(900).await;
            life.world.ledger.shorten_holds(life.now().plus(LEASE_MAX)).await.unwrap();
            life.world.ledger.expire(life.now(), 100).await.unwrap();
        }
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: true, left: Some(0) });
    });
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
        let fails = SupplierStep::fail(SupplyReason::Timeout).after(Duration::from_secs(5));
        script_captions(&life, &[fails, SupplierStep::give(&["en"])]);
        assert_eq!(request(&life, &account, None).send(Some(Duration::from_secs(2))).await, None);
        advance(10).await;
        assert_eq!(remaining(&life, &account).await, 1);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(0) });
        check_refused(ready(&life, &account, by_id(&video())).await, 402, "");
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

#[test]
fn error_response_is_free() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        let failed = StoredResponse { status: 500, ..answer_of(&ready) };
        assert_eq!(ready.deliver(failed.clone()).await.unwrap(), failed);
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn concurrent_64_calls_spend_exactly_all_credits() {
    for archived in [false, true] {
        run_scenario(with_credits([40, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            if archived {
                check(&keyed(&life, &new_key(&life).await, video()).await, ScenarioResult::New);
            }
            let calls = (0..64).map(|n| {
                let idempotency_key = (n % 2 == 0).then(|| format!("call {n}").replace(' ', "-"));
                let (life, account) = (&life, &account);
                async move { call_with(life, account, video(), idempotency_key.as_deref()).await }
            });
            let answers = join_all(calls).await;
            let mut left: Vec<u64> = answers
                .iter()
                .filter_map(|answer| match answer {
                    AccountAnswer::New { left, .. } => *left,
                    _ => None,
                })
                .collect();
            left.sort_unstable();
            assert_eq!(left, (0..40).collect::<Vec<u64>>(), "each response must report its own balance");
            let refused = |answer: &&AccountAnswer| {
                matches!(
                    answer,
                    AccountAnswer::Refused(V1Error::PaymentRequired { credits_remaining: 0, .. })
                )
            };
            assert_eq!(answers.iter().filter(refused).count(), 24);
            assert_eq!(remaining(&life, &account).await, 0);
            assert!(fetch_count(&life, &video()) <= 1);
        });
    }
}

#[test]
fn no_credits_error_names_reset_time() {
    run_scenario(with_credits([0, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for _ in 0..2 {
            let refused = ready(&life, &account, by_id(&video())).await;
            check_refused(refused, 402, "reset at 2026-12-20T12:00:00Z");
        }
        assert_eq!(fetch_count(&life, &video()), 0, "a fetch without credits");
    });
}

#[test]
fn request_must_name_one_youtube_video() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let request = |id: Option<&str>, url: Option<&str>, lang: Option<&str>| TranscriptParams {
            video_id: id.map(str::to_owned),
            url: url.map(str::to_owned),
            lang: lang.map(str::to_owned),
            ..TranscriptParams::default()
        };
        let (id, url) = (Some("videoNumber"), Some("https://youtu.be/videoNumber"));
        for (bad, part) in [
            (request(None, None, None), "video_id: "),
            (request(id, url, None), "not both"),
            (request(Some("short"), None, None), "video_id: "),
            (request(None, Some("https://example.org/x"), None), "url: "),
            (request(None, Some("https://www.tiktok.com/@a/video/7000000000000000001"), None), "YouTube"),
            (request(None, Some("https://vm.tiktok.com/ZMplain1/"), None), "YouTube"),
            (request(id, None, Some("english please")), "lang: "),
            (request(id, None, Some("")), "lang: "),
        ] {
            check_refused(ready(&life, &account, bad).await, 400, part);
        }
        assert_eq!(remaining(&life, &account).await, 1);
        let ready = ready(&life, &account, request(None, url, Some("EN"))).await.unwrap();
        let answer = answer_of(&ready);
        ready.deliver(answer).await.unwrap();
    });
}

#[test]
fn ledger_unavailable_charges_nothing() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger." });
        check_refused(ready(&life, &account, by_id(&video())).await, 500, "nothing was charged");
        life.world.gate.set_faults(FaultPlan::NoFaults);
        assert_eq!(remaining(&life, &account).await, 1);
        // An archived transcript is delivered: the charge may have taken effect.
        check(&keyed(&life, &new_key(&life).await, video()).await, ScenarioResult::New);
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "ledger." });
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        assert_eq!(ready.credits_remaining, None);
        life.world.gate.set_faults(FaultPlan::NoFaults);
    });
}
