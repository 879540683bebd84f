//! The search index in PostgreSQL: the end of a build, slow videos, videos that cannot be read for a time, and
//! malformed names.

use std::{sync::Arc, time::Duration};

use sqlx::AssertSqlSafe;
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresSearchIndex};
use tokio::runtime::Handle;
use transcript_core::{
    ErrorKind, PageRequest, Retry,
    archive::Archive,
    search::{ArchiveIndex, INDEX_FORMAT, Indexer, RebuildState},
    test_doubles::ManualClock,
};

use crate::{
    common::{cold::speech, timestamp},
    opening::foreign_connection,
};

/// Deleted videos of an index, and a record of how many a transaction deletes.
const DELETED_VIDEOS: &str = "INSERT INTO search_videos (video, change, generation)
        SELECT 'video_site/' || lpad(n::TEXT, 11, '0'), n, 0 FROM generate_series(1, 1200) n;
    CREATE TABLE deletions (id BIGINT, count BIGINT);
    CREATE FUNCTION record_deletions() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO deletions SELECT txid_current(), count(*) FROM deleted; RETURN NULL; END $$;
    CREATE TRIGGER record_deletions AFTER DELETE ON search_videos
        REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION record_deletions()";

/// A server ends a transaction that takes too long, as one that deletes all deleted videos of an index may.
#[tokio::test]
async fn search_build_deletes_few_videos_in_a_transaction() {
    let database = crate::database();
    let archive = PostgresArchive::open(crate::options(&database)).await.unwrap();
    let index = PostgresSearchIndex::of_archive(&archive);
    let mut connection = foreign_connection(&database).await;
    sqlx::raw_sql(DELETED_VIDEOS).execute(&mut connection).await.unwrap();
    let (generation, format) = (1, INDEX_FORMAT);
    let state = RebuildState { generation, format, is_complete: true, ..RebuildState::default() };
    index.put(&[], generation, Some(&state)).await.unwrap();
    assert_eq!(index.rebuild_state().await.unwrap(), state);
    let deletions = "SELECT sum(count)::BIGINT FROM deletions GROUP BY id";
    let deletions: Vec<i64> = sqlx::query_scalar(deletions).fetch_all(&mut connection).await.unwrap();
    assert_eq!(deletions.iter().sum::<i64>(), 1_200);
    assert!(deletions.iter().all(|count| *count <= 500), "{deletions:?}");
    let all = "SELECT count(*) FROM search_videos";
    let left: i64 = sqlx::query_scalar(all).fetch_one(&mut connection).await.unwrap();
    assert_eq!(left, 0);
}

/// The terms of a video take longer than the timeout of the store.
const SLOW_VIDEO: &str = "CREATE FUNCTION wait() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
    CREATE TRIGGER wait BEFORE INSERT ON search_terms FOR EACH ROW
        WHEN (NEW.video = 'video_site/cold-000001') EXECUTE FUNCTION wait()";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(timestamp(0)))
}

#[tokio::test]
async fn search_slow_video_is_left_out() {
    let (archive, database) = crate::archive().await;
    for number in 1..=3 {
        archive.put(speech(number)).await.unwrap();
    }
    // A build finds the videos.
    archive.delete_unindexed_videos(&archive.unindexed_videos(9).await.unwrap()).await.unwrap();
    sqlx::raw_sql(SLOW_VIDEO).execute(&mut foreign_connection(&database).await).await.unwrap();
    let options = PostgresOptions { timeout: Duration::from_secs(5), ..crate::options(&database) };
    let index = PostgresSearchIndex::of_archive(&PostgresArchive::open(options).await.unwrap());
    let index: Arc<dyn ArchiveIndex> = Arc::new(index);
    // Each process has one indexer.
    let index_all = async || {
        let (archive, clock) = (Arc::clone(&archive), clock());
        let indexer = Indexer::new(archive, Arc::clone(&index), clock, Handle::current());
        while !indexer.step().await.unwrap().is_idle() {}
        let indexed = index.list(PageRequest::first()).await.unwrap().items;
        indexed.into_iter().map(|track| track.video.id().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(index_all().await, ["cold-000002", "cold-000003"]);
    let drop_trigger = "DROP TRIGGER wait ON search_terms";
    sqlx::raw_sql(drop_trigger).execute(&mut foreign_connection(&database).await).await.unwrap();
    assert_eq!(index_all().await, ["cold-000001", "cold-000002", "cold-000003"]);
}

/// A database that refuses to read a video says nothing about the stored transcript.
#[tokio::test]
async fn search_indexes_video_that_user_could_not_read() {
    let database = crate::database();
    let mut admin = foreign_connection(&database).await;
    // Permissions do not bind the superuser of the tests.
    let name = database.url.rsplit('/').next().unwrap();
    let create_owner = format!("CREATE ROLE owner_{name} LOGIN; ALTER DATABASE {name} OWNER TO owner_{name}");
    sqlx::raw_sql(AssertSqlSafe(create_owner)).execute(&mut admin).await.unwrap();
    let url = database.url.replacen("verbatim@", &format!("owner_{name}@"), 1);
    let archive = PostgresArchive::open(PostgresOptions { url, ..crate::options(&database) }).await.unwrap();
    let index: Arc<dyn ArchiveIndex> = Arc::new(PostgresSearchIndex::of_archive(&archive));
    let archive: Arc<dyn Archive> = Arc::new(archive);
    archive.put(speech(1)).await.unwrap();
    let indexer = Indexer::new(Arc::clone(&archive), Arc::clone(&index), clock(), Handle::current());

    let refuse = format!("REVOKE SELECT ON bodies, cold FROM owner_{name}");
    sqlx::raw_sql(AssertSqlSafe(refuse)).execute(&mut admin).await.unwrap();
    let error = indexer.step().await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Never), "{error}");
    assert!(!error.is_unreadable() && error.message().contains("lacks permissions"), "{error}");

    let permit = format!("GRANT SELECT ON bodies, cold TO owner_{name}");
    sqlx::raw_sql(AssertSqlSafe(permit)).execute(&mut admin).await.unwrap();
    while !indexer.step().await.unwrap().is_idle() {}
    assert_eq!(index.list(PageRequest::first()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn malformed_candidates_are_left_out() {
    let (index, (_archive, database)) = crate::search_index().await;
    crate::common::changed::check_malformed_candidates_are_left_out(&*index, async |videos| {
        let without_keys = format!(
            "SET session_replication_role = replica;
            UPDATE search_documents SET video = {videos}; UPDATE search_terms SET video = {videos}"
        );
        crate::run_on_archive(&database, &without_keys).await;
    })
    .await;
}
