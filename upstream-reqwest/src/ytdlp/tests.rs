//! Tests with scripts in place of yt-dlp.
//!
//! Tests with the real program are in the workspace's integration tests.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;
use transcript_core::{
    archive::TrackSelector,
    supplier::SupplyReason,
    test_doubles::{ManualClock, PatientMonitor},
    time::Timestamp,
    video::VideoId,
};

use super::*;
use crate::http::{
    HttpOptions,
    testing::{FakePlatform, reply},
};

/// A supplier with this script as its program.
fn scripted(folder: &TempDir, script: &str) -> YtDlp {
    scripted_behind(folder, script, HttpOptions::default())
}

fn scripted_behind(folder: &TempDir, script: &str, http: HttpOptions) -> YtDlp {
    let program = folder.path().join("yt-dlp");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let http = HttpTransport::new(http).unwrap();
    YtDlp::new(&program, Arc::new(http), Arc::new(ManualClock::default())).unwrap()
}

async fn supply_from(ytdlp: &YtDlp, time: Duration) -> Result<SupplyOutput, SupplyError> {
    supply_video(ytdlp, VideoId::new(Platform::X, "20").unwrap(), "default", time).await
}

async fn supply_video(
    ytdlp: &YtDlp,
    video: VideoId,
    selector: &str,
    time: Duration,
) -> Result<SupplyOutput, SupplyError> {
    let selector = TrackSelector::from_name(selector);
    let request = SupplyRequest { video, selector, deadline: Timestamp::from_millis(0).plus(time) };
    ytdlp.supply(request, Arc::new(PatientMonitor::default())).await
}

fn youtube_video(id: &str) -> VideoId {
    VideoId::new(Platform::YouTube, id).unwrap()
}

