//! Rate limits per minute, hour and day.

use transcript_core::accounts::{RateLimitStatus, V1Admission, V1Endpoint};

use super::*;

async fn rate(
    life: &ProcessLife,
    account: &SimAccount,
    route: V1Endpoint,
) -> Result<RateLimitStatus, V1Error> {
    account.admit_unkeyed(&life.accounts[0], route).await.map(|guard| guard.rate())
}

#[test]
fn rate_limit_is_shared_by_all_endpoints_of_account() {
    run_scenario(WorldConfig::default(), |life| async move {
        let account = new_account(&life).await;
        let other = SimAccount::create(&life, "other@example.org").await;
        for (made, route) in V1Endpoint::ALL.into_iter().cycle().take(10).enumerate() {
            let rate = rate(&life, &account, route).await.unwrap();
            let remaining = 9 - u32::try_from(made).unwrap();
            assert_eq!((rate.limit, rate.window_s, rate.remaining), (10, 60, remaining));
            advance(1).await;
        }
        for _ in 0..2 {
            let refused = rate(&life, &account, V1Endpoint::Me).await.unwrap_err();
            let V1Error::RateLimited { retry_after_s, rate: Some(rate), .. } = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!((*retry_after_s, rate.remaining, rate.reset_s), (50, 0, 50));
            check_refused(Err::<(), _>(refused), 429, "10 in any 60 seconds");
        }
        assert!(rate(&life, &other, V1Endpoint::Me).await.is_ok(), "another account has its own limit");
        advance(50).await;
        assert_eq!(rate(&life, &account, V1Endpoint::Me).await.unwrap().remaining, 0);
    });
}

#[test]
fn replay_is_sent_beyond_rate_limit() {
    let mut narrow = with_credits([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 1;
    run_scenario(narrow, |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(first, AccountAnswer::New { from_cache: false, left: Some(4) });
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, AccountAnswer::Replayed);
        for _ in 0..2 {
            // A rate-limited request releases its idempotency key.
            let other = call_with(&life, &account, video(), Some("other")).await;
            assert!(matches!(other, AccountAnswer::Refused(V1Error::RateLimited { .. })), "{other:?}");
        }
        advance(60).await;
        let other = call_with(&life, &account, video(), Some("other")).await;
        assert_eq!(other, AccountAnswer::New { from_cache: true, left: Some(3) });
    });
}

