//! The real yt-dlp, run by the production supplier, through the replay proxy.

use std::{path::PathBuf, process::Command, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::sync::OnceCell;
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, Supplier},
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use upstream_reqwest::{
    Http, MediaSource, TikTokCaptions, XCaptions, XOptions, YouTubeCaptions, YouTubeOptions, YtDlp,
    YtDlpSound,
};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::social::{
    asking::{Outcome, Patient, http, reason},
    playing,
};

/// How long an answer may take: each look-up is two runs of a Python program on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where yt-dlp is; installed when it is not there yet.
async fn program() -> Result<PathBuf> {
    static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();
    let install = || async {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ytdlp/install.sh");
        let done = tokio::task::spawn_blocking(move || Command::new(script).output()).await??;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(PathBuf::from(String::from_utf8(done.stdout)?.trim()))
    };
    PROGRAM.get_or_try_init(install).await.cloned()
}

async fn asked(
    supplier: &dyn Supplier,
    platform: Platform,
    video: &str,
    lang: Option<&str>,
) -> Result<Outcome> {
    let wish = match lang {
        Some(tag) => Wish::Language(LanguageTag::parse(tag)?),
        None => Wish::Default,
    };
    let deadline = SystemClock::default().now().plus(PATIENCE);
    let ask = Ask { video: VideoId::new(platform, video)?, wish, deadline };
    Ok(supplier.supply(ask, Arc::new(Patient)).await)
}

/// The program and our own supplier of a platform, behind the same proxy.
async fn both(proxy: &ReplayProxy, platform: Platform) -> Result<(YtDlp, Arc<dyn Supplier>)> {
    let http: Arc<Http> = http(proxy)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let own: Arc<dyn Supplier> = match platform {
        Platform::ShortVideo => Arc::new(TikTokCaptions::new(Arc::clone(&http), Arc::clone(&clock))),
        Platform::Microblog => {
            Arc::new(XCaptions::new(Arc::clone(&http), XOptions::default(), Arc::clone(&clock)))
        }
        Platform::VideoSite | Platform::Reels => {
            Arc::new(YouTubeCaptions::new(Arc::clone(&http), YouTubeOptions::default(), Arc::clone(&clock)))
        }
    };
    Ok((YtDlp::new(&program().await?, http, clock)?, own))
}

