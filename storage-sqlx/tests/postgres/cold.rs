//! Cold storage in PostgreSQL: damage, deletion, and concurrent compaction by several servers.

use sqlx::{AssertSqlSafe, Row};
use transcript_core::{ErrorKind, archive::Archive};

use crate::{
    common::cold::{check_malformed_name_is_passed, compact, found, speech},
    opening::foreign_connection,
};

#[tokio::test]
async fn compaction_malformed_name_is_passed() {
    let (archive, database) = crate::archive().await;
    check_malformed_name_is_passed(&*archive, async || {
        let without_keys = "SET session_replication_role = replica;
            UPDATE transcripts SET video = 'later/x' WHERE video LIKE '%-000001';
            UPDATE bodies SET video = 'later/x' WHERE video LIKE '%-000001'";
        crate::run_on_archive(&database, without_keys).await;
    })
    .await;
}

#[tokio::test]
async fn cold_row_damaged_returns_error() {
    let (archive, database) = crate::archive().await;
    let (kept, other) = (speech(1), speech(2));
    archive.put(kept.clone()).await.unwrap();
    archive.put(other).await.unwrap();
    let sound = found(&*archive, &kept).await;
    assert_eq!(compact(&*archive, 10).await.compacted, 2);
    assert_eq!(found(&*archive, &kept).await, sound);
    let mut connection = foreign_connection(&database).await;
    let mut run = async |statement: &str| {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    };
    run("CREATE TABLE sound AS SELECT * FROM cold").await;
    let first = "WHERE video = 'video_site/cold-000001'";
    for (damage, kind) in [
        ("(SELECT o.body FROM cold o WHERE o.video = 'video_site/cold-000002')", ErrorKind::Corrupt),
        ("''", ErrorKind::Corrupt),
        ("substring(body FROM 1 FOR 100)", ErrorKind::Corrupt),
        // A codec and a dictionary of a later version.
        ("set_byte(body, 0, 2)", ErrorKind::Unsupported),
        ("set_byte(body, 1, 9)", ErrorKind::Unsupported),
        ("set_byte(body, 1, 0)", ErrorKind::Corrupt),
    ] {
        run(&format!("UPDATE cold SET body = {damage} {first}")).await;
        let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{damage}: {error}");
        let error = archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{damage}: {error}");
        run("DELETE FROM cold; INSERT INTO cold SELECT * FROM sound").await;
        assert_eq!(found(&*archive, &kept).await, sound, "{damage}");
    }
    run(&format!("DELETE FROM cold {first}")).await;
    let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn compaction_two_servers_compact_each_once() {
    let (one, database) = crate::archive().await;
    let two = crate::archive_in(&database).await;
    let mut before = Vec::new();
    for number in 0..60 {
        one.put(speech(number)).await.unwrap();
        before.push(found(&*one, &speech(number)).await);
    }
    let (left, right) = tokio::join!(compact(&*one, 1_000), compact(&*two, 1_000));
    assert_eq!(left.compacted + right.compacted, 60);
    for archive in [&one, &two] {
        for (number, before) in (0..).zip(&before) {
            assert_eq!(found(&**archive, &speech(number)).await, *before);
        }
        let stats = archive.stats().await.unwrap();
        assert_eq!((stats.videos, stats.transcripts, stats.compact), (60, 60, 60));
    }
    let mut connection = foreign_connection(&database).await;
    let figures = "SELECT (SELECT count(*) FROM bodies), (SELECT count(*) FROM cold), (SELECT sum(body_bytes)::BIGINT FROM transcripts)";
    let row = sqlx::query(figures).fetch_one(&mut connection).await.unwrap();
    assert_eq!((row.get::<i64, _>(0), row.get::<i64, _>(1)), (0, 60));
    let bytes = u64::try_from(row.get::<i64, _>(2)).unwrap();
    assert_eq!(one.stats().await.unwrap().bytes, bytes);
    two.delete(&speech(7).video).await.unwrap();
    assert_eq!(one.stats().await.unwrap().compact, 59);
}
