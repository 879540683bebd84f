//! How transcripts lie in the file: damage, and what earlier versions wrote.

use std::{fs, path::Path, sync::Arc};

use sqlx::Row;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use transcript_core::{
    ErrorKind,
    archive::{Archive, Found, Keep, Wish, content_digest},
    transcript::Segment,
    wire::segments,
};

use crate::{
    common::cold::compact,
    opening::{run, stranger},
};

#[tokio::test]
async fn a_body_that_changed_on_disk_is_corrupt_never_other_words() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::keep("aaaaaaaaaaa", "the words");
    let (video, wish, now) = (kept.video.clone(), kept.wishes[0].clone(), kept.now);
    archive.keep(kept).await.unwrap();
    let other = crate::keep("bbbbbbbbbbb", "other words");
    archive.keep(other).await.unwrap();
    let sound = archive.body(&video, &wish).await.unwrap().unwrap();
    let file = folder.path().join("archive.db");
    run(&file, "CREATE TABLE sound AS SELECT * FROM bodies").await;
    // Each with whether it shows where the body is sent unread, and where it is read.
    for (damage, unread, read) in [
        ("segments = zeroblob(40)", true, true),
        ("segments = substr(segments, 1, 20)", true, true),
        ("source = 'others'", true, true),
        // Only what is sent, or only what is read.
        ("content_sha256 = zeroblob(32)", true, false),
        ("length = -1", true, false),
        ("length = length + 1", true, false),
        ("about = ''", false, true),
        // Whole and well-formed, but of another video.
        (
            "(content_sha256, source, length, checksum, about, segments) = (SELECT content_sha256, source,
                length, checksum, about, segments FROM bodies WHERE transcript = 2)",
            true,
            true,
        ),
    ] {
        run(&file, &format!("UPDATE bodies SET {damage} WHERE transcript = 1")).await;
        let corrupt = |shows: bool| shows.then_some(ErrorKind::Corrupt);
        let error = archive.body(&video, &wish).await.err();
        assert_eq!(error.map(|error| error.kind()), corrupt(unread), "{damage}");
        // Left unread it is as sure: it shows when it is found or when it is read, and nothing else comes of it.
        let left = async { archive.unread(&video, &wish).await?.map(|unread| unread.read()).transpose() };
        assert_eq!(left.await.err().map(|error| error.kind()), Some(ErrorKind::Corrupt), "{damage}");
        let error = archive.find(&video, &wish, now).await.err();
        assert!(error.as_ref().is_none_or(|error| !error.message().contains("words")), "{error:?}");
        assert_eq!(error.map(|error| error.kind()), corrupt(read), "{damage}");
        run(&file, "DELETE FROM bodies; INSERT INTO bodies SELECT * FROM sound").await;
        assert_eq!(archive.body(&video, &wish).await.unwrap().unwrap(), sound, "{damage}");
    }
    for damage in ["content_sha256 = zeroblob(32)", "body_length = -1", "body_length = 1"] {
        let whole = "CREATE TABLE whole AS SELECT * FROM transcripts";
        run(&file, &format!("{whole}; UPDATE transcripts SET {damage} WHERE id = 1")).await;
        let error = archive.find(&video, &wish, now).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}");
        let back =
            "UPDATE transcripts SET (content_sha256, body_length) = (SELECT content_sha256, body_length
            FROM whole WHERE whole.id = transcripts.id); DROP TABLE whole";
        run(&file, back).await;
    }
    // A transcript without its body is no transcript.
    run(&file, "DELETE FROM bodies WHERE transcript = 1").await;
    assert_eq!(archive.find(&video, &wish, now).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(archive.body(&video, &wish).await.unwrap(), None);
    assert!(archive.unread(&video, &wish).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_left_unread_can_be_read_whatever_became_of_the_file() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::keep("aaaaaaaaaaa", "the words");
    let (video, wish) = (kept.video.clone(), kept.wishes[0].clone());
    let stored = archive.keep(kept).await.unwrap();
    let unread = archive.unread(&video, &wish).await.unwrap().unwrap();
    archive.forget(&video).await.unwrap();
    assert!(archive.unread(&video, &wish).await.unwrap().is_none());
    archive.close().await;
    drop((archive, folder));
    assert_eq!(unread.read().unwrap(), stored);
}

#[tokio::test]
async fn what_is_forgotten_leaves_no_body_behind() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::keep("aaaaaaaaaaa", "the words");
    archive.keep(kept.clone()).await.unwrap();
    archive.keep(crate::keep("bbbbbbbbbbb", "other words")).await.unwrap();
    archive.forget(&kept.video).await.unwrap();
    let mut connection = stranger(&folder.path().join("archive.db")).await;
    let left = sqlx::query("SELECT count(*) FROM bodies").fetch_one(&mut connection).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), 1);
}

