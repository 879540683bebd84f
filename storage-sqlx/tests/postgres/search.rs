//! The search index in PostgreSQL: the end of a build.

use storage_sqlx::{PostgresArchive, PostgresSearchIndex};
use transcript_core::search::{ArchiveIndex, INDEX_FORMAT, RebuildState};

use crate::opening::foreign_connection;

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
