//! Times of words, metadata and headers in the file: damage, size, and files of the version before.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use transcript_core::{
    ErrorKind, PageRequest,
    archive::{Archive, FindOutcome, PutRequest, VerifyArchiveRequest},
    captions,
    transcript::{LanguageTag, TrackInfo, VideoMetadata},
};

use crate::{
    common::{
        cold::{compact, found, speech},
        words::{check_damaged_track, metadata, timed_speech},
    },
    opening::{foreign_connection, run, value},
};

#[tokio::test]
async fn words_recorded_take_a_third_at_most() {
    let ((with, _one), (without, _other)) = (crate::archive().await, crate::archive().await);
    let Some([as_sent, cold]) = check_recorded_size(&*with, &*without).await else {
        std::io::stderr().write_all(b"VERBATIM_RECORDINGS is not set: words are not measured\n").unwrap();
        return;
    };
    let text = format!("words of recorded captions add {as_sent} per mille, to cold storage {cold}\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    // Cold storage makes the text smaller, but not the words.
    assert!(as_sent <= 175 && cold <= 310, "{text}");
}

#[tokio::test]
async fn words_damaged_are_reported_and_repaired() {
    let (archive, folder) = crate::archive().await;
    let kept = timed_speech(1);
    archive.put(kept.clone()).await.unwrap();
    archive.put(timed_speech(2)).await.unwrap();
    let sound = found(&*archive, &kept).await;
    let file = folder.path().join("archive.db");
    run(&file, "CREATE TABLE sound AS SELECT * FROM words");
    for damage in [
        "DELETE FROM words WHERE transcript = 1",
        "UPDATE words SET bytes = x'' WHERE transcript = 1",
        "UPDATE words SET bytes = zeroblob(40) WHERE transcript = 1",
        "UPDATE words SET bytes = substr(bytes, 1, 50) WHERE transcript = 1",
        // Well-formed, and with the same number of words.
        "UPDATE words SET bytes = (SELECT bytes FROM words WHERE transcript = 2) WHERE transcript = 1",
    ] {
        for is_cold in [false, true] {
            if is_cold {
                assert!(compact(&*archive, 10).await.compacted > 0);
            }
            run(&file, damage);
            let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}: {error}");
            assert!(error.message().contains(&kept.video.to_string()), "{error}");
            let lazy = archive.find_lazy(&kept.video, &kept.selectors[0]).await;
            let lazy = lazy.and_then(|lazy| lazy.unwrap().load());
            assert_eq!(lazy.unwrap_err().kind(), ErrorKind::Corrupt, "{damage}");
            let body = archive.stored_body(&kept.video, &kept.selectors[0]).await;
            match is_cold {
                true => assert_eq!(body.unwrap_err().kind(), ErrorKind::Corrupt, "{damage}"),
                false => assert_eq!(body.unwrap().unwrap(), sound.1, "it reads no words"),
            }
            if !is_cold {
                let damaged = compact(&*archive, 10).await.damaged;
                assert_eq!(damaged, std::slice::from_ref(&kept.video), "{damage}");
            }
            let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: false };
            let damaged = archive.verify(request).await.unwrap().damaged;
            let videos: Vec<_> = damaged.into_iter().map(|damaged| damaged.video).collect();
            assert_eq!(videos, std::slice::from_ref(&kept.video), "{damage}");
            archive.put(PutRequest { replace: true, ..kept.clone() }).await.unwrap();
            assert_eq!(found(&*archive, &kept).await, sound, "{damage}");
        }
    }
    // Words of a transcript that has none.
    let bare = speech(3);
    archive.put(bare.clone()).await.unwrap();
    run(&file, "INSERT INTO words SELECT 3, bytes FROM sound WHERE transcript = 1");
    let error = archive.find(&bare.video, &bare.selectors[0], bare.now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    archive.put(PutRequest { replace: true, ..bare.clone() }).await.unwrap();
    found(&*archive, &bare).await;
    for request in [timed_speech(1), timed_speech(2), bare] {
        archive.delete(&request.video).await.unwrap();
    }
    let connection = foreign_connection(&file);
    assert_eq!(value::<i64>(&connection, "SELECT count(*) FROM words"), 0);
}

