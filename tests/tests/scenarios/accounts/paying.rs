//! What a transcript costs, and when it costs nothing.

use futures_util::future::join_all;
use transcript_core::{accounts::TranscriptAsk, supplier::SupplyReason};

use super::*;

#[test]
fn a_transcript_costs_a_credit_whether_it_is_archived_or_not() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let first = call(&life, &account, video()).await;
        assert_eq!(first, Answer::New { from_cache: false, left: Some(4) });
        let again = call(&life, &account, video()).await;
        assert_eq!(again, Answer::New { from_cache: true, left: Some(3) });
        assert_eq!(remaining(&life, &account).await, 3);
        assert_eq!(asks(&life, &video()), 1);
    });
}

#[test]
fn what_surface_a_archived_costs_a_credit_and_no_fetch() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let (account, key) = (new_account(&life).await, new_key(&life).await);
        captions_do(&life, &[Act::give(&["en-GB", "fr"])]);
        check(&keyed(&life, &key, video()).await, End::New);
        for lang in [None, Some("en"), Some("en-US"), Some("fr")] {
            let ask = TranscriptAsk { lang: lang.map(str::to_owned), ..by_id(&video()) };
            let ready = ready(&life, &account, ask).await.unwrap();
            assert!(ready.from_cache, "{lang:?}");
            let found = ready.stored.transcript.track.language.as_str().to_owned();
            assert_eq!(found, if lang == Some("fr") { "fr" } else { "en-GB" });
            let answer = answer_of(&ready);
            ready.deliver(answer).await.unwrap();
        }
        assert_eq!(asks(&life, &video()), 1);
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn callers_share_the_fetch_and_each_pays_their_own() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let key = new_key(&life).await;
        let one = SimAccount::made(&life, "one@example.org").await;
        let two = SimAccount::made(&life, "two@example.org").await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(3))]);
        let late = async {
            pass(1).await;
            keyed(&life, &key, video()).await
        };
        let (first, second, keyed) =
            tokio::join!(call(&life, &one, video()), call(&life, &two, video()), late);
        assert_eq!(first, Answer::New { from_cache: false, left: Some(4) });
        assert_eq!(second, Answer::New { from_cache: false, left: Some(4) });
        check(&keyed, End::Archived);
        assert_eq!((asks(&life, &video()), spent(&life, &key), service_spent(&life)), (1, 0, 0));
        assert_eq!((remaining(&life, &one).await, remaining(&life, &two).await), (4, 4));
    });
}

#[test]
fn a_failure_costs_nothing_and_says_why() {
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
        play(plan([1, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            captions_do(&life, &[Act::fail(reason.clone())]);
            // Again at once: what was held is there again.
            for _ in 0..2 {
                check_refused(ready(&life, &account, by_id(&video())).await, code, "");
                assert_eq!(remaining(&life, &account).await, 1, "{reason:?}");
            }
        });
    }
}

#[test]
fn a_withdrawn_video_is_not_found() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        check_refused(ready(&life, &account, by_id(&video())).await, 404, "withdrawn by the operator");
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn a_language_that_is_not_there_is_not_found_and_those_that_are_are_named() {
    play(plan([2, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        captions_do(&life, &[Act::give(&["fr", "ja"])]);
        // Nobody asked for a translation.
        for _ in 0..2 {
            check_refused(ready(&life, &account, by_id(&video())).await, 404, "It has: fr, ja;");
        }
        assert_eq!(asks(&life, &video()), 1);
        let french = TranscriptAsk { lang: Some("fr-CA".to_owned()), ..by_id(&video()) };
        let ready = ready(&life, &account, french).await.unwrap();
        assert!(ready.from_cache);
        drop(ready);
    });
}

#[test]
fn work_that_takes_too_long_costs_nothing_and_is_archived() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(60))]);
        check_refused(ready(&life, &account, by_id(&video())).await, 500, "still being transcribed");
        assert_eq!(remaining(&life, &account).await, 1);
        pass(60).await;
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, Answer::New { from_cache: true, left: Some(0) });
    });
}

#[test]
fn whoever_leaves_pays_nothing_and_the_transcript_is_archived() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(5))]);
        let asking = PaidAsking {
            life: &life,
            accounts: &life.accounts[0],
            account: &account,
            video: video(),
            lang: None,
            repeat: None,
        };
        assert_eq!(asking.ask(Some(Duration::from_secs(2))).await, None);
        pass(10).await;
        assert_eq!(remaining(&life, &account).await, 1);
        let key = new_key(&life).await;
        check(&keyed(&life, &key, video()).await, End::Archived);
    });
}

