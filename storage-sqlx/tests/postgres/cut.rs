//! Connections that are cut, and others who are in the way, at the worst moment.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, Row, postgres::PgConnectOptions};
use storage_sqlx::{PostgresOptions, PostgresStore};
use transcript_core::{
    ErrorKind,
    accounts::{Attempt, Begun, ChargeRequest, Charges, Replies},
    ids::{Holder, WalletId},
    ledger::{HoldOutcome, HoldState, Ledger},
    limits::{RateLimiter, Take, Taken},
};
use verbatim_tests_postgres::Database;

use crate::common::{
    charging::{account, ask, charged},
    check_audit, grant, moment, purchased, request,
};

/// What the server says at the end of its answer outside a transaction: all that was asked for is committed.
const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];

/// A way to a server that is cut once: after the first question with a certain text in it, and before its answer.
struct Scissors {
    text: &'static [u8],
    is_used: AtomicBool,
}

impl Scissors {
    /// The address of a database by this way.
    fn between(self: &Arc<Self>, database: &Database<'_>) -> String {
        let (user, rest) = database.url.split_once('@').unwrap();
        let (address, name) = rest.split_once('/').unwrap();
        let (listener, address) = (TcpListener::bind("127.0.0.1:0").unwrap(), address.to_owned());
        let port = listener.local_addr().unwrap().port();
        let scissors = Arc::clone(self);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&address).unwrap());
                scissors.join(client, server);
            }
        });
        format!("{user}@127.0.0.1:{port}/{name}")
    }

    fn join(self: &Arc<Self>, mut client: TcpStream, mut server: TcpStream) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let (mut to_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (scissors, cut) = (Arc::clone(self), Arc::clone(&is_cut));
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(count @ 1..) = client.read(&mut bytes) {
                let is_meant = bytes[..count].windows(scissors.text.len()).any(|text| text == scissors.text);
                if is_meant && !scissors.is_used.swap(true, Ordering::SeqCst) {
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
async fn a_charge_whose_answer_is_lost_is_never_told_as_undone() {
    let (direct, database) = crate::store().await;
    let account = account(&*direct, "a").await;
    let scissors = Arc::new(Scissors { text: b"cut here", is_used: AtomicBool::new(false) });
    let store = PostgresStore::open(PostgresOptions::new(scissors.between(&database))).await.unwrap();
    // Only what stores a charge names its memo. There is room for one call, so that the same again finds none.
    let plain = ask(&account, "h1");
    let take = Take { count: 1, per_ms: 3_600_000, ..plain.take.clone() };
    let mut spend = plain.spend.clone();
    spend.memo = "cut here".to_owned();
    let once = ChargeRequest { take, spend, ..plain };
    let outcome = store.charge(once).await;
    assert!(scissors.is_used.load(Ordering::SeqCst));
    let is_unknown = matches!(&outcome, Err(error) if error.kind() == ErrorKind::Unavailable);
    assert!(is_unknown, "whether it was charged is not known to the store: {outcome:?}");
    let balance = direct.balance(&account.wallet, &purchased()).await.unwrap();
    assert_eq!(balance.pools[0].spent, 1, "it was");
    // The next one is not in its way.
    let outcome = store
        .charge(ChargeRequest { take: Take { count: 9, ..ask(&account, "h2").take }, ..ask(&account, "h2") });
    assert!(charged(&outcome.await));
    check_audit(&*direct).await;
}

/// A connection of somebody else's.
async fn stranger(database: &Database<'_>) -> sqlx::PgConnection {
    let options: PgConnectOptions = database.url.parse().unwrap();
    options.connect().await.unwrap()
}

/// Waits until somebody waits for a row of another's.
async fn is_waited_for(watcher: &mut sqlx::PgConnection) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query(waiting).fetch_one(&mut *watcher).await.unwrap().get::<i64, _>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_id_that_took_the_last_credit_meanwhile_is_known_and_not_refused() {
    let (store, database) = crate::store().await;
    grant(&*store, "bought", "w", 1).await;
    let (mut other, mut watcher) = (stranger(&database).await, stranger(&database).await);
    let spent = "BEGIN;
        UPDATE ledger_pools SET spent = spent + 1, version = version + 1 WHERE wallet = 'w';
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs, share_buckets,
            share_caps, share_amounts)
        VALUES ('h1', 'closed', 9000000000000, '', '{w}', '{1}', '{1}', '{1}', ARRAY[''], '{0}', '{1}')";
    sqlx::raw_sql(spent).execute(&mut other).await.unwrap();
    let asking = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.spend(request("h1".to_owned(), "w", 1)).await })
    };
    is_waited_for(&mut watcher).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    let outcome = asking.await.unwrap().unwrap();
    let is_known = matches!(&outcome, HoldOutcome::Known { state: HoldState::Closed { .. }, .. });
    assert!(is_known, "{outcome:?}");
    assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().pools[0].spent, 1);
}

