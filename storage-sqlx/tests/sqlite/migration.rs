//! Migration of files of previous versions, while a program of that version has them open.

use std::path::Path;

use rusqlite::Connection;
use transcript_core::{
    PageRequest,
    ids::WalletId,
    ledger::{EntryKind, HoldOutcome, Ledger},
};

use crate::{
    common::{check_audit, purchased, request, timestamp},
    opening::{foreign_connection, value},
    store_in,
};

/// The migrations up to that version, with their numbers.
const BEFORE: [(u32, &str); 9] = [
    (1, include_str!("../../migrations/main/0001_create_ledger.sql")),
    (2, include_str!("../../migrations/main/0002_create_directory.sql")),
    (3, include_str!("../../migrations/main/0003_create_requests.sql")),
    (4, include_str!("../../migrations/main/0004_index_what_ends.sql")),
    (5, include_str!("../../migrations/main/0005_keep_paid_periods.sql")),
    (6, include_str!("../../migrations/main/0006_index_purchases_spent.sql")),
    (7, include_str!("../../migrations/main/0007_follow_payments.sql")),
    (8, include_str!("../../migrations/main/0008_keep_the_anchor_before.sql")),
    (9, include_str!("../../migrations/main/0009_index_orders_of_accounts.sql")),
];

/// Number of charges of the wallet `w`, each of one purchased credit.
const CHARGES: u64 = 5_000;

/// Creates the file with a connection of the older program, which stays open.
fn older(file: &Path) -> Connection {
    let older = foreign_connection(file);
    older.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    for (version, step) in BEFORE {
        older.execute_batch(step).unwrap();
        older.execute("INSERT INTO schema_version VALUES (?1, 'before', 0)", [version]).unwrap();
    }
    let at = timestamp(0).as_millis();
    let fill = format!(
        "INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted)
            VALUES ('w', '', 0, {CHARGES}, 0, 2 * {CHARGES});
        INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
            VALUES ({at}, 'w', '', 0, 'granted', 2 * {CHARGES}, 0, 'g', '');
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {CHARGES})
        INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
            SELECT {at} + n, 'w', '', 0, kinds.column1, 1, 0, 'h' || n, '' FROM numbers, (VALUES ('held'), ('spent')) kinds
            ORDER BY n, kinds.column1;"
    );
    older.execute_batch(&fill).unwrap();
    older
}

#[tokio::test]
async fn migration_previous_ledger_keeps_entries_and_sums() {
    const PLACE: &str = "SELECT rootpage FROM sqlite_schema WHERE name = 'ledger_entries'";
    const HELD: &str =
        "INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
        VALUES (0, 'w', '', 0, 'held', 1, 0, 'older', '')";
    let folder = tempfile::tempdir().unwrap();
    let older = older(&folder.path().join("verbatim.db"));
    let root_page: i64 = value(&older, PLACE);
    let store = store_in(folder.path()).await;
    let wallet = WalletId::new("w");
    let since = async |millis| {
        let since = store.balance_since(&wallet, &purchased(), timestamp(millis)).await.unwrap();
        since.purchased_spent
    };
    check_audit(&*store).await;
    assert_eq!((since(0).await, since(1_001).await), (CHARGES, CHARGES - 1_000), "both sums are unchanged");
    assert_eq!(value::<i64>(&older, PLACE), root_page, "a large ledger is not copied");

    // New charges are one entry each, after all existing ones, and count like the old ones.
    for n in 0..2 {
        let spent = store.spend(request(format!("new{n}"), "w", 2)).await.unwrap();
        assert!(matches!(spent, HoldOutcome::Held { .. }), "{spent:?}");
    }
    let mut entries = Vec::new();
    let mut page = PageRequest::first();
    loop {
        let found = store.entries(&wallet, page).await.unwrap();
        entries.extend(found.items);
        let Some(next) = found.next else { break };
        page = PageRequest { after: Some(next), ..PageRequest::first() };
    }
    let newest: Vec<_> = entries.iter().rev().take(3).map(|entry| (entry.seq, entry.kind)).collect();
    let last = 2 * CHARGES + 1;
    let expect = [(last + 2, EntryKind::Charged), (last + 1, EntryKind::Charged), (last, EntryKind::Spent)];
    assert_eq!(newest, expect, "the numbers continue");
    assert_eq!((since(0).await, since(5_000).await), (CHARGES + 4, 1));
    check_audit(&*store).await;

    // The older program still writes its own kinds of entries, and the table's constraints still hold.
    older.execute_batch(HELD).unwrap();
    let newer = foreign_connection(&folder.path().join("verbatim.db"));
    for connection in [&older, &newer] {
        for refused in [
            "INSERT INTO ledger_entries SELECT NULL, at, wallet, bucket, cap, 'taken', 1, 0, cause, memo
                FROM ledger_entries LIMIT 1",
            "UPDATE ledger_entries SET amount = 50 WHERE kind = 'charged'",
            "DELETE FROM ledger_entries WHERE kind = 'charged'",
            "INSERT OR REPLACE INTO ledger_entries SELECT seq, at, wallet, bucket, cap, kind, 50, 0, cause, memo
                FROM ledger_entries WHERE kind = 'charged'",
        ] {
            connection.execute_batch(refused).unwrap_err();
        }
        assert_eq!(value::<String>(connection, "PRAGMA integrity_check"), "ok");
    }
    // It has also read the new constraint.
    let charged =
        "INSERT INTO ledger_entries SELECT NULL, at, wallet, bucket, cap, 'charged', 1, 0, cause, memo
        FROM ledger_entries LIMIT 1";
    older.execute_batch(charged).unwrap();
}

