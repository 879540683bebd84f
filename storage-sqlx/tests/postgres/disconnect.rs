//! Lost connections and conflicting transactions, at the worst time.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, Row};
use storage_sqlx::{PostgresOptions, PostgresStore};
use transcript_core::{
    ErrorKind,
    accounts::{ChargeRequest, ChargeStore, IdempotencyAttempt, IdempotencyState, IdempotencyStore},
    ids::{Holder, WalletId},
    ledger::{HoldOutcome, HoldState, Ledger, Pool},
    limits::{LimitOutcome, LimitRequest, RateLimiter},
};
use verbatim_tests_postgres::TestDatabase;

use crate::{
    common::{
        charging::{account, charge_request, charged},
        check_audit, grant, purchased, request, timestamp,
    },
    opening::foreign_connection,
};

/// The end of a server's response outside a transaction: the work is committed.
const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];

/// A proxy that disconnects once: between the first request with certain texts, one after another, and its response.
struct DisconnectingProxy {
    texts: &'static [&'static [u8]],
    is_used: AtomicBool,
    /// Whether it accepts no connection afterwards.
    is_lasting: bool,
}

impl DisconnectingProxy {
    /// The URL of a database through this proxy.
    fn between(self: &Arc<Self>, database: &TestDatabase<'_>) -> String {
        let (user, rest) = database.url.split_once('@').unwrap();
        let (address, name) = rest.split_once('/').unwrap();
        let (listener, address) = (TcpListener::bind("127.0.0.1:0").unwrap(), address.to_owned());
        let port = listener.local_addr().unwrap().port();
        let proxy = Arc::clone(self);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if proxy.is_lasting && proxy.is_used.load(Ordering::SeqCst) {
                    continue;
                }
                proxy.join(client, TcpStream::connect(&address).unwrap());
            }
        });
        format!("{user}@127.0.0.1:{port}/{name}")
    }

    fn join(self: &Arc<Self>, mut client: TcpStream, mut server: TcpStream) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let (mut to_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (proxy, cut) = (Arc::clone(self), Arc::clone(&is_cut));
        std::thread::spawn(move || {
            let (mut bytes, mut awaited) = (vec![0; 1 << 16], proxy.texts);
            while let Ok(count @ 1..) = client.read(&mut bytes) {
                while let Some((next, rest)) = awaited.split_first()
                    && bytes[..count].windows(next.len()).any(|text| text == *next)
                {
                    awaited = rest;
                }
                if awaited.is_empty() && !proxy.is_used.swap(true, Ordering::SeqCst) {
                    cut.store(true, Ordering::SeqCst);
                }
                if to_server.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            to_server.shutdown(Shutdown::Both).ok();
        });
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(count @ 1..) = server.read(&mut bytes) {
                if is_cut.load(Ordering::SeqCst) {
                    if bytes[..count].ends_with(&READY) {
                        break;
                    }
                } else if to_client.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            to_client.shutdown(Shutdown::Both).ok();
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn charge_lost_reply_is_not_reported_as_not_charged() {
    let (direct, database) = crate::store().await;
    let account = account(&*direct, "a").await;
    let proxy = Arc::new(DisconnectingProxy {
        texts: &[b"cut here"],
        is_used: AtomicBool::new(false),
        is_lasting: false,
    });
    let store = PostgresStore::open(PostgresOptions::new(proxy.between(&database))).await.unwrap();
    // Only the storing statement of a charge contains its memo. The limit is one call, so a repetition would be
    // limited.
    let plain = charge_request(&account, "h1");
    let limit_request = LimitRequest { max: 1, window_ms: 3_600_000, ..plain.limit_request.clone() };
    let mut spend = plain.spend.clone();
    spend.memo = "cut here".to_owned();
    let once = ChargeRequest { limit_request, spend, ..plain };
    let outcome = store.charge(once).await;
    assert!(proxy.is_used.load(Ordering::SeqCst));
    let is_unknown =
        matches!(&outcome, Err(error) if error.kind() == ErrorKind::Unavailable && !error.has_no_effect());
    assert!(is_unknown, "the store does not know whether it was charged: {outcome:?}");
    let balance = direct.balance(&account.wallet, &purchased()).await.unwrap();
    assert_eq!(balance.pools[0].spent, 1, "it was charged");
    // The next charge is not affected.
    let outcome = store.charge(ChargeRequest {
        limit_request: LimitRequest { max: 9, ..charge_request(&account, "h2").limit_request },
        ..charge_request(&account, "h2")
    });
    assert!(charged(&outcome.await));
    check_audit(&*direct).await;
}

/// The reply of the storing statement or its commit is lost, and the server cannot be reached afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_lost_reply_is_not_reported_as_without_effect() {
    const MEMO: &[u8] = b"cut here";
    let (direct, database) = crate::store().await;
    let account = account(&*direct, "a").await;
    // An allowance uses the fast path, alone or in a batch.
    for (number, (has_allowance, batch_threshold, pooler)) in
        [(true, 8, false), (true, 0, false), (false, 8, false), (true, 8, true), (false, 8, true)]
            .into_iter()
            .enumerate()
    {
        let texts: &[&[u8]] = if pooler { &[MEMO, b"COMMIT"] } else { &[MEMO] };
        let proxy = Arc::new(DisconnectingProxy { texts, is_used: AtomicBool::new(false), is_lasting: true });
        let options = PostgresOptions::new(proxy.between(&database));
        let options = PostgresOptions { batch_threshold, pooler, ..options };
        let store = PostgresStore::open(options).await.unwrap();
        let mut spend = charge_request(&account, &format!("h{number}")).spend;
        spend.memo = "cut here".to_owned();
        // Of entries at one time, those of the other store may be numbered as newer: then the reply that is lost is
        // the fast path's refusal.
        spend.now = timestamp(1 + i64::try_from(number).unwrap());
        if has_allowance {
            let month = Pool::Allowance { bucket: "month".to_owned(), limit: 9 };
            spend.legs[0].terms.pools.insert(0, month);
        }
        let error = store.spend(spend.clone()).await.unwrap_err();
        assert!(proxy.is_used.load(Ordering::SeqCst), "case {number}: {error:?}");
        assert!(!error.has_no_effect(), "case {number}: {error:?}");
        let known = direct.spend(spend).await.unwrap();
        let is_spent = matches!(&known, HoldOutcome::Exists { state: HoldState::Settled { .. }, .. });
        assert!(is_spent, "case {number}: {known:?}");
    }
    check_audit(&*direct).await;
}

/// Waits until a transaction waits for a lock.
pub(crate) async fn wait_for_lock_waiter(watcher: &mut sqlx::PgConnection) {
    wait_for_lock_waiters(watcher, 1).await;
}

/// Waits until this many transactions wait for a lock.
async fn wait_for_lock_waiters(watcher: &mut sqlx::PgConnection, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query(waiting).fetch_one(&mut *watcher).await.unwrap().get::<i64, _>(0) < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_concurrent_same_id_last_credit_returns_exists() {
    let (store, database) = crate::store().await;
    grant(&*store, "bought", "w", 1).await;
    let (mut other, mut watcher) = (foreign_connection(&database).await, foreign_connection(&database).await);
    let spent = "BEGIN;
        UPDATE ledger_pools SET spent = spent + 1, version = version + 1 WHERE wallet = 'w';
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs, share_buckets,
            share_caps, share_amounts)
        VALUES ('h1', 'closed', 9000000000000, '', '{w}', '{1}', '{1}', '{1}', ARRAY[''], '{0}', '{1}')";
    sqlx::raw_sql(spent).execute(&mut other).await.unwrap();
    let spending = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.spend(request("h1".to_owned(), "w", 1)).await })
    };
    wait_for_lock_waiter(&mut watcher).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    let outcome = spending.await.unwrap().unwrap();
    let is_known = matches!(&outcome, HoldOutcome::Exists { state: HoldState::Settled { .. }, .. });
    assert!(is_known, "{outcome:?}");
    assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().pools[0].spent, 1);
}

