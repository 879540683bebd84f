//! The real yt-dlp, run by the production supplier, through the replay proxy.

pub(crate) mod lists;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{Supplier, SupplyRequest},
    transcript::TrackInfo,
    video::{Platform, VideoId},
};
use upstream_reqwest::{
    HttpTransport, MediaSource, TikTokCaptions, XCaptions, XOptions, YouTubeCaptions, YouTubeOptions, YtDlp,
    YtDlpMedia,
};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::{
    install::installed,
    social::{
        self, start_replay,
        supplier_calls::{CallOutcome, PatientMonitor, http, reason},
    },
};

/// Timeout of a call, which runs a Python program twice on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The path of yt-dlp; the first call installs it.
pub(crate) async fn program() -> Result<PathBuf> {
    tokio::task::spawn_blocking(|| installed("ytdlp")).await?
}

async fn fetch(
    supplier: &dyn Supplier,
    platform: Platform,
    video: &str,
    lang: Option<&str>,
) -> Result<CallOutcome> {
    let selector = lang.map_or(TrackSelector::Default, TrackSelector::from_name);
    let deadline = SystemClock::default().now().plus(TIMEOUT);
    let request = SupplyRequest { video: VideoId::new(platform, video)?, selector, deadline };
    Ok(supplier.supply(request, Arc::new(PatientMonitor::default())).await)
}

/// yt-dlp and the platform's own supplier, behind the same proxy.
async fn suppliers(proxy: &ReplayProxy, platform: Platform) -> Result<(YtDlp, Arc<dyn Supplier>)> {
    let http: Arc<HttpTransport> = http(proxy)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let own: Arc<dyn Supplier> = match platform {
        Platform::TikTok => Arc::new(TikTokCaptions::new(Arc::clone(&http), Arc::clone(&clock))),
        Platform::X => Arc::new(XCaptions::new(Arc::clone(&http), XOptions::default(), Arc::clone(&clock))),
        Platform::YouTube | Platform::Instagram => {
            Arc::new(YouTubeCaptions::new(Arc::clone(&http), YouTubeOptions::default(), Arc::clone(&clock)))
        }
    };
    Ok((YtDlp::new(&program().await?, http, clock)?, own))
}

