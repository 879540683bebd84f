//! Cold storage in a file: damage, deletion, and a process killed during compaction.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use transcript_core::{
    ErrorKind, PageRequest, Timestamp,
    archive::{Archive, CompactRequest, content_digest},
};

use crate::{
    common::cold::{check_malformed_name_is_passed, compact, found, speech},
    opening::{foreign_connection, run, value},
};

/// The folder, set for the process that is killed.
const FOLDER: &str = "VERBATIM_TEST_COLD";
const TRANSCRIPTS: u64 = 160;

fn count(file: &Path, what: &str) -> i64 {
    value(&foreign_connection(file), &format!("SELECT count(*) FROM {what}"))
}

#[tokio::test]
async fn compaction_malformed_name_is_passed() {
    let (archive, folder) = crate::archive().await;
    check_malformed_name_is_passed(&*archive, async || {
        crate::run_on_archive(&folder, "UPDATE transcripts SET video = 'later/x' WHERE id = 1").await;
    })
    .await;
}

#[tokio::test]
async fn cold_row_damaged_on_disk_returns_error() {
    let (archive, folder) = crate::archive().await;
    let (kept, other) = (speech(1), speech(2));
    archive.put(kept.clone()).await.unwrap();
    archive.put(other).await.unwrap();
    let sound = found(&*archive, &kept).await;
    assert_eq!(compact(&*archive, 10).await.compacted, 2);
    assert_eq!(found(&*archive, &kept).await, sound);
    let file = folder.path().join("archive.db");
    // Complete and well-formed, but of another video.
    let others = "DELETE FROM cold WHERE id / 65536 = 1;
        INSERT INTO cold SELECT id - 65536, bytes FROM cold WHERE id / 65536 = 2";
    for (damage, kind) in [
        (others, ErrorKind::Corrupt),
        ("DELETE FROM cold WHERE id = 65537", ErrorKind::Corrupt),
        ("UPDATE cold SET bytes = zeroblob(40) WHERE id = 65536", ErrorKind::Unsupported),
        ("UPDATE cold SET bytes = x'' WHERE id / 65536 = 1", ErrorKind::Corrupt),
        (
            "UPDATE cold SET bytes = substr(bytes, 1, length(bytes) - 9) WHERE id / 65536 = 1",
            ErrorKind::Corrupt,
        ),
        // A codec and a dictionary of a later version.
        (
            "UPDATE cold SET bytes = CAST(x'02' || substr(bytes, 2) AS BLOB) WHERE id = 65536",
            ErrorKind::Unsupported,
        ),
        (
            "UPDATE cold SET bytes = CAST(x'0109' || substr(bytes, 3) AS BLOB) WHERE id = 65536",
            ErrorKind::Unsupported,
        ),
        (
            "UPDATE cold SET bytes = CAST(x'0100' || substr(bytes, 3) AS BLOB) WHERE id = 65536",
            ErrorKind::Corrupt,
        ),
        ("UPDATE transcripts SET content_sha256 = zeroblob(32) WHERE id = 1", ErrorKind::Corrupt),
    ] {
        let digest = content_digest(&kept.transcript);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        run(&file, &format!("CREATE TABLE sound AS SELECT * FROM cold; {damage}"));
        let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{damage}: {error}");
        assert!(!error.message().contains("said it"), "{error}");
        let error = archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{damage}: {error}");
        let back = "DELETE FROM cold; INSERT INTO cold SELECT * FROM sound; DROP TABLE sound";
        run(&file, &format!("{back}; UPDATE transcripts SET content_sha256 = x'{hex}' WHERE id = 1"));
        assert_eq!(found(&*archive, &kept).await, sound, "{damage}");
    }
    // A transcript without either form is damaged.
    run(&file, "DELETE FROM cold WHERE id / 65536 = 1");
    let error = archive.find(&kept.video, &kept.selectors[0], kept.now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(archive.stored_body(&kept.video, &kept.selectors[0]).await.unwrap(), None);
}

#[tokio::test]
async fn compaction_damaged_body_is_reported_unchanged() {
    let (archive, folder) = crate::archive().await;
    for number in 1..=3 {
        archive.put(speech(number)).await.unwrap();
    }
    let file = folder.path().join("archive.db");
    run(&file, "UPDATE bodies SET segments = zeroblob(40) WHERE transcript = 2");
    let done = compact(&*archive, 10).await;
    assert_eq!((done.scanned, done.compacted, done.damaged), (3, 2, vec![speech(2).video]));
    assert_eq!(count(&file, "bodies WHERE transcript = 2 AND segments = zeroblob(40)"), 1);
    let error = archive.find(&speech(2).video, &speech(2).selectors[0], speech(2).now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    for number in [1, 3] {
        found(&*archive, &speech(number)).await;
    }
}

#[tokio::test]
async fn delete_compacted_transcript_removes_all_rows() {
    let (archive, folder) = crate::archive().await;
    for number in 1..=2 {
        archive.put(speech(number)).await.unwrap();
    }
    compact(&*archive, 10).await;
    let file = folder.path().join("archive.db");
    assert_eq!(count(&file, "bodies"), 0);
    let parts = count(&file, "cold WHERE id / 65536 = 2");
    archive.delete(&speech(1).video).await.unwrap();
    assert_eq!(count(&file, "cold"), parts);
    let stats = archive.stats().await.unwrap();
    assert_eq!((stats.videos, stats.transcripts, stats.compact), (1, 1, 1));
    archive.delete(&speech(2).video).await.unwrap();
    assert_eq!(archive.stats().await.unwrap(), transcript_core::archive::ArchiveStats::default());
}

#[test]
fn compaction_killed_midway_loses_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(folder) = std::env::var_os(FOLDER) {
        runtime.block_on(work(PathBuf::from(folder)));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = runtime.block_on(async {
        let archive = crate::archive_in(folder.path()).await;
        let mut before = Vec::new();
        for number in 0..TRANSCRIPTS {
            archive.put(speech(number)).await.unwrap();
            before.push(found(&*archive, &speech(number)).await);
        }
        archive.close().await;
        before
    });
    let check = async || {
        let archive = crate::archive_in(folder.path()).await;
        for (number, before) in (0..).zip(&before) {
            assert_eq!(found(&*archive, &speech(number)).await, *before);
        }
        let stats = archive.stats().await.unwrap();
        archive.close().await;
        let file = folder.path().join("archive.db");
        let compact = count(&file, "cold WHERE id % 65536 = 0");
        assert_eq!(count(&file, "bodies") + compact, 160, "each has one of the two forms");
        assert_eq!((stats.transcripts, stats.compact), (TRANSCRIPTS, compact.unsigned_abs()));
        stats.compact
    };
    let mut in_the_middle = 0;
    for round in 0.. {
        // The last process is not stopped.
        let steps = if round < 12 { 1 + round % 4 } else { u64::MAX };
        let ended = run_and_kill(folder.path(), steps, Duration::from_micros(1_730 * round));
        assert!(ended || round < 12, "the last process failed");
        let compact = runtime.block_on(check());
        if ended {
            assert_eq!(compact, TRANSCRIPTS, "a run without a kill completes the compaction");
            break;
        }
        in_the_middle += u32::from(0 < compact && compact < TRANSCRIPTS);
    }
    assert!(in_the_middle > 0, "the process was never killed during compaction");
}

/// Compacts everything, a few at a time; prints each step, and waits for a line before the next one.
async fn work(folder: PathBuf) {
    let archive = crate::archive_in(&folder).await;
    let mut after = None;
    loop {
        let page = PageRequest { after, limit: 4 };
        let request = CompactRequest { stored_before: Timestamp::from_millis(i64::MAX), page };
        let done = archive.compact(request).await.unwrap();
        let mut out = std::io::stdout().lock();
        out.write_all(format!("step {}\n", done.compacted).as_bytes()).unwrap();
        out.flush().unwrap();
        drop(out);
        std::io::stdin().read_line(&mut String::new()).unwrap();
        after = done.next;
        if after.is_none() {
            return;
        }
    }
}

/// Starts the process, lets it end this many steps, and kills it during the next one, after `pause`.
///
/// Returns whether it had already ended.
fn run_and_kill(folder: &Path, steps_max: u64, pause: Duration) -> bool {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cold::compaction_killed_midway_loses_nothing", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut steps = 0;
    while steps < steps_max
        && let Some(line) = lines.next()
    {
        if line.unwrap().contains("step ") {
            steps += 1;
            writeln!(input).unwrap();
        }
    }
    if steps == steps_max {
        std::thread::sleep(pause);
        process.kill().unwrap();
    }
    process.wait().unwrap().success()
}
