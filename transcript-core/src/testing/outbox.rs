//! The cases of the outbox.

use std::sync::Arc;

use super::{at, done, together};
use crate::{
    accounts::{MailIntent, Outbox},
    ids::Holder,
};

/// Makes a test of every case of [`Outbox`]; see [`crate::testing`].
#[macro_export]
macro_rules! outbox_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::Outbox; [$crate::testing::outbox];
            a_queued_mail_is_due_at_once
            a_mail_is_queued_once
            a_leased_mail_is_due_for_nobody
            the_longest_due_come_first
            a_mail_is_tried_again_at_its_moment
            what_is_done_stays_done
            an_address_is_forgotten
            those_that_wait_are_counted
            leasing_at_once_gives_each_mail_to_one
        }
    };
}

type Store = Arc<dyn Outbox>;

fn mail(id: &str) -> MailIntent {
    MailIntent { id: id.to_owned(), kind: "verify".to_owned(), to: format!("{id}@example.org"), attempts: 0 }
}

async fn queue(store: &Store, id: &str, now: i64) {
    done(store.queue(mail(id), at(now)).await);
}

/// Leases at most 10 mails that are due at a moment, for 60 seconds: ids and attempts.
async fn due(store: &Store, now: i64) -> Vec<(String, u32)> {
    let mails = done(store.due(&Holder::new("a"), at(now), at(now + 60), 10).await);
    mails.into_iter().map(|mail| (mail.id, mail.attempts)).collect()
}

fn of(mails: &[(&str, u32)]) -> Vec<(String, u32)> {
    mails.iter().map(|(id, attempts)| ((*id).to_owned(), *attempts)).collect()
}

/// Mails to an address end, waiting or leased; others go on, and their ids stay used.
pub async fn an_address_is_forgotten(store: Store) {
    assert_eq!(done(store.forget("a@example.org", at(0)).await), 0);
    queue(&store, "a", 0).await;
    assert_eq!(due(&store, 0).await, of(&[("a", 1)]));
    let again = MailIntent { to: "a@example.org".to_owned(), ..mail("again") };
    done(store.queue(again.clone(), at(1)).await);
    queue(&store, "b", 1).await;
    assert_eq!(done(store.forget("a@example.org", at(2)).await), 2, "the one that is leased and the other");
    assert_eq!(done(store.forget("a@example.org", at(2)).await), 0, "there are none any more");
    done(store.done("a", Some(at(3))).await);
    done(store.queue(again, at(3)).await);
    assert_eq!(due(&store, 999).await, of(&[("b", 1)]), "who leased one does not bring it back");
}

/// A queued mail is due at once, as it was queued.
pub async fn a_queued_mail_is_due_at_once(store: Store) {
    assert_eq!(due(&store, 0).await, [], "an empty outbox has nothing due");
    let queued = MailIntent { kind: "recover".to_owned(), to: "ü@exämple.org".to_owned(), ..mail("a") };
    done(store.queue(queued.clone(), at(10)).await);
    assert_eq!(due(&store, 9).await, [], "not before it was queued");
    let mails = done(store.due(&Holder::new("a"), at(10), at(70), 10).await);
    assert_eq!(mails, [MailIntent { attempts: 1, ..queued }], "as it was queued, this attempt counted");
}

/// An id that was queued before is left as it is, also when it is done.
pub async fn a_mail_is_queued_once(store: Store) {
    queue(&store, "a", 0).await;
    let other = MailIntent { to: "other@example.org".to_owned(), ..mail("a") };
    done(store.queue(other.clone(), at(0)).await);
    let mails = done(store.due(&Holder::new("a"), at(5), at(65), 10).await);
    assert_eq!(mails, [MailIntent { attempts: 1, ..mail("a") }], "the first one stays, once");
    done(store.queue(other.clone(), at(6)).await);
    assert_eq!(due(&store, 7).await, [], "queueing again ends no lease");
    done(store.done("a", None).await);
    done(store.queue(other, at(8)).await);
    assert_eq!(due(&store, 999).await, [], "what is done is not queued again");
}

