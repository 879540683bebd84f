//! Stored transcripts in the file: damage, and the forms of earlier versions.

use std::{fs, path::Path, sync::Arc};

use storage_sqlx::{SqliteArchive, SqliteOptions};
use transcript_core::{
    ErrorKind, PageRequest,
    archive::{Archive, FindOutcome, PutRequest, TrackSelector, VerifyArchiveRequest, content_digest},
    body::segments,
    transcript::Segment,
};

use crate::{
    common::cold::compact,
    opening::{foreign_connection, run, value},
};

#[tokio::test]
async fn body_damaged_on_disk_returns_corrupt() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    let (video, selector, now) = (kept.video.clone(), kept.selectors[0].clone(), kept.now);
    archive.put(kept).await.unwrap();
    let other = crate::put_request("bbbbbbbbbbb", "other words");
    archive.put(other).await.unwrap();
    let sound = archive.stored_body(&video, &selector).await.unwrap().unwrap();
    let file = folder.path().join("archive.db");
    run(&file, "CREATE TABLE sound AS SELECT * FROM bodies");
    // Each with whether it is detected when the body is sent without decoding, and when it is decoded.
    for (damage, unread, read) in [
        ("segments = zeroblob(40)", true, true),
        ("segments = substr(segments, 1, 20)", true, true),
        ("source = 'others'", true, true),
        // Only the sent body, or only the decoded one.
        ("content_sha256 = zeroblob(32)", true, false),
        ("length = -1", true, false),
        ("length = length + 1", true, false),
        ("about = ''", true, true),
        // Complete and well-formed, but of another video.
        (
            "(content_sha256, source, length, checksum, about, segments) = (SELECT content_sha256, source, length,
                checksum, about, segments FROM bodies WHERE transcript = 2)",
            true,
            true,
        ),
    ] {
        run(&file, &format!("UPDATE bodies SET {damage} WHERE transcript = 1"));
        let corrupt = |shows: bool| shows.then_some(ErrorKind::Corrupt);
        let error = archive.stored_body(&video, &selector).await.err();
        assert_eq!(error.map(|error| error.kind()), corrupt(unread), "{damage}");
        // A lazy transcript is as safe: the damage is detected when it is found or loaded.
        let left =
            async { archive.find_lazy(&video, &selector).await?.map(|unread| unread.load()).transpose() };
        assert_eq!(left.await.err().map(|error| error.kind()), Some(ErrorKind::Corrupt), "{damage}");
        let error = archive.find(&video, &selector, now).await.err();
        assert!(error.as_ref().is_none_or(|error| !error.message().contains("words")), "{error:?}");
        assert_eq!(error.map(|error| error.kind()), corrupt(read), "{damage}");
        run(&file, "DELETE FROM bodies; INSERT INTO bodies SELECT * FROM sound");
        assert_eq!(archive.stored_body(&video, &selector).await.unwrap().unwrap(), sound, "{damage}");
    }
    for damage in ["content_sha256 = zeroblob(32)", "body_length = -1", "body_length = 1"] {
        let whole = "CREATE TABLE whole AS SELECT * FROM transcripts";
        run(&file, &format!("{whole}; UPDATE transcripts SET {damage} WHERE id = 1"));
        let error = archive.find(&video, &selector, now).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}");
        let back =
            "UPDATE transcripts SET (content_sha256, body_length) = (SELECT content_sha256, body_length
            FROM whole WHERE whole.id = transcripts.id); DROP TABLE whole";
        run(&file, back);
    }
    // A transcript without its body is damaged.
    run(&file, "DELETE FROM bodies WHERE transcript = 1");
    assert_eq!(archive.find(&video, &selector, now).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(archive.find_lazy(&video, &selector).await.unwrap().is_none());
}

#[tokio::test]
async fn lazy_transcript_loads_after_file_is_deleted() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    let (video, selector) = (kept.video.clone(), kept.selectors[0].clone());
    let stored = archive.put(kept).await.unwrap();
    let unread = archive.find_lazy(&video, &selector).await.unwrap().unwrap();
    archive.delete(&video).await.unwrap();
    assert!(archive.find_lazy(&video, &selector).await.unwrap().is_none());
    archive.close().await;
    drop((archive, folder));
    assert_eq!(unread.load().unwrap(), stored);
}

