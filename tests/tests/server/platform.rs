//! A platform with ordinary videos, played by a replay proxy.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script, recordings::Recordings};

use super::harness::{ServerFixture, borrow_settings};

/// The host that the supplier requests.
pub(crate) const HOST: &str = "www.youtube.com";

/// Starts a proxy for a platform on which each video has English captions; every response takes `latency`.
pub(crate) fn start_platform(videos: &[&str], latency: Duration) -> Result<ReplayProxy> {
    start_with(videos, |answer| answer.after(latency))
}

/// Same as [`start_platform`], with responses that wait for the gate.
pub(crate) fn gated_platform(videos: &[&str], gate: &Arc<Semaphore>) -> Result<ReplayProxy> {
    start_with(videos, |answer| answer.gated(gate))
}

fn start_with(videos: &[&str], adapt: impl Fn(ReplayResponse) -> ReplayResponse) -> Result<ReplayProxy> {
    let rules = videos.iter().flat_map(|video| video_rules(video, &player(video), &adapt));
    ReplayProxy::start(Script::new().rules(rules))
}

/// The rules of a video: for its player, with this response, and for its captions.
pub(crate) fn video_rules(
    video: &str,
    page: &Value,
    adapt: impl Fn(ReplayResponse) -> ReplayResponse,
) -> [Rule; 2] {
    let player = Rule::post(HOST, "/youtubei/v1/player")
        .or_host("youtubei.googleapis.com")
        .json("/videoId", video)
        .respond(adapt(ReplayResponse::json(page)));
    let captions = Rule::get(HOST, "/api/timedtext")
        .query("v", video)
        .respond(adapt(ReplayResponse::json(&captions(video))));
    [player, captions]
}

/// The rules of all recordings of a platform.
pub(crate) fn recorded_rules(platform: &str) -> Result<Vec<Rule>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(platform);
    Recordings::open(&folder)?.all_rules()
}

/// The settings of a server that uses this platform.
pub(crate) fn platform_settings(proxy: &ReplayProxy) -> Vec<(String, String)> {
    vec![
        ("VERBATIM_UPSTREAM__PROXY".to_owned(), proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE".to_owned(), proxy.ca_file().display().to_string()),
    ]
}

/// Starts a server that uses this platform, with these other settings.
pub(crate) fn serve_platform(
    data: &TempDir,
    proxy: &ReplayProxy,
    more: &[(&str, &str)],
) -> Result<ServerFixture> {
    let settings = platform_settings(proxy);
    ServerFixture::start(data, &[&borrow_settings(&settings)[..], more].concat())
}

/// The number of fetches of a video: requests of its player.
pub(crate) fn fetch_count(proxy: &ReplayProxy, video: &str) -> usize {
    proxy.count(|request| request.json("/videoId").is_some_and(|id| id == video))
}

/// The player response of a video with English captions.
pub(crate) fn player(video: &str) -> Value {
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

pub(crate) fn captions(video: &str) -> Value {
    let event = |start: u32, text: String| json!({ "tStartMs": start, "dDurationMs": 2500, "segs": [{ "utf8": text }] });
    json!({ "wireMagic": "pb3", "events": [
        event(500, format!("This is {video}.")),
        event(3000, "The sheep keep the grass short.".to_owned()),
        event(6000, "So the dyke holds.".to_owned()),
    ] })
}
