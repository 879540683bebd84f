//! Conformance cases of admin tokens and the audit log.

use std::sync::Arc;

use super::{at, expect_error, expect_ok, read_pages};
use crate::{
    admin::{AdminStore, AdminToken, AuditEntry, AuditId, AuditResult, NewAdminToken, OperatorInterface},
    error::ErrorKind,
};

/// Generates one test per case of [`AdminStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! admin_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::admin::AdminStore; [$crate::testing::admin];
            admin_token_is_found_by_its_digest
            admin_token_name_is_used_once
            revoked_admin_token_is_unknown
            admin_tokens_are_paged_by_name
            audit_entry_is_stored_with_its_result
            audit_log_is_paged_newest_first
        }
    };
}

type TestedStore = Arc<dyn AdminStore>;

fn token(name: &str, secret: u8) -> NewAdminToken {
    NewAdminToken { name: name.to_owned(), digest: vec![secret; 32], now: at(i64::from(secret)) }
}

fn entry(number: i64) -> AuditEntry {
    AuditEntry {
        id: AuditId::new(format!("audit-{number}")),
        at: at(number),
        operator: "ann «🦀»".to_owned(),
        interface: if number % 2 == 0 { OperatorInterface::Api } else { OperatorInterface::Command },
        operation: "keys.create".to_owned(),
        subject: None,
        detail: Some(format!("number {number}")),
        result: None,
    }
}

fn result(text: &str) -> AuditResult {
    AuditResult { at: at(99), text: text.to_owned() }
}

/// A live token is found by its digest; an unknown digest has no name.
pub async fn admin_token_is_found_by_its_digest(store: TestedStore) {
    assert!(expect_ok(store.add_admin_token(token("ann", 1)).await), "the name is free");
    assert!(expect_ok(store.add_admin_token(token("ben", 2)).await));
    for (secret, name) in [(1, Some("ann")), (2, Some("ben")), (3, None)] {
        assert_eq!(expect_ok(store.admin_name(&[secret; 32]).await).as_deref(), name);
    }
    assert_eq!(expect_ok(store.admin_name(&[]).await), None);
}

/// A name belongs to one token, also after its revocation; the same token can be added again.
pub async fn admin_token_name_is_used_once(store: TestedStore) {
    assert!(expect_ok(store.add_admin_token(token("ann", 1)).await));
    assert!(expect_ok(store.add_admin_token(token("ann", 1)).await), "the same token is known");
    assert!(!expect_ok(store.add_admin_token(token("ann", 2)).await), "the name is taken");
    assert!(expect_ok(store.revoke_admin_token("ann", at(5)).await));
    assert!(!expect_ok(store.add_admin_token(token("ann", 2)).await), "a revoked name stays taken");
    assert_eq!(expect_ok(store.admin_name(&[2; 32]).await), None);
    let other = store.add_admin_token(token("ben", 1)).await;
    expect_error(other, ErrorKind::Conflict, "the digest is stored for another name");
}

/// A revoked token is unknown at once, and is revoked once.
pub async fn revoked_admin_token_is_unknown(store: TestedStore) {
    for (name, secret) in [("ann", 1), ("ben", 2)] {
        expect_ok(store.add_admin_token(token(name, secret)).await);
    }
    assert!(expect_ok(store.revoke_admin_token("ann", at(7)).await));
    assert_eq!(expect_ok(store.admin_name(&[1; 32]).await), None);
    assert_eq!(expect_ok(store.admin_name(&[2; 32]).await).as_deref(), Some("ben"));
    assert!(!expect_ok(store.revoke_admin_token("ann", at(8)).await), "it is revoked already");
    assert!(!expect_ok(store.revoke_admin_token("eve", at(8)).await));
    let all = read_pages(10, async |page| store.admin_tokens(page).await).await;
    let ann = AdminToken { name: "ann".to_owned(), created_at: at(1), revoked_at: Some(at(7)) };
    let ben = AdminToken { name: "ben".to_owned(), created_at: at(2), revoked_at: None };
    assert_eq!(all, [ann, ben]);
}

/// Tokens are listed by name, page by page.
pub async fn admin_tokens_are_paged_by_name(store: TestedStore) {
    for (name, secret) in [("c", 1), ("a", 2), ("b@example.org", 3), ("B", 4)] {
        expect_ok(store.add_admin_token(token(name, secret)).await);
    }
    for limit in [1, 2, 3, 1_000] {
        let all = read_pages(limit, async |page| store.admin_tokens(page).await).await;
        let names: Vec<_> = all.iter().map(|token| token.name.as_str()).collect();
        assert_eq!(names, ["B", "a", "b@example.org", "c"], "in pages of {limit}");
    }
}

/// An entry is listed while its operation runs, and once with the first result.
pub async fn audit_entry_is_stored_with_its_result(store: TestedStore) {
    let all = async || read_pages(10, async |page| store.audit_log(page).await).await;
    assert_eq!(all().await, []);
    for _ in 0..2 {
        expect_ok(store.begin_audit(entry(1)).await);
    }
    assert_eq!(all().await, [entry(1)], "a repeated begin changes nothing");
    let subject = Some("key-1".to_owned());
    expect_ok(store.end_audit(&entry(1).id, result("done"), subject.clone()).await);
    expect_ok(store.end_audit(&entry(1).id, result("failed"), Some("key-2".to_owned())).await);
    let ended = AuditEntry { subject: subject.clone(), result: Some(result("done")), ..entry(1) };
    assert_eq!(all().await, [ended], "the first result stays");

    let named = AuditEntry { subject: subject.clone(), ..entry(2) };
    expect_ok(store.begin_audit(named.clone()).await);
    expect_ok(store.end_audit(&named.id, result("no such key"), None).await);
    let ended = AuditEntry { result: Some(result("no such key")), ..named };
    assert_eq!(all().await[0], ended, "the subject stays");
    expect_ok(store.end_audit(&AuditId::new("unknown"), result("done"), None).await);
    assert_eq!(all().await.len(), 2, "an unknown entry is ignored");
}

/// Entries are listed newest first, page by page; a new entry does not move the next page.
pub async fn audit_log_is_paged_newest_first(store: TestedStore) {
    for number in 0..5 {
        expect_ok(store.begin_audit(entry(number)).await);
    }
    let newest_first: Vec<_> = (0..5).rev().map(entry).collect();
    for limit in [1, 2, 5, 1_000] {
        let all = read_pages(limit, async |page| store.audit_log(page).await).await;
        assert_eq!(all, newest_first, "in pages of {limit}");
    }
    let first = expect_ok(store.audit_log(crate::page::PageRequest { after: None, limit: 2 }).await);
    expect_ok(store.begin_audit(entry(5)).await);
    let second = crate::page::PageRequest { after: first.next, limit: 2 };
    assert_eq!(expect_ok(store.audit_log(second).await).items, [entry(2), entry(1)]);
}
