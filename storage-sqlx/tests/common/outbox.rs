//! Mails whose rows cannot be read.

use transcript_core::accounts::{MailIntent, Outbox};

use super::timestamp;

/// A mail that cannot be read delays no other one, and is leased again once it is repaired.
#[tokio::test]
async fn unreadable_mail_delays_no_other_mail() {
    let (store, place) = crate::store().await;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    for id in ["a", "b"] {
        let (kind, to) = ("verify".to_owned(), format!("{id}@example.org"));
        let intent = MailIntent { id: id.to_owned(), kind, to, attempts: 0, language: None };
        store.queue(intent, timestamp(0)).await.unwrap();
    }
    let leased = async |now: i64| {
        let leased = store.lease_due(timestamp(now), timestamp(now + 60_000), 9).await.unwrap();
        leased.into_iter().map(|intent| intent.id).collect::<Vec<_>>()
    };
    run("UPDATE outbox SET attempts = -9 WHERE id = 'a'").await;
    assert_eq!(leased(0).await, ["b"]);
    store.finish("b", None).await.unwrap();
    run("UPDATE outbox SET attempts = 0 WHERE id = 'a'").await;
    assert_eq!(leased(59_999).await, Vec::<String>::new(), "it waits as long as a lease");
    assert_eq!(leased(60_000).await, ["a"]);
}
