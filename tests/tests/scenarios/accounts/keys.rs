//! Keys of accounts: first key, rotation and recovery.

use std::net::IpAddr;

use futures_util::future::join_all;
use transcript_core::{
    accounts::{AccountPrincipal, Accounts, V1Endpoint, VerifyOutcome},
    directory::Plan as AccountPlan,
    time::LEASE_MAX,
};

use super::*;
use crate::simulation::accounts::issue_token;

const EMAIL: &str = "ann@example.org";

async fn open(accounts: &Accounts, key: &str) -> Result<AccountPrincipal, V1Error> {
    accounts.authenticator.authenticate(Some(key)).await
}

fn issued(verified: Result<VerifyOutcome, V1Error>) -> transcript_core::accounts::IssuedAccountKey {
    match verified {
        Ok(VerifyOutcome::Issued(issued)) => issued,
        other => panic!("no key was issued: {other:?}"),
    }
}

#[test]
fn token_creates_account_with_free_credits() {
    run_scenario(WorldConfig::default(), |life| async move {
        let (accounts, token) = (&life.accounts[0], issue_token(&life, EMAIL).await.unwrap());
        let new = issued(accounts.keys.verify(&token, false, None).await);
        let reported = (new.is_new_account, new.plan, new.credits_remaining);
        assert_eq!(reported, (true, AccountPlan::Free, Some(200)));
        assert!(new.key.reveal().starts_with("vba_"));
        let caller = open(accounts, new.key.reveal()).await.unwrap();
        assert_eq!((caller.account.email.as_str(), caller.account.anchor), (EMAIL, life.now()));
    });
}

#[test]
fn token_used_expired_or_unknown_gets_same_error() {
    run_scenario(WorldConfig::default(), |life| async move {
        let accounts = &life.accounts[0];
        let (used, old) = (issue_token(&life, EMAIL).await.unwrap(), issue_token(&life, "b@b.example").await);
        issued(accounts.keys.verify(&used, false, None).await);
        advance(24 * 3_600).await;
        let unknown = "0".repeat(64);
        let mut reported = Vec::new();
        for token in
            [used.as_str(), old.unwrap().as_str(), &unknown, "", "x", &used.to_uppercase(), &"é".repeat(32)]
        {
            for confirmed in [false, true] {
                let refused = accounts.keys.verify(token, confirmed, None).await.unwrap_err();
                assert_eq!(refused.code(), 400);
                reported.push(refused);
            }
        }
        reported.dedup();
        assert_eq!(reported.len(), 1, "the errors must not differ: {reported:?}");
    });
}

#[test]
fn token_unconfirmed_keeps_live_key() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(4) });
        let token = issue_token(&life, EMAIL).await.unwrap();
        for _ in 0..3 {
            let scanned = accounts.keys.verify(&token, false, None).await;
            assert!(matches!(scanned, Ok(VerifyOutcome::NeedsConfirmation)), "{scanned:?}");
        }
        let old = account.key();
        open(accounts, &old).await.unwrap();
        let new = issued(accounts.keys.verify(&token, true, None).await);
        assert_eq!(
            (new.is_new_account, new.credits_remaining),
            (false, Some(4)),
            "recovery must not change the credits"
        );
        check_refused(open(accounts, &old).await, 401, "replaced by a newer one");
        open(accounts, new.key.reveal()).await.unwrap();
        assert!(!new.is_blocked);
    });
}

#[test]
fn key_of_blocked_account_is_issued_with_blocked_flag() {
    run_scenario(WorldConfig::default(), |life| async move {
        let (accounts, _) = (&life.accounts[0], new_account(&life).await);
        accounts.admin.set_blocked(EMAIL, true).await.unwrap();
        let token = issue_token(&life, EMAIL).await.unwrap();
        let new = issued(accounts.keys.verify(&token, true, None).await);
        assert!(new.is_blocked);
        check_refused(open(accounts, new.key.reveal()).await, 401, "blocked");
        accounts.admin.set_blocked(EMAIL, false).await.unwrap();
        open(accounts, new.key.reveal()).await.unwrap();
    });
}