#[test]
fn repeated_requests_have_separate_wider_limit() {
    let mut narrow = with_credits([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 2;
    run_scenario(narrow, |life| async move {
        let account = new_account(&life).await;
        let admit = |key: &'static str, body: &'static str| {
            account.admit(&life.accounts[0], V1Endpoint::Transcript, Some(key), body)
        };
        call_with(&life, &account, video(), Some("done")).await;
        let Ok(V1Admission::Admitted(working)) = admit("flying", "a").await else { panic!("not admitted") };
        // Twelve requests are decided by their key alone; the thirteenth exceeds the limit of repeats.
        for n in 0..12_u64 {
            let key = ["flying", "fresh"][usize::from(n % 3 == 2)];
            let body = ["a", "b"][usize::from(n % 2 == 0)];
            let refused = admit(key, body).await.unwrap_err();
            let expect = match (key, body) {
                ("flying", "a") => 409,
                ("flying", _) => 400,
                // The limit of new requests is used up, and new keys must not bypass it.
                _ => 429,
            };
            assert_eq!(refused.code(), expect, "{n}: {refused:?}");
            advance(1).await;
        }
        for (key, body) in [("flying", "a"), ("flying", "b"), ("done", ""), ("unheard-of", "")] {
            let refused = admit(key, body).await.unwrap_err();
            let V1Error::RateLimited { retry_after_s, rate: Some(rate), .. } = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(
                (rate.name, rate.limit, *retry_after_s, rate.reset_s),
                ("repeats", 12, 48, 48),
                "{key} {body}"
            );
        }
        advance(48).await;
        let refused = admit("flying", "a").await.unwrap_err();
        assert_eq!(refused.code(), 409, "the announced wait must suffice: {refused:?}");
        drop(working);
    });
}

#[test]
fn malformed_idempotency_key_counts_as_request() {
    let mut narrow = with_credits([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 2;
    run_scenario(narrow, |life| async move {
        let account = new_account(&life).await;
        for expect in [400, 400, 429, 429] {
            let bad = account.admit(&life.accounts[0], V1Endpoint::Chat, Some("two words"), "").await;
            assert_eq!(bad.unwrap_err().code(), expect);
        }
    });
}

#[test]
fn registrations_are_limited_per_network_and_email() {
    run_scenario(WorldConfig::default(), |life| async move {
        let accounts = &life.accounts[0];
        let network = |n: u8| Some(std::net::IpAddr::from([192, 0, 2, n]));
        // An invalid address does not count.
        for _ in 0..9 {
            check_refused(accounts.keys.register("no address", network(1)).await, 400, "email: ");
        }
        for n in 0..5 {
            accounts.keys.register(&format!("ann{n}@example.org"), network(1)).await.unwrap();
        }
        check_refused(accounts.keys.register("ann5@example.org", network(1)).await, 429, "your network");
        for n in 2..7 {
            accounts.keys.register(" BOB@example.org", network(n)).await.unwrap();
        }
        // One more request gets the same response without a mail, so that earlier requests are not disclosed.
        accounts.keys.register("bob@Example.org", network(7)).await.unwrap();
        // It counts for the network all the same, so that the limit discloses nothing either.
        for n in 0..4 {
            accounts.keys.register(&format!("eve{n}@example.org"), network(7)).await.unwrap();
        }
        check_refused(accounts.keys.register("bob@example.org", network(7)).await, 429, "your network");
        advance(3_600).await;
        accounts.keys.register("bob@example.org", network(1)).await.unwrap();
        let queued = life.world.outbox.lease_due(life.now(), life.now(), 100).await.unwrap();
        let to = |address: &str| queued.iter().filter(|mail| mail.to == address).count();
        assert_eq!((queued.len(), to("bob@example.org"), to("ann5@example.org")), (15, 6, 0));
        assert!(queued.iter().all(|mail| mail.kind == "verify"));
    });
}

#[test]
fn attempts_to_redeem_token_are_limited_per_network_and_minute() {
    let mut config = WorldConfig::default();
    config.accounts.verify_per_network_per_minute = 1;
    run_scenario(config, |life| async move {
        let (accounts, unknown) = (&life.accounts[0], "0".repeat(64));
        let network = |n: u8| Some(std::net::IpAddr::from([192, 0, 2, n]));
        let verify = async |n: u8| accounts.keys.verify(&unknown, true, network(n)).await;
        let sign_in = async |n: u8| accounts.sessions.sign_in(&unknown, "", "Firefox", network(n)).await;
        check_refused(verify(1).await, 400, "token: ");
        let second = verify(1).await;
        assert!(matches!(second, Err(V1Error::RateLimited { retry_after_s: 60, .. })), "{second:?}");
        check_refused(verify(2).await, 400, "token: ");
        // Links to sign in count apart.
        assert_eq!(sign_in(1).await.unwrap(), None);
        check_refused(sign_in(1).await, 429, "your network");
        assert_eq!(sign_in(2).await.unwrap(), None);
        advance(60).await;
        check_refused(verify(1).await, 400, "token: ");
        assert_eq!(sign_in(1).await.unwrap(), None);
    });
}

#[test]
fn retry_after_of_registration_suffices() {
    run_scenario(WorldConfig::default(), |life| async move {
        let accounts = &life.accounts[0];
        // Just before midnight, when the names of network buckets change.
        advance(43_200 - 90).await;
        for address in ["a@a.example", "b@a.example", "c@a.example", "d@a.example", "e@a.example"] {
            accounts.keys.register(address, None).await.unwrap();
        }
        let sixth = accounts.keys.register("f@a.example", None).await;
        let Err(V1Error::RateLimited { retry_after_s, rate: None, .. }) = sixth else {
            panic!("a sixth registration was accepted");
        };
        assert_eq!(retry_after_s, 90);
        advance(retry_after_s).await;
        accounts.keys.register("f@a.example", None).await.unwrap();
    });
}

/// Fetches that fail, and fetches that the client does not wait for, are limited together.
#[test]
fn failed_and_abandoned_fetches_are_limited_per_hour() {
    let mut config = with_credits([40, 0, 0, 0]);
    config.accounts.attempts_per_account_per_hour = 2;
    run_scenario(config, |life| async move {
        let account = new_account(&life).await;
        let fails = SupplierStep::fail(transcript_core::supplier::SupplyReason::Timeout);
        let slow = SupplierStep::give(&["en"]).after(Duration::from_secs(5));
        script_captions(&life, &[fails, slow, SupplierStep::give(&["en"])]);
        check_refused(ready(&life, &account, by_id(&video())).await, 500, "Nothing was charged");
        let request = PaidRequest {
            life: &life,
            accounts: &life.accounts[0],
            account: &account,
            video: video(),
            lang: None,
            idempotency_key: None,
        };
        assert_eq!(request.send(Some(Duration::from_secs(2))).await, None);
        advance(10).await;
        // Archived transcripts do not count.
        let archived = call(&life, &account, video()).await;
        assert!(matches!(archived, AccountAnswer::New { from_cache: true, .. }), "{archived:?}");
        check_refused(ready(&life, &account, by_id(&other_video())).await, 429, "were not waited for");
        advance(3_600).await;
        let other = call(&life, &account, other_video()).await;
        assert!(matches!(other, AccountAnswer::New { .. }), "{other:?}");
    });
}

/// A request for English may archive a transcript in another language, which costs nothing.
#[test]
fn fetches_of_other_languages_are_limited_per_hour() {
    let mut config = with_credits([40, 0, 0, 0]);
    config.accounts.attempts_per_account_per_hour = 1;
    run_scenario(config, |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["he"]), SupplierStep::give(&["en"])]);
        check_refused(ready(&life, &account, by_id(&video())).await, 404, "no English transcript");
        check_refused(ready(&life, &account, by_id(&other_video())).await, 429, "were not waited for");
        assert_eq!(remaining(&life, &account).await, 40);
    });
}

#[test]
fn daily_cap_of_accounts_refuses_new_transcripts_only() {
    let mut config = with_credits([40, 0, 0, 0]);
    config.accounts.fetches_per_day = 1;
    run_scenario(config, |life| async move {
        let account = new_account(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        call(&life, &account, video()).await;
        let refused = call(&life, &account, other_video()).await;
        let AccountAnswer::Refused(V1Error::RateLimited { message, retry_after_s, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(message.contains("daily limit") && retry_after_s > 60, "{message} {retry_after_s}");
        assert_eq!(remaining(&life, &account).await, 39);
        call(&life, &account, video()).await;
        // Keys of the lookup API have their own cap.
        check(&keyed(&life, &new_key(&life).await, other_video()).await, ScenarioResult::New);
        assert_eq!(remaining(&life, &account).await, 38);
    });
}
