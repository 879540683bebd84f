//! Lists by the real yt-dlp: profiles of TikTok, and playlists that YouTube's own lister does not read.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use transcript_core::{
    Clock,
    supplier::{ListOutcome, ListPosition, SupplyError, VideoListPage, VideoLister},
    video::VideoList,
};
use upstream_reqwest::{ClientIdentity, YouTubeLists, YouTubeOptions, YtDlp, YtDlpLists};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{TIMEOUT, program};
use crate::social::{read_recording, recorded_script, supplier_calls::http};

const TIKTOK: &str = "www.tiktok.com";
const ITEMS: &str = "/api/creator/item_list/";
pub(crate) const PROFILE: &str = "https://www.tiktok.com/@rope.walk";
const SEC_UID: &str = "MS4wLjABAAAAropewalkropewalkropewalkropewalkropewalkropewalkropewalkropewalk";
/// When the newest video of a profile was published, in seconds since 1970; each further one is an hour older.
const NEWEST: u64 = 1_790_000_000;

/// The page of a profile with this state.
fn profile_page(detail: &Value) -> ReplayResponse {
    let state = json!({ "__DEFAULT_SCOPE__": { "webapp.user-detail": detail } });
    let page = format!(
        "<html><script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\" type=\"application/json\">{state}</script></html>"
    );
    ReplayResponse::bytes("text/html", page)
}

/// The page of a profile with this number of videos.
fn open_page(count: usize) -> ReplayResponse {
    profile_page(&json!({ "statusCode": 0, "userInfo": {
        "user": { "id": "71", "uniqueId": "rope.walk", "nickname": "The Rope Walk", "secUid": SEC_UID },
        "stats": { "videoCount": count }, "itemList": [{}] } }))
}

/// The requests for a profile with these videos, 15 a page.
pub(crate) fn profile(videos: &[String]) -> Vec<Rule> {
    let published = |index: usize| NEWEST - 3_600 * index as u64;
    let pages: Vec<_> = videos.chunks(15).collect();
    let mut rules = vec![Rule::get(TIKTOK, "/@rope.walk").respond(open_page(videos.len()))];
    // The first request names the time of the request: its rule comes after those of the others.
    for (number, page) in pages.iter().enumerate().rev() {
        let item = |(index, id): (usize, &String)| {
            json!({ "id": id, "desc": format!("Knot {id}"), "createTime": published(number * 15 + index),
                "author": { "id": "71", "uniqueId": "rope.walk", "nickname": "The Rope Walk", "secUid": SEC_UID },
                "video": { "duration": 31 }, "stats": {} })
        };
        let items: Vec<_> = page.iter().enumerate().map(item).collect();
        let body = json!({ "itemList": items, "hasMorePrevious": number + 1 < pages.len() });
        let rule = Rule::get(TIKTOK, ITEMS).query("secUid", SEC_UID);
        let rule = match number {
            0 => rule,
            _ => rule.query("cursor", &(published(number * 15 - 1) * 1_000).to_string()),
        };
        rules.push(rule.respond(ReplayResponse::json(&body)));
    }
    rules
}

/// Names of posts.
pub(crate) fn posts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("76{number:017}")).collect()
}

async fn lister(proxy: &ReplayProxy) -> Result<YtDlpLists> {
    Ok(YtDlpLists::new(Arc::new(ytdlp(proxy).await?)))
}

async fn ytdlp(proxy: &ReplayProxy) -> Result<YtDlp> {
    Ok(YtDlp::new(&program().await?, http(proxy)?, Arc::new(SystemClock::default()))?)
}

async fn read(
    lister: &dyn VideoLister,
    list: &str,
    position: Option<&ListPosition>,
) -> Result<Result<ListOutcome, SupplyError>> {
    let deadline = SystemClock::default().now().plus(TIMEOUT);
    Ok(lister.list_page(&VideoList::parse(list)?, position, deadline).await)
}

async fn page(
    lister: &dyn VideoLister,
    list: &str,
    position: Option<&ListPosition>,
) -> Result<VideoListPage> {
    match read(lister, list, position).await? {
        Ok(ListOutcome::Page(page)) => Ok(page),
        outcome => bail!("{outcome:?}"),
    }
}