/// Fails unless both give the same words at the same times in the same language.
fn check_same(found: &Outcome, own: &Outcome) -> Result<()> {
    let found = found.as_ref().map_err(|error| anyhow::anyhow!("yt-dlp: {error:?}"))?;
    let own = own.as_ref().map_err(|error| anyhow::anyhow!("our own: {error:?}"))?;
    let (found, own) = (found.tracks.first().context("no track")?, own.tracks.first().context("no track")?);
    found.check()?;
    ensure!(found.source == "yt-dlp", "{}", found.source);
    ensure!(found.segments == own.segments, "{:?} instead of {:?}", found.segments, own.segments);
    ensure!(found.track.language == own.track.language, "{:?} instead of {:?}", found.track, own.track);
    ensure!(found.track.is_generated() == own.track.is_generated(), "{:?}", found.track);
    ensure!(found.title == own.title, "{:?} instead of {:?}", found.title, own.title);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gives_the_words_that_our_own_suppliers_give() -> Result<()> {
    for (platform, folder, recording, video) in [
        (Platform::Microblog, "x", "video", "1990000000000000001"),
        (Platform::ShortVideo, "tiktok", "srt", "7600000000000000004"),
    ] {
        let proxy = playing(folder, recording)?;
        let (ytdlp, own) = both(&proxy, platform).await?;
        let found = asked(&ytdlp, platform, video, None).await?;
        let expect = asked(own.as_ref(), platform, video, None).await?;
        check_same(&found, &expect).with_context(|| format!("{recording}: {:?}", proxy.unexpected()))?;
        ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_not_tell_apart_is_not_passed_off_as_the_original() -> Result<()> {
    let proxy = playing("tiktok", "mt-first")?;
    let (ytdlp, _) = both(&proxy, Platform::ShortVideo).await?;
    for lang in [None, Some("en"), Some("fr")] {
        let outcome = asked(&ytdlp, Platform::ShortVideo, "7600000000000000001", lang).await?;
        ensure!(reason(&outcome) == "unreadable", "{lang:?}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn its_errors_become_reasons() -> Result<()> {
    for (platform, folder, recording, video, expect) in [
        (Platform::Microblog, "x", "unavailable-protected", "1990000000000000020", "private"),
        (Platform::Microblog, "x", "words", "1990000000000000011", "no_captions"),
        (Platform::Microblog, "x", "photos", "1990000000000000010", "no_captions"),
    ] {
        let proxy = playing(folder, recording)?;
        let (ytdlp, _) = both(&proxy, platform).await?;
        let outcome = asked(&ytdlp, platform, video, None).await?;
        ensure!(reason(&outcome) == expect, "{recording}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_finds_the_files_that_our_own_ways_find() -> Result<()> {
    for (platform, folder, recording, id) in [
        (Platform::Microblog, "x", "video", "1990000000000000001"),
        (Platform::ShortVideo, "tiktok", "srt", "7600000000000000004"),
    ] {
        let proxy = playing(folder, recording)?;
        let (ytdlp, _) = both(&proxy, platform).await?;
        let (http, clock): (_, Arc<dyn Clock>) = (http(&proxy)?, Arc::new(SystemClock::default()));
        let own: Box<dyn MediaSource> = match platform {
            Platform::ShortVideo => Box::new(TikTokCaptions::new(http, Arc::clone(&clock))),
            _ => Box::new(XCaptions::new(http, XOptions::default(), Arc::clone(&clock))),
        };
        let ask = Ask {
            video: VideoId::new(platform, id)?,
            wish: Wish::Default,
            deadline: clock.now().plus(PATIENCE),
        };
        let found = YtDlpSound::new(Arc::new(ytdlp), platform).media(&ask, &Patient).await?;
        let own = own.media(&ask, &Patient).await?;
        ensure!((&found.title, found.duration_ms) == (&own.title, own.duration_ms), "{found:?}, {own:?}");
        // yt-dlp adds to the query of some.
        let place = |url: &url::Url| (url.host_str().map(str::to_owned), url.path().to_owned());
        let first = place(&found.addresses.first().context("no address")?.url);
        ensure!(
            own.addresses.iter().any(|address| place(&address.url) == first),
            "{first:?} is not among {own:?}"
        );
        // The smallest is asked for first.
        let rates: Vec<_> =
            found.addresses.iter().map(|address| address.bitrate.unwrap_or(u64::MAX)).collect();
        ensure!(rates.is_sorted(), "{rates:?}");
    }
    Ok(())
}

/// YouTube with these answers of its player and of its captions. Its page names no script here, so only the clients that
/// need none are asked.
fn youtube(player: &str, captions: Answer) -> Result<Script> {
    let site = "www.youtube.com";
    Ok(Script::new().rules([
        Rule::get(site, "/watch").answer(Answer::bytes("text/html", "<html></html>")),
        Rule::post(site, "/youtubei/v1/next").answer(Answer::bytes("application/json", "{}")),
        Rule::post(site, "/youtubei/v1/player").answer(recorded(&format!("player/{player}.json"))?),
        Rule::get(site, "/api/timedtext").answer(captions),
    ]))
}

fn recorded(name: &str) -> Result<Answer> {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube/");
    Ok(Answer::bytes("application/json", std::fs::read(format!("{recordings}{name}"))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn youtubes_captions_are_told_apart() -> Result<()> {
    let proxy = ReplayProxy::start(youtube("several-tracks", recorded("captions/tide-mill.en.json3")?)?)?;
    let (ytdlp, own) = both(&proxy, Platform::VideoSite).await?;
    let found = asked(&ytdlp, Platform::VideoSite, "vb-tracks-0", None).await?;
    let expect = asked(own.as_ref(), Platform::VideoSite, "vb-tracks-0", None).await?;
    check_same(&found, &expect).with_context(|| format!("{:?}", proxy.unexpected()))
}

/// yt-dlp ends well with most of them, and only warns.
#[tokio::test(flavor = "multi_thread")]
async fn youtubes_refusals_are_not_told_as_no_captions() -> Result<()> {
    for (recording, video, expect) in [
        ("bot-check", "vb-botcheck", "bot_check"),
        ("session-limit", "vb-session0", "throttled"),
        ("private", "vb-private0", "private"),
        ("private-without-reason", "vb-private1", "private"),
        ("removed", "vb-removed0", "removed"),
        ("region", "vb-region00", "region"),
        ("members", "vb-members0", "members"),
        ("payment", "vb-payment0", "payment"),
        // Of what is played nobody says that it has no captions without having seen its files.
        ("too-old", "vb-too-old0", "unreadable"),
        ("other-video", "vb-other-00", "other_video"),
    ] {
        let proxy = ReplayProxy::start(youtube(recording, Answer::status(404))?)?;
        let (ytdlp, _) = both(&proxy, Platform::VideoSite).await?;
        let outcome = asked(&ytdlp, Platform::VideoSite, video, None).await?;
        ensure!(reason(&outcome) == expect, "{recording}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn captions_that_are_not_there_are_asked_for_once_and_say_nothing_of_the_video() -> Result<()> {
    for (status, expect) in [(404, "unreadable"), (403, "throttled")] {
        let proxy = ReplayProxy::start(youtube("several-tracks", Answer::status(status))?)?;
        let (ytdlp, _) = both(&proxy, Platform::VideoSite).await?;
        let outcome = asked(&ytdlp, Platform::VideoSite, "vb-tracks-0", None).await?;
        ensure!(reason(&outcome) == expect, "{status}: {outcome:?}");
        // Nothing but the captions is fetched after it was looked what may be fetched.
        let requests = proxy.requests();
        let first = requests.iter().position(|request| request.path == "/api/timedtext");
        let after: Vec<_> =
            requests.iter().skip(first.context("no captions")?).map(|request| &request.path).collect();
        ensure!(after == ["/api/timedtext"], "{after:?}");
    }
    Ok(())
}
