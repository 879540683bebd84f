//! Tests with scripts in place of yt-dlp.
//!
//! Tests with the real program are in the workspace's integration tests.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;
use transcript_core::{archive::TrackSelector, supplier::SupplyReason, time::Timestamp, video::VideoId};

use super::*;
use crate::http::HttpOptions;

#[derive(Debug)]
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
}

#[derive(Debug)]
struct PatientMonitor;

impl SupplyMonitor for PatientMonitor {
    fn report_progress(&self, _: &str, _: u64, _: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A supplier with this script as its program.
fn scripted(folder: &TempDir, script: &str) -> YtDlp {
    let program = folder.path().join("yt-dlp");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let http = HttpTransport::new(HttpOptions::default()).unwrap();
    YtDlp::new(&program, Arc::new(http), Arc::new(FrozenClock)).unwrap()
}

async fn supply_from(ytdlp: &YtDlp, time: Duration) -> Result<SupplyOutput, SupplyError> {
    let video = VideoId::new(Platform::X, "20").unwrap();
    let request = SupplyRequest {
        video,
        selector: TrackSelector::Default,
        deadline: Timestamp::from_millis(0).plus(time),
    };
    ytdlp.supply(request, Arc::new(PatientMonitor)).await
}

const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const INFO: &str = r#"{"id": "9", "display_id": "20", "title": "A post", "subtitles":
    {"en": [{"ext": "vtt", "url": "https://video.twimg.com/a.m3u8"}]}}"#;

#[tokio::test]
async fn ytdlp_written_caption_file_is_read() {
    let folder = TempDir::new().unwrap();
    let script = format!(
        "case \"$*\" in *--load-info-json*) printf 'WEBVTT\\n\\n00:01.000 --> 00:02.000\\nhi\\n' > captions.en.vtt ;; \
         *) [ -z \"$(ls)\" ] && echo '{}' ;; esac",
        INFO.replace('\n', " ")
    );
    let supplied = supply_from(&scripted(&folder, &script), LONG_TIMEOUT).await.unwrap();
    let track = &supplied.transcripts[0];
    assert_eq!((track.source.as_str(), track.segments[0].text.as_str()), ("yt-dlp", "hi"));
    assert!(track.track.is_generated());
}

#[tokio::test]
async fn ytdlp_misbehaving_program_is_reported() {
    let long_info = format!("printf '{}'", INFO.replace('\n', " "));
    for (script, expect) in [
        ("cat /dev/zero", SupplyReason::Unreadable),
        ("echo nonsense", SupplyReason::Unreadable),
        ("echo null", SupplyReason::Unreadable),
        ("echo null; exit 1", SupplyReason::PlatformFault),
        ("kill -9 $$", SupplyReason::PlatformFault),
        ("echo '{\"id\": \"21\"}'", SupplyReason::OtherVideo),
        ("echo '{\"id\": \"20\"}'", SupplyReason::NoCaptions),
        ("echo 'usage: yt-dlp' >&2; exit 2", SupplyReason::Stale),
        // Captions are listed but not written.
        (long_info.as_str(), SupplyReason::Unreadable),
        ("echo \"ModuleNotFoundError: No module named 'yt_dlp'\" >&2; exit 1", SupplyReason::Misconfigured),
    ] {
        let folder = TempDir::new().unwrap();
        let error = supply_from(&scripted(&folder, script), LONG_TIMEOUT).await.unwrap_err();
        assert_eq!(*error.reason(), expect, "{script}: {error}");
    }
    let folder = TempDir::new().unwrap();
    let error = supply_from(&scripted(&folder, "sleep 60"), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Timeout, "{error}");
}

#[test]
fn ytdlp_missing_program_error_names_setting() {
    let http = Arc::new(HttpTransport::new(HttpOptions::default()).unwrap());
    for name in ["/nowhere/yt-dlp", "no-program-of-this-name"] {
        let error = YtDlp::new(Path::new(name), Arc::clone(&http), Arc::new(FrozenClock)).unwrap_err();
        assert!(error.to_string().contains("ytdlp.program") && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn stale_folders_of_runs_are_deleted() {
    let parent = TempDir::new().unwrap();
    let [of_run, other] = ["verbatim-yt-dlp-a1B2c3", "other"].map(|name| parent.path().join(name));
    for folder in [&of_run, &other] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("given.json"), "{}").unwrap();
    }
    remove_stale_folders(parent.path(), STALE_FOLDER_AGE);
    assert!(of_run.exists() && other.exists());
    remove_stale_folders(parent.path(), Duration::ZERO);
    assert!(!of_run.exists() && other.exists());
    remove_stale_folders(&other.join("missing"), Duration::ZERO);
}
