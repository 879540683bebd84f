//! A platform with one ordinary video, behind a replay proxy.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use serde_json::json;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

/// The host that the supplier asks.
const HOST: &str = "www.youtube.com";

/// A proxy for a platform on which every one of these videos has English captions; answers take `latency`.
pub(crate) fn platform(videos: &[&str], latency: Duration) -> Result<ReplayProxy> {
    answering(videos, |answer| answer.after(latency))
}

/// The same, which answers once the gate is open.
pub(crate) fn held_platform(videos: &[&str], gate: &Arc<Semaphore>) -> Result<ReplayProxy> {
    answering(videos, |answer| answer.held(gate))
}

fn answering(videos: &[&str], when: impl Fn(Answer) -> Answer) -> Result<ReplayProxy> {
    let mut script = Script::new();
    for video in videos {
        let player = Rule::post(HOST, "/youtubei/v1/player")
            .or_host("youtubei.googleapis.com")
            .json("/videoId", *video)
            .answer(when(Answer::json(&player(video))));
        let captions =
            Rule::get(HOST, "/api/timedtext").query("v", video).answer(when(Answer::json(&captions(video))));
        script = script.rule(player).rule(captions);
    }
    ReplayProxy::start(script)
}

/// The settings with which a server asks that platform.
pub(crate) fn settings(proxy: &ReplayProxy) -> Vec<(String, String)> {
    vec![
        ("VERBATIM_UPSTREAM__PROXY".to_owned(), proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE".to_owned(), proxy.ca_file().display().to_string()),
    ]
}

/// How often a video's player was asked for: the number of fetches.
pub(crate) fn fetches(proxy: &ReplayProxy, video: &str) -> usize {
    proxy.count(|request| request.json("/videoId").is_some_and(|id| id == video))
}

fn player(video: &str) -> serde_json::Value {
    json!({
        "playabilityStatus": { "status": "OK" },
        "videoDetails": {
            "videoId": video, "title": "A walk along the dyke", "author": "Dyke Society",
            "lengthSeconds": "61", "isLiveContent": false
        },
        "captions": { "playerCaptionsTracklistRenderer": { "captionTracks": [{
            "baseUrl": format!("https://{HOST}/api/timedtext?v={video}&lang=en&expire=1795000000&sparams=v&key=yt8"),
            "name": { "simpleText": "English" }, "vssId": ".en", "languageCode": "en", "isTranslatable": true
        }] } }
    })
}

fn captions(video: &str) -> serde_json::Value {
    let event = |start: u32, text: String| json!({ "tStartMs": start, "dDurationMs": 2500, "segs": [{ "utf8": text }] });
    json!({ "wireMagic": "pb3", "events": [
        event(500, format!("This is {video}.")),
        event(3000, "The sheep keep the grass short.".to_owned()),
        event(6000, "So the dyke holds.".to_owned()),
    ] })
}
