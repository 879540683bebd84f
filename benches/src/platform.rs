//! A platform behind a replay proxy, with responses of realistic size.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::corpus::WordSource;

pub(crate) const HOST: &str = "www.youtube.com";
/// Bytes of a watch page, which compresses to a quarter.
const PAGE_BYTES: usize = 1_020_000;
/// Bytes of a player response.
const PLAYER_BYTES: usize = 110_000;

/// Video ids: a prefix of six characters and a number.
pub(crate) fn videos(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| video(prefix, number)).collect()
}

/// The video id with this number.
pub(crate) fn video(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:05}")
}

/// A proxy for a platform that has these videos; every response takes `latency`.
pub(crate) fn platform(videos: &[String], latency: Duration) -> Result<ReplayProxy> {
    let mut word_source = WordSource::new(1);
    let page = page(&mut word_source);
    let page = ReplayResponse::bytes("text/html; charset=utf-8", page).gzipped().after(latency);
    let padding = pad(&mut word_source, PLAYER_BYTES);
    let captions = ReplayResponse::json(&captions(&mut word_source)).gzipped().after(latency);
    let xml =
        ReplayResponse::bytes("text/xml; charset=utf-8", xml(&mut word_source)).gzipped().after(latency);
    let mut script = Script::new().rule(Rule::get(HOST, "/watch").respond(page));
    for video in videos {
        let player = ReplayResponse::json(&player(video, &padding)).gzipped().after(latency);
        script = script
            .rule(Rule::post(HOST, "/youtubei/v1/player").json("/videoId", video.as_str()).respond(player));
    }
    let timedtext = || Rule::get(HOST, "/api/timedtext");
    let script = script
        .rule(timedtext().query("fmt", "json3").respond(captions))
        .rule(timedtext().without_query("fmt").respond(xml));
    ReplayProxy::start(script)
}

/// Text of about this many bytes, with numbers that compress badly, like the tokens of real pages.
fn pad(word_source: &mut WordSource, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    let mut sequence = crate::corpus::Lcg::new(bytes as u64);
    while text.len() < bytes {
        text.push_str(&word_source.generate(12));
        text.push_str(" {style} [list] (of) rendered things ");
        text.push_str(&sequence.below(1 << 31).to_string());
    }
    text
}

fn page(word_source: &mut WordSource) -> String {
    let first = pad(word_source, 52_000);
    let rest = pad(word_source, PAGE_BYTES - 52_000);
    format!(
        "<!DOCTYPE html><html><head><script>var a = \"{first}\"; ytcfg.set({{\"INNERTUBE_API_KEY\":\
         \"bench-key-0000\"}});</script></head><body><p>{rest}</p></body></html>"
    )
}

pub(crate) fn player(video: &str, padding: &str) -> serde_json::Value {
    json!({
        "playabilityStatus": { "status": "OK" },
        "streamingData": { "formats": [padding] },
        "videoDetails": {
            "videoId": video, "title": "A walk along the dyke", "author": "Dyke Society",
            "lengthSeconds": "1801", "isLiveContent": false
        },
        "captions": { "playerCaptionsTracklistRenderer": {
            "captionTracks": [{
                "baseUrl": format!("https://{HOST}/api/timedtext?v={video}&lang=en&expire=1795000000&key=yt8"),
                "name": { "runs": [{ "text": "English" }], "simpleText": "English" },
                "vssId": ".en", "languageCode": "en", "isTranslatable": true
            }],
            "translationLanguages": []
        } }
    })
}

pub(crate) fn captions(word_source: &mut WordSource) -> serde_json::Value {
    let event = |n: u64| json!({ "tStartMs": n * 2_611, "dDurationMs": 2_570, "segs": [{ "utf8": word_source.generate(8) }] });
    json!({ "wireMagic": "pb3", "events": (0..690).map(event).collect::<Vec<_>>() })
}

fn xml(word_source: &mut WordSource) -> String {
    let line = |n: u64| {
        let start = n as f64 * 2.611;
        format!("<text start=\"{start:.3}\" dur=\"2.57\">{}</text>", word_source.generate(8))
    };
    let lines: String = (0..690).map(line).collect();
    format!("<?xml version=\"1.0\" encoding=\"utf-8\" ?><transcript>{lines}</transcript>")
}