#[test]
fn an_answer_that_nobody_was_there_to_get_costs_nothing() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        assert_eq!((ready.from_cache, ready.credits_remaining), (false, Some(0)));
        assert_eq!(remaining(&life, &account).await, 0, "it is held");
        drop(ready);
        // Given back by the engine's runtime, whoever dropped it.
        tokio::task::yield_now().await;
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn an_answer_that_is_no_success_costs_nothing() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        let failed = Reply { status: 500, ..answer_of(&ready) };
        assert_eq!(ready.deliver(failed.clone()).await.unwrap(), failed);
        assert_eq!(remaining(&life, &account).await, 1);
    });
}

#[test]
fn sixty_four_at_once_drain_an_account_to_exactly_nothing() {
    for archived in [false, true] {
        play(plan([40, 0, 0, 0]), |life| async move {
            let account = new_account(&life).await;
            if archived {
                check(&keyed(&life, &new_key(&life).await, video()).await, End::New);
            }
            let calls = (0..64).map(|n| {
                let repeat = (n % 2 == 0).then(|| format!("call {n}").replace(' ', "-"));
                let (life, account) = (&life, &account);
                async move { call_with(life, account, video(), repeat.as_deref()).await }
            });
            let answers = join_all(calls).await;
            let mut left: Vec<u64> = answers
                .iter()
                .filter_map(|answer| match answer {
                    Answer::New { left, .. } => *left,
                    _ => None,
                })
                .collect();
            left.sort_unstable();
            assert_eq!(left, (0..40).collect::<Vec<u64>>(), "each sees what it left");
            let refused = |answer: &&Answer| {
                matches!(answer, Answer::Refused(Refused::PaymentRequired { credits_remaining: 0, .. }))
            };
            assert_eq!(answers.iter().filter(refused).count(), 24);
            assert_eq!(remaining(&life, &account).await, 0);
            assert!(asks(&life, &video()) <= 1);
        });
    }
}

#[test]
fn whoever_has_no_credits_is_told_when_there_are_more() {
    play(plan([0, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        for _ in 0..2 {
            let refused = ready(&life, &account, by_id(&video())).await;
            check_refused(refused, 402, "come back at 2026-12-20T12:00:00Z");
        }
        assert_eq!(asks(&life, &video()), 0, "nothing is fetched for nothing");
    });
}

#[test]
fn a_call_names_one_video_of_the_long_form_site() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        let ask = |id: Option<&str>, url: Option<&str>, lang: Option<&str>| TranscriptAsk {
            video_id: id.map(str::to_owned),
            url: url.map(str::to_owned),
            lang: lang.map(str::to_owned),
        };
        let (id, url) = (Some("videoNumber"), Some("https://youtu.be/videoNumber"));
        for (bad, part) in [
            (ask(None, None, None), "video_id: "),
            (ask(id, url, None), "not both"),
            (ask(Some("short"), None, None), "video_id: "),
            (ask(None, Some("https://example.org/x"), None), "url: "),
            (ask(None, Some("https://www.tiktok.com/@a/video/7000000000000000001"), None), "YouTube"),
            (ask(None, Some("https://vm.tiktok.com/ZMplain1/"), None), "YouTube"),
            (ask(id, None, Some("english please")), "lang: "),
            (ask(id, None, Some("")), "lang: "),
        ] {
            check_refused(ready(&life, &account, bad).await, 400, part);
        }
        assert_eq!(remaining(&life, &account).await, 1);
        let ready = ready(&life, &account, ask(None, url, Some("EN"))).await.unwrap();
        let answer = answer_of(&ready);
        ready.deliver(answer).await.unwrap();
    });
}

#[test]
fn a_ledger_that_is_away_charges_nobody() {
    play(plan([1, 0, 0, 0]), |life| async move {
        let account = new_account(&life).await;
        life.world.gate.set_weather(Weather::Away { stores: "ledger." });
        check_refused(ready(&life, &account, by_id(&video())).await, 500, "nothing was charged");
        life.world.gate.set_weather(Weather::Calm);
        assert_eq!(remaining(&life, &account).await, 1);
        // What is at hand is delivered: perhaps it was charged after all.
        check(&keyed(&life, &new_key(&life).await, video()).await, End::New);
        life.world.gate.set_weather(Weather::Away { stores: "ledger." });
        let ready = ready(&life, &account, by_id(&video())).await.unwrap();
        assert_eq!(ready.credits_remaining, None);
        life.world.gate.set_weather(Weather::Calm);
    });
}
