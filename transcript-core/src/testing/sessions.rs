//! Conformance cases of sessions and sign-in links.

use std::sync::Arc;

use super::{at, call_concurrently, expect_error, expect_ok};
use crate::{
    accounts::{NewSession, RedeemLinkRequest, Session, SessionStore, SignInLink},
    error::ErrorKind,
    ids::{AccountId, SessionId},
};

/// Generates one test per case of [`SessionStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! sessions_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::SessionStore; [$crate::testing::sessions];
            session_is_found_by_its_digest_until_expiry
            session_opened_again_changes_nothing
            session_above_limit_ends_least_recently_used
            session_new_one_stays_among_later_used_ones
            session_use_never_moves_back
            session_is_revoked_by_its_account_only
            sessions_are_revoked_except_one
            sign_in_link_opens_session_once
            sign_in_link_is_invalid_at_expiry
            sign_in_link_put_again_stays_used
            sign_in_links_end_with_all_sessions
            concurrent_redemptions_open_one_session
            expired_sessions_are_deleted_by_writes
        }
    };
}

type TestedStore = Arc<dyn SessionStore>;

/// Digest of the secret with this name.
fn digest(name: &str) -> Vec<u8> {
    name.bytes().chain(std::iter::repeat(0x5A)).take(32).collect()
}

fn new_session(name: &str, account: &str, seconds: i64) -> NewSession {
    let session = Session {
        id: SessionId::new(format!("session-{name}")),
        account: AccountId::new(account),
        device: "Firefox «🦊» on Linux".to_owned(),
        created_at: at(seconds),
        last_seen_at: at(seconds),
        expires_at: at(seconds + 1_000),
    };
    NewSession { digest: digest(name), session, account_max: 3 }
}

fn link(name: &str, account: &str) -> SignInLink {
    SignInLink { digest: digest(name), account: AccountId::new(account), expires_at: at(100), now: at(0) }
}

fn redeem(link: &str, session: &str, seconds: i64) -> RedeemLinkRequest {
    let NewSession { digest: session_digest, session, account_max } = new_session(session, "", seconds);
    RedeemLinkRequest {
        link: digest(link),
        digest: session_digest,
        session: session.id,
        device: session.device,
        now: at(seconds),
        expires_at: session.expires_at,
        account_max,
    }
}

/// Ids of the live sessions of an account, in the order of the list.
async fn ids(store: &TestedStore, account: &str, seconds: i64) -> Vec<String> {
    let sessions = expect_ok(store.sessions(&AccountId::new(account), at(seconds)).await);
    sessions.into_iter().map(|session| session.id.as_str().to_owned()).collect()
}

/// A session is found as it was stored, until it expires; an unknown digest finds none.
pub async fn session_is_found_by_its_digest_until_expiry(store: TestedStore) {
    let new = new_session("a", "ann", 0);
    expect_ok(store.open_session(new.clone()).await);
    expect_ok(store.open_session(new_session("b", "ben", 1)).await);
    let found = async |name: &str, seconds| expect_ok(store.session(&digest(name), at(seconds)).await);
    assert_eq!(found("a", 999).await, Some(new.session));
    assert_eq!(found("a", 1_000).await, None, "it ends at its expiry");
    assert_eq!(found("c", 1).await, None);
    assert_eq!(expect_ok(store.session(&[], at(1)).await), None);
    assert_eq!(ids(&store, "ann", 1).await, ["session-a"]);
    assert!(ids(&store, "ann", 1_000).await.is_empty(), "an expired session is not listed");
}

/// The same session again is success; another session with its digest is a conflict.
pub async fn session_opened_again_changes_nothing(store: TestedStore) {
    let new = new_session("a", "ann", 0);
    for _ in 0..2 {
        expect_ok(store.open_session(new.clone()).await);
    }
    let mut other = new_session("b", "ben", 1);
    other.digest = digest("a");
    expect_error(store.open_session(other).await, ErrorKind::Conflict, "the digest is stored for another");
    assert_eq!(expect_ok(store.session(&digest("a"), at(5)).await), Some(new.session));
    assert!(ids(&store, "ben", 5).await.is_empty());
}

