//! Vectors in PostgreSQL: databases of the version before, and several servers.

use transcript_core::archive::{Archive, VectorsKey};

use crate::{
    common::cold::{found, speech},
    disconnect::wait_for_lock_waiter,
    opening::foreign_connection,
};

#[tokio::test]
async fn archive_version_5_stores_vectors_after_upgrade() {
    let (archive, database) = crate::archive().await;
    let kept = speech(1);
    let stored = archive.put(kept.clone()).await.unwrap();
    let before = found(&*archive, &kept).await;
    drop(archive);
    let older = "DROP TABLE vectors; DELETE FROM verbatim_schema WHERE part = 'archive' AND version >= 6";
    let mut connection = foreign_connection(&database).await;
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();

    let (one, other) = (crate::archive_in(&database).await, crate::archive_in(&database).await);
    assert_eq!(found(&*one, &kept).await, before);
    let (video, content_sha256) = (kept.video.clone(), stored.content_sha256);
    let key = VectorsKey { video, content_sha256, texts_sha256: [7; 32] };
    let put = |archive, byte| {
        let key = key.clone();
        async move { Archive::put_vectors(archive, &key, vec![byte; 70_000]).await }
    };
    let (first, second) = tokio::join!(put(&*one, 3), put(&*other, 4));
    first.and(second).unwrap();
    let vectors = one.vectors(&key).await.unwrap().unwrap();
    assert!(vectors == vec![3; 70_000] || vectors == vec![4; 70_000], "those of one server, complete");
    assert_eq!(other.vectors(&key).await.unwrap(), Some(vectors));
    one.delete(&kept.video).await.unwrap();
    let left = sqlx::query("SELECT video FROM vectors").fetch_optional(&mut connection).await.unwrap();
    assert!(left.is_none());
}

/// The transcript of vectors is deleted while they are put: they are not stored, and no call fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn vectors_of_deleted_transcript_are_not_stored() {
    let (archive, database) = crate::archive().await;
    let kept = speech(1);
    let stored = archive.put(kept.clone()).await.unwrap();
    let (mut other, mut watcher) = (foreign_connection(&database).await, foreign_connection(&database).await);
    let deleted = "BEGIN; DELETE FROM wishes; DELETE FROM transcripts";
    sqlx::raw_sql(deleted).execute(&mut other).await.unwrap();
    let key = VectorsKey { video: kept.video, content_sha256: stored.content_sha256, texts_sha256: [7; 32] };
    let putting = tokio::spawn(async move { archive.put_vectors(&key, vec![3; 70]).await });
    wait_for_lock_waiter(&mut watcher).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    putting.await.unwrap().unwrap();
    let left = sqlx::query("SELECT video FROM vectors").fetch_optional(&mut watcher).await.unwrap();
    assert!(left.is_none());
}