#[tokio::test]
async fn header_damaged_returns_corrupt() {
    let (archive, folder) = crate::archive().await;
    let (kept, other) = (timed_speech(1), timed_speech(2));
    archive.put(kept.clone()).await.unwrap();
    archive.put(other.clone()).await.unwrap();
    let sound = found(&*archive, &kept).await;
    let file = folder.path().join("archive.db");
    run(&file, "CREATE TABLE sound AS SELECT * FROM bodies");
    for damage in [
        "about = replace(about, 'title', 'turtle')",
        "about = replace(about, '\"en\"', '\"de\"')",
        "about = replace(replace(about, 'title', 'turtle'), 'checksum', 'check')",
        "about = (SELECT about FROM bodies WHERE transcript = 2)",
    ] {
        run(&file, &format!("UPDATE bodies SET {damage} WHERE transcript = 1"));
        let error = archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damage}: {error}");
        let lazy = archive.find_lazy(&kept.video, &kept.selectors[0]).await.unwrap().unwrap();
        assert_eq!(lazy.body().unwrap_err().kind(), ErrorKind::Corrupt, "{damage}");
        run(&file, "DELETE FROM bodies; INSERT INTO bodies SELECT * FROM sound");
        assert_eq!(found(&*archive, &kept).await, sound);
    }
    // A header without a valid checksum is checked in the other way.
    let of_other = "json_extract((SELECT about FROM sound WHERE transcript = 2), '$.checksum')";
    for header in [
        "json_remove(about, '$.checksum')".to_owned(),
        "json_set(about, '$.checksum', 7)".to_owned(),
        "json_set(about, '$.checksum', -1)".to_owned(),
        format!("json_set(about, '$.checksum', {of_other})"),
    ] {
        run(&file, &format!("UPDATE bodies SET about = {header} WHERE transcript = 1"));
        assert_eq!(found(&*archive, &kept).await, sound, "{header}");
    }
}

#[tokio::test]
async fn metadata_damaged_is_unknown_until_next_put() {
    let (archive, folder) = crate::archive().await;
    let kept = PutRequest { metadata: metadata(), ..speech(1) };
    archive.put(kept.clone()).await.unwrap();
    let file = folder.path().join("archive.db");
    for damage in ["''", "'[]'", "'{\"live\":\"later\"}'", "CAST(x'FF' AS TEXT)"] {
        run(&file, &format!("UPDATE details SET metadata = {damage}"));
        let (transcript, body) = found(&*archive, &kept).await;
        let FindOutcome::Transcript(transcript) = transcript else { panic!("{transcript:?}") };
        assert_eq!(transcript.details.metadata, VideoMetadata::default(), "{damage}");
        assert_eq!(body.details, transcript.details, "{damage}");
        let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: false };
        // An empty list decodes to empty metadata.
        let reported = usize::from(damage != "'[]'");
        assert_eq!(archive.verify(request).await.unwrap().damaged.len(), reported, "{damage}");
        assert_eq!(archive.put(kept.clone()).await.unwrap().details.metadata, metadata(), "{damage}");
        assert_eq!(found(&*archive, &kept).await.1.details.metadata, metadata(), "{damage}");
    }
}

#[tokio::test]
async fn tracks_damaged_are_left_out_and_reported() {
    let (archive, folder) = crate::archive().await;
    let kept = speech(1);
    archive.put(kept.clone()).await.unwrap();
    let sound = found(&*archive, &kept).await;
    let (video, selector, file) = (&kept.video, &kept.selectors[0], folder.path().join("archive.db"));
    for (damage, is_list) in [
        ("UPDATE details SET tracks = '[\"en bogus 0\"]'", true),
        ("UPDATE details SET tracks = 'x'", true),
        ("UPDATE tracks SET kind = 'spoken'", false),
    ] {
        run(&file, damage);
        let (transcript, body) = found(&*archive, &kept).await;
        let FindOutcome::Transcript(transcript) = transcript else { panic!("{transcript:?}") };
        assert_eq!(transcript.details.tracks, [], "{damage}");
        assert_eq!(body.details, transcript.details, "{damage}");
        let lazy = archive.find_lazy(video, selector).await.unwrap().unwrap();
        assert_eq!((lazy.load().unwrap(), lazy.body().unwrap()), (transcript, body), "{damage}");
        let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
        let damaged = archive.verify(request).await.unwrap().damaged;
        let reported: Vec<_> = damaged.iter().map(|damaged| (&damaged.video, damaged.is_deleted)).collect();
        assert_eq!(reported, [(video, false)], "{damage}: the text is sound");
        if is_list {
            let before = archive.change_counter().await.unwrap();
            archive.put(PutRequest { replace: true, ..kept.clone() }).await.unwrap();
            assert_eq!(found(&*archive, &kept).await, sound, "{damage}");
            assert!(archive.change_counter().await.unwrap() > before, "earlier responses lack the tracks");
        }
    }
    run(&file, &format!("UPDATE tracks SET kind = '{}'", kept.transcript.track.kind.as_str()));
    assert_eq!(found(&*archive, &kept).await, sound);
}

