//! The production supplier of X's captions, through the replay proxy.

mod faults;
mod hosts;
mod recorded;

use std::sync::Arc;

use anyhow::Result;
use transcript_core::supplier::Supplier;
use upstream_reqwest::{Http, XCaptions, XOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::social::{
    asking::{Outcome, ask, behind, reason},
    check_all, playing, recorded,
};

const PLATFORM: &str = "x";
const SITE: &str = "x.com";
const API: &str = "api.x.com";
const SYNDICATION: &str = "cdn.syndication.twimg.com";
const FILES: &str = "video.twimg.com";
const PASS: &str = "/1.1/guest/activate.json";
const POST: &str = "/i/api/graphql/2ICDjqPd81tulZcYrtpTuQ/TweetResultByRestId";
const SYNDICATED: &str = "/tweet-result";
const MASTER: &str = "/amplify_video/9001/pl/master.m3u8";
const SUBS: &str = "/amplify_video/9001/pl/s0/s.m3u8";
const WORDS: &str = "/subtitles/amplify_video/9001/0/a.vtt";
/// A post with a video that has one track.
const VIDEO: &str = "1990000000000000001";

fn make(http: Arc<Http>) -> Arc<dyn Supplier> {
    Arc::new(XCaptions::new(http, XOptions::default(), Arc::new(SystemClock::default())))
}

fn file(name: &str) -> Result<Answer> {
    recorded(PLATFORM, name)
}

/// What each kind of request is answered, in turn; good answers where a test says nothing else.
struct Stage {
    pass: Vec<Answer>,
    post: Vec<Answer>,
    syndication: Vec<Answer>,
    master: Vec<Answer>,
    subs: Vec<Answer>,
    words: Vec<Answer>,
}

impl Stage {
    /// Everything is in order.
    fn good() -> Result<Self> {
        Ok(Self {
            pass: vec![file("posts/pass.json")?],
            post: vec![file("posts/video.json")?],
            syndication: vec![file("posts/syndicated-video.json")?],
            master: vec![file("files/master.m3u8")?],
            subs: vec![file("files/subs.m3u8")?],
            words: vec![file("files/a.vtt")?],
        })
    }

    fn script(self) -> Script {
        let in_turn = |rule: Rule, answers: Vec<Answer>| answers.into_iter().fold(rule, Rule::answer);
        Script::new().rules([
            in_turn(Rule::post(API, PASS), self.pass),
            in_turn(Rule::get(SITE, POST), self.post),
            in_turn(Rule::get(SYNDICATION, SYNDICATED), self.syndication),
            in_turn(Rule::get(FILES, MASTER), self.master),
            in_turn(Rule::get(FILES, SUBS), self.subs),
            in_turn(Rule::get(FILES, WORDS), self.words),
        ])
    }
}

/// What comes of asking for [`VIDEO`] through a proxy with this script.
async fn played(stage: Stage) -> Result<(Outcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(stage.script())?;
    let outcome = ask(&behind(make, &proxy)?, VIDEO, None).await?;
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

#[tokio::test]
async fn every_recording_comes_out_as_expected() -> Result<()> {
    check_all(PLATFORM, make).await
}

#[tokio::test]
async fn words_come_without_their_times_and_with_their_signs() -> Result<()> {
    let (outcome, _) = played(Stage::good()?).await?;
    let supplied = outcome?;
    let transcript = &supplied.tracks[0];
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
async fn a_cue_is_said_once_at_a_seam_and_a_repeated_word_stays() -> Result<()> {
    let proxy = playing(PLATFORM, "parts")?;
    let supplied = ask(&behind(make, &proxy)?, "1990000000000000005", None).await??;
    let found: Vec<_> =
        supplied.tracks[0].segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
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
async fn one_pass_serves_all_look_ups() -> Result<()> {
    let proxy = ReplayProxy::start(Stage::good()?.script())?;
    let supplier = behind(make, &proxy)?;
    let (one, two) = tokio::join!(ask(&supplier, VIDEO, None), ask(&supplier, VIDEO, Some("en")));
    for outcome in [one?, two?, ask(&supplier, VIDEO, None).await?] {
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    assert_eq!(proxy.count(|request| request.path == PASS), 1);
    assert_eq!(proxy.requests().len(), 13);
    for request in proxy.requests() {
        let is_api = [SITE, API].contains(&request.host.as_str());
        assert_eq!(request.header("authorization").is_some(), is_api, "{request:?}");
        let pass = (request.path == POST).then_some("1990000000000000777");
        assert_eq!(request.header("x-guest-token"), pass);
        assert_eq!(request.header("cookie"), None);
        assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("Mozilla/5.0")));
    }
    Ok(())
}
