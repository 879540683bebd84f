//! Point reads on the caller's thread: their open files, and reads during concurrent writes.

#[cfg(target_os = "linux")]
use std::path::Path;
use std::{collections::BTreeMap, sync::Arc};

#[cfg(target_os = "linux")]
use storage_sqlx::{SqliteArchive, SqliteOptions};
use transcript_core::{
    archive::{Archive, FindOutcome, TrackSelector},
    transcript::Segment,
};

use crate::common::cold::compact;

/// Number of descriptors of this process for a file and those beside it.
#[cfg(target_os = "linux")]
fn descriptors(file: &Path) -> usize {
    let file = file.canonicalize().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = open.filter_map(|descriptor| std::fs::read_link(descriptor.unwrap().path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with(&*file.to_string_lossy())).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn point_read_concurrent_reads_open_few_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive.db");
    let options = SqliteOptions { readers: 2, ..SqliteOptions::new(&file) };
    let archive = Arc::new(SqliteArchive::open(options).await.unwrap());
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    archive.put(kept.clone()).await.unwrap();
    let readers = (0..200).map(|_| {
        let (archive, kept) = (Arc::clone(&archive), kept.clone());
        tokio::spawn(async move {
            assert!(archive.find_lazy(&kept.video, &TrackSelector::Default).await.unwrap().is_some());
            archive.change_counter().await.unwrap();
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    // The file and its log, for two point readers and the writer; the log's index; and the log for the sync
    // thread.
    let open = descriptors(&file);
    assert!((1..=8).contains(&open), "{open}");
    archive.close().await;
    assert_eq!(descriptors(&file), 0);
    // The last connection has checkpointed the log.
    assert!(!folder.path().join("archive.db-wal").exists());
    assert!(archive.find_lazy(&kept.video, &TrackSelector::Default).await.is_err());
    std::fs::remove_file(&file).unwrap();
}

/// Reads while other connections put, delete and compact the same videos.
///
/// Each result is one complete version of the video's text, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn point_read_concurrent_writes_return_whole_versions() {
    let (archive, folder) = crate::archive().await;
    let others = crate::archive_in(folder.path()).await;
    let texts: BTreeMap<String, Vec<_>> = (0..6)
        .map(|n| {
            let id = format!("{n:011}");
            let texts = (0..2).map(|version| {
                let mut kept = crate::put_request(&id, "");
                let lines = (0..300).map(|line| Segment::new(format!("{id} {version} {line}"), line * 9, 8));
                Arc::make_mut(&mut kept.transcript).segments = lines.collect();
                kept.replace = true;
                kept
            });
            (id.clone(), texts.collect())
        })
        .collect();
    let texts = Arc::new(texts);
    let changing = {
        let texts = Arc::clone(&texts);
        tokio::spawn(async move {
            for round in 0..12 {
                for kept in texts.values() {
                    others.put(kept[round % 2].clone()).await.unwrap();
                }
                compact(&*others, 100).await;
                for kept in texts.values().step_by(2) {
                    others.delete(&kept[0].video).await.unwrap();
                }
            }
            others.close().await;
        })
    };
    let mut found_count = 0;
    while !changing.is_finished() {
        for kept in texts.values() {
            let (video, now) = (&kept[0].video, kept[0].now);
            let is_one = |transcript: &_| kept.iter().any(|kept| *kept.transcript == *transcript);
            if let FindOutcome::Transcript(found) =
                archive.find(video, &TrackSelector::Default, now).await.unwrap()
            {
                assert!(is_one(&*found.transcript));
                found_count += 1;
            }
            if let Some(unread) = archive.find_lazy(video, &TrackSelector::Default).await.unwrap() {
                unread.body().unwrap();
                assert!(is_one(&*unread.load().unwrap().transcript));
            }
        }
    }
    changing.await.unwrap();
    assert!(0 < found_count);
    for (n, kept) in texts.values().enumerate() {
        let found = archive.find(&kept[0].video, &TrackSelector::Default, kept[0].now).await.unwrap();
        assert_eq!(matches!(found, FindOutcome::Transcript(_)), n % 2 == 1);
    }
}

/// A migration of an open file changes tables under prepared statements.
#[tokio::test]
async fn point_read_changed_tables_stay_readable() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::put_request("aaaaaaaaaaa", "the words");
    let stored = archive.put(kept.clone()).await.unwrap();
    let found = FindOutcome::Transcript(stored);
    assert_eq!(archive.find(&kept.video, &TrackSelector::Default, kept.now).await.unwrap(), found);
    let changes = "ALTER TABLE bodies ADD COLUMN later TEXT; ALTER TABLE wishes ADD COLUMN later TEXT; CREATE TABLE later (x)";
    crate::opening::run(&folder.path().join("archive.db"), changes);
    assert_eq!(archive.find(&kept.video, &TrackSelector::Default, kept.now).await.unwrap(), found);
    let lazy = archive.find_lazy(&kept.video, &TrackSelector::Default).await.unwrap().unwrap();
    assert_eq!(lazy.body().unwrap().source, kept.transcript.source);
}
