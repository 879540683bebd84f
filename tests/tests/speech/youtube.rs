//! YouTube's sound: where a client is told a plain address it is listened to, else it is said.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use transcript_core::{
    Clock,
    supplier::{Ask, Supplied, Supplier, SupplyError},
    video::{Platform, VideoId},
};
use upstream_reqwest::{SpeechToText, YouTubeCaptions, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    service::{Reply, Service},
    sounds::tones,
    stage::{Notes, PATIENCE, options},
};
use crate::social::asking;

const VIDEO: &str = "dyke-walk-0";
const FILES: &str = "rr1---sn-a.googlevideo.com";

/// What comes of listening to a video of which player data says this.
async fn listen(playability: &str, streaming: Value) -> Result<(Result<Supplied, SupplyError>, Vec<String>)> {
    let player = json!({
        "playabilityStatus": {"status": playability, "reason": "Private video"},
        "videoDetails": {"videoId": VIDEO, "title": "A walk along the dyke", "lengthSeconds": "4"},
        "streamingData": streaming,
    });
    let asked = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let file = Rule::get(FILES, "/videoplayback").answer(Answer::bytes("audio/mp4", tones(4)?));
    let script = Script::new().rule(asked.answer(Answer::json(&player))).rule(file);
    let proxy = ReplayProxy::start(script)?;
    let service =
        Service::start(|_, _| Reply::heard(&[(0.0, 1.5, " Sheep."), (2.0, 3.5, " Grass.")])).await?;
    let http = asking::http(&proxy)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let videos = YouTubeCaptions::new(Arc::clone(&http), YouTubeOptions::default(), Arc::clone(&clock));
    let options = upstream_reqwest::SpeechOptions {
        part: std::time::Duration::from_secs(60),
        ..options(&service.base_url)
    };
    let listener = SpeechToText::new(http, options, Arc::clone(&clock), vec![Arc::new(videos)])?;
    let video = VideoId::new(Platform::VideoSite, VIDEO)?;
    let ask =
        Ask { video, wish: transcript_core::archive::Wish::Default, deadline: clock.now().plus(PATIENCE) };
    let outcome = listener.supply(ask, Arc::new(Notes::default())).await;
    let hosts = proxy.requests().into_iter().map(|request| request.host).collect();
    Ok((outcome, hosts))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_address_is_listened_to() -> Result<()> {
    let form = json!({
        "mimeType": "audio/mp4; codecs=\"mp4a.40.2\"", "bitrate": 48_000, "contentLength": "9000",
        "url": format!("https://{FILES}/videoplayback?expire=1795000000"),
    });
    let (outcome, hosts) = listen("OK", json!({"adaptiveFormats": [form]})).await?;
    let supplied = outcome?;
    let transcript = supplied.tracks.first().context("no transcript")?;
    assert_eq!((transcript.source.as_str(), transcript.segments.len()), ("speech-to-text", 2));
    assert_eq!(transcript.title.as_deref(), Some("A walk along the dyke"));
    assert_eq!(hosts.last().map(String::as_str), Some(FILES));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_its_own_players_get_is_said() -> Result<()> {
    let locked = json!({"adaptiveFormats": [{"mimeType": "audio/mp4", "signatureCipher": "s=1&url=x"}]});
    let (outcome, hosts) = listen("OK", locked).await?;
    let error = outcome.err().context("a transcript")?;
    assert_eq!(error.message(), "YouTube gives the sound of this video to its own players only.");
    assert!(!error.reason().is_about_the_video(), "{error:?}");
    assert!(!hosts.contains(&FILES.to_owned()), "{hosts:?}");
    let (outcome, _) = listen("LOGIN_REQUIRED", json!({})).await?;
    assert_eq!(outcome.err().context("a transcript")?.reason().as_str(), "private");
    Ok(())
}