/// A new session above the limit ends the one that was not used for the longest time.
pub async fn session_above_limit_ends_least_recently_used(store: TestedStore) {
    for (name, seconds) in [("a", 0), ("b", 1), ("c", 2)] {
        expect_ok(store.open_session(new_session(name, "ann", seconds)).await);
    }
    expect_ok(store.open_session(new_session("other", "ben", 2)).await);
    assert!(expect_ok(store.touch_session(&digest("a"), at(3), at(1_003)).await));
    expect_ok(store.open_session(new_session("d", "ann", 4)).await);
    assert_eq!(ids(&store, "ann", 5).await, ["session-d", "session-a", "session-c"]);
    assert_eq!(expect_ok(store.session(&digest("b"), at(5)).await), None);
    assert_eq!(ids(&store, "ben", 5).await, ["session-other"], "other accounts have their own limit");
}

/// A new session stays, and the least recently used one ends, also if a clock that was ahead wrote the others.
pub async fn session_new_one_stays_among_later_used_ones(store: TestedStore) {
    for (name, seconds) in [("a", 500), ("b", 501), ("c", 502)] {
        expect_ok(store.open_session(new_session(name, "ann", seconds)).await);
    }
    expect_ok(store.put_link(link("l", "ann")).await);
    expect_ok(store.open_session(new_session("d", "ann", 10)).await);
    assert_eq!(ids(&store, "ann", 11).await, ["session-c", "session-b", "session-d"]);
    assert!(expect_ok(store.redeem_link(redeem("l", "e", 12)).await).is_some());
    assert_eq!(ids(&store, "ann", 13).await, ["session-c", "session-b", "session-e"]);
}

/// Last use and expiry move forward only; an unknown session is reported.
pub async fn session_use_never_moves_back(store: TestedStore) {
    expect_ok(store.open_session(new_session("a", "ann", 10)).await);
    assert!(expect_ok(store.touch_session(&digest("a"), at(20), at(2_000)).await));
    assert!(expect_ok(store.touch_session(&digest("a"), at(15), at(1_500)).await));
    let stored = expect_ok(store.session(&digest("a"), at(1_999)).await);
    let stored = stored.map(|session| (session.created_at, session.last_seen_at, session.expires_at));
    assert_eq!(stored, Some((at(10), at(20), at(2_000))));
    assert!(!expect_ok(store.touch_session(&digest("b"), at(20), at(2_000)).await));
}

/// A session ends at once, and only its own account can end it.
pub async fn session_is_revoked_by_its_account_only(store: TestedStore) {
    expect_ok(store.open_session(new_session("a", "ann", 0)).await);
    let (ann, ben, id) = (AccountId::new("ann"), AccountId::new("ben"), SessionId::new("session-a"));
    assert!(!expect_ok(store.revoke_session(&ben, &id).await));
    assert!(expect_ok(store.session(&digest("a"), at(1)).await).is_some());
    assert!(expect_ok(store.revoke_session(&ann, &id).await));
    assert!(!expect_ok(store.revoke_session(&ann, &id).await), "it was revoked before");
    assert_eq!(expect_ok(store.session(&digest("a"), at(1)).await), None);
    assert!(!expect_ok(store.touch_session(&digest("a"), at(2), at(9)).await));
}

