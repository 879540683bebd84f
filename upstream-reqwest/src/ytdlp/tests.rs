//! What programs of another mind than yt-dlp do. The real one runs in the tests that cross crates.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;
use transcript_core::{archive::Wish, supplier::SupplyReason, time::Timestamp, video::VideoId};

use super::*;
use crate::http::HttpOptions;

#[derive(Debug)]
struct Now;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
}

#[derive(Debug)]
struct Patient;

impl Watcher for Patient {
    fn stage(&self, _: &str, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// A supplier whose program is this script.
fn scripted(folder: &TempDir, script: &str) -> YtDlp {
    let program = folder.path().join("yt-dlp");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let http = Http::new(HttpOptions::default()).unwrap();
    YtDlp::new(&program, Arc::new(http), Arc::new(Now)).unwrap()
}

async fn asked(ytdlp: &YtDlp, time: Duration) -> Result<Supplied, SupplyError> {
    let video = VideoId::new(Platform::Microblog, "20").unwrap();
    let ask = Ask { video, wish: Wish::Default, deadline: Timestamp::from_millis(0).plus(time) };
    ytdlp.supply(ask, Arc::new(Patient)).await
}

const LONG: Duration = Duration::from_secs(60);
const INFO: &str = r#"{"id": "9", "display_id": "20", "title": "A post", "subtitles":
    {"en": [{"ext": "vtt", "url": "https://video.twimg.com/a.m3u8"}]}}"#;

#[tokio::test]
async fn words_come_from_the_file_that_it_writes() {
    let folder = TempDir::new().unwrap();
    let script = format!(
        "case \"$*\" in *--load-info-json*) printf 'WEBVTT\\n\\n00:01.000 --> 00:02.000\\nhi\\n' > captions.en.vtt ;; \
         *) [ -z \"$(ls)\" ] && echo '{}' ;; esac",
        INFO.replace('\n', " ")
    );
    let supplied = asked(&scripted(&folder, &script), LONG).await.unwrap();
    let track = &supplied.tracks[0];
    assert_eq!((track.source.as_str(), track.segments[0].text.as_str()), ("yt-dlp", "hi"));
    assert!(track.track.is_generated());
}

#[tokio::test]
async fn programs_that_misbehave_are_told_of() {
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
        // It names captions, and gives none.
        (long_info.as_str(), SupplyReason::Unreadable),
        ("echo \"ModuleNotFoundError: No module named 'yt_dlp'\" >&2; exit 1", SupplyReason::Misconfigured),
    ] {
        let folder = TempDir::new().unwrap();
        let error = asked(&scripted(&folder, script), LONG).await.unwrap_err();
        assert_eq!(*error.reason(), expect, "{script}: {error}");
    }
    let folder = TempDir::new().unwrap();
    let error = asked(&scripted(&folder, "sleep 60"), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Timeout, "{error}");
}

#[test]
fn a_program_that_is_not_there_is_told_by_the_settings_name() {
    let http = Arc::new(Http::new(HttpOptions::default()).unwrap());
    for name in ["/nowhere/yt-dlp", "no-program-of-this-name"] {
        let error = YtDlp::new(Path::new(name), Arc::clone(&http), Arc::new(Now)).unwrap_err();
        assert!(error.to_string().contains("ytdlp.program") && error.to_string().contains(name), "{error}");
    }
}
