//! Costs of a transcript, and cases that are free.

use futures_util::future::join_all;
use tokio::runtime::Handle;
use transcript_core::{
    Clock,
    accounts::{Accounts, AccountsDeps, SequentialCharges, TranscriptParams, V1Endpoint},
    engine::Transcripts,
    limits::RateLimiter,
    memory::{MemoryIdempotencyStore, MemoryJobs, MemoryRateLimiter, MemorySecrets, MemorySessions},
    supplier::SupplyReason,
};

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
fn new_transcript_in_any_language_costs_one_credit() {
    for language in ["fr", "en"] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            script_captions(&life, &[SupplierStep::give(&[language])]);
            let any = TranscriptParams { any_language: true, ..by_id(&video()) };
            let ready = ready(&life, &account, any).await.unwrap();
            assert_eq!(
                (ready.stored.transcript.track.language.as_str(), ready.from_cache),
                (language, false)
            );
            let answer = answer_of(&ready);
            ready.deliver(answer).await.unwrap();
            assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (1, 1));
        });
    }
}

/// Without a language English is meant, also if the archived default transcript is in another language.
#[test]
fn english_beside_other_default_is_fetched_and_charged() {
    for is_imported in [false, true] {
        run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
            let (account, key) = (new_account(&life).await, new_key(&life).await);
            if is_imported {
                import_default(&life, "fr").await;
                // Only its own track is known, and English counts as absent for as long as an absence lasts.
                check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: fr;");
                assert_eq!(fetch_count(&life, &video()), 0);
                advance(6 * 3_600).await;
            } else {
                // The English track is known, and was empty.
                script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"])]);
                check(&keyed(&life, &key, video()).await, ScenarioResult::New);
            }
            let before = fetch_count(&life, &video());
            script_captions(&life, &[SupplierStep::give(&["en"])]);
            let ready = ready(&life, &account, by_id(&video())).await.unwrap();
            assert_eq!((ready.stored.transcript.track.language.as_str(), ready.from_cache), ("en", false));
            let answer = answer_of(&ready);
            ready.deliver(answer).await.unwrap();
            assert_eq!((fetch_count(&life, &video()) - before, remaining(&life, &account).await), (1, 1));
            let again = call(&life, &account, video()).await;
            assert_eq!(again, AccountAnswer::New { from_cache: true, left: Some(0) });
        });
    }
}

/// The v1 API of a server without suppliers, with the archive and the accounts of the world.
async fn open_without_suppliers(life: &ProcessLife) -> Accounts {
    let SimWorld { archive, ledger, directory, outbox, orders, random, config, .. } = &*life.world;
    let clock = Arc::clone(&life.clock) as Arc<dyn Clock>;
    let limiter = Arc::new(MemoryRateLimiter::default()) as Arc<dyn RateLimiter>;
    let runtime = Handle::current();
    let transcripts =
        Transcripts::builder(Arc::clone(archive), Arc::clone(&clock), Arc::clone(random) as _, runtime)
            .build();
    let charges = SequentialCharges {
        directory: Arc::clone(directory),
        limiter: Arc::clone(&limiter),
        ledger: Arc::clone(ledger),
    };
    let jobs = MemoryJobs::default();
    let deps = AccountsDeps {
        transcripts,
        ledger: Arc::clone(ledger),
        directory: Arc::clone(directory),
        charges: Arc::new(charges),
        orders: Arc::clone(orders),
        outbox: Arc::clone(outbox),
        jobs: Arc::new(jobs.clone()),
        webhooks: Arc::new(jobs),
        sessions: Arc::new(MemorySessions::default()),
        replies: Arc::new(MemoryIdempotencyStore::default()),
        limiter,
        clock,
        random: Arc::clone(random) as _,
        options: config.accounts.clone(),
    };
    Accounts::open(deps, &MemorySecrets::default()).await.unwrap()
}

/// Nothing can be fetched, so the languages are named, also to an account without credits.
#[test]
fn english_without_supplier_is_refused_with_languages() {
    run_scenario(with_credits([0, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let accounts = open_without_suppliers(&life).await;
        import_default(&life, "fr").await;
        for _ in 0..2 {
            let guard = account.admit_unkeyed(&accounts, V1Endpoint::Transcript).await.unwrap();
            let answer = accounts.delivery.transcript(guard, by_id(&video())).await;
            check_refused(answer, 404, "It has: fr;");
            advance(6 * 3_600).await;
        }
    });
}

#[test]
fn absent_english_is_fetched_again_after_its_absence() {
    run_scenario(with_credits([2, 0, 0, 0]), |life| async move {
        let (account, key) = (new_account(&life).await, new_key(&life).await);
        let none = SupplierStep::fail(SupplyReason::NoLanguage(Vec::new()));
        script_captions(&life, &[SupplierStep::give(&["fr"]), none]);
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        // The fetch of the default transcript has shown that there is no English.
        for fetches in 1..4 {
            for _ in 0..2 {
                check_refused(ready(&life, &account, by_id(&video())).await, 404, "");
                assert_eq!(fetch_count(&life, &video()), fetches);
            }
            check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: fr;");
            advance(6 * 3_600 + 60).await;
        }
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(1) });
    });
}

/// The track that was fetched first had no text in English.
#[test]
fn empty_english_track_is_not_listed_as_language() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let none = SupplierStep::fail(SupplyReason::NoLanguage(Vec::new()));
        script_captions(&life, &[SupplierStep::give_one_of(&["fr", "en"]), none]);
        for fetches in [1, 2, 2] {
            let refused = ready(&life, &account, by_id(&video())).await.unwrap_err();
            let V1Error::Unavailable(none) = &refused else { panic!("{refused:?}") };
            let languages: Vec<_> = none.languages.iter().map(|track| track.language.as_str()).collect();
            assert_eq!((refused.code(), languages), (404, vec!["fr"]));
            assert_eq!((fetch_count(&life, &video()), remaining(&life, &account).await), (fetches, 1));
        }
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
