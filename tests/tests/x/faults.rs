//! Faults of requests to X: never a wrong transcript, never an endless wait.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use upstream_reqwest::{HttpOptions, HttpTransport};
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Tunnel};

use super::{GUEST_TOKEN, POST, VIDEO, WORDS, XFixture, file, make, replay_script};
use crate::social::supplier_calls::{
    behind, check_failure, check_timeout, fetch, fetch_within, options, reason, start_pair,
};

/// A fixture in which only the syndication API returns the post, with this response.
fn only_syndication(response: ReplayResponse) -> Result<XFixture> {
    Ok(XFixture {
        guest_token: vec![ReplayResponse::status(503)],
        syndication: vec![response],
        ..XFixture::good()?
    })
}

#[tokio::test]
async fn x_api_fault_falls_back_to_other_api() -> Result<()> {
    for fault in [
        ReplayResponse::status(500),
        ReplayResponse::status(401),
        ReplayResponse::status(429),
        ReplayResponse::closed(),
        ReplayResponse::text("<html>"),
        ReplayResponse::text("{\"data\": {\"twe").cut_after(5),
        ReplayResponse::text("[".repeat(100_000)),
        ReplayResponse::text("{\"guest_token\": 5, \"data\": []}"),
        ReplayResponse::text("{\"errors\": [{\"message\": \"Internal error\"}]}"),
    ] {
        for fixture in [
            XFixture { guest_token: vec![fault.clone()], ..XFixture::good()? },
            XFixture { post: vec![fault.clone()], ..XFixture::good()? },
        ] {
            let (outcome, proxy) = replay_script(fixture).await?;
            assert_eq!(reason(&outcome), "transcript", "{fault:?}: {outcome:?}");
            assert!(proxy.requests().len() <= 8, "{fault:?}: {:?}", proxy.requests());
        }
    }
    Ok(())
}

#[tokio::test]
async fn x_lasting_faults_carry_reason() -> Result<()> {
    for (fault, expect) in [
        (ReplayResponse::status(500), "platform_fault"),
        (ReplayResponse::status(503), "platform_fault"),
        (ReplayResponse::closed(), "unreadable"),
        (ReplayResponse::status(429).header("retry-after", "60"), "throttled"),
        (ReplayResponse::text("<html>"), "unreadable"),
        (ReplayResponse::text(""), "unreadable"),
    ] {
        for fixture in [
            XFixture { master: vec![fault.clone()], ..XFixture::good()? },
            XFixture { subtitle_list: vec![fault.clone()], ..XFixture::good()? },
            XFixture { captions: vec![fault.clone()], ..XFixture::good()? },
        ] {
            check_failure(&replay_script(fixture).await?.0, expect)?;
        }
        // The failure of the first API is reported if the other one fails too.
        let (outcome, _) = replay_script(only_syndication(fault)?).await?;
        check_failure(&outcome, "platform_fault")?;
    }
    Ok(())
}

/// The other parts alone would be archived as the whole.
#[tokio::test]
async fn x_unreadable_part_of_captions_is_an_error() -> Result<()> {
    let part = format!("#EXTINF:9,\n{WORDS}\n");
    let list = format!("#EXTM3U\n{}#EXT-X-ENDLIST\n", part.repeat(3));
    let fixture = |captions| {
        let subtitle_list = vec![ReplayResponse::text(list.clone())];
        Ok::<_, anyhow::Error>(XFixture { subtitle_list, captions, ..XFixture::good()? })
    };
    let clock = "WEBVTT\n\n00:09.000 --> 00:10.000\nat\n\n12:30\n";
    let cut = clock.trim_end();
    for bad in ["", "<!DOCTYPE html><title>Error</title>", "{\"errors\":[]}", "Slack water", cut] {
        let bad = ReplayResponse::text(bad);
        for captions in [
            vec![bad.clone(), file("files/a.vtt")?],
            vec![file("files/a.vtt")?, bad.clone(), file("files/a.vtt")?],
            vec![file("files/a.vtt")?, bad.clone()],
        ] {
            check_failure(&replay_script(fixture(captions)?).await?.0, "unreadable")?;
        }
    }
    let silent = ReplayResponse::text("\u{FEFF}WEBVTT\n\n");
    let (outcome, proxy) = replay_script(fixture(vec![file("files/a.vtt")?, silent])?).await?;
    assert_eq!(outcome?.transcripts[0].segments.len(), 3, "a part without speech");
    assert_eq!(proxy.count(|request| request.path == WORDS), 3);
    let with_clock = fixture(vec![file("files/a.vtt")?, ReplayResponse::text(clock)])?;
    let transcript = replay_script(with_clock).await?.0?.transcripts.remove(0);
    assert!(transcript.segments.iter().any(|segment| segment.text == "at\n\n12:30"), "{transcript:?}");
    Ok(())
}

