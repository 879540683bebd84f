//! Long sounds: cut where it is quiet, each part heard once, and put together again.

use std::{collections::HashSet, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use transcript_core::supplier::Watcher;
use upstream_reqwest::SpeechOptions;
use verbatim_tests::replay::Answer;

use super::{
    service::{Reply, Seen, Service},
    sounds::tones,
    stage::{Notes, heard, listen, listener, options, platform_with, video},
};

/// A transcription of a part that says when it was heard, from its beginning to its end.
fn whole(seen: &Seen, place: usize) -> Reply {
    Reply::heard(&[(0.0, seen.seconds(), &format!("part {place}"))])
}

/// How often each part was sent.
fn distinct(seen: &[Seen]) -> usize {
    seen.iter().map(|seen| seen.file().to_vec()).collect::<HashSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_follow_each_other_without_gap_or_overlap() -> Result<()> {
    let service = Service::start(whole).await?;
    let supplied = heard(tones(10)?, options(&service.base_url)).await??;
    let segments = &supplied.tracks[0].segments;
    let texts: Vec<_> = segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["part 0", "part 1", "part 2", "part 3", "part 4"]);
    assert_eq!(segments[0].start_ms, 0);
    for (pair, cut) in segments.windows(2).zip([1_750_u64, 3_750, 5_750, 7_750]) {
        assert_eq!(pair[0].end_ms(), pair[1].start_ms);
        assert!(cut.abs_diff(pair[1].start_ms) <= 150, "cut in the pauses: {segments:?}");
    }
    assert!(segments[4].end_ms().abs_diff(10_000) <= 100, "{segments:?}");
    for seen in service.seen() {
        assert_eq!(seen.field("response_format").as_deref(), Some("verbose_json"));
        assert_eq!(seen.field("model").as_deref(), Some("sphinx"));
        assert!(
            seen.head.starts_with("post /v1/audio/transcriptions ") && seen.head.contains("bearer test-key")
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_part_that_failed_is_sent_again() -> Result<()> {
    for concurrency in [1, 3] {
        let service = Service::start(|seen, place| match place {
            2 => Reply::Answer(503, "", "<html>busy</html>".to_owned()),
            _ => whole(seen, place),
        })
        .await?;
        let options = SpeechOptions { concurrency, ..options(&service.base_url) };
        let supplied = heard(tones(10)?, options).await??;
        let segments = &supplied.tracks[0].segments;
        assert_eq!((segments.len(), service.seen().len(), distinct(&service.seen())), (5, 6, 5));
        assert!(segments.windows(2).all(|pair| pair[0].end_ms() == pair[1].start_ms), "{segments:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_wait_is_kept_by_all_parts() -> Result<()> {
    let service = Service::start(|seen, place| match place {
        1 => Reply::Answer(429, "retry-after: 1\r\n", "{}".to_owned()),
        _ => whole(seen, place),
    })
    .await?;
    let supplied = heard(tones(4)?, options(&service.base_url)).await??;
    assert_eq!(supplied.tracks[0].segments.len(), 2);
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    let pause = seen[2].at.duration_since(seen[1].at);
    assert!(pause >= Duration::from_secs(1), "{pause:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_times_gets_parts_that_are_short() -> Result<()> {
    // One of them says that it cannot, one does not say a word about it.
    for refuses in [true, false] {
        let service =
            Service::start(move |seen, place| match (refuses, seen.field("response_format").as_deref()) {
                (true, Some("verbose_json")) => {
                    let error = json!({"error": {"param": "response_format", "code": "unsupported_value"}});
                    Reply::Answer(400, "", error.to_string())
                }
                _ => Reply::json(&json!({"text": format!(" Part {place}.")})),
            })
            .await?;
        let options = SpeechOptions { part: Duration::from_secs(600), ..options(&service.base_url) };
        let proxy = video(tones(50)?)?;
        let listener = listener(&proxy, options)?;
        for requests in [4, 7] {
            let supplied = listen(&listener, None, Arc::new(Notes::default())).await??;
            let segments = &supplied.tracks[0].segments;
            assert_eq!(segments.len(), 3, "{segments:?}");
            assert!(segments.iter().all(|segment| segment.duration_ms <= 20_000), "{segments:?}");
            assert!(segments.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms), "{segments:?}");
            assert_eq!(supplied.tracks[0].track.language.as_str(), "und");
            // That it has no times is remembered.
            assert_eq!(service.seen().len(), requests);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_odd_answer_is_not_remembered_of_the_service() -> Result<()> {
    let service = Service::start(|seen, place| match place {
        0 => Reply::json(&json!({"text": "All of it.", "segments": []})),
        _ => whole(seen, place),
    })
    .await?;
    let options = SpeechOptions { part: Duration::from_secs(600), ..options(&service.base_url) };
    let proxy = video(tones(50)?)?;
    let listener = listener(&proxy, options)?;
    // The whole, then in short parts; the next one is heard as a whole.
    for requests in [4, 5] {
        listen(&listener, None, Arc::new(Notes::default())).await??;
        assert_eq!(service.seen().len(), requests);
    }
    assert_eq!(service.seen()[4].field("response_format").as_deref(), Some("verbose_json"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_video_does_not_wait_for_all_of_a_long_one() -> Result<()> {
    let (open, held) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (permits, arrived) = (Arc::clone(&open), Arc::clone(&held));
    let service = Service::start(move |seen, place| {
        arrived.add_permits(1);
        Reply::Held(Arc::clone(&permits), Box::new(whole(seen, place)))
    })
    .await?;
    let options = options(&service.base_url);
    // One listener for both, whose first file is long and whose second one is short.
    let proxy = platform_with([tones(20)?, tones(1)?].map(|file| Answer::bytes("video/mp4", file)))?;
    let listener = listener(&proxy, options)?;
    let long = tokio::spawn({
        let listener = Arc::clone(&listener);
        async move { listen(&listener, None, Arc::new(Notes::default())).await }
    });
    held.acquire().await?.forget();
    let (begun, mut begins) = watch::channel(false);
    let short = tokio::spawn({
        let listener = Arc::clone(&listener);
        async move { listen(&listener, None, Arc::new(Begins(begun))).await }
    });
    // Its part is in line from this moment on.
    begins.wait_for(|begun| *begun).await?;
    open.add_permits(100);
    assert_eq!(short.await???.tracks[0].segments.len(), 1);
    assert!(long.await???.tracks[0].segments.len() > 5);
    let place = service.seen().iter().position(|seen| seen.seconds() < 1.5);
    assert!(place.is_some_and(|place| place <= 2), "{place:?}");
    Ok(())
}

/// Tells that the parts of a sound are about to be heard.
#[derive(Debug)]
struct Begins(watch::Sender<bool>);

impl Watcher for Begins {
    fn stage(&self, name: &str, _: u64, _: u64) {
        if name == "transcribing" {
            self.0.send_replace(true);
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_gets_the_file_from_its_beginning() -> Result<()> {
    let service = Service::start(whole).await?;
    let folder = TempDir::new()?;
    // Where the system does not open a file anew that is a program's input, what was read of it is gone.
    let program = folder.path().join("ffmpeg");
    let script = "#!/bin/sh\n[ \"$(head -c 1 | wc -c)\" -eq 1 ] || exit 1\nexec ffmpeg \"$@\"\n";
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    let options = SpeechOptions { ffmpeg: program, ..options(&service.base_url) };
    let supplied = heard(tones(4)?, options).await??;
    assert_eq!(supplied.tracks[0].segments.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_language_is_told_after_the_first_part() -> Result<()> {
    let service = Service::start(whole).await?;
    let proxy = video(tones(10)?)?;
    let listener = listener(&proxy, options(&service.base_url))?;
    let error =
        listen(&listener, Some("fr"), Arc::new(Notes::default())).await?.err().context("a transcript")?;
    assert_eq!(error.reason().as_str(), "no_language");
    assert!(error.message().contains("but in en"), "{error}");
    assert_eq!(service.seen().len(), 1);
    Ok(())
}