/// Makes the rows of this table undeletable.
async fn forbid_deletes(database: &TestDatabase<'_>, table: &'static str) {
    let refuse = format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'nothing goes' USING ERRCODE = 'XX001'; END $$;
        CREATE TRIGGER keep BEFORE DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    );
    sqlx::raw_sql(AssertSqlSafe(refuse)).execute(&mut foreign_connection(database).await).await.unwrap();
}

fn attempt(n: u32) -> IdempotencyAttempt {
    IdempotencyAttempt {
        key: format!("key {n}"),
        fingerprint: vec![1],
        holder: Holder::new("h"),
        now: timestamp(0),
        lease_until: timestamp(1_000),
        keep_until: timestamp(2_000),
    }
}

#[tokio::test]
async fn cleanup_failure_does_not_block_limits_and_replies() {
    let (store, database) = crate::store().await;
    forbid_deletes(&database, "limits").await;
    forbid_deletes(&database, "replies").await;
    for n in 0..200 {
        let limit_request =
            LimitRequest { bucket: "api/a".to_owned(), max: 1_000, window_ms: 1_000, cost: 1 };
        assert!(matches!(
            store.acquire(vec![limit_request], timestamp(0)).await,
            Ok(LimitOutcome::Allowed { .. })
        ));
        assert_eq!(store.begin(attempt(n)).await.unwrap(), IdempotencyState::New);
    }
}