/// An archive as the schema's third version left it, with this transcript as the video's default.
async fn archive_of_version_3(folder: &Path, kept: &Keep) {
    let file = folder.join("archive.db");
    for name in ["0001_create_archive", "0002_index_transcripts_by_track", "0003_count_changes"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("migrations/archive/{name}.sql"));
        run(&file, &fs::read_to_string(path).unwrap()).await;
    }
    let transcript = &kept.transcript;
    let (mut before, mut starts) = (0, Vec::new());
    for segment in &transcript.segments {
        starts.push(segment.start_ms - before);
        before = segment.start_ms;
    }
    let document = serde_json::json!({
        "form": 1,
        "video": transcript.video.to_string(),
        "title": transcript.title,
        "author": transcript.author,
        "duration_ms": transcript.duration_ms,
        "language": transcript.track.language.as_str(),
        "kind": transcript.track.kind.as_str(),
        "name": transcript.track.name,
        "original": transcript.track.original,
        "source": transcript.source,
        "starts": starts,
        "durations": transcript.segments.iter().map(|segment| segment.duration_ms).collect::<Vec<_>>(),
        "texts": transcript.segments.iter().map(|segment| &segment.text).collect::<Vec<_>>(),
    })
    .to_string();
    let mut connection = stranger(&file).await;
    sqlx::raw_sql(
        "INSERT INTO schema_version VALUES (1, '0001', 0), (2, '0002', 0), (3, '0003', 0);
        INSERT INTO tracks VALUES (1, 'video_site/aaaaaaaaaaa', 'en', 'human', NULL, 0);",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO transcripts VALUES (1, 'video_site/aaaaaaaaaaa', 1, 1, 1, ?1, ?2, ?3, length(?4), ?4);
        INSERT INTO wishes VALUES ('video_site/aaaaaaaaaaa', 'default', 1)",
    )
    .bind(kept.now.as_millis())
    .bind(content_digest(transcript))
    .bind(document.len() as i64)
    .bind(zstd::bulk::compress(document.as_bytes(), 9).unwrap())
    .execute(&mut connection)
    .await
    .unwrap();
}

#[tokio::test]
async fn what_an_earlier_version_kept_is_read_and_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = crate::keep("aaaaaaaaaaa", "the first words");
    let transcript = Arc::make_mut(&mut kept.transcript);
    transcript.title = Some("A title".to_owned());
    transcript.segments.push(Segment::new("and the last", 1_000, 2_345));
    archive_of_version_3(folder.path(), &kept).await;

    let archive = SqliteArchive::open(SqliteOptions::new(folder.path().join("archive.db"))).await.unwrap();
    let found = archive.find(&kept.video, &Wish::Default, kept.now).await.unwrap();
    let Found::Transcript(old) = found else { panic!("{found:?}") };
    assert_eq!((&old.transcript, old.revision), (&kept.transcript, 1));
    assert_eq!(archive.body(&kept.video, &Wish::Default).await.unwrap(), None);
    // The first one stays, and answers another wish too.
    let wish = Wish::Language(kept.transcript.track.language.clone());
    let again = Keep { wishes: vec![wish.clone()], ..kept.clone() };
    assert_eq!(archive.keep(again).await.unwrap(), old);
    assert_eq!(archive.body(&kept.video, &wish).await.unwrap(), None);

    Arc::make_mut(&mut kept.transcript).segments[0].text = "other words".to_owned();
    let refresh = Keep { replace: true, ..kept.clone() };
    assert_eq!(archive.keep(refresh).await.unwrap().revision, 2);
    let body = archive.body(&kept.video, &Wish::Default).await.unwrap().unwrap();
    let json = zstd::bulk::decompress(&body.segments, body.length as usize).unwrap();
    assert_eq!(json, segments::write(&kept.transcript.segments).unwrap());
    let found = archive.find(&kept.video, &wish, kept.now).await.unwrap();
    assert_eq!(found, Found::Transcript(old.clone()));

    // What is of the oldest form stays in it, and is counted as what it is.
    let done = compact(&archive, 10).await;
    assert_eq!((done.looked_at, done.damaged), (1, Vec::new()));
    assert_eq!(archive.find(&kept.video, &wish, kept.now).await.unwrap(), Found::Transcript(old));
    assert_eq!(archive.body(&kept.video, &Wish::Default).await.unwrap().unwrap(), body);
    let stats = archive.stats().await.unwrap();
    assert_eq!((stats.videos, stats.transcripts, stats.compact), (1, 2, done.compacted));
}