/// What such a playlist lists would be archived as the whole.
#[tokio::test]
async fn x_playlist_of_part_of_captions_is_an_error() -> Result<()> {
    let (part, end) = (format!("#EXTINF:9,\n{WORDS}\n"), "#EXT-X-ENDLIST\n");
    for list in [
        String::new(),
        part.repeat(2),
        format!("#EXT-X-MEDIA-SEQUENCE:7\n{part}{part}{end}"),
        format!("{part}#EXT-X-GAP\n{part}{end}"),
        format!("#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n{part}{end}"),
        format!("#EXT-X-BYTERANGE:30@0\n{part}{end}"),
    ] {
        let subtitle_list = vec![ReplayResponse::text(format!("#EXTM3U\n{list}"))];
        let (outcome, proxy) = replay_script(XFixture { subtitle_list, ..XFixture::good()? }).await?;
        check_failure(&outcome, "unreadable")?;
        assert_eq!(proxy.count(|request| request.path == WORDS), 0, "{list}");
    }
    Ok(())
}

/// Joined, the cues of one part would be at the times of another, or missing.
#[tokio::test]
async fn x_parts_that_differ_in_time_base_or_encoding_are_an_error() -> Result<()> {
    let part = |map: &str, second: u32| {
        format!("WEBVTT\n{map}\n00:0{second}.000 --> 00:0{second}.900\nAt {second}.\n")
    };
    let utf16 = |text: &str| {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        ReplayResponse::bytes("text/vtt", units.flat_map(u16::to_le_bytes).collect::<Vec<_>>())
    };
    let map = |mpegts: u32| format!("X-TIMESTAMP-MAP=MPEGTS:{mpegts},LOCAL:00:00:00.000\n");
    let first = || ReplayResponse::text(part(&map(900_000), 1));
    let list = format!("#EXTM3U\n{}#EXT-X-ENDLIST\n", format!("#EXTINF:9,\n{WORDS}\n").repeat(2));
    for (second, expect) in [
        (ReplayResponse::text(part(&map(1_800_000), 2)), "unreadable"),
        (ReplayResponse::text(part("", 2)), "unreadable"),
        (utf16(&part(&map(900_000), 2)), "unreadable"),
        (ReplayResponse::text(part(&map(900_000), 2)), "transcript"),
        (ReplayResponse::text("WEBVTT\n\n"), "transcript"),
    ] {
        let subtitle_list = vec![ReplayResponse::text(list.clone())];
        let captions = vec![first(), second];
        let fixture = XFixture { subtitle_list, captions, ..XFixture::good()? };
        let (outcome, _) = replay_script(fixture).await?;
        assert_eq!(reason(&outcome), expect, "{outcome:?}");
    }
    Ok(())
}

/// A failure of the first API that passes is repeated if the other one does not have the post, or fails.
#[tokio::test]
async fn x_passing_fault_is_retried_without_other_api() -> Result<()> {
    let nothing = || vec![ReplayResponse::text("{}")];
    for fault in [ReplayResponse::status(500), ReplayResponse::closed()] {
        for other in [ReplayResponse::text("{}"), ReplayResponse::status(404), ReplayResponse::status(429)] {
            let once = vec![fault.clone(), file("posts/video.json")?];
            let fixture = XFixture { post: once, syndication: vec![other.clone()], ..XFixture::good()? };
            let (outcome, _) = replay_script(fixture).await?;
            assert_eq!(reason(&outcome), "transcript", "{fault:?} {other:?}: {outcome:?}");
        }
        // No API reported that the post is gone.
        let fixture = XFixture { post: vec![fault.clone()], syndication: nothing(), ..XFixture::good()? };
        let (outcome, _) = replay_script(fixture).await?;
        assert!(["platform_fault", "unreadable"].contains(&reason(&outcome)), "{fault:?}: {outcome:?}");
    }
    // A refusal is not repeated.
    let fixture =
        XFixture { post: vec![ReplayResponse::status(429)], syndication: nothing(), ..XFixture::good()? };
    let (outcome, proxy) = replay_script(fixture).await?;
    check_failure(&outcome, "throttled")?;
    assert_eq!(proxy.count(|request| request.path == POST), 1);
    Ok(())
}