/// All sessions of an account end, except the named one; other accounts keep theirs.
pub async fn sessions_are_revoked_except_one(store: TestedStore) {
    for (name, account) in [("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "ben")] {
        expect_ok(store.open_session(new_session(name, account, 0)).await);
    }
    let ann = AccountId::new("ann");
    let kept = SessionId::new("session-b");
    assert_eq!(expect_ok(store.revoke_sessions(&ann, Some(&kept)).await), 2);
    assert_eq!(ids(&store, "ann", 1).await, ["session-b"]);
    assert_eq!(expect_ok(store.revoke_sessions(&ann, None).await), 1);
    assert_eq!(expect_ok(store.revoke_sessions(&ann, None).await), 0);
    assert_eq!(ids(&store, "ben", 1).await, ["session-d"]);
}

/// A link opens one session of its account. A repeat of the redemption returns the session.
pub async fn sign_in_link_opens_session_once(store: TestedStore) {
    expect_ok(store.put_link(link("l", "ann")).await);
    let session = expect_ok(store.redeem_link(redeem("l", "a", 5)).await).expect("the link is valid");
    assert_eq!(session, Session { account: AccountId::new("ann"), ..new_session("a", "", 5).session });
    assert_eq!(expect_ok(store.session(&digest("a"), at(6)).await), Some(session.clone()));
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "a", 6)).await), Some(session.clone()), "a repeat");
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "b", 6)).await), None, "it was used");
    assert_eq!(expect_ok(store.redeem_link(redeem("unknown", "b", 6)).await), None);
    assert_eq!(ids(&store, "ann", 6).await, ["session-a"]);
    assert!(expect_ok(store.revoke_session(&session.account, &session.id).await));
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "a", 7)).await), None, "its session was revoked");
}

/// A link is valid before its expiry only.
pub async fn sign_in_link_is_invalid_at_expiry(store: TestedStore) {
    expect_ok(store.put_link(link("l", "ann")).await);
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "a", 100)).await), None);
    assert!(expect_ok(store.redeem_link(redeem("l", "a", 99)).await).is_some());
    expect_ok(store.put_link(SignInLink { expires_at: at(200_000), ..link("ahead", "ann") }).await);
    let early = expect_ok(store.redeem_link(redeem("ahead", "b", 100)).await);
    assert_eq!(early, None, "a clock that was ahead made the link");
    assert!(expect_ok(store.redeem_link(redeem("ahead", "b", 150_000)).await).is_some());
}

/// Storing a link again changes nothing; its digest belongs to one account.
pub async fn sign_in_link_put_again_stays_used(store: TestedStore) {
    expect_ok(store.put_link(link("l", "ann")).await);
    assert!(expect_ok(store.redeem_link(redeem("l", "a", 1)).await).is_some());
    expect_ok(store.put_link(link("l", "ann")).await);
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "b", 2)).await), None);
    let other = store.put_link(link("l", "ben")).await;
    expect_error(other, ErrorKind::Conflict, "the link is stored for another account");
}

/// Revoking the sessions of an account also ends its links.
pub async fn sign_in_links_end_with_all_sessions(store: TestedStore) {
    expect_ok(store.put_link(link("l", "ann")).await);
    expect_ok(store.put_link(link("m", "ben")).await);
    assert_eq!(expect_ok(store.revoke_sessions(&AccountId::new("ann"), None).await), 0);
    assert_eq!(expect_ok(store.redeem_link(redeem("l", "a", 1)).await), None);
    assert!(expect_ok(store.redeem_link(redeem("m", "b", 1)).await).is_some());
}

/// Of concurrent redemptions of one link, one opens a session.
pub async fn concurrent_redemptions_open_one_session(store: TestedStore) {
    expect_ok(store.put_link(link("l", "ann")).await);
    let names = (0..8).map(|number| format!("s{number}"));
    let opened = call_concurrently(&store, names, |store, name| async move {
        expect_ok(store.redeem_link(redeem("l", &name, 1)).await)
    });
    let opened: Vec<_> = opened.await.into_iter().flatten().collect();
    assert_eq!(opened.len(), 1);
    assert_eq!(ids(&store, "ann", 2).await, [opened[0].id.as_str()]);
}

/// An expired session is not in the way of a new one, and is not found again by an earlier time.
pub async fn expired_sessions_are_deleted_by_writes(store: TestedStore) {
    expect_ok(store.open_session(new_session("a", "ann", 0)).await);
    expect_ok(store.open_session(new_session("b", "ben", 2_000)).await);
    assert_eq!(expect_ok(store.session(&digest("a"), at(1)).await), None, "its row was deleted");
    assert_eq!(ids(&store, "ben", 2_001).await, ["session-b"]);
}