/// A script that prints these fields of a video with recognized English, which YouTube translates into Japanese.
///
/// It downloads the English captions, and none if the Japanese ones are first.
fn youtube_script(fields: &str) -> String {
    let form = |query: &str| {
        let url = format!("https://www.youtube.com/api/timedtext?v=x&kind=asr&lang=en{query}");
        format!(r#"[{{"ext": "json3", "url": "{url}"}}]"#)
    };
    let automatic = format!(r#"{{"en": {}, "ja": {}}}"#, form(""), form("&tlang=ja"));
    let error = "ERROR: Unable to download video subtitles for 'ja': HTTP Error 429: Too Many Requests";
    format!(
        "case \"$*\" in *--sub-langs=ja*) echo \"{error}\" >&2; exit 1 ;; \
         *--load-info-json*) printf 'WEBVTT\\n\\n00:01.000 --> 00:02.000\\nhi\\n' > captions.en.vtt ;; \
         *watch?v=DJztXj2GPfk) echo '{{\"formats\": [{{}}], \"automatic_captions\": {automatic}, {fields}}}' ;; esac"
    )
}

const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const INFO: &str = r#"{"id": "9", "display_id": "20", "title": "A post", "subtitles":
    {"en": [{"ext": "vtt", "url": "https://video.twimg.com/a.m3u8"}]}}"#;

const WHOLE: &str = "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:9,\n/a.vtt\n#EXT-X-ENDLIST\n";

/// X, which has this playlist of the captions in [`INFO`].
async fn x_with_playlist(playlist: &str) -> FakePlatform {
    let playlist = playlist.to_owned();
    FakePlatform::start(move |_, _| reply(200, "", &playlist)).await
}

/// A script that prints [`INFO`], downloads its captions if a missing part ends the run, and then fails as given.
fn x_script(failure: &str) -> String {
    let info = INFO.replace('\n', " ");
    format!(
        "case \"$*\" in *--abort-on-unavailable-fragments*--load-info-json*) \
         printf 'WEBVTT\\n\\n00:01.000 --> 00:02.000\\nhi\\n' > captions.en.vtt; {failure} ;; \
         *) [ -z \"$(ls)\" ] && echo '{info}' ;; esac"
    )
}

#[tokio::test]
async fn ytdlp_written_caption_file_is_read() {
    let folder = TempDir::new().unwrap();
    let x = x_with_playlist(WHOLE).await;
    let ytdlp = scripted_behind(&folder, &x_script(""), x.options());
    let supplied = supply_from(&ytdlp, LONG_TIMEOUT).await.unwrap();
    let track = &supplied.transcripts[0];
    assert_eq!((track.source.as_str(), track.segments[0].text.as_str()), ("yt-dlp", "hi"));
    assert!(track.track.is_generated());
}

/// What yt-dlp joins would be archived as the whole.
#[tokio::test]
async fn ytdlp_captions_with_missing_part_are_unreadable() {
    let without_end = WHOLE.replace("#EXT-X-ENDLIST", "");
    let from_middle = WHOLE.replace("SEQUENCE:0", "SEQUENCE:7");
    for (playlist, failure) in [
        (WHOLE, "echo 'ERROR: fragment 2 not found, unable to continue' >&2; exit 1"),
        (WHOLE, "exit 1"),
        (without_end.as_str(), ""),
        (from_middle.as_str(), ""),
        ("#EXTM3U\n#EXT-X-GAP\n/a.vtt\n#EXT-X-ENDLIST", ""),
    ] {
        let folder = TempDir::new().unwrap();
        let x = x_with_playlist(playlist).await;
        let ytdlp = scripted_behind(&folder, &x_script(failure), x.options());
        let error = supply_from(&ytdlp, LONG_TIMEOUT).await.unwrap_err();
        assert_eq!(*error.reason(), SupplyReason::Unreadable, "{playlist} {failure}: {error}");
    }
}

/// The run also fails if only the default track does, which then has no file.
#[tokio::test]
async fn ytdlp_requested_track_is_kept_if_default_fails() {
    let french = r#""fr": [{"ext": "vtt", "url": "https://video.twimg.com/f.m3u8"}], "en":"#;
    let info = INFO.replace('\n', " ").replace(r#""en":"#, french);
    let x = x_with_playlist(WHOLE).await;
    for (files, expect) in [("captions.fr.vtt", Some(1)), ("captions.fr.vtt captions.en.vtt", None)] {
        let script = format!(
            "case \"$*\" in *--load-info-json*) printf 'WEBVTT\\n\\n00:01.000 --> 00:02.000\\nhi\\n' \
             | tee {files} > /dev/null; exit 1 ;; *) echo '{info}' ;; esac"
        );
        let folder = TempDir::new().unwrap();
        let ytdlp = scripted_behind(&folder, &script, x.options());
        let video = VideoId::new(Platform::X, "20").unwrap();
        let supplied = supply_video(&ytdlp, video, "fr", LONG_TIMEOUT).await;
        assert_eq!(supplied.ok().map(|supplied| supplied.transcripts.len()), expect, "{files}");
    }
}

#[tokio::test]
async fn ytdlp_throttled_translation_does_not_pause_youtube() {
    let folder = TempDir::new().unwrap();
    let ytdlp = scripted(&folder, &youtube_script(r#""id": "DJztXj2GPfk""#));
    let supply = |selector| supply_video(&ytdlp, youtube_video("DJztXj2GPfk"), selector, LONG_TIMEOUT);
    let error = supply("translation:ja").await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Throttled(None));
    assert!(error.message().contains("translates") && !error.counts_against_supplier(), "{error}");
    assert_eq!(supply("default").await.unwrap().transcripts[0].segments[0].text, "hi");
    let error = supply("translation:nl").await.unwrap_err();
    assert!(matches!(error.reason(), SupplyReason::NoLanguage(tracks) if tracks.len() == 1), "{error:?}");
}

#[tokio::test]
async fn ytdlp_other_spelling_of_id_is_same_video() {
    let folder = TempDir::new().unwrap();
    let ytdlp = scripted(&folder, &youtube_script(r#""id": "DJztXj2GPfk""#));
    let video = youtube_video("DJztXj2GPfl");
    let supplied = supply_video(&ytdlp, video.clone(), "default", LONG_TIMEOUT).await.unwrap();
    assert_eq!(supplied.transcripts[0].video, video);
}

#[tokio::test]
async fn ytdlp_stream_that_just_ended_has_no_captions_yet() {
    let folder = TempDir::new().unwrap();
    let without = r#""id": "DJztXj2GPfk", "live_status": "post_live", "automatic_captions": {}"#;
    let ytdlp = scripted(&folder, &youtube_script(without));
    let supply = |ytdlp| supply_video(ytdlp, youtube_video("DJztXj2GPfk"), "default", LONG_TIMEOUT);
    assert_eq!(*supply(&ytdlp).await.unwrap_err().reason(), SupplyReason::Live);
    let with = r#""id": "DJztXj2GPfk", "live_status": "post_live""#;
    let ytdlp = scripted(&folder, &youtube_script(with));
    assert_eq!(supply(&ytdlp).await.unwrap().transcripts.len(), 1);
}

#[tokio::test]
async fn ytdlp_misbehaving_program_is_reported() {
    let x = x_with_playlist(WHOLE).await;
    let long_info = format!("printf '{}'", INFO.replace('\n', " "));
    for (script, expect) in [
        ("cat /dev/zero", SupplyReason::Unreadable),
        ("echo nonsense", SupplyReason::Unreadable),
        ("echo null", SupplyReason::Unreadable),
        ("echo null; exit 1", SupplyReason::PlatformFault),
        ("kill -9 $$", SupplyReason::PlatformFault),
        ("echo '{\"id\": \"21\"}'", SupplyReason::OtherVideo),
        ("echo '{\"id\": \"20\"}'", SupplyReason::NoCaptions),
        ("echo 'WARNING: No video formats found!' >&2; echo '{\"id\": \"20\"}'", SupplyReason::Unreadable),
        ("echo 'usage: yt-dlp' >&2; exit 2", SupplyReason::Stale),
        // Captions are listed but not written.
        (long_info.as_str(), SupplyReason::Unreadable),
        ("echo \"ModuleNotFoundError: No module named 'yt_dlp'\" >&2; exit 1", SupplyReason::Misconfigured),
    ] {
        let folder = TempDir::new().unwrap();
        let ytdlp = scripted_behind(&folder, script, x.options());
        let error = supply_from(&ytdlp, LONG_TIMEOUT).await.unwrap_err();
        assert_eq!(*error.reason(), expect, "{script}: {error}");
    }
    let folder = TempDir::new().unwrap();
    let error = supply_from(&scripted(&folder, "sleep 60"), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Timeout, "{error}");
}

#[tokio::test]
async fn ytdlp_endless_caption_file_is_too_large() {
    let folder = TempDir::new().unwrap();
    let x = x_with_playlist(WHOLE).await;
    let ytdlp = scripted_behind(&folder, &x_script("ln -sf /dev/zero captions.en.vtt"), x.options());
    let error = supply_from(&ytdlp, LONG_TIMEOUT).await.unwrap_err();
    assert!(error.message().contains("too large"), "{error}");
}

#[test]
fn run_folder_is_deleted_on_blocking_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let folder = runtime.block_on(fetch::RunFolder::create()).unwrap();
    let path = folder.path.clone();
    let busy = runtime.spawn_blocking(move || released.recv().is_err());
    runtime.block_on(async { drop(folder) });
    assert!(path.exists(), "the only blocking thread is busy");
    drop(release);
    assert!(runtime.block_on(busy).unwrap());
    runtime.block_on(runtime.spawn_blocking(|| {})).unwrap();
    assert!(!path.exists());
    let without_runtime = runtime.block_on(fetch::RunFolder::create()).unwrap();
    let path = without_runtime.path.clone();
    drop(without_runtime);
    assert!(!path.exists());
}

#[test]
fn ytdlp_missing_program_error_names_setting() {
    let http = Arc::new(HttpTransport::new(HttpOptions::default()).unwrap());
    for name in ["/nowhere/yt-dlp", "no-program-of-this-name"] {
        let error =
            YtDlp::new(Path::new(name), Arc::clone(&http), Arc::new(ManualClock::default())).unwrap_err();
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