fn ids(page: &VideoListPage) -> Vec<&str> {
    page.videos.iter().map(|listed| listed.video.id()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_profile_is_listed_page_by_page() -> Result<()> {
    let posts = posts(70);
    let proxy = ReplayProxy::start(Script::new().rules(profile(&posts)))?;
    let lister = lister(&proxy).await?;
    let first = page(&lister, PROFILE, None).await?;
    let found = ids(&first);
    ensure!(found == posts[..60], "{found:?}: {:?}", proxy.unexpected());
    let requests = |path: &'static str| proxy.count(|request| request.path == path);
    // No more than its videos are requested, and no video is opened.
    ensure!((requests("/@rope.walk"), requests(ITEMS)) == (1, 4), "{:?}", proxy.requests());
    let newest = first.videos.first().context("a video")?;
    let published = newest.published.context("a date")?;
    ensure!(published.earliest == published.latest, "{published:?}");
    ensure!(published.latest.as_millis() == i64::try_from(NEWEST)? * 1_000, "{published:?}");
    ensure!((newest.duration_s, newest.author.as_deref()) == (Some(31), Some("The Rope Walk")), "{newest:?}");
    ensure!(newest.title.as_deref() == Some(&format!("Knot {}", posts[0])), "{newest:?}");
    ensure!(first.title.as_deref() == Some("rope.walk"), "{:?}", first.title);

    let last = page(&lister, PROFILE, first.next.as_ref()).await?;
    ensure!(ids(&last) == posts[60..] && last.next.is_none(), "{last:?}");
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_profile_without_videos_keeps_its_reason() -> Result<()> {
    let state = |status: u32, count: Option<u32>| {
        profile_page(&json!({ "statusCode": status, "userInfo": { "stats": { "videoCount": count } } }))
    };
    for (name, response, expect) in [
        ("empty", state(0, Some(0)), "0 videos"),
        ("private", state(10_222, None), "private"),
        ("unknown", state(10_221, None), "platform_fault"),
        ("puzzle", read_recording("tiktok", "pages/puzzle.html")?, "platform_fault"),
        ("forbidden", ReplayResponse::status(403), "platform_fault"),
    ] {
        let embed = Rule::get(TIKTOK, "/embed/@rope.walk").respond(ReplayResponse::status(404));
        let page = Rule::get(TIKTOK, "/@rope.walk").respond(response);
        let proxy = ReplayProxy::start(Script::new().rule(page).rule(embed))?;
        let found = match read(&lister(&proxy).await?, PROFILE, None).await? {
            Ok(ListOutcome::Page(page)) if page.next.is_none() => format!("{} videos", page.videos.len()),
            Ok(ListOutcome::Absent(absence)) => absence.reason.as_str().to_owned(),
            Err(error) => error.reason().as_str().to_owned(),
            Ok(outcome) => format!("{outcome:?}"),
        };
        ensure!(found == expect, "{name}: {found}");
    }
    Ok(())
}

/// The version of YouTube's website that the own lister names here; yt-dlp names another one.
const OWN_VERSION: &str = "2.20200101.00.00";
const PLAYLIST: &str = "https://www.youtube.com/playlist?list=PLvb-tides-0001";

/// Requests of YouTube's own lister with this response.
fn own_browse(response: ReplayResponse) -> Rule {
    Rule::post("www.youtube.com", "/youtubei/v1/browse")
        .json("/context/client/clientVersion", OWN_VERSION)
        .respond(response)
}

async fn youtube_lister(proxy: &ReplayProxy) -> Result<YtDlpLists> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let options = YouTubeOptions {
        list_client: ClientIdentity::web(OWN_VERSION)?,
        list_pause: Duration::ZERO,
        ..YouTubeOptions::default()
    };
    let own = YouTubeLists::new(http(proxy)?, options, clock);
    Ok(YtDlpLists::after(Arc::new(own), Arc::new(ytdlp(proxy).await?)))
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_reads_playlist_that_own_lister_does_not() -> Result<()> {
    for response in [ReplayResponse::json(&json!({ "newLayout": {} })), ReplayResponse::status(500)] {
        let script = Script::new().rule(own_browse(response)).rules(recorded_rules()?);
        let proxy = ReplayProxy::start(script)?;
        let page = page(&youtube_lister(&proxy).await?, PLAYLIST, None).await?;
        let found = ids(&page);
        // yt-dlp leaves the private video out.
        ensure!(found == ["vb-tracks-0", "vb-asronly0", "vb-french-0"], "{found:?}");
        ensure!((page.title.as_deref(), &page.next) == (Some("Tide mills"), &None), "{page:?}");
        ensure!((page.stated_count, page.hidden_count) == (Some(5), 2), "{page:?}");
        let first = page.videos.first().context("a video")?;
        ensure!(first.title.as_deref() == Some("How a tide mill works"), "{first:?}");
        ensure!(
            first.author.as_deref() == Some("Tide Mill Trust") && first.duration_s == Some(30),
            "{first:?}"
        );
        ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_reads_channel_that_own_lister_does_not() -> Result<()> {
    let recorded = |name: &str| -> Result<ReplayResponse> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube-lists/channel/");
        Ok(ReplayResponse::bytes("application/json", std::fs::read(format!("{file}{name}.json"))?))
    };
    let any = |path: &str| Rule::post("www.youtube.com", path);
    let script = Script::new()
        .rule(own_browse(ReplayResponse::json(&json!({ "newLayout": {} }))))
        .rule(any("/youtubei/v1/navigation/resolve_url").respond(recorded("handle")?))
        .rule(any("/youtubei/v1/browse").json("/continuation", "VIDEOS-2").respond(recorded("videos.next")?))
        .rule(any("/youtubei/v1/browse").respond(recorded("videos.first")?));
    let proxy = ReplayProxy::start(script)?;
    let page = page(&youtube_lister(&proxy).await?, "https://www.youtube.com/@tidemills", None).await?;
    let found = ids(&page);
    ensure!(found == ["vb-tracks-0", "vb-french-0", "vb-asronly0"], "{found:?}: {:?}", proxy.requests());
    ensure!(page.next.is_none(), "{page:?}");
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ytdlp_is_not_asked_for_lists_that_youtube_explains() -> Result<()> {
    let private = json!({ "alerts": [{ "alertRenderer": { "type": "ERROR",
        "text": { "simpleText": "This playlist is private." } } }] });
    let proxy = ReplayProxy::start(Script::new().rule(own_browse(ReplayResponse::json(&private))))?;
    let outcome = read(&youtube_lister(&proxy).await?, PLAYLIST, None).await?;
    ensure!(matches!(&outcome, Ok(ListOutcome::Absent(_))), "{outcome:?}");
    ensure!(proxy.requests().len() == 1, "{:?}", proxy.requests());

    // A route that YouTube blocks is not used by yt-dlp either, and the first error is reported.
    let proxy = ReplayProxy::start(Script::new().rule(own_browse(ReplayResponse::status(429))))?;
    let outcome = read(&youtube_lister(&proxy).await?, PLAYLIST, None).await?;
    ensure!(matches!(&outcome, Err(error) if error.reason().as_str() == "throttled"), "{outcome:?}");
    Ok(())
}

/// The recorded playlist, for any client.
fn recorded_rules() -> Result<Vec<Rule>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/youtube-lists/playlist/");
    let response = |name: &str| -> Result<ReplayResponse> {
        Ok(ReplayResponse::bytes("application/json", std::fs::read(format!("{folder}{name}.json"))?))
    };
    let browse = || Rule::post("www.youtube.com", "/youtubei/v1/browse");
    let resolved = json!({ "endpoint": { "browseEndpoint": { "browseId": "VLPLvb-tides-0001" } } });
    let resolve = Rule::post("www.youtube.com", "/youtubei/v1/navigation/resolve_url").json("/url", PLAYLIST);
    Ok(vec![
        resolve.respond(ReplayResponse::json(&resolved)),
        browse().json("/browseId", "VLPLvb-tides-0001").respond(response("tides.first")?),
        browse().json("/continuation", "TIDES-2").respond(response("tides.next")?),
    ])
}

/// A profile with one recorded video.
pub(crate) fn recorded_profile() -> Result<Script> {
    let recorded = "7600000000000000004".to_owned();
    Ok(recorded_script("tiktok", "srt")?.rules(profile(&[recorded])))
}
