//! Long sounds: cut where it is quiet, each part heard once, and put together again.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use upstream_reqwest::SpeechOptions;

use super::{
    service::{Reply, Seen, Service},
    sounds::tones,
    stage::{Notes, heard, listen, listener, options, video},
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