#[test]
fn token_64_concurrent_redemptions_leave_one_live_key() {
    run_scenario(WorldConfig::default(), |life| async move {
        let accounts = &life.accounts[0];
        let mut tokens = Vec::new();
        for n in 0..64 {
            // Half of the calls use the same token, the others use one token each.
            let token = if n % 2 == 0 { tokens.first().cloned() } else { None };
            tokens.push(match token {
                Some(token) => token,
                None => issue_token(&life, EMAIL).await.unwrap(),
            });
        }
        let redeem = |token: String| async move { accounts.keys.verify(&token, false, None).await };
        let verified = join_all(tokens.into_iter().map(redeem)).await;
        let keys = verified.into_iter().filter_map(|one| match one {
            Ok(VerifyOutcome::Issued(issued)) => Some(issued),
            _ => None,
        });
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys.len(), 1, "a redemption must void the other tokens of the address");
        open(accounts, keys[0].key.reveal()).await.unwrap();
    });
}

/// Strangers who request mails to an address do not keep its holder from signing in.
#[test]
fn sign_in_mails_count_per_network_and_apart_from_registrations() {
    let mut config = WorldConfig::default();
    config.accounts.register_per_network_per_hour = 1_000;
    run_scenario(config, |life| async move {
        let keys = &life.accounts[0].keys;
        let queued = async || {
            let (outbox, now) = (&life.world.outbox, life.now());
            let mails = outbox.lease_due(now, now.plus(LEASE_MAX), 100).await.unwrap();
            for mail in &mails {
                outbox.finish(&mail.id, None).await.unwrap();
            }
            mails.len()
        };
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        for _ in 0..7 {
            keys.register(EMAIL, client(1)).await.unwrap();
        }
        assert_eq!(queued().await, 5);
        for (numbers, mails) in [(1..2, 5), (2..3, 5), (3..20, 20), (20..21, 0)] {
            for number in numbers.clone() {
                for _ in 0..7 {
                    keys.request_sign_in(EMAIL, client(number), None).await.unwrap();
                }
            }
            assert_eq!(queued().await, mails, "networks {numbers:?}");
        }
        advance(3_600).await;
        keys.request_sign_in(EMAIL, client(20), None).await.unwrap();
        assert_eq!(queued().await, 1);
    });
}

#[test]
fn mails_to_address_stay_limited_at_midnight() {
    run_scenario(WorldConfig::default(), |life| async move {
        let keys = &life.accounts[0].keys;
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        // A minute before and after midnight, when the counts of networks end.
        advance(43_200 - 60).await;
        for _ in 0..2 {
            for _ in 0..5 {
                keys.register(EMAIL, client(0)).await.unwrap();
                for number in 1..7 {
                    keys.request_sign_in(EMAIL, client(number), None).await.unwrap();
                }
            }
            advance(120).await;
        }
        let now = life.now();
        let mails = life.world.outbox.lease_due(now, now.plus(LEASE_MAX), 100).await.unwrap();
        let verifications = mails.iter().filter(|mail| mail.kind == "verify").count();
        assert_eq!((verifications, mails.len()), (5, 5 + 30));
    });
}

#[test]
fn rotation_concurrent_one_wins() {
    run_scenario(WorldConfig::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let old = account.key();
        let mut guards = Vec::new();
        for _ in 0..8 {
            guards.push(account.admit_unkeyed(accounts, V1Endpoint::RotateKey).await.unwrap());
        }
        let rotated = join_all(guards.into_iter().map(|guard| accounts.keys.rotate(guard))).await;
        let (won, lost): (Vec<_>, Vec<_>) = rotated.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 7));
        for refused in lost {
            check_refused(refused, 401, "at the same time");
        }
        let new = won.into_iter().next().unwrap().unwrap();
        check_refused(open(accounts, &old).await, 401, "replaced");
        open(accounts, new.reveal()).await.unwrap();
    });
}

#[test]
fn key_invalid_error_names_cause() {
    run_scenario(WorldConfig::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let other_surface = new_key(&life).await;
        check_refused(accounts.authenticator.authenticate(None).await, 401, "Authorization: Bearer");
        check_refused(open(accounts, &other_surface.text).await, 401, "/api/transcript");
        check_refused(open(accounts, "vba_0000000000000000000000000000003Xujou").await, 401, "unknown");
        check_refused(open(accounts, "").await, 401, "copied whole");
        let key = account.key();
        open(accounts, &format!(" {key} ")).await.unwrap();
        check_refused(open(accounts, &key[..key.len() - 1]).await, 401, "copied whole");
        // The checksum detects a typo without a store call.
        life.world.gate.set_faults(FaultPlan::StoreDown { stores: "directory." });
        let mistyped = if key.ends_with('0') { key.replace('0', "1") } else { format!("{}0", &key[..39]) };
        check_refused(open(accounts, &mistyped).await, 401, "copied whole");
        check_refused(open(accounts, &key).await, 500, "storage");
        life.world.gate.set_faults(FaultPlan::NoFaults);
    });
}