#[tokio::test]
async fn delete_video_removes_its_bodies() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    archive.put(kept.clone()).await.unwrap();
    archive.put(crate::put_request("bbbbbbbbbbb", "other words")).await.unwrap();
    archive.delete(&kept.video).await.unwrap();
    let connection = foreign_connection(&folder.path().join("archive.db"));
    assert_eq!(value::<i64>(&connection, "SELECT count(*) FROM bodies"), 1);
}

/// Creates an archive of schema version 3, with this transcript as the video's default.
fn archive_of_version_3(folder: &Path, kept: &PutRequest) {
    let file = folder.join("archive.db");
    for name in ["0001_create_archive", "0002_index_transcripts_by_track", "0003_count_changes"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("migrations/archive/{name}.sql"));
        run(&file, &fs::read_to_string(path).unwrap());
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
    run(
        &file,
        "INSERT INTO schema_version VALUES (1, '0001', 0), (2, '0002', 0), (3, '0003', 0);
        INSERT INTO tracks VALUES (1, 'video_site/aaaaaaaaaaa', 'en', 'human', NULL, 0);",
    );
    let body = zstd::bulk::compress(document.as_bytes(), 9).unwrap();
    let transcript =
        "INSERT INTO transcripts VALUES (1, 'video_site/aaaaaaaaaaa', 1, 1, 1, ?1, ?2, ?3, length(?4), ?4)";
    let values = (kept.now.as_millis(), content_digest(&kept.transcript), document.len() as i64, body);
    foreign_connection(&file).execute(transcript, values).unwrap();
    run(&file, "INSERT INTO wishes VALUES ('video_site/aaaaaaaaaaa', 'default', 1)");
}

#[tokio::test]
async fn archive_version_3_is_read_and_extended() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = crate::put_request("aaaaaaaaaaa", "the first words");
    let transcript = Arc::make_mut(&mut kept.transcript);
    transcript.title = Some("A title".to_owned());
    transcript.segments.push(Segment::new("and the last", 1_000, 2_345));
    archive_of_version_3(folder.path(), &kept);

    let archive = SqliteArchive::open(SqliteOptions::new(folder.path().join("archive.db"))).await.unwrap();
    let found = archive.find(&kept.video, &TrackSelector::Default, kept.now).await.unwrap();
    let FindOutcome::Transcript(old) = found else { panic!("{found:?}") };
    assert_eq!((&old.transcript, old.revision), (&kept.transcript, 1));
    assert_eq!(archive.stored_body(&kept.video, &TrackSelector::Default).await.unwrap(), None);
    // A transcript of the oldest form keeps it when others are compacted.
    assert_eq!((compact(&archive, 10).await.scanned, verified(&archive).await), (0, 1));
    assert_eq!(archive.stored_body(&kept.video, &TrackSelector::Default).await.unwrap(), None);
    // The first transcript stays, and another selector can use it too: it is stored again.
    let selector = TrackSelector::Language(kept.transcript.track.language.clone());
    let again = PutRequest { selectors: vec![selector.clone()], ..kept.clone() };
    assert_eq!(archive.put(again).await.unwrap(), old);
    let body = archive.stored_body(&kept.video, &selector).await.unwrap().unwrap();
    let json = zstd::bulk::decompress(&body.segments, body.length as usize).unwrap();
    assert_eq!(json, segments::write(&kept.transcript.segments).unwrap());
    assert_eq!(verified(&archive).await, 1);

    Arc::make_mut(&mut kept.transcript).segments[0].text = "other words".to_owned();
    let refresh = PutRequest { replace: true, ..kept.clone() };
    assert_eq!(archive.put(refresh).await.unwrap().revision, 2);
    let body = archive.stored_body(&kept.video, &TrackSelector::Default).await.unwrap().unwrap();
    let json = zstd::bulk::decompress(&body.segments, body.length as usize).unwrap();
    assert_eq!(json, segments::write(&kept.transcript.segments).unwrap());
    let found = archive.find(&kept.video, &selector, kept.now).await.unwrap();
    assert_eq!(found, FindOutcome::Transcript(old.clone()));

    let done = compact(&archive, 10).await;
    assert_eq!((done.scanned, done.damaged), (2, Vec::new()));
    assert_eq!(archive.find(&kept.video, &selector, kept.now).await.unwrap(), FindOutcome::Transcript(old));
    assert_eq!(archive.stored_body(&kept.video, &TrackSelector::Default).await.unwrap().unwrap(), body);
    let stats = archive.stats().await.unwrap();
    assert_eq!((stats.videos, stats.transcripts, stats.compact), (1, 2, done.compacted));
}

