//! A platform that fails now and then.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::platform::{HOST, captions, player, video};

/// Prefix of the video ids.
pub(super) const PREFIX: &str = "soak--";
/// One in this many videos fails in each of the ways below.
const FAULT_INTERVAL: usize = 40;

/// Whether the platform fails for the video with this number.
pub(super) fn is_faulty(number: usize) -> bool {
    number % FAULT_INTERVAL < 4
}

pub(super) fn video_id(number: usize) -> String {
    video(PREFIX, number)
}

/// A proxy for a platform with this many videos.
pub(super) fn start(videos: usize) -> Result<ReplayProxy> {
    let mut word_source = crate::corpus::WordSource::new(1);
    let text = ReplayResponse::json(&captions(&mut word_source)).gzipped();
    let mut script =
        Script::new().rule(Rule::get(HOST, "/api/timedtext").query("fmt", "json3").respond(text));
    for number in 0..videos {
        let id = video_id(number);
        let player = ReplayResponse::json(&player(&id, "")).gzipped();
        let response = match number % FAULT_INTERVAL {
            0 => ReplayResponse::status(503),
            1 => ReplayResponse::closed(),
            2 => player.cut_after(100),
            3 => ReplayResponse::json(&json!({"playabilityStatus": {"status": "ERROR"}})),
            4 => player.after(Duration::from_secs(2)),
            5 => player.slowly(64, Duration::from_millis(20)),
            _ => player,
        };
        script = script.rule(Rule::post(HOST, "/youtubei/v1/player").json("/videoId", id).respond(response));
    }
    ReplayProxy::start(script)
}
