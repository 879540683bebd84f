//! So many requests in any minute, and no more.

use transcript_core::accounts::{Entry, RateState, Route};

use super::*;

async fn rate(life: &Life, account: &SimAccount, route: Route) -> Result<RateState, Refused> {
    account.visit(&life.accounts[0], route).await.map(|visit| visit.rate())
}

#[test]
fn an_account_has_one_limit_for_all_its_endpoints() {
    play(Plan::default(), |life| async move {
        let account = new_account(&life).await;
        let other = SimAccount::made(&life, "other@example.org").await;
        for (made, route) in Route::ALL.into_iter().cycle().take(10).enumerate() {
            let rate = rate(&life, &account, route).await.unwrap();
            let remaining = 9 - u32::try_from(made).unwrap();
            assert_eq!((rate.limit, rate.window_s, rate.remaining), (10, 60, remaining));
            pass(1).await;
        }
        for _ in 0..2 {
            let refused = rate(&life, &account, Route::Me).await.unwrap_err();
            let Refused::RateLimited { retry_after_s, rate: Some(rate), .. } = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!((*retry_after_s, rate.remaining, rate.reset_s), (50, 0, 50));
            check_refused(Err::<(), _>(refused), 429, "10 in any 60 seconds");
        }
        assert!(rate(&life, &other, Route::Me).await.is_ok(), "another account has its own");
        pass(50).await;
        assert_eq!(rate(&life, &account, Route::Me).await.unwrap().remaining, 0);
    });
}

#[test]
fn a_repeat_is_answered_beyond_the_limit() {
    let mut narrow = plan([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 1;
    play(narrow, |life| async move {
        let account = new_account(&life).await;
        let first = call_with(&life, &account, video(), Some("k")).await;
        assert_eq!(first, Answer::New { from_cache: false, left: Some(4) });
        assert_eq!(call_with(&life, &account, video(), Some("k")).await, Answer::Replayed);
        for _ in 0..2 {
            // What is refused so gives its idempotency key back.
            let other = call_with(&life, &account, video(), Some("other")).await;
            assert!(matches!(other, Answer::Refused(Refused::RateLimited { .. })), "{other:?}");
        }
        pass(60).await;
        let other = call_with(&life, &account, video(), Some("other")).await;
        assert_eq!(other, Answer::New { from_cache: true, left: Some(3) });
    });
}

#[test]
fn repeats_have_a_wider_limit_of_their_own() {
    let mut narrow = plan([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 2;
    play(narrow, |life| async move {
        let account = new_account(&life).await;
        let enter = |key: &'static str, body: &'static str| {
            account.enter(&life.accounts[0], Route::Transcript, Some(key), body)
        };
        call_with(&life, &account, video(), Some("done")).await;
        let Ok(Entry::Admitted(working)) = enter("flying", "a").await else { panic!("nobody is let in") };
        // Twelve of what a key decides, whatever it decides; the thirteenth waits for the first to be over.
        for n in 0..12_u64 {
            let key = ["flying", "fresh"][usize::from(n % 3 == 2)];
            let body = ["a", "b"][usize::from(n % 2 == 0)];
            let refused = enter(key, body).await.unwrap_err();
            let expect = match (key, body) {
                ("flying", "a") => 409,
                ("flying", _) => 400,
                // There is no room for a new request, and asking with new keys is no way round that.
                _ => 429,
            };
            assert_eq!(refused.code(), expect, "{n}: {refused:?}");
            pass(1).await;
        }
        for (key, body) in [("flying", "a"), ("flying", "b"), ("done", ""), ("unheard-of", "")] {
            let refused = enter(key, body).await.unwrap_err();
            let Refused::RateLimited { retry_after_s, rate: Some(rate), .. } = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(
                (rate.name, rate.limit, *retry_after_s, rate.reset_s),
                ("repeats", 12, 48, 48),
                "{key} {body}"
            );
        }
        pass(48).await;
        let refused = enter("flying", "a").await.unwrap_err();
        assert_eq!(refused.code(), 409, "the wait that was told suffices: {refused:?}");
        drop(working);
    });
}

#[test]
fn a_malformed_idempotency_key_counts_as_a_request() {
    let mut narrow = plan([5, 0, 0, 0]);
    narrow.accounts.plans.free.requests_per_minute = 2;
    play(narrow, |life| async move {
        let account = new_account(&life).await;
        for expect in [400, 400, 429, 429] {
            let bad = account.enter(&life.accounts[0], Route::Chat, Some("two words"), "").await;
            assert_eq!(bad.unwrap_err().code(), expect);
        }
    });
}

#[test]
fn a_network_registers_so_often_and_an_address_gets_so_many_mails() {
    play(Plan::default(), |life| async move {
        let accounts = &life.accounts[0];
        let network = |n: u8| Some(std::net::IpAddr::from([192, 0, 2, n]));
        // What is no address counts for nothing.
        for _ in 0..9 {
            check_refused(accounts.register("no address", network(1)).await, 400, "email: ");
        }
        for n in 0..5 {
            accounts.register(&format!("ann{n}@example.org"), network(1)).await.unwrap();
        }
        check_refused(accounts.register("ann5@example.org", network(1)).await, 429, "your network");
        for n in 2..7 {
            accounts.register(" BOB@example.org", network(n)).await.unwrap();
        }
        // Whoever asks for one more is answered as always, and no mail is sent: nobody learns that others asked.
        accounts.register("bob@Example.org", network(7)).await.unwrap();
        // Their network counts all the same, so that this cannot be told from it either.
        for n in 0..4 {
            accounts.register(&format!("eve{n}@example.org"), network(7)).await.unwrap();
        }
        check_refused(accounts.register("bob@example.org", network(7)).await, 429, "your network");
        pass(3_600).await;
        accounts.register("bob@example.org", network(1)).await.unwrap();
        let holder = transcript_core::ids::Holder::new("sender");
        let queued = life.world.outbox.due(&holder, life.now(), life.now(), 100).await.unwrap();
        let to = |address: &str| queued.iter().filter(|mail| mail.to == address).count();
        assert_eq!((queued.len(), to("bob@example.org"), to("ann5@example.org")), (15, 6, 0));
        assert!(queued.iter().all(|mail| mail.kind == "verify"));
    });
}

#[test]
fn waiting_as_long_as_one_is_told_suffices() {
    play(Plan::default(), |life| async move {
        let accounts = &life.accounts[0];
        // Just before midnight, when networks get other names.
        pass(43_200 - 90).await;
        for address in ["a@a.example", "b@a.example", "c@a.example", "d@a.example", "e@a.example"] {
            accounts.register(address, None).await.unwrap();
        }
        let sixth = accounts.register("f@a.example", None).await;
        let Err(Refused::RateLimited { retry_after_s, rate: None, .. }) = sixth else {
            panic!("a sixth registration is let through");
        };
        assert_eq!(retry_after_s, 90);
        pass(retry_after_s).await;
        accounts.register("f@a.example", None).await.unwrap();
    });
}