/// The other API lacks posts and media that exist: only what it states about a post decides.
#[tokio::test]
async fn x_refusal_is_reported_if_other_api_has_no_media() -> Result<()> {
    let bare = ReplayResponse::text(format!(
        "{{\"__typename\":\"Tweet\",\"id_str\":\"{VIDEO}\",\"text\":\"Slack water\",\"user\":{{\"name\":\"Tide\"}}}}"
    ));
    let tombstone = file("posts/syndicated-tombstone.json")?;
    for (status, other, expect) in [
        (429, bare.clone(), "throttled"),
        (404, bare, "stale"),
        (404, ReplayResponse::text("{}"), "stale"),
        (403, tombstone, "age"),
    ] {
        let post = vec![ReplayResponse::status(status)];
        let fixture = XFixture { post, syndication: vec![other], ..XFixture::good()? };
        let (outcome, _) = replay_script(fixture).await?;
        check_failure(&outcome, expect)?;
        // Links of such posts must not open the breaker for all.
        assert!(outcome.err().is_some_and(|error| !error.counts_against_supplier()), "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn x_endless_response_is_cut_off() -> Result<()> {
    let endless = || vec![ReplayResponse::text("#".repeat(64 << 10)).endlessly()];
    let bomb = || vec![ReplayResponse::bytes("application/json", vec![b' '; 50 << 20]).gzipped()];
    let deep = || vec![ReplayResponse::text(format!("{{\"data\":{}", "[".repeat(3_000_000)))];
    let long = || {
        let list = "{\"type\":\"video\"},".repeat(60_000);
        vec![ReplayResponse::text(format!(
            "{{\"data\":{{\"tweetResult\":{{\"result\":{{\"a\":[{list}0]}}}}}}}}"
        ))]
    };
    for fixture in [
        XFixture { post: endless(), syndication: bomb(), ..XFixture::good()? },
        XFixture { post: bomb(), syndication: endless(), ..XFixture::good()? },
        XFixture { post: deep(), syndication: long(), ..XFixture::good()? },
        XFixture { post: long(), syndication: deep(), ..XFixture::good()? },
        XFixture { guest_token: endless(), syndication: deep(), ..XFixture::good()? },
        XFixture { master: endless(), ..XFixture::good()? },
        XFixture { subtitle_list: bomb(), ..XFixture::good()? },
        XFixture { captions: endless(), ..XFixture::good()? },
    ] {
        check_failure(&replay_script(fixture).await?.0, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn x_slow_response_fails_at_timeout() -> Result<()> {
    let never = || vec![ReplayResponse::never()];
    for script in [
        XFixture { guest_token: never(), syndication: never(), ..XFixture::good()? }.script(),
        XFixture { post: never(), syndication: never(), ..XFixture::good()? }.script(),
        XFixture { captions: never(), ..XFixture::good()? }.script(),
        XFixture::good()?.script().all_tunnels([Tunnel::Never]),
    ] {
        check_timeout(make, script, VIDEO).await?;
    }
    Ok(())
}

#[tokio::test]
async fn x_deadline_ends_call() -> Result<()> {
    let fixture = XFixture { guest_token: vec![ReplayResponse::never()], ..XFixture::good()? };
    let proxy = ReplayProxy::start(fixture.script())?;
    let outcome = fetch_within(&behind(make, &proxy)?, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    Ok(())
}

#[tokio::test]
async fn x_throttled_api_is_paused_while_other_serves() -> Result<()> {
    let throttled = ReplayResponse::status(429).header("retry-after", "3600");
    let fixture = XFixture { post: vec![throttled], ..XFixture::good()? };
    let proxy = ReplayProxy::start(fixture.script())?;
    let supplier = behind(make, &proxy)?;
    for _ in 0..3 {
        assert_eq!(reason(&fetch(&supplier, VIDEO, None).await?), "transcript");
    }
    assert_eq!(proxy.count(|request| request.path == POST), 1);
    assert_eq!(proxy.count(|request| request.path == GUEST_TOKEN), 1);
    Ok(())
}

#[tokio::test]
async fn x_blocked_proxy_is_replaced_by_next() -> Result<()> {
    let refused = || vec![ReplayResponse::status(403)];
    let block = XFixture { guest_token: refused(), syndication: refused(), ..XFixture::good()? }.script();
    let [blocked, good] = start_pair(block, XFixture::good()?.script())?;
    let options = HttpOptions { retries: 2, ..options(&[&blocked, &good], good.ca_file()) };
    let supplier = make(Arc::new(HttpTransport::new(options)?));
    for _ in 0..2 {
        let outcome = fetch(&supplier, VIDEO, None).await?;
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    assert_eq!(blocked.requests().len(), 2, "{:?}", blocked.requests());
    Ok(())
}

#[tokio::test]
async fn x_quoted_post_is_named_in_message() -> Result<()> {
    let fixture = XFixture { post: vec![file("posts/quoting.json")?], ..XFixture::good()? };
    let proxy = ReplayProxy::start(fixture.script())?;
    let outcome = fetch(&behind(make, &proxy)?, "1990000000000000006", None).await?;
    check_failure(&outcome, "no_captions")?;
    let message = outcome.err().map(|error| error.message().to_owned()).unwrap_or_default();
    assert!(message.contains("x.com/i/status/1990000000000000001"), "{message}");
    Ok(())
}