#[tokio::test]
async fn track_damaged_is_restored_from_transcript() {
    for damage in [
        "UPDATE tracks SET kind = 'spoken' WHERE language = 'en'",
        "UPDATE tracks SET name = CAST(x'C3' AS TEXT) WHERE language = 'en'",
        "UPDATE tracks SET language = CAST(x'80' AS TEXT) WHERE language = 'en'",
    ] {
        let (archive, folder) = crate::archive().await;
        let file = folder.path().join("archive.db");
        check_damaged_track(&*archive, damage, async |statement| run(&file, statement)).await;
    }
}

/// A row that changes on disk differs from the list of tracks, which triggers write.
#[tokio::test]
async fn track_damaged_beside_sound_list_is_reported() {
    let (archive, folder) = crate::archive().await;
    let (kept, file) = (speech(1), folder.path().join("archive.db"));
    archive.put(kept.clone()).await.unwrap();
    run(&file, "DROP TRIGGER list_changed_track; UPDATE tracks SET kind = 'spoken'");
    let request = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let damaged = archive.verify(request).await.unwrap().damaged;
    let reported: Vec<_> = damaged.iter().map(|damaged| (&damaged.video, damaged.is_deleted)).collect();
    assert_eq!(reported, [(&kept.video, false)]);
}

#[tokio::test]
async fn tracks_in_details_follow_every_change() {
    let (archive, folder) = crate::archive().await;
    let file = folder.path().join("archive.db");
    let connection = foreign_connection(&file);
    let check = |count: i64| {
        // The list is the one that the statement makes of the rows.
        let listed: (i64, i64) = connection
            .query_row(
                "SELECT count(*), count(*) FILTER (WHERE tracks = (SELECT json_group_array(track) FROM (
                    SELECT language || ' ' || kind || ' ' || original || coalesce(' ' || name, '') AS track
                    FROM tracks t WHERE t.video = details.video ORDER BY id))) FROM details",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!(listed, (count, count));
    };
    // One video with metadata, and one without.
    let mut kept = PutRequest { metadata: metadata(), ..speech(1) };
    archive.put(kept.clone()).await.unwrap();
    archive.put(speech(2)).await.unwrap();
    check(2);
    let track = |language: &str, name: Option<&str>| TrackInfo {
        language: LanguageTag::parse(language).unwrap(),
        name: name.map(str::to_owned),
        ..kept.transcript.track.clone()
    };
    let added = [track("de", Some("with \"quotes\"")), track("uk", None)];
    run(&file, "DELETE FROM unindexed_videos");
    archive.add_known_tracks(&kept.video, &added, kept.now).await.unwrap();
    let unindexed = value::<i64>(&connection, "SELECT count(*) FROM unindexed_videos");
    assert_eq!(unindexed, 0, "tracks are not indexed for search");
    // A video without a transcript has no list: its tracks are read from their rows.
    archive.add_known_tracks(&speech(3).video, &added, kept.now).await.unwrap();
    check(2);
    kept.known_tracks = vec![TrackInfo { original: true, ..added[0].clone() }];
    let stored = archive.put(kept.clone()).await.unwrap();
    assert_eq!(stored.details.tracks.len(), 3);
    check(2);
    let before = found(&*archive, &kept).await;
    assert_eq!(before.1.details, stored.details);
    // A row of an earlier version has no list.
    run(&file, "UPDATE details SET tracks = NULL");
    assert_eq!(found(&*archive, &kept).await, before);
    // As a program of an earlier version writes.
    run(&file, "UPDATE tracks SET name = 'renamed' WHERE language = 'de'; UPDATE tracks SET name = name");
    check(2);
    run(&file, &format!("DELETE FROM tracks WHERE video = '{}' AND language = 'uk'", kept.video));
    check(2);
    assert_eq!(found(&*archive, &kept).await.1.details.tracks.len(), 2);
    archive.delete(&kept.video).await.unwrap();
    check(1);
}

