//! The SQLite stores, from outside: the core's conformance suite, and what only files can do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod charging;
mod conformance;
mod crash;
mod housekeeping;
mod opening;
mod sharing;
mod stored;

use std::{path::Path, sync::Arc};

use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    Timestamp,
    archive::{Keep, Wish},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// A fresh store in a folder of its own.
async fn store() -> (Arc<SqliteStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (store_in(folder.path()).await, folder)
}

/// The store in a folder.
async fn store_in(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::new(folder.join("verbatim.db"))).await.unwrap())
}

/// A fresh archive in a folder of its own.
async fn archive() -> (Arc<SqliteArchive>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (archive_in(folder.path()).await, folder)
}

/// The archive in a folder.
async fn archive_in(folder: &Path) -> Arc<SqliteArchive> {
    Arc::new(SqliteArchive::open(SqliteOptions::new(folder.join("archive.db"))).await.unwrap())
}

/// A transcript of one segment, for the default wish.
fn keep(id: &str, words: &str) -> Keep {
    let video = VideoId::new(Platform::VideoSite, id).unwrap();
    let track = TrackInfo::new(LanguageTag::english(), TrackKind::Human);
    Keep {
        video: video.clone(),
        wishes: vec![Wish::Default],
        transcript: Arc::new(Transcript {
            video,
            title: None,
            author: None,
            duration_ms: None,
            track: track.clone(),
            source: "youtube-captions".to_owned(),
            segments: vec![Segment::new(words, 0, 1_000)],
        }),
        known_tracks: vec![track],
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(sharing::NOW),
    }
}
