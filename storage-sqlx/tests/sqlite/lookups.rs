//! Look-ups on the thread of whoever asks: how many files they have open, and what they see while others change the file.

#[cfg(target_os = "linux")]
use std::path::Path;
use std::{collections::BTreeMap, sync::Arc};

#[cfg(target_os = "linux")]
use storage_sqlx::{SqliteArchive, SqliteOptions};
use transcript_core::{
    archive::{Archive, Found, Wish},
    transcript::Segment,
};

use crate::common::cold::compact;

/// How many descriptors this process has for a file and those beside it.
#[cfg(target_os = "linux")]
fn descriptors(file: &Path) -> usize {
    let file = file.canonicalize().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = open.filter_map(|descriptor| std::fs::read_link(descriptor.unwrap().path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with(&*file.to_string_lossy())).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn many_at_once_open_few_files_and_closing_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("archive.db");
    let options = SqliteOptions { readers: 2, ..SqliteOptions::new(&file) };
    let archive = Arc::new(SqliteArchive::open(options).await.unwrap());
    let kept = crate::keep("aaaaaaaaaaa", "the words");
    archive.keep(kept.clone()).await.unwrap();
    let asking = (0..200).map(|_| {
        let (archive, kept) = (Arc::clone(&archive), kept.clone());
        tokio::spawn(async move {
            assert!(archive.unread(&kept.video, &Wish::Default).await.unwrap().is_some());
            assert!(archive.body(&kept.video, &Wish::Default).await.unwrap().is_some());
            archive.changes().await.unwrap();
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    // The file and its log, for each of two that look up and for the one that writes; the log's index; and the log for the
    // thread that waits for the disk.
    let open = descriptors(&file);
    assert!((1..=8).contains(&open), "{open}");
    archive.close().await;
    assert_eq!(descriptors(&file), 0);
    // The last one has copied the log into the file.
    assert!(!folder.path().join("archive.db-wal").exists());
    assert!(archive.body(&kept.video, &Wish::Default).await.is_err());
    assert!(archive.unread(&kept.video, &Wish::Default).await.is_err());
    std::fs::remove_file(&file).unwrap();
}

/// One archive is asked while others, with connections of their own, keep, forget and compact the same videos: each
/// answer is one of the texts that were kept under this name, whole, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_others_change_is_seen_whole_or_not_at_all() {
    let (archive, folder) = crate::archive().await;
    let others = crate::archive_in(folder.path()).await;
    let texts: BTreeMap<String, Vec<_>> = (0..6)
        .map(|n| {
            let id = format!("{n:011}");
            let texts = (0..2).map(|version| {
                let mut kept = crate::keep(&id, "");
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
                    others.keep(kept[round % 2].clone()).await.unwrap();
                }
                compact(&*others, 100).await;
                for kept in texts.values().step_by(2) {
                    others.forget(&kept[0].video).await.unwrap();
                }
            }
            others.close().await;
        })
    };
    let mut seen = 0;
    while !changing.is_finished() {
        for kept in texts.values() {
            let (video, now) = (&kept[0].video, kept[0].now);
            let is_one = |transcript: &_| kept.iter().any(|kept| *kept.transcript == *transcript);
            if let Found::Transcript(found) = archive.find(video, &Wish::Default, now).await.unwrap() {
                assert!(is_one(&*found.transcript));
                seen += 1;
            }
            if let Some(unread) = archive.unread(video, &Wish::Default).await.unwrap() {
                assert!(is_one(&*unread.read().unwrap().transcript));
            }
            archive.body(video, &Wish::Default).await.unwrap();
        }
    }
    changing.await.unwrap();
    assert!(0 < seen);
    for (n, kept) in texts.values().enumerate() {
        let found = archive.find(&kept[0].video, &Wish::Default, kept[0].now).await.unwrap();
        assert_eq!(matches!(found, Found::Transcript(_)), n % 2 == 1);
    }
}

/// Whoever migrates the file while it is open changes its tables below statements that are made already.
#[tokio::test]
async fn a_file_whose_tables_change_is_read_on() {
    let (archive, folder) = crate::archive().await;
    let kept = crate::keep("aaaaaaaaaaa", "the words");
    let stored = archive.keep(kept.clone()).await.unwrap();
    let found = Found::Transcript(stored);
    assert_eq!(archive.find(&kept.video, &Wish::Default, kept.now).await.unwrap(), found);
    let changes = "ALTER TABLE bodies ADD COLUMN later TEXT; ALTER TABLE wishes ADD COLUMN later TEXT; CREATE TABLE later (x)";
    crate::opening::run(&folder.path().join("archive.db"), changes).await;
    assert_eq!(archive.find(&kept.video, &Wish::Default, kept.now).await.unwrap(), found);
    assert!(archive.unread(&kept.video, &Wish::Default).await.unwrap().is_some());
    let body = archive.body(&kept.video, &Wish::Default).await.unwrap();
    assert_eq!(body.unwrap().source, kept.transcript.source);
}