/// The number of transcripts in a sound archive.
async fn verified(archive: &dyn Archive) -> u64 {
    let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let outcome = archive.verify(request).await.unwrap();
    assert_eq!((outcome.damaged, outcome.next), (Vec::new(), None));
    outcome.scanned
}

#[tokio::test]
async fn verification_detects_each_damage_and_put_repairs_it() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    archive.put(kept.clone()).await.unwrap();
    archive.put(crate::put_request("bbbbbbbbbbb", "other words")).await.unwrap();
    let file = folder.path().join("archive.db");
    let sound = archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap();
    for damage in [
        "segments = zeroblob(40)",
        "source = 'others'",
        "content_sha256 = zeroblob(32)",
        "length = -1",
        "checksum = checksum + 1",
        "about = ''",
        "about = replace(about, 'en', 'de')",
        "segments = (SELECT segments FROM bodies WHERE transcript = 2)",
    ] {
        run(&file, &format!("UPDATE bodies SET {damage} WHERE transcript = 1"));
        let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: false };
        let outcome = archive.verify(request).await.unwrap();
        let found: Vec<_> = outcome.damaged.iter().map(|one| (&one.video, one.is_deleted)).collect();
        assert_eq!((outcome.scanned, found), (2, vec![(&kept.video, false)]), "{damage}");
        assert_eq!(outcome.damaged[0].selectors, kept.selectors, "{damage}");
        // The same content again: the old form is not read.
        let stored = archive.put(PutRequest { replace: true, ..kept.clone() }).await.unwrap();
        assert_eq!((stored.revision, verified(&*archive).await), (1, 2), "{damage}");
        assert_eq!(archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap(), sound, "{damage}");
    }
    run(&file, "DELETE FROM bodies WHERE transcript = 1");
    let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let outcome = archive.verify(request).await.unwrap();
    assert!(outcome.damaged[0].is_deleted, "{outcome:?}");
    assert_eq!(verified(&*archive).await, 1);
    assert_eq!(archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap(), FindOutcome::NotFound);
    assert_eq!(archive.tracks(&kept.video).await.unwrap().len(), 1, "the track stays known");
}

/// The transcript of a selector is of another video, or missing: the next put sets the selector again.
#[tokio::test]
async fn selector_without_its_transcript_is_corrupt_until_put() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    archive.put(kept.clone()).await.unwrap();
    archive.put(crate::put_request("bbbbbbbbbbb", "other words")).await.unwrap();
    let (video, selector) = (&kept.video, &kept.selectors[0]);
    let sound = archive.stored_body(video, selector).await.unwrap();
    for transcript in [2, 1_000] {
        let damage = format!("UPDATE wishes SET transcript = {transcript} WHERE video LIKE '%aaa'");
        run(&folder.path().join("archive.db"), &format!("PRAGMA foreign_keys = OFF; {damage}"));
        let error = archive.find(video, selector, kept.now).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let error = archive.stored_body(video, selector).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: false };
        let damaged = archive.verify(request).await.unwrap().damaged;
        let found: Vec<_> = damaged.iter().map(|one| (&one.video, &one.selectors)).collect();
        assert_eq!(found, [(video, &kept.selectors)], "{transcript}");
        archive.put(kept.clone()).await.unwrap();
        assert_eq!(verified(&*archive).await, 2);
        assert_eq!(archive.stored_body(video, selector).await.unwrap(), sound);
    }
}