/// Creates an archive of schema version 6 with the rows of another one.
fn archive_of_version_6(file: &Path, rows_of: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/archive");
    let mut steps: Vec<_> = fs::read_dir(folder).unwrap().map(|step| step.unwrap().path()).collect();
    steps.sort();
    for step in &steps[..6] {
        run(file, &fs::read_to_string(step).unwrap());
    }
    let body = "transcript, content_sha256, source, length, checksum, about, segments";
    run(
        file,
        &format!(
            "INSERT INTO schema_version SELECT value, 'before', 0 FROM json_each('[1, 2, 3, 4, 5, 6]');
            ATTACH '{}' AS other;
            INSERT INTO tracks SELECT * FROM other.tracks;
            INSERT INTO transcripts SELECT * FROM other.transcripts;
            INSERT INTO bodies SELECT {body} FROM other.bodies;
            INSERT INTO cold SELECT * FROM other.cold;
            INSERT INTO wishes SELECT * FROM other.wishes",
            rows_of.display()
        ),
    );
}

#[tokio::test]
async fn archive_version_6_is_read_and_extended() {
    let (archive, folder) = crate::archive().await;
    let (cold, kept) = (speech(1), speech(2));
    archive.put(cold.clone()).await.unwrap();
    assert_eq!(compact(&*archive, 10).await.compacted, 1);
    archive.put(kept.clone()).await.unwrap();
    let before = [found(&*archive, &cold).await, found(&*archive, &kept).await];
    let bytes = archive.stats().await.unwrap().bytes;
    archive.close().await;
    let older = tempfile::tempdir().unwrap();
    let file = older.path().join("archive.db");
    archive_of_version_6(&file, &folder.path().join("archive.db"));

    let archive = crate::archive_in(older.path()).await;
    assert_eq!([found(&*archive, &cold).await, found(&*archive, &kept).await], before);
    assert_eq!(archive.stats().await.unwrap().bytes, bytes);
    // The older program still runs: it writes a body whose header has no checksum.
    run(&file, "UPDATE bodies SET about = json_remove(about, '$.checksum')");
    for old in [&cold, &kept] {
        let timed = timed_speech(if old.video == cold.video { 1 } else { 2 });
        let request = PutRequest { replace: true, metadata: metadata(), ..timed };
        let stored = archive.put(request.clone()).await.unwrap();
        assert_eq!((stored.revision, &stored.details.metadata), (2, &metadata()));
        assert_eq!(found(&*archive, &request).await.1.details, stored.details);
    }
    // The older program deletes a video as it knows it.
    let video = cold.video.to_string();
    let statements = ["wishes", "transcripts", "tracks"]
        .map(|table| format!("DELETE FROM {table} WHERE video = '{video}'"))
        .join("; ");
    run(&file, &format!("PRAGMA foreign_keys = ON; {statements}"));
    let connection = foreign_connection(&file);
    for (table, count) in [("words", 1), ("details", 1), ("bodies", 2)] {
        assert_eq!(value::<i64>(&connection, &format!("SELECT count(*) FROM {table}")), count, "{table}");
    }
    let found = archive.put(cold).await.unwrap();
    assert_eq!(found.details.metadata, VideoMetadata::default(), "deleted metadata stays deleted");
}

/// Recorded captions of 50 minutes with the times of their words, from the folder that `VERBATIM_RECORDINGS` names.
fn recorded() -> Option<PutRequest> {
    let folder = PathBuf::from(std::env::var_os("VERBATIM_RECORDINGS")?);
    let file = fs::read(folder.join("youtube/timedtext/asr_50min_acAsrConf.json3")).unwrap();
    let segments = captions::parse(&file).unwrap();
    assert!(segments.iter().any(|segment| !segment.words.is_empty()));
    let mut request = speech(1);
    Arc::make_mut(&mut request.transcript).segments = segments;
    Some(request)
}

/// By how much words make an archive of recorded captions larger, as sent and after compaction, in per mille.
async fn check_recorded_size(with: &dyn Archive, without: &dyn Archive) -> Option<[u64; 2]> {
    let timed = recorded()?;
    let mut bare = timed.clone();
    let segments = &mut Arc::make_mut(&mut bare.transcript).segments;
    segments.iter_mut().for_each(|segment| segment.words.clear());
    with.put(timed.clone()).await.unwrap();
    without.put(bare).await.unwrap();
    found(with, &timed).await;
    let growth = async || {
        let (with, without) = (with.stats().await.unwrap().bytes, without.stats().await.unwrap().bytes);
        (with - without) * 1_000 / without
    };
    let as_sent = growth().await;
    for archive in [with, without] {
        assert_eq!(compact(archive, 10).await.compacted, 1);
    }
    found(with, &timed).await;
    Some([as_sent, growth().await])
}