#[cfg(feature = "search")]
#[tokio::test]
async fn migration_previous_search_index_is_empty_and_built_again() {
    use transcript_core::search::ArchiveIndex as _;

    const FILL: &str = "INSERT INTO schema_version VALUES (1, 'before', 0);
        INSERT INTO search_state VALUES (1, 4, '{\"generation\":4,\"format\":2,\"cursor\":null,\"tracks\":1,\"is_complete\":true}');
        INSERT INTO search_videos VALUES ('video_site/aaaaaaaaaaa', 1, 4);
        INSERT INTO search_documents VALUES (1, 'video_site/aaaaaaaaaaa', 'default', 'en', 0, 'digest', 1);
        INSERT INTO terms (rowid, title, channel, words, extras, facets)
            VALUES (64, '', '', 'two cats', 'cat·en', '·all')";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.db");
    let older = foreign_connection(&file);
    older.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    older.execute_batch(include_str!("../../migrations/search/0001_create_index.sql")).unwrap();
    older.execute_batch(FILL).unwrap();
    let index = storage_sqlx::SqliteSearchIndex::open(storage_sqlx::SqliteOptions::new(&file)).await.unwrap();
    assert_eq!(index.rebuild_state().await.unwrap(), transcript_core::search::RebuildState::default());
    assert!(index.list(PageRequest::first()).await.unwrap().items.is_empty());
    assert!(index.near_words("cats").await.unwrap().is_empty());
}

#[cfg(feature = "search")]
#[tokio::test]
async fn migration_search_index_keeps_documents_of_each_video() {
    use transcript_core::{
        search::{ArchiveIndex as _, IndexedVideo, RebuildState},
        video::{Platform, VideoId},
    };

    const FILL: &str = "INSERT INTO schema_version VALUES (1, 'before', 0), (2, 'before', 0);
        INSERT INTO search_state VALUES (1, 4, '{\"generation\":4,\"format\":6,\"cursor\":null,\"tracks\":1,\"is_complete\":true}');
        INSERT INTO search_videos VALUES ('video_site/aaaaaaaaaaa', 1, 4), ('video_site/bbbbbbbbbbb', 1, 4);
        INSERT INTO search_documents VALUES (1, 'video_site/bbbbbbbbbbb', 'de', 'de', 0, 'third', 1),
            (2, 'video_site/aaaaaaaaaaa', 'default', 'en', 0, 'first', 1),
            (3, 'video_site/aaaaaaaaaaa', 'en', 'en', 0, 'second', 2);
        INSERT INTO terms (rowid, words, title, channel, others, facets)
            VALUES (1, 'katze', '', '', '', ''), (2, 'cats', '', '', '', ''), (3, 'cats', '', '', '', ''),
                (4, 'more', '', '', '', '')";
    /// What a step of the older program that began before the migration stores: nothing in an earlier generation.
    const OLDER_STEP: &str = "INSERT INTO search_videos (video, change, generation)
            SELECT 'video_site/ccccccccccc', 2, 4 FROM search_state WHERE generation <= 4;
        INSERT INTO search_documents SELECT 5, 'video_site/ccccccccccc', 'en', 'en', 0, 'fourth', 1
            FROM search_state WHERE generation <= 4;
        INSERT INTO search_state VALUES (1, 4, '{\"generation\":4,\"format\":6,\"cursor\":null,\"tracks\":2,\"is_complete\":true}')
            ON CONFLICT (only_row) DO UPDATE SET generation = excluded.generation, state = excluded.state
            WHERE search_state.generation <= excluded.generation";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.db");
    let older = foreign_connection(&file);
    older.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    older.execute_batch(include_str!("../../migrations/search/0001_create_index.sql")).unwrap();
    older.execute_batch(include_str!("../../migrations/search/0002_shrink_index.sql")).unwrap();
    older.execute_batch(FILL).unwrap();
    let index = storage_sqlx::SqliteSearchIndex::open(storage_sqlx::SqliteOptions::new(&file)).await.unwrap();
    let digests = async || {
        let listed = index.list(PageRequest::first()).await.unwrap();
        listed.items.into_iter().map(|track| track.digest).collect::<Vec<_>>()
    };
    older.execute_batch(OLDER_STEP).unwrap();
    assert_eq!(digests().await, ["first", "second", "third"]);
    assert_eq!(value::<i64>(&older, "SELECT count(*) FROM search_documents"), 3);
    assert_eq!(value::<i64>(&older, "SELECT count(*) FROM search_videos"), 2);
    // Its further steps find an index of a later format.
    let state = RebuildState { generation: 5, format: 7, ..RebuildState::default() };
    assert_eq!(index.rebuild_state().await.unwrap(), state);
    let video = VideoId::new(Platform::YouTube, "aaaaaaaaaaa").unwrap();
    let deleted = IndexedVideo { video, change: 2, documents: Vec::new() };
    index.put(&[deleted], 5, None).await.unwrap();
    assert_eq!(digests().await, ["third"]);
    assert_eq!(value::<i64>(&older, "SELECT count(*) FROM terms_docsize"), 1, "its rows are deleted too");
}
