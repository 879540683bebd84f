//! The production supplier of X's captions, through the replay proxy.

mod faults;
mod hosts;
mod recorded;

use std::sync::Arc;

use anyhow::Result;
use transcript_core::supplier::Supplier;
use upstream_reqwest::{HttpTransport, XCaptions, XOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::social::{
    check_all, read_recording, start_replay,
    supplier_calls::{CallOutcome, behind, fetch, reason, replay},
};

const PLATFORM: &str = "x";
const SITE: &str = "x.com";
const API: &str = "api.x.com";
const SYNDICATION: &str = "cdn.syndication.twimg.com";
const FILES: &str = "video.twimg.com";
const GUEST_TOKEN: &str = "/1.1/guest/activate.json";
const POST: &str = "/i/api/graphql/2ICDjqPd81tulZcYrtpTuQ/TweetResultByRestId";
const SYNDICATED: &str = "/tweet-result";
const MASTER: &str = "/amplify_video/9001/pl/master.m3u8";
const SUBS: &str = "/amplify_video/9001/pl/s0/s.m3u8";
const WORDS: &str = "/subtitles/amplify_video/9001/0/a.vtt";
/// A post with a video that has one track.
const VIDEO: &str = "1990000000000000001";

fn make(http: Arc<HttpTransport>) -> Arc<dyn Supplier> {
    Arc::new(XCaptions::new(http, XOptions::default(), Arc::new(SystemClock::default())))
}

fn file(name: &str) -> Result<ReplayResponse> {
    read_recording(PLATFORM, name)
}

/// The responses to each kind of request, in order; valid ones by default.
struct XFixture {
    guest_token: Vec<ReplayResponse>,
    post: Vec<ReplayResponse>,
    syndication: Vec<ReplayResponse>,
    master: Vec<ReplayResponse>,
    subtitle_list: Vec<ReplayResponse>,
    captions: Vec<ReplayResponse>,
}

impl XFixture {
    /// All responses are valid.
    fn good() -> Result<Self> {
        Ok(Self {
            guest_token: vec![file("posts/pass.json")?],
            post: vec![file("posts/video.json")?],
            syndication: vec![file("posts/syndicated-video.json")?],
            master: vec![file("files/master.m3u8")?],
            subtitle_list: vec![file("files/subs.m3u8")?],
            captions: vec![file("files/a.vtt")?],
        })
    }

    fn script(self) -> Script {
        Script::new().rules([
            Rule::post(API, GUEST_TOKEN).respond_all(self.guest_token),
            Rule::get(SITE, POST).respond_all(self.post),
            Rule::get(SYNDICATION, SYNDICATED).respond_all(self.syndication),
            Rule::get(FILES, MASTER).respond_all(self.master),
            Rule::get(FILES, SUBS).respond_all(self.subtitle_list),
            Rule::get(FILES, WORDS).respond_all(self.captions),
        ])
    }
}

/// Requests [`VIDEO`] through a proxy with these responses.
async fn replay_script(fixture: XFixture) -> Result<(CallOutcome, ReplayProxy)> {
    replay(make, fixture.script(), VIDEO).await
}

#[tokio::test]
async fn x_recordings_have_expected_outcomes() -> Result<()> {
    check_all(PLATFORM, make).await
}

#[tokio::test]
async fn x_captions_lose_word_times_and_decode_entities() -> Result<()> {
    let (outcome, _) = replay_script(XFixture::good()?).await?;
    let supplied = outcome?;
    let transcript = &supplied.transcripts[0];
    let texts: Vec<_> = transcript.segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(
        texts,
        ["The lock is open at slack water.", "A List<Gate> of three, all & sundry.", "Mind the sill."]
    );
    assert_eq!((transcript.author.as_deref(), transcript.duration_ms), (Some("Tide Gauge"), Some(29_626)));
    assert!(transcript.track.original && transcript.track.is_generated());
    Ok(())
}

#[tokio::test]
async fn x_cue_at_part_boundary_is_kept_once() -> Result<()> {
    let proxy = start_replay(PLATFORM, "parts")?;
    let supplied = fetch(&behind(make, &proxy)?, "1990000000000000005", None).await??;
    let found: Vec<_> =
        supplied.transcripts[0].segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
    assert_eq!(
        found,
        [
            ("One.", 0, 2_000),
            ("This goes on into", 2_000, 30_000),
            ("No.", 30_000, 32_000),
            ("Across the seam", 59_000, 61_500),
            ("No.", 62_000, 63_000),
            ("No.", 63_000, 64_000),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn x_guest_token_is_shared_by_calls() -> Result<()> {
    let proxy = ReplayProxy::start(XFixture::good()?.script())?;
    let supplier = behind(make, &proxy)?;
    let (one, two) = tokio::join!(fetch(&supplier, VIDEO, None), fetch(&supplier, VIDEO, Some("en")));
    for outcome in [one?, two?, fetch(&supplier, VIDEO, None).await?] {
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    assert_eq!(proxy.count(|request| request.path == GUEST_TOKEN), 1);
    assert_eq!(proxy.requests().len(), 13);
    for request in proxy.requests() {
        let is_api = [SITE, API].contains(&request.host.as_str());
        assert_eq!(request.header("authorization").is_some(), is_api, "{request:?}");
        let guest_token = (request.path == POST).then_some("1990000000000000777");
        assert_eq!(request.header("x-guest-token"), guest_token);
        assert_eq!(request.header("cookie"), None);
        assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("Mozilla/5.0")));
    }
    Ok(())
}