/// A leased mail is due for nobody before its lease ends; each lease counts.
pub async fn a_leased_mail_is_due_for_nobody(store: Store) {
    queue(&store, "a", 0).await;
    assert_eq!(due(&store, 0).await, of(&[("a", 1)]));
    for holder in ["a", "b"] {
        let mails = done(store.due(&Holder::new(holder), at(59), at(200), 10).await);
        assert_eq!(mails, [], "leased mail is due for nobody, not for its holder either");
    }
    assert_eq!(due(&store, 60).await, of(&[("a", 2)]), "a lease that ends now has ended, and was an attempt");
    assert_eq!(due(&store, 120).await, of(&[("a", 3)]), "each lease counts as an attempt");
}

/// The mail that is due for the longest time comes first, at most as many as asked.
pub async fn the_longest_due_come_first(store: Store) {
    for (id, now) in [("c", 3), ("a", 1), ("d", 4), ("b", 2), ("later", 500)] {
        queue(&store, id, now).await;
    }
    let mut order = Vec::new();
    for (limit, expect) in [(0, 0), (1, 1), (2, 2), (10, 1), (10, 0)] {
        let mails = done(store.due(&Holder::new("a"), at(10), at(400), limit).await);
        assert_eq!(mails.len(), expect, "at most as many as asked, as there are");
        order.extend(mails.into_iter().map(|mail| mail.id));
    }
    assert_eq!(order, ["a", "b", "c", "d"], "the longest due first");
    done(store.done("d", Some(at(20))).await);
    let mut mails = due(&store, 450).await;
    assert_eq!(mails.remove(0), ("d".to_owned(), 2), "by when it became due, not by when it was queued");
    mails.sort();
    assert_eq!(mails, of(&[("a", 2), ("b", 2), ("c", 2)]), "and then those whose leases ended");
}

/// A mail whose sending failed is due again at its moment, and not before.
pub async fn a_mail_is_tried_again_at_its_moment(store: Store) {
    queue(&store, "a", 0).await;
    due(&store, 0).await;
    done(store.done("a", Some(at(30))).await);
    assert_eq!(due(&store, 29).await, [], "not before its moment");
    assert_eq!(due(&store, 30).await, of(&[("a", 2)]), "at its moment, though its first lease would last");
    done(store.done("a", Some(at(500))).await);
    assert_eq!(due(&store, 499).await, [], "also when its lease would have ended before");
    assert_eq!(due(&store, 500).await, of(&[("a", 3)]));
}

/// Counted are those that are neither sent nor given up, leased or not.
pub async fn those_that_wait_are_counted(store: Store) {
    let waiting = async || done(store.waiting().await);
    assert_eq!(waiting().await, 0, "an empty outbox");
    for (id, count) in [("a", 1), ("b", 2), ("b", 2), ("c", 3)] {
        queue(&store, id, 0).await;
        assert_eq!(waiting().await, count, "each mail once");
    }
    due(&store, 0).await;
    done(store.done("a", Some(at(900))).await);
    assert_eq!(waiting().await, 3, "who is leased or put off waits too");
    done(store.done("b", None).await);
    assert_eq!(waiting().await, 2, "what is done does not");
    done(store.forget("c@example.org", at(1)).await);
    assert_eq!(waiting().await, 1, "nor what was forgotten");
}

/// A mail that is done is never due again; an unknown one is no fault.
pub async fn what_is_done_stays_done(store: Store) {
    for id in ["a", "b"] {
        queue(&store, id, 0).await;
    }
    due(&store, 0).await;
    for _ in 0..2 {
        done(store.done("a", None).await);
    }
    done(store.done("a", Some(at(70))).await);
    done(store.done("unknown", None).await);
    done(store.done("unknown", Some(at(1))).await);
    assert_eq!(due(&store, 9_999).await, of(&[("b", 2)]), "what is done is never due again");
}

/// However many lease at once, each mail is leased by one of them.
pub async fn leasing_at_once_gives_each_mail_to_one(store: Store) {
    for n in 0..20 {
        queue(&store, &format!("m{n:02}"), 0).await;
    }
    let leased = together((0..8).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.due(&Holder::new(format!("h{n}")), at(1), at(61), 4).await) }
    }))
    .await;
    let mut ids: Vec<_> = leased.into_iter().flatten().map(|mail| mail.id).collect();
    ids.sort();
    let expect: Vec<_> = (0..20).map(|n| format!("m{n:02}")).collect();
    assert_eq!(ids, expect, "every mail is leased once");
}
