//! Keys of accounts: the first, the next, and the way back.

use futures_util::future::join_all;
use transcript_core::{
    accounts::{Accounts, Caller, Route, Verification},
    directory::Plan as AccountPlan,
};

use super::*;
use crate::simulation::accounts::issue_token;

const EMAIL: &str = "ann@example.org";

async fn open(accounts: &Accounts, key: &str) -> Result<Caller, Refused> {
    accounts.authenticate(Some(key)).await
}

fn issued(verified: Result<Verification, Refused>) -> transcript_core::accounts::NewAccountKey {
    match verified {
        Ok(Verification::Issued(issued)) => issued,
        other => panic!("no key was issued: {other:?}"),
    }
}

#[test]
fn a_token_makes_an_account_with_the_free_plans_credits() {
    play(Plan::default(), |life| async move {
        let (accounts, token) = (&life.accounts[0], issue_token(&life, EMAIL).await.unwrap());
        let new = issued(accounts.verify(&token, false, None).await);
        let told = (new.first, new.plan, new.credits_remaining);
        assert_eq!(told, (true, AccountPlan::Free, Some(200)));
        assert!(new.key.reveal().starts_with("vba_"));
        let caller = open(accounts, new.key.reveal()).await.unwrap();
        assert_eq!((caller.account.email.as_str(), caller.account.anchor), (EMAIL, life.now()));
    });
}

#[test]
fn a_token_is_redeemed_once_within_a_day_and_told_alike_otherwise() {
    play(Plan::default(), |life| async move {
        let accounts = &life.accounts[0];
        let (used, old) = (issue_token(&life, EMAIL).await.unwrap(), issue_token(&life, "b@b.example").await);
        issued(accounts.verify(&used, false, None).await);
        pass(24 * 3_600).await;
        let unknown = "0".repeat(64);
        let mut told = Vec::new();
        for token in
            [used.as_str(), old.unwrap().as_str(), &unknown, "", "x", &used.to_uppercase(), &"é".repeat(32)]
        {
            for confirmed in [false, true] {
                let refused = accounts.verify(token, confirmed, None).await.unwrap_err();
                assert_eq!(refused.code(), 400);
                told.push(refused);
            }
        }
        told.dedup();
        assert_eq!(told.len(), 1, "nobody learns which it was: {told:?}");
    });
}

#[test]
fn nothing_but_a_person_replaces_a_live_key() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, Answer::New { from_cache: false, left: Some(4) });
        let token = issue_token(&life, EMAIL).await.unwrap();
        for _ in 0..3 {
            let scanned = accounts.verify(&token, false, None).await;
            assert!(matches!(scanned, Ok(Verification::NeedsConfirmation)), "{scanned:?}");
        }
        let old = account.key();
        open(accounts, &old).await.unwrap();
        let new = issued(accounts.verify(&token, true, None).await);
        assert_eq!((new.first, new.credits_remaining), (false, Some(4)), "the credits are kept");
        check_refused(open(accounts, &old).await, 401, "replaced by a newer one");
        open(accounts, new.key.reveal()).await.unwrap();
        assert!(!new.is_blocked);
    });
}

#[test]
fn a_key_of_a_blocked_account_is_issued_with_a_word_of_that() {
    play(Plan::default(), |life| async move {
        let (accounts, _) = (&life.accounts[0], new_account(&life).await);
        accounts.set_blocked(EMAIL, true).await.unwrap();
        let token = issue_token(&life, EMAIL).await.unwrap();
        let new = issued(accounts.verify(&token, true, None).await);
        assert!(new.is_blocked);
        check_refused(open(accounts, new.key.reveal()).await, 401, "blocked");
        accounts.set_blocked(EMAIL, false).await.unwrap();
        open(accounts, new.key.reveal()).await.unwrap();
    });
}

#[test]
fn sixty_four_redemptions_at_once_leave_one_live_key() {
    play(Plan::default(), |life| async move {
        let accounts = &life.accounts[0];
        let mut tokens = Vec::new();
        for n in 0..64 {
            // Half of them are one token, the others are each their own.
            let token = if n % 2 == 0 { tokens.first().cloned() } else { None };
            tokens.push(match token {
                Some(token) => token,
                None => issue_token(&life, EMAIL).await.unwrap(),
            });
        }
        let redeem = |token: String| async move { accounts.verify(&token, false, None).await };
        let verified = join_all(tokens.into_iter().map(redeem)).await;
        let keys = verified.into_iter().filter_map(|one| match one {
            Ok(Verification::Issued(issued)) => Some(issued),
            _ => None,
        });
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys.len(), 1, "a redemption voids the address's other tokens");
        open(accounts, keys[0].key.reveal()).await.unwrap();
    });
}

#[test]
fn of_rotations_at_once_one_wins() {
    play(Plan::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let old = account.key();
        let mut visits = Vec::new();
        for _ in 0..8 {
            visits.push(account.visit(accounts, Route::RotateKey).await.unwrap());
        }
        let rotated = join_all(visits.into_iter().map(|visit| accounts.rotate(visit))).await;
        let (won, lost): (Vec<_>, Vec<_>) = rotated.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 7));
        for refused in lost {
            check_refused(refused, 401, "in this very moment");
        }
        let new = won.into_iter().next().unwrap().unwrap();
        check_refused(open(accounts, &old).await, 401, "replaced");
        open(accounts, new.reveal()).await.unwrap();
    });
}

#[test]
fn what_is_no_key_of_an_account_is_told_why() {
    play(Plan::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let other_surface = new_key(&life).await;
        check_refused(accounts.authenticate(None).await, 401, "Authorization: Bearer");
        check_refused(open(accounts, &other_surface.text).await, 401, "/api/transcript");
        check_refused(open(accounts, "vba_0000000000000000000000000000003Xujou").await, 401, "unknown");
        check_refused(open(accounts, "").await, 401, "copied whole");
        let key = account.key();
        open(accounts, &format!(" {key} ")).await.unwrap();
        check_refused(open(accounts, &key[..key.len() - 1]).await, 401, "copied whole");
        // A typo is seen without a look-up.
        life.world.gate.set_weather(Weather::Away { stores: "directory." });
        let mistyped = if key.ends_with('0') { key.replace('0', "1") } else { format!("{}0", &key[..39]) };
        check_refused(open(accounts, &mistyped).await, 401, "copied whole");
        check_refused(open(accounts, &key).await, 500, "storage");
        life.world.gate.set_weather(Weather::Calm);
    });
}