#[tokio::test]
async fn window_deleted_and_recreated_gets_new_version() {
    let (store, database) = crate::store().await;
    let mut other = foreign_connection(&database).await;
    let mut versions = Vec::new();
    for _ in 0..2 {
        let limit_request = LimitRequest { bucket: "api/a".to_owned(), max: 9, window_ms: 1_000, cost: 1 };
        store.acquire(vec![limit_request], timestamp(0)).await.unwrap();
        let gone = "DELETE FROM limits WHERE bucket LIKE 'api/a%' RETURNING version";
        versions.push(sqlx::query(gone).fetch_one(&mut other).await.unwrap().get::<i64, _>(0));
    }
    assert!(
        versions[0] < versions[1],
        "a reader of the first window would take the second for it: {versions:?}"
    );
}

/// Stops the first two changes of windows before they are stored: before the locks 1 and 2, which this connection has.
async fn stop_changes(locks: &mut sqlx::PgConnection) {
    let stops = "CREATE SEQUENCE changes;
        CREATE FUNCTION wait_for_turn() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_advisory_xact_lock(nextval('changes')); RETURN NEW; END $$;
        CREATE TRIGGER turn BEFORE INSERT ON limits FOR EACH ROW EXECUTE FUNCTION wait_for_turn();
        SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    sqlx::raw_sql(stops).execute(locks).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn window_created_and_changed_meanwhile_is_not_overwritten() {
    let (store, database) = crate::store().await;
    let take = |bucket: &str, now: i64| {
        let limit_request = LimitRequest { bucket: bucket.to_owned(), max: 10, window_ms: 1_000, cost: 5 };
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.acquire(vec![limit_request], timestamp(now)).await.unwrap() })
    };
    // With an earlier time than this, unused numbers follow each other.
    take("api/other", 10).await.unwrap();
    let (mut locks, mut watcher) = (foreign_connection(&database).await, foreign_connection(&database).await);
    // The first two changes stop once they have loaded that there is no window: the first before lock 1, the other
    // one before lock 2.
    stop_changes(&mut locks).await;
    let first = take("api/a", 0);
    wait_for_lock_waiters(&mut watcher, 1).await;
    let slow = take("api/a", 0);
    wait_for_lock_waiters(&mut watcher, 2).await;
    sqlx::raw_sql("SELECT pg_advisory_unlock(1)").execute(&mut locks).await.unwrap();
    assert!(matches!(first.await.unwrap(), LimitOutcome::Allowed { .. }));
    assert!(matches!(take("api/a", 0).await.unwrap(), LimitOutcome::Allowed { .. }));
    sqlx::raw_sql("SELECT pg_advisory_unlock(2)").execute(&mut locks).await.unwrap();
    let outcome = slow.await.unwrap();
    assert!(matches!(outcome, LimitOutcome::Limited { .. }), "15 of 10 were taken: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn window_changed_since_read_is_locked_by_next_attempt() {
    let (store, database) = crate::store().await;
    let take = || {
        let limit_request = LimitRequest { bucket: "api/a".to_owned(), max: 9, window_ms: 1_000, cost: 1 };
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.acquire(vec![limit_request], timestamp(0)).await.unwrap() })
    };
    take().await.unwrap();
    let (mut locks, mut watcher) = (foreign_connection(&database).await, foreign_connection(&database).await);
    // An attempt stops before it stores: the first one before lock 1, the next one before lock 2.
    stop_changes(&mut locks).await;
    let taking = take();
    wait_for_lock_waiter(&mut watcher).await;
    let change = "UPDATE limits SET version = version + 1; SELECT pg_advisory_unlock(1)";
    sqlx::raw_sql(change).execute(&mut locks).await.unwrap();
    let attempts = "SELECT last_value FROM changes";
    while sqlx::query(attempts).fetch_one(&mut watcher).await.unwrap().get::<i64, _>(0) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lock = sqlx::query("SELECT 1 FROM limits FOR UPDATE NOWAIT").fetch_one(&mut watcher).await;
    // No other attempt can change the window before this one has stored it.
    let error = lock.err().unwrap();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("55P03"), "{error}");
    sqlx::raw_sql("SELECT pg_advisory_unlock(2)").execute(&mut locks).await.unwrap();
    assert!(matches!(taking.await.unwrap(), LimitOutcome::Allowed { .. }));
}

