//! Migration of a database of the previous version, while a server of that version uses it.

use sqlx::{Connection, Row};
use transcript_core::{
    ErrorKind, PageRequest,
    ids::WalletId,
    ledger::{EntryKind, HoldOutcome, Ledger},
};

use crate::{
    common::{check_audit, grant, purchased, request, timestamp},
    database,
    opening::foreign_connection,
    store_in,
};

/// The migration up to that version.
const BEFORE: &str = include_str!("../../migrations/postgres-main/0001_create_main.sql");
const TABLES: &str =
    "CREATE TABLE verbatim_schema (part TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL,
        applied_at BIGINT NOT NULL, PRIMARY KEY (part, version));
    CREATE TABLE verbatim_migrating (part TEXT PRIMARY KEY, holder BIGINT NOT NULL, until BIGINT NOT NULL);
    INSERT INTO verbatim_schema VALUES ('main', 1, '0001_create_main', 0)";
/// Ten charges of one purchased credit each, a millisecond apart.
const FILL: &str = "INSERT INTO ledger_pools VALUES ('w', '', 1, 1, 30, 0, 10, 0, 100);
    INSERT INTO ledger_entries SELECT 'w', 1, 1795132800000, '', 0, 'granted', 100, 0, 'g', '';
    INSERT INTO ledger_entries
        SELECT 'w', 2 * n + k.place, 1795132800000 + n, '', 0, k.kind, 1, 0, 'h' || n, ''
        FROM generate_series(1, 10) n, (VALUES ('held', 0), ('spent', 1)) k (kind, place)";
/// The statements of a server of that version for a charge, and for the sum of spends.
const OLD_CHARGE: &str = "WITH pool AS (
        UPDATE ledger_pools SET version = version + 1, last_entry = last_entry + 2, spent = spent + 1
        WHERE wallet = 'w' AND bucket = '' RETURNING last_entry
    ) INSERT INTO ledger_entries
        SELECT 'w', last_entry + k.place, 1795132800000, '', 0, k.kind, 1, 0, 'old', ''
        FROM pool, (VALUES ('held', -1), ('spent', 0)) k (kind, place)";
const OLD_SUM: &str = "SELECT coalesce(sum(amount), 0)::BIGINT FROM ledger_entries
    WHERE wallet = 'w' AND bucket = '' AND kind = 'spent' AND at >= 0";
const OLD_PLAN: &str = "EXPLAIN SELECT sum(amount) FROM ledger_entries
    WHERE wallet = 'w' AND bucket = '' AND kind = 'spent' AND at >= 0";

#[tokio::test]
async fn migration_previous_ledger_keeps_entries_and_sums() {
    // In the second case the operator has built the index in advance.
    for beforehand in [
        "SELECT 1",
        "CREATE INDEX CONCURRENTLY ledger_entries_spent_purchases ON ledger_entries (wallet, at, amount)
            WHERE bucket = '' AND kind IN ('spent', 'charged')",
    ] {
        let database = database();
        let mut older = foreign_connection(&database).await;
        for statement in [TABLES, BEFORE, FILL, beforehand] {
            sqlx::raw_sql(statement).execute(&mut older).await.unwrap();
        }
        let store = store_in(&database).await;
        let wallet = WalletId::new("w");
        let since = async |millis| {
            let since = store.balance_since(&wallet, &purchased(), timestamp(millis)).await.unwrap();
            since.purchased_spent
        };
        assert_eq!((since(0).await, since(6).await), (10, 5), "both sums are unchanged");

        // Old and new servers charge alternately.
        for n in 0..3 {
            let spent = store.spend(request(format!("new{n}"), "w", 2)).await.unwrap();
            assert!(matches!(spent, HoldOutcome::Held { .. }), "{spent:?}");
            sqlx::raw_sql(OLD_CHARGE).execute(&mut older).await.unwrap();
        }
        assert_eq!((since(0).await, since(1).await), (10 + 3 * 3, 10));
        let entries = store.entries(&wallet, PageRequest::first()).await.unwrap().items;
        let kinds: Vec<_> = entries.iter().skip(21).map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::Charged, EntryKind::Held, EntryKind::Spent].repeat(3));
        check_audit(&*store).await;

        // The monthly sum of an old server omits the new servers' charges; it reads no more rows than before.
        let sum: i64 = sqlx::query(OLD_SUM).fetch_one(&mut older).await.unwrap().get(0);
        assert_eq!(sum, 10 + 3);
        sqlx::raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off")
            .execute(&mut older)
            .await
            .unwrap();
        let plan = sqlx::query(OLD_PLAN).fetch_all(&mut older).await.unwrap();
        let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
        assert!(plan.iter().any(|line| line.contains("ledger_entries_spent_purchases")), "{plan:#?}");

        // Balances have the same constraints as before.
        for wrong in ["held = -1", "spent = -1", "granted = -1", "held = 1000", "spent = 1000", "granted = 0"]
        {
            let text = format!("UPDATE ledger_pools SET {wrong} WHERE wallet = 'w'");
            let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut older).await.unwrap_err();
            assert!(refused.to_string().contains("check constraint"), "{wrong}: {refused}");
        }
        older.close().await.unwrap();
    }
}

/// No constraint rejects these rows any more, so the readers reject them.
#[tokio::test]
async fn ledger_damaged_rows_are_rejected_on_read() {
    let (store, database) = crate::store().await;
    grant(&*store, "g", "w", 10).await;
    let _ = store.spend(request("s".to_owned(), "w", 2)).await.unwrap();
    let mut foreign_connection = foreign_connection(&database).await;
    let mut change = async |statement: &'static str| {
        assert_eq!(
            sqlx::raw_sql(statement).execute(&mut foreign_connection).await.unwrap().rows_affected(),
            1
        );
    };
    let wallet = WalletId::new("w");
    for (damage, repair) in [
        (
            "UPDATE ledger_entries SET kind = 'taken' WHERE kind = 'charged'",
            "UPDATE ledger_entries SET kind = 'charged' WHERE kind = 'taken'",
        ),
        (
            "UPDATE ledger_entries SET amount = -2 WHERE kind = 'charged'",
            "UPDATE ledger_entries SET amount = 2 WHERE kind = 'charged'",
        ),
        (
            "UPDATE ledger_entries SET shortfall = -1 WHERE kind = 'charged'",
            "UPDATE ledger_entries SET shortfall = 0 WHERE kind = 'charged'",
        ),
    ] {
        change(damage).await;
        let error = store.entries(&wallet, PageRequest::first()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}: {error}");
        change(repair).await;
        check_audit(&*store).await;
    }
    change("UPDATE ledger_holds SET state = 'taken'").await;
    let again = store.spend(request("s".to_owned(), "w", 2)).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Corrupt, "{again}");
}
