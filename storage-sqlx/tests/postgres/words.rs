//! Times of words, metadata and headers in PostgreSQL: damage, and databases of the version before.

use sqlx::AssertSqlSafe;
use transcript_core::{
    ErrorKind, PageRequest,
    archive::{Archive, FindOutcome, PutRequest, VerifyArchiveRequest},
};

use crate::{
    common::{
        cold::{compact, found, speech},
        words::{check_damaged_track, metadata, timed_speech},
    },
    opening::foreign_connection,
};

#[tokio::test]
async fn words_and_header_damaged_return_corrupt() {
    let (archive, database) = crate::archive().await;
    let kept = timed_speech(1);
    archive.put(kept.clone()).await.unwrap();
    let sound = found(&*archive, &kept).await;
    let mut connection = foreign_connection(&database).await;
    let mut run = async |statement: &str| {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    };
    for (damage, is_header) in [
        ("DELETE FROM words", false),
        ("UPDATE words SET bytes = ''", false),
        ("UPDATE words SET bytes = substring(bytes FROM 1 FOR 50)", false),
        ("UPDATE bodies SET about = replace(about, 'title', 'turtle')", true),
        ("UPDATE bodies SET about = replace(replace(about, 'title', 'turtle'), 'checksum', 'check')", true),
    ] {
        run(damage).await;
        let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}: {error}");
        let body = archive.stored_body(&kept.video, &kept.selectors[0]).await;
        match is_header {
            true => assert_eq!(body.unwrap_err().kind(), ErrorKind::Corrupt, "{damage}"),
            false => assert_eq!(body.unwrap().unwrap(), sound.1, "it reads no words"),
        }
        archive.put(PutRequest { replace: true, ..kept.clone() }).await.unwrap();
        assert_eq!(found(&*archive, &kept).await, sound, "{damage}");
    }
    // A damaged track costs no transcript.
    run("UPDATE tracks SET kind = 'spoken'").await;
    let FindOutcome::Transcript(stored) = found(&*archive, &kept).await.0 else { panic!("it is found") };
    assert_eq!(stored.details.tracks, []);
    let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let damaged = archive.verify(request).await.unwrap().damaged;
    assert_eq!(damaged.iter().map(|damaged| damaged.is_deleted).collect::<Vec<_>>(), [false]);
    run("UPDATE tracks SET kind = 'human'").await;
    assert_eq!(found(&*archive, &kept).await, sound);
    // Words of a transcript that has none.
    let bare = speech(2);
    archive.put(bare.clone()).await.unwrap();
    run("INSERT INTO words SELECT b.video, b.transcript, w.bytes FROM bodies b, words w WHERE b.video <> w.video").await;
    let error = archive.find(&bare.video, &bare.selectors[0], bare.now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    archive.put(PutRequest { replace: true, ..bare.clone() }).await.unwrap();
    found(&*archive, &bare).await;
}

#[tokio::test]
async fn track_damaged_is_restored_from_transcript() {
    let (archive, database) = crate::archive().await;
    let mut connection = foreign_connection(&database).await;
    let damage = "UPDATE tracks SET kind = 'spoken' WHERE language = 'en'";
    check_damaged_track(&*archive, damage, async |statement| {
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn archive_version_3_is_read_and_extended() {
    let (archive, database) = crate::archive().await;
    let (cold, kept) = (speech(1), speech(2));
    archive.put(cold.clone()).await.unwrap();
    assert_eq!(compact(&*archive, 10).await.compacted, 1);
    archive.put(kept.clone()).await.unwrap();
    let before = [found(&*archive, &cold).await, found(&*archive, &kept).await];
    drop(archive);
    // The schema of version 3, with these rows.
    let older = "DROP TABLE words, details, vectors; ALTER TABLE bodies DROP COLUMN about_checksum;
        DROP TABLE unindexed_videos, search_state, search_videos, search_terms, search_documents;
        DELETE FROM verbatim_schema WHERE part = 'archive' AND version >= 4";
    let mut connection = foreign_connection(&database).await;
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();

    let archive = crate::archive_in(&database).await;
    assert_eq!([found(&*archive, &cold).await, found(&*archive, &kept).await], before);
    for number in [1, 2] {
        let request = PutRequest { replace: true, metadata: metadata(), ..timed_speech(number) };
        let stored = archive.put(request.clone()).await.unwrap();
        assert_eq!((stored.revision, &stored.details.metadata), (2, &metadata()));
        assert_eq!(found(&*archive, &request).await.1.details, stored.details);
        archive.delete(&request.video).await.unwrap();
    }
    let rows = "SELECT video FROM words UNION ALL SELECT video FROM details";
    assert!(sqlx::query(rows).fetch_optional(&mut connection).await.unwrap().is_none());
}