/// Fails unless both have the same texts at the same times in the same language.
fn check_same(found: &CallOutcome, own: &CallOutcome) -> Result<()> {
    let found = found.as_ref().map_err(|error| anyhow::anyhow!("yt-dlp: {error:?}"))?;
    let own = own.as_ref().map_err(|error| anyhow::anyhow!("the platform's supplier: {error:?}"))?;
    let (found, own) =
        (found.transcripts.first().context("no track")?, own.transcripts.first().context("no track")?);
    found.check()?;
    ensure!(found.source == "yt-dlp", "{}", found.source);
    ensure!(found.segments == own.segments, "{:?} instead of {:?}", found.segments, own.segments);
    ensure!(found.track.language == own.track.language, "{:?} instead of {:?}", found.track, own.track);
    ensure!(found.track.is_generated() == own.track.is_generated(), "{:?}", found.track);
    ensure!(found.title == own.title, "{:?} instead of {:?}", found.title, own.title);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_transcripts_equal_platform_suppliers() -> Result<()> {
    for (platform, folder, recording, video) in [
        (Platform::X, "x", "video", "1990000000000000001"),
        (Platform::TikTok, "tiktok", "srt", "7600000000000000004"),
    ] {
        let proxy = start_replay(folder, recording)?;
        let (ytdlp, own) = suppliers(&proxy, platform).await?;
        let found = fetch(&ytdlp, platform, video, None).await?;
        let expect = fetch(own.as_ref(), platform, video, None).await?;
        check_same(&found, &expect).with_context(|| format!("{recording}: {:?}", proxy.unexpected()))?;
        ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    }
    Ok(())
}

/// By default yt-dlp skips a part that is missing, and exits successfully.
#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_captions_without_one_part_are_an_error() -> Result<()> {
    const FILES: &str = "video.twimg.com";
    const PARTS: &str = "/subtitles/ext_tw_video/9005/pu/0/";
    let file = |name: &str| social::read_recording("x", name);
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/x/files");
    let list = std::fs::read_to_string(format!("{files}/subs-parts.m3u8"))?;
    // yt-dlp reads no list that begins with a byte order mark.
    let main = std::fs::read_to_string(format!("{files}/master-parts.m3u8"))?;
    let main = main.trim_start_matches('\u{feff}');
    let without_end = list.replace("#EXT-X-ENDLIST", "");
    for (list, second, expect) in [
        (&list, file("files/p1.vtt")?, "transcript"),
        (&list, ReplayResponse::status(404), "unreadable"),
        (&list, ReplayResponse::status(500), "platform_fault"),
        (&without_end, file("files/p1.vtt")?, "unreadable"),
    ] {
        let playlist = ReplayResponse::text(list);
        let script = Script::new().rules([
            Rule::post("api.x.com", "/1.1/guest/activate.json").respond(file("posts/pass.json")?),
            Rule::get("x.com", "/i/api/graphql/*").respond(file("posts/parts.json")?),
            Rule::get(FILES, "/ext_tw_video/9005/pl/master.m3u8").respond(ReplayResponse::text(main)),
            Rule::get(FILES, "/ext_tw_video/9005/pu/pl/s0/p.m3u8").respond(playlist),
            Rule::get(FILES, &format!("{PARTS}p0.vtt")).respond(file("files/p0.vtt")?),
            Rule::get(FILES, &format!("{PARTS}p1.vtt")).respond(second),
            Rule::get(FILES, &format!("{PARTS}p2.vtt")).respond(file("files/p2.vtt")?),
        ]);
        let proxy = ReplayProxy::start(script)?;
        let (ytdlp, _) = suppliers(&proxy, Platform::X).await?;
        let outcome = fetch(&ytdlp, Platform::X, "1990000000000000005", None).await?;
        ensure!(reason(&outcome) == expect, "{list}: {outcome:?}, {:?}", proxy.unexpected());
        let requests = proxy.count(|request| request.path.ends_with("p1.vtt"));
        ensure!(requests <= 3, "{requests} requests for the part");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_ambiguous_tracks_are_unreadable() -> Result<()> {
    let proxy = start_replay("tiktok", "mt-first")?;
    let (ytdlp, _) = suppliers(&proxy, Platform::TikTok).await?;
    for lang in [None, Some("en"), Some("fr")] {
        let outcome = fetch(&ytdlp, Platform::TikTok, "7600000000000000001", lang).await?;
        ensure!(reason(&outcome) == "unreadable", "{lang:?}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_errors_map_to_reasons() -> Result<()> {
    for (platform, folder, recording, video, expect) in [
        (Platform::X, "x", "unavailable-protected", "1990000000000000020", "private"),
        (Platform::X, "x", "words", "1990000000000000011", "no_captions"),
        (Platform::X, "x", "photos", "1990000000000000010", "no_captions"),
    ] {
        let proxy = start_replay(folder, recording)?;
        let (ytdlp, _) = suppliers(&proxy, platform).await?;
        let outcome = fetch(&ytdlp, platform, video, None).await?;
        ensure!(reason(&outcome) == expect, "{recording}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_media_equal_platform_media() -> Result<()> {
    for (platform, folder, recording, id) in [
        (Platform::X, "x", "video", "1990000000000000001"),
        (Platform::TikTok, "tiktok", "srt", "7600000000000000004"),
    ] {
        let proxy = start_replay(folder, recording)?;
        let (ytdlp, _) = suppliers(&proxy, platform).await?;
        let (http, clock): (_, Arc<dyn Clock>) = (http(&proxy)?, Arc::new(SystemClock::default()));
        let own: Box<dyn MediaSource> = match platform {
            Platform::TikTok => Box::new(TikTokCaptions::new(http, Arc::clone(&clock))),
            _ => Box::new(XCaptions::new(http, XOptions::default(), Arc::clone(&clock))),
        };
        let request = SupplyRequest {
            video: VideoId::new(platform, id)?,
            selector: TrackSelector::Default,
            deadline: clock.now().plus(TIMEOUT),
        };
        let monitor = PatientMonitor::default();
        let found = YtDlpMedia::new(Arc::new(ytdlp), platform).media(&request, &monitor).await?;
        let own = own.media(&request, &monitor).await?;
        ensure!((&found.title, found.duration_ms) == (&own.title, own.duration_ms), "{found:?}, {own:?}");
        // yt-dlp adds to the query of some addresses.
        let location = |url: &url::Url| (url.host_str().map(str::to_owned), url.path().to_owned());
        let first = location(&found.addresses.first().context("no address")?.url);
        ensure!(
            own.addresses.iter().any(|address| location(&address.url) == first),
            "{first:?} is not among {own:?}"
        );
        // The smallest file is first.
        let rates: Vec<_> =
            found.addresses.iter().map(|address| address.bitrate.unwrap_or(u64::MAX)).collect();
        ensure!(rates.is_sorted(), "{rates:?}");
    }
    Ok(())
}

/// YouTube with these player and caption responses.
///
/// Its page names no script, so yt-dlp uses only the clients that need none.
fn youtube(player: ReplayResponse, captions: ReplayResponse) -> Script {
    let site = "www.youtube.com";
    // yt-dlp opens the embedded player of a video for adults.
    let client = json!({ "clientName": "WEB_EMBEDDED_PLAYER", "clientVersion": "1.20260708.01.00" });
    let config = json!({ "INNERTUBE_CONTEXT": { "client": client } });
    let embedded = format!("<script>ytcfg.set({config});</script>");
    Script::new().rules([
        Rule::get(site, "/watch").respond(ReplayResponse::bytes("text/html", "<html></html>")),
        Rule::get(site, "/embed/*").respond(ReplayResponse::bytes("text/html", embedded)),
        Rule::post(site, "/youtubei/v1/next").respond(ReplayResponse::bytes("application/json", "{}")),
        Rule::post(site, "/youtubei/v1/player").respond(player),
        Rule::get(site, "/api/timedtext").respond(captions),
    ])
}

fn read_recording(name: &str) -> Result<ReplayResponse> {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube/");
    Ok(ReplayResponse::bytes("application/json", std::fs::read(format!("{recordings}{name}"))?))
}

fn player(recording: &str) -> Result<ReplayResponse> {
    read_recording(&format!("player/{recording}.json"))
}

/// A video with tracks in 40 languages besides those of the recording, each of which YouTube translates.
fn player_with_many_tracks() -> Result<ReplayResponse> {
    const CODES: &str = "ar bg bn ca cs da el es-419 es-ES et fa fi fil gl hi hr hu id it iw ja ko lt lv ms nl no pl \
                         pt-BR pt-PT ro ru sk sl sr sv th tr uk zh-TW";
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube/player/several-tracks.json");
    let mut player: Value = serde_json::from_slice(&std::fs::read(recording)?)?;
    let list = &mut player["captions"]["playerCaptionsTracklistRenderer"];
    let german = list["captionTracks"][2].clone();
    let address = german["baseUrl"].as_str().context("no address")?;
    let (mut tracks, mut translations) = (Vec::new(), Vec::new());
    for code in CODES.split_whitespace() {
        let mut track = german.clone();
        track["baseUrl"] = address.replace("&lang=de", &format!("&lang={code}")).into();
        track["vssId"] = format!(".{code}").into();
        track["languageCode"] = code.into();
        tracks.push(track);
        translations.push(json!({ "languageCode": code, "languageName": { "runs": [{ "text": code }] } }));
    }
    list["captionTracks"].as_array_mut().context("no tracks")?.extend(tracks);
    list["translationLanguages"].as_array_mut().context("no translations")?.extend(translations);
    Ok(ReplayResponse::bytes("application/json", player.to_string()))
}

/// The tracks that a supplier knows, in one order: yt-dlp sorts them.
fn known_tracks(outcome: &CallOutcome) -> Result<Vec<&TrackInfo>> {
    let supplied = outcome.as_ref().map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut tracks: Vec<_> = supplied.known_tracks.iter().collect();
    tracks.sort_by_key(|track| format!("{track:?}"));
    Ok(tracks)
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_youtube_captions_equal_supplier() -> Result<()> {
    for (player, lang, count) in [
        (player("several-tracks")?, None, 4),
        // A track with a name.
        (player("several-tracks")?, Some("fr"), 4),
        // A translation of the English track.
        (player("several-tracks")?, Some("translation:es"), 4),
        (player_with_many_tracks()?, None, 44),
    ] {
        let proxy = ReplayProxy::start(youtube(player, read_recording("captions/tide-mill.en.json3")?))?;
        let (ytdlp, own) = suppliers(&proxy, Platform::YouTube).await?;
        let found = fetch(&ytdlp, Platform::YouTube, "vb-tracks-0", lang).await?;
        let requested = captions_requested(&proxy);
        let expect = fetch(own.as_ref(), Platform::YouTube, "vb-tracks-0", lang).await?;
        check_same(&found, &expect).with_context(|| format!("{lang:?}: {:?}", proxy.unexpected()))?;
        let first = |outcome: &CallOutcome| Some(outcome.as_ref().ok()?.transcripts.first()?.track.clone());
        ensure!(first(&found) == first(&expect), "{lang:?}: {:?}, {:?}", first(&found), first(&expect));
        let (known, expected) = (known_tracks(&found)?, known_tracks(&expect)?);
        ensure!(known == expected, "{lang:?}: {known:?} instead of {expected:?}");
        ensure!(known.len() == count, "{known:?}");
        let own_requested = captions_requested(&proxy).split_off(requested.len());
        ensure!(requested == own_requested, "{lang:?}: {requested:?} instead of {own_requested:?}");
    }
    Ok(())
}

/// The track and the language of each request for captions, as YouTube reads them.
fn captions_requested(proxy: &ReplayProxy) -> Vec<[Option<String>; 4]> {
    let requests = proxy.requests().into_iter().filter(|request| request.path == "/api/timedtext");
    let parameters = ["lang", "name", "kind", "tlang"];
    requests.map(|request| parameters.map(|name| request.parameter(name).map(str::to_owned))).collect()
}

/// yt-dlp exits successfully for most of them, with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_youtube_rejections_keep_their_reason() -> Result<()> {
    for (recording, video, expect) in [
        ("bot-check", "vb-botcheck", "bot_check"),
        ("session-limit", "vb-session0", "throttled"),
        ("private", "vb-private0", "private"),
        ("private-without-reason", "vb-private1", "private"),
        ("removed", "vb-removed0", "removed"),
        ("region", "vb-region00", "region"),
        ("members", "vb-members0", "members"),
        ("music-premium", "vb-premium0", "members"),
        ("age", "vb-age-0000", "age"),
        ("payment", "vb-payment0", "payment"),
        // A playable video has no captions only if its files were checked.
        ("too-old", "vb-too-old0", "unreadable"),
        ("other-video", "vb-other-00", "other_video"),
    ] {
        let proxy = ReplayProxy::start(youtube(player(recording)?, ReplayResponse::status(404)))?;
        let (ytdlp, _) = suppliers(&proxy, Platform::YouTube).await?;
        let outcome = fetch(&ytdlp, Platform::YouTube, video, None).await?;
        ensure!(reason(&outcome) == expect, "{recording}: {outcome:?}");
    }
    Ok(())
}

/// YouTube begins its reason for other rejections with the words for a removed video.
#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_youtube_unavailable_video_is_not_always_removed() -> Result<()> {
    let blocked =
        "This video contains content from SME, who has blocked it in your country on copyright grounds";
    for (sentence, expect) in [
        (blocked, "region"),
        // A blocked session or proxy.
        ("This content isn\u{2019}t available.", "platform_fault"),
        // A client to which YouTube does not offer the video.
        ("This video is not available", "platform_fault"),
    ] {
        let message = json!({
            "reason": { "simpleText": "Video unavailable" }, "subreason": { "runs": [{ "text": sentence }] },
        });
        let screen = json!({ "playerErrorMessageRenderer": message });
        let status = json!({ "status": "UNPLAYABLE", "reason": "Video unavailable", "errorScreen": screen });
        let player = json!({ "playabilityStatus": status }).to_string();
        let player = ReplayResponse::bytes("application/json", player);
        let proxy = ReplayProxy::start(youtube(player, ReplayResponse::status(404)))?;
        let (ytdlp, _) = suppliers(&proxy, Platform::YouTube).await?;
        let outcome = fetch(&ytdlp, Platform::YouTube, "vb-blocked0", None).await?;
        ensure!(reason(&outcome) == expect, "{sentence}: {outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_missing_captions_are_requested_once() -> Result<()> {
    for (status, expect) in [(404, "unreadable"), (403, "throttled")] {
        let proxy = ReplayProxy::start(youtube(player("several-tracks")?, ReplayResponse::status(status)))?;
        let (ytdlp, _) = suppliers(&proxy, Platform::YouTube).await?;
        let outcome = fetch(&ytdlp, Platform::YouTube, "vb-tracks-0", None).await?;
        ensure!(reason(&outcome) == expect, "{status}: {outcome:?}");
        // After the captions request, yt-dlp requests nothing else.
        let requests = proxy.requests();
        let first = requests.iter().position(|request| request.path == "/api/timedtext");
        let after: Vec<_> =
            requests.iter().skip(first.context("no captions")?).map(|request| &request.path).collect();
        ensure!(after == ["/api/timedtext"], "{after:?}");
    }
    Ok(())
}