/// Renews a row that is about to be deleted, and returns whether it still exists afterwards.
///
/// `work` runs until it waits for that row.
async fn renew_during_delete<F: Future<Output = ()> + Send>(
    database: &TestDatabase<'_>,
    [old, renew, there]: [&'static str; 3],
    work: impl Fn(u32) -> F + Send + Sync,
) -> bool {
    let (mut other, mut watcher) = (foreign_connection(database).await, foreign_connection(database).await);
    sqlx::raw_sql(old).execute(&mut other).await.unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut other).await.unwrap();
    sqlx::raw_sql(renew).execute(&mut other).await.unwrap();
    let (is_over, until_it_waits) = (AtomicBool::new(false), async {
        wait_for_lock_waiter(&mut watcher).await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    });
    let working = async {
        for n in 0.. {
            work(n).await;
            if is_over.load(Ordering::SeqCst) {
                return;
            }
        }
    };
    let ending = async {
        until_it_waits.await;
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(working, ending);
    !sqlx::query(there).fetch_all(&mut watcher).await.unwrap().is_empty()
}

#[tokio::test]
async fn cleanup_concurrently_renewed_row_stays() {
    let (store, database) = crate::store().await;
    let store = &*store;
    let limit = [
        "INSERT INTO limits (bucket, version, ends_at, taken) VALUES ('api/old', 1, 1, '')",
        "UPDATE limits SET ends_at = 9000000000000 WHERE bucket = 'api/old'",
        "SELECT 1 FROM limits WHERE bucket = 'api/old'",
    ];
    let take = |n| async move {
        let limit_request = LimitRequest { bucket: "api/a".to_owned(), max: 9, window_ms: 1, cost: 1 };
        store.acquire(vec![limit_request], timestamp(2 * i64::from(n))).await.unwrap();
    };
    assert!(renew_during_delete(&database, limit, take).await, "a rate limit");
    let reply = [
        "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until) VALUES ('old', '', 'h', 1, 1)",
        "UPDATE replies SET keep_until = 9000000000000 WHERE key = 'old'",
        "SELECT 1 FROM replies WHERE key = 'old'",
    ];
    let begin = |n| async move {
        store.begin(attempt(n)).await.unwrap();
    };
    assert!(renew_during_delete(&database, reply, begin).await, "a reply");
}