/// No row of this table can be deleted any more.
async fn keep_all(database: &Database<'_>, table: &'static str) {
    let refuse = format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'nothing goes' USING ERRCODE = 'XX001'; END $$;
        CREATE TRIGGER keep BEFORE DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    );
    sqlx::raw_sql(AssertSqlSafe(refuse)).execute(&mut stranger(database).await).await.unwrap();
}

fn attempt(n: u32) -> Attempt {
    Attempt {
        key: format!("key {n}"),
        fingerprint: vec![1],
        holder: Holder::new("h"),
        now: moment(0),
        lease_until: moment(1_000),
        keep_until: moment(2_000),
    }
}

#[tokio::test]
async fn what_cannot_be_forgotten_keeps_nobody_from_taking_and_beginning() {
    let (store, database) = crate::store().await;
    keep_all(&database, "limits").await;
    keep_all(&database, "replies").await;
    for n in 0..200 {
        let take = Take { bucket: "api/a".to_owned(), count: 1_000, per_ms: 1_000, cost: 1 };
        assert!(matches!(store.take(vec![take], moment(0)).await, Ok(Taken::Allowed { .. })));
        assert_eq!(store.begin(attempt(n)).await.unwrap(), Begun::Fresh);
    }
}

#[tokio::test]
async fn a_window_that_was_forgotten_begins_with_another_version() {
    let (store, database) = crate::store().await;
    let mut other = stranger(&database).await;
    let mut versions = Vec::new();
    for _ in 0..2 {
        let take = Take { bucket: "api/a".to_owned(), count: 9, per_ms: 1_000, cost: 1 };
        store.take(vec![take], moment(0)).await.unwrap();
        let gone = "DELETE FROM limits WHERE bucket LIKE 'api/a%' RETURNING version";
        versions.push(sqlx::query(gone).fetch_one(&mut other).await.unwrap().get::<i64, _>(0));
    }
    assert!(
        versions[0] < versions[1],
        "whoever has read the first one takes the second one for it: {versions:?}"
    );
}

/// Lets somebody renew a row that is about to be forgotten, and returns whether it is still there afterwards. `work` is
/// done until it waits for that row.
async fn renewed<F: Future<Output = ()> + Send>(
    database: &Database<'_>,
    [old, renew, there]: [&'static str; 3],
    work: impl Fn(u32) -> F + Send + Sync,
) -> bool {
    let (mut other, mut watcher) = (stranger(database).await, stranger(database).await);
    sqlx::raw_sql(old).execute(&mut other).await.unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut other).await.unwrap();
    sqlx::raw_sql(renew).execute(&mut other).await.unwrap();
    let (is_over, until_it_waits) = (AtomicBool::new(false), async {
        is_waited_for(&mut watcher).await;
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
async fn what_is_renewed_while_it_is_forgotten_stays() {
    let (store, database) = crate::store().await;
    let store = &*store;
    let limit = [
        "INSERT INTO limits (bucket, version, ends_at, taken) VALUES ('api/old', 1, 1, '')",
        "UPDATE limits SET ends_at = 9000000000000 WHERE bucket = 'api/old'",
        "SELECT 1 FROM limits WHERE bucket = 'api/old'",
    ];
    let take = |n| async move {
        let take = Take { bucket: "api/a".to_owned(), count: 9, per_ms: 1, cost: 1 };
        store.take(vec![take], moment(2 * i64::from(n))).await.unwrap();
    };
    assert!(renewed(&database, limit, take).await, "a rate limit");
    let reply = [
        "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until) VALUES ('old', '', 'h', 1, 1)",
        "UPDATE replies SET keep_until = 9000000000000 WHERE key = 'old'",
        "SELECT 1 FROM replies WHERE key = 'old'",
    ];
    let begin = |n| async move {
        store.begin(attempt(n)).await.unwrap();
    };
    assert!(renewed(&database, reply, begin).await, "a reply");
}
