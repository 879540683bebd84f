//! Vectors in the file: files of the version before, and programs of that version.

use transcript_core::archive::{Archive, VectorsKey};

use crate::{
    common::cold::{found, speech},
    opening::{foreign_connection, run, value},
};

#[tokio::test]
async fn archive_version_8_stores_vectors_after_upgrade() {
    let (archive, folder) = crate::archive().await;
    let kept = speech(1);
    let stored = archive.put(kept.clone()).await.unwrap();
    let before = found(&*archive, &kept).await;
    archive.close().await;
    let file = folder.path().join("archive.db");
    run(&file, "DROP TABLE vectors; DELETE FROM schema_version WHERE version >= 9");
    run(
        &file,
        "DROP TRIGGER list_tracks; DROP TRIGGER list_added_track; DROP TRIGGER list_changed_track;
        DROP TRIGGER unlist_deleted_track; DROP VIEW track_texts; ALTER TABLE details DROP COLUMN tracks",
    );

    let archive = crate::archive_in(folder.path()).await;
    assert_eq!(found(&*archive, &kept).await, before);
    let (video, content_sha256) = (kept.video.clone(), stored.content_sha256);
    let key = VectorsKey { video, content_sha256, texts_sha256: [7; 32] };
    assert_eq!(archive.vectors(&key).await.unwrap(), None);
    archive.put_vectors(&key, vec![3; 70_000]).await.unwrap();
    let bytes = archive.stats().await.unwrap().bytes;
    archive.close().await;

    let archive = crate::archive_in(folder.path()).await;
    assert_eq!(archive.vectors(&key).await.unwrap(), Some(vec![3; 70_000]));
    assert_eq!(archive.stats().await.unwrap().bytes, bytes);
    assert_eq!(found(&*archive, &kept).await, before);
    // The program of that version deletes a video as it knows it.
    let video = kept.video.to_string();
    let statements = ["wishes", "transcripts"]
        .map(|table| format!("DELETE FROM {table} WHERE video = '{video}'"))
        .join("; ");
    run(&file, &format!("PRAGMA foreign_keys = ON; {statements}"));
    assert_eq!(value::<i64>(&foreign_connection(&file), "SELECT count(*) FROM vectors"), 0);
}
