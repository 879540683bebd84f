//! The production lister over recorded lists outside the checkout, in the folder that `VERBATIM_RECORDINGS` names.
//!
//! A file of a list without a row fails the test.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use transcript_core::{
    Clock as _,
    supplier::{ListOutcome, ListedVideo, SupplyError, VideoListPage, VideoLister as _},
    video::VideoList,
};
use upstream_reqwest::{HttpTransport, YouTubeLists, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::HOST;
use crate::social::supplier_calls::options;

const BROWSE: &str = "/youtubei/v1/browse";
const SEARCH: &str = "/youtubei/v1/search";
const RESOLVE: &str = "/youtubei/v1/navigation/resolve_url";

const PLAYLIST: &str = "PL0123456789abcdef";
const VIDEOS: &str = "https://www.youtube.com/channel/UC0123456789abcdefghij-_/videos";
const SHORTS: &str = "https://www.youtube.com/channel/UC0123456789abcdefghij-_/shorts";
const STREAMS: &str = "https://www.youtube.com/channel/UC0123456789abcdefghij-_/streams";

const RESULTS: &str = "https://www.youtube.com/results?search_query=on+board+ing";

/// Expected outcome of a list.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// Number of videos, the first and the last one, the stated number, and whether there are more pages.
    Videos(usize, &'static str, &'static str, Option<u64>, bool),
    /// No videos, and the end of the list.
    Empty,
    /// There is no such list, for this reason.
    Absent(&'static str),
    /// A failure with this reason.
    Fails(&'static str),
}

use Outcome::{Absent, Empty, Fails, Videos};

/// The list, the files of its pages in order, and the expected outcome.
const ROWS: &[(&str, &[&str], Outcome)] = &[
    (
        PLAYLIST,
        &["playlist/lockup_first", "playlist/lockup_next"],
        Videos(6, "s7d2d8FhevU", "JN3KPFbWCy8", Some(447), true),
    ),
    (PLAYLIST, &["playlist/lockup_missing"], Absent("removed")),
    (
        PLAYLIST,
        &["playlist/renderer_150_first", "playlist/renderer_150_last"],
        Videos(150, "u2ah9tWTkmk", "zUtTpuqV55U", Some(150), false),
    ),
    (PLAYLIST, &["playlist/header_fields"], Fails("unreadable")),
    (PLAYLIST, &["playlist/renderer_17_one_page"], Videos(17, "UKwSQSFN4Nw", "TzRptXir15E", Some(17), false)),
    (PLAYLIST, &["playlist/renderer_hidden_99"], Videos(99, "_RrA-R5VHQs", "MKTm-49uI", Some(4_999), true)),
    (PLAYLIST, &["playlist/course_14"], Videos(14, "VBI6TSo8Zog", "oKGFHpNossE", Some(14), false)),
    (PLAYLIST, &["playlist/course_header"], Fails("unreadable")),
    (PLAYLIST, &["playlist/page_4_videos"], Videos(4, "HvJ21S5qEjQ", "Psx_lC5eG_w", Some(4), false)),
    (PLAYLIST, &["playlist/private"], Absent("private")),
    (PLAYLIST, &["playlist/not_exist"], Absent("removed")),
    (PLAYLIST, &["playlist/unviewable"], Absent("unviewable")),
    (
        PLAYLIST,
        &["playlist/only_a_token", "playlist/renderer_150_last"],
        Videos(50, "aQMKAZpcynA", "zUtTpuqV55U", Some(150), false),
    ),
    (
        VIDEOS,
        &["channel/videos_lockup_first", "channel/videos_lockup_next"],
        Videos(60, "BD-LB23rRBE", "9c1Kl8ElHug", None, true),
    ),
    (STREAMS, &["channel/streams_lockup_last"], Videos(27, "_rDzMYp-fBs", "EyI_OwhufNk", None, false)),
    (STREAMS, &["channel/streams_upcoming"], Videos(2, "Sfl1uLmL32I", "n6TdbD7nh2k", None, false)),
    (SHORTS, &["channel/shorts_lockup_first"], Videos(48, "l-X5WbDSH2o", "QwxXxlvoKZk", None, true)),
    (SHORTS, &["channel/shorts_reel_2023_next"], Videos(48, "N5AKQflK1TU", "kE_gXw3MdQA", None, true)),
    (
        VIDEOS,
        &["channel/videos_renderer_first", "channel/videos_renderer_next"],
        Videos(60, "D0WQK7cMJn8", "fuFlMtZmvY0", None, true),
    ),
    (VIDEOS, &["channel/grid_2021_one"], Videos(1, "ggMDYfQPKMU", "ggMDYfQPKMU", None, false)),
    (VIDEOS, &["channel/home_instead"], Absent("no_tab")),
    (VIDEOS, &["channel/playlists_first"], Absent("no_tab")),
    (VIDEOS, &["channel/releases_last"], Empty),
    (
        VIDEOS,
        &["channel/age_gate", "playlist/renderer_17_one_page"],
        Videos(17, "UKwSQSFN4Nw", "TzRptXir15E", Some(17), false),
    ),
    (SHORTS, &["channel/age_gate", "channel/age_gate_no_shorts_list"], Absent("no_tab")),
    (VIDEOS, &["channel/terminated_terms"], Absent("removed")),
    (VIDEOS, &["channel/removed_guidelines"], Absent("removed")),
    (VIDEOS, &["channel/not_exist"], Absent("removed")),
    (VIDEOS, &["channel/bad_id"], Absent("removed")),
    (
        RESULTS,
        &["search/videos_first", "search/videos_next"],
        Videos(40, "RCh7ZS-hkZY", "DptGBVPnvKE", None, true),
    ),
    (
        RESULTS,
        &["search/mixed_first", "search/mixed_no_more"],
        Videos(1, "MkPQ9bXNjkM", "MkPQ9bXNjkM", None, false),
    ),
    (
        RESULTS,
        &["search/playlists_first", "search/videos_next"],
        Videos(20, "PMuQh-a3w_U", "DptGBVPnvKE", None, true),
    ),
    (RESULTS, &["search/mixed_no_more"], Empty),
    (RESULTS, &["channel/home_instead"], Fails("unreadable")),
];

/// Addresses of channels, the file of the lookup, and the channel; `None` if there is none.
const CHANNELS: &[(&str, &[&str], Option<&str>)] = &[
    ("@TheDailyShow", &["resolve/handle"], Some("UCwWhs_6x42TyRM4Wstoq8HA")),
    ("@TheDailyShow", &["resolve/handle_redirect", "resolve/handle"], Some("UCwWhs_6x42TyRM4Wstoq8HA")),
    ("https://www.youtube.com/c/JeffGeerling", &["resolve/custom_c"], Some("UCR-DXc1voovS8nhAvccRZhg")),
    ("https://www.youtube.com/user/Vsauce", &["resolve/user"], Some("UC6nSFpj9HTCZ5t-N3Rm3-HA")),
    ("https://www.youtube.com/gronkh", &["resolve/vanity"], Some("UCYJ61XIK64sp6ZFFS8sctxw")),
    ("@nonExistingHandleThatWillNeverExist15464", &["resolve/unknown_handle"], None),
];

fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("VERBATIM_RECORDINGS")?).join("youtube-lists");
    folder.is_dir().then_some(folder)
}

/// The response in a recording, with its recorded status.
fn response(folder: &Path, name: &str) -> Result<ReplayResponse> {
    let body = std::fs::read(folder.join(format!("{name}.json"))).with_context(|| name.to_owned())?;
    let meta = std::fs::read(folder.join(format!("{name}.meta.json"))).unwrap_or_default();
    let meta: Value = serde_json::from_slice(&meta).unwrap_or_default();
    let status = meta.get("status").and_then(Value::as_u64).unwrap_or(200);
    Ok(ReplayResponse::bytes("application/json", body).with_status(u16::try_from(status)?))
}

fn responses(folder: &Path, path: &str, names: &[&str]) -> Result<Rule> {
    names.iter().try_fold(Rule::post(HOST, path), |rule, name| Ok(rule.respond(response(folder, name)?)))
}

fn lister(proxy: &ReplayProxy) -> Result<YouTubeLists> {
    let http = Arc::new(HttpTransport::new(options(&[proxy], proxy.ca_file()))?);
    let options = YouTubeOptions { list_pause: Duration::ZERO, ..YouTubeOptions::default() };
    Ok(YouTubeLists::new(http, options, Arc::new(SystemClock::default())))
}

/// The pages of a list, at most this many, or why there are none.
async fn read(
    lister: &YouTubeLists,
    list: &str,
    pages_max: usize,
) -> Result<Result<Vec<VideoListPage>, String>, SupplyError> {
    let list = VideoList::parse(list).expect("the list is valid");
    let mut pages: Vec<VideoListPage> = Vec::new();
    loop {
        let position = pages.last().and_then(|page| page.next.clone());
        if pages.len() >= pages_max || (!pages.is_empty() && position.is_none()) {
            return Ok(Ok(pages));
        }
        let deadline = SystemClock::default().now().plus(Duration::from_secs(60));
        match lister.list_page(&list, position.as_ref(), deadline).await? {
            ListOutcome::Page(page) => pages.push(page),
            ListOutcome::Absent(absence) => return Ok(Err(absence.reason.as_str().to_owned())),
        }
    }
}

async fn check(folder: &Path, list: &str, files: &[&str], expect: Outcome) -> Result<Vec<ListedVideo>> {
    let path = if list == RESULTS { SEARCH } else { BROWSE };
    let proxy = ReplayProxy::start(Script::new().rule(responses(folder, path, files)?))?;
    let pages_max = files.len() - usize::from(files[0] == "channel/age_gate");
    let found = read(&lister(&proxy)?, list, pages_max).await;
    ensure!(proxy.unexpected().is_empty(), "unexpected: {:?}", proxy.unexpected());
    let found = match (found, expect) {
        (Ok(Ok(pages)), Videos(..) | Empty) => pages,
        (Ok(Err(reason)), Absent(expect)) if reason == expect => return Ok(Vec::new()),
        (Err(error), Fails(expect)) if error.reason().as_str() == expect => return Ok(Vec::new()),
        (found, _) => bail!("{found:?}"),
    };
    let last = found.last().context("a page")?;
    let (more, stated, hidden) = (last.next.is_some(), last.stated_count, last.hidden_count);
    let videos: Vec<_> = found.into_iter().flat_map(|page| page.videos).collect();
    let Videos(count, first, end, expect_stated, expect_more) = expect else {
        ensure!(videos.is_empty() && !more, "{videos:?}");
        return Ok(videos);
    };
    let ids: Vec<_> = videos.iter().map(|listed| listed.video.id()).collect();
    ensure!(ids.len() == count, "{} videos", ids.len());
    ensure!(ids.first() == Some(&first) && ids.last().is_some_and(|id| id.ends_with(end)), "{ids:?}");
    ensure!((stated, more) == (expect_stated, expect_more), "{stated:?}, more: {more}");
    ensure!(more || hidden == stated.unwrap_or(count as u64).saturating_sub(count as u64), "{hidden} hidden");
    let is_shorts = list.ends_with("/shorts");
    for listed in &videos {
        ensure!(listed.title.is_some(), "no title: {listed:?}");
        ensure!(is_shorts || listed.duration_s.is_some() || listed.live.is_some(), "no duration: {listed:?}");
        ensure!(listed.published.is_none_or(|at| at.earliest < at.latest), "{listed:?}");
    }
    Ok(videos)
}

#[tokio::test]
async fn youtube_recorded_lists_have_expected_outcomes() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    for (list, files, expect) in ROWS {
        check(&folder, list, files, *expect).await.with_context(|| format!("{files:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn youtube_recorded_list_entries_have_details() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    let of = |file: &'static str| {
        let row = ROWS.iter().find(|(_, files, _)| files[0] == file).copied();
        let folder = folder.clone();
        async move {
            let (list, files, expect) = row.context("a row")?;
            check(&folder, list, files, expect).await
        }
    };
    let lockups = of("playlist/lockup_first").await?;
    ensure!((lockups[0].duration_s, lockups[0].author.as_deref()) == (Some(13_016), Some("Lex Fridman")));
    ensure!(
        lockups.iter().all(|listed| listed.author.is_some() && listed.published.is_some()),
        "{lockups:?}"
    );
    let course = of("playlist/course_14").await?;
    ensure!(course.iter().all(|listed| listed.author == course[0].author && listed.author.is_some()));
    let tab = of("channel/videos_lockup_first").await?;
    ensure!(tab.iter().all(|listed| listed.author.as_deref() == Some("Creative Commons")), "{tab:?}");
    ensure!(tab.iter().all(|listed| listed.published.is_some()), "{tab:?}");
    let streams = of("channel/streams_lockup_last").await?;
    ensure!(streams.iter().all(|listed| listed.live.is_some_and(|live| live.as_str() == "was_live")));
    let upcoming = of("channel/streams_upcoming").await?;
    ensure!(upcoming.iter().all(|listed| listed.live.is_some_and(|live| live.as_str() == "upcoming")));
    Ok(())
}

#[tokio::test]
async fn youtube_recorded_list_items_are_read_alone() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    for (file, id) in [
        ("renderer_live_no_length", Some("69MMACN6omo")),
        ("renderer_no_index", Some("nKqyhUD_aTo")),
        ("renderer_no_title", Some("nc1kN8ZSfGQ")),
        ("renderer_members_only", Some("Swe-3Movh74")),
        ("lockup_live_one_row", None),
        ("lockup_premiere", None),
    ] {
        let item: Value = serde_json::from_slice(&std::fs::read(folder.join(format!("item/{file}.json")))?)?;
        // Some are recorded without the name of their kind.
        let item =
            if item.get("videoId").is_some() { json!({ "playlistVideoRenderer": item }) } else { item };
        let page = json!({ "onResponseReceivedActions": [
            { "appendContinuationItemsAction": { "continuationItems": [item] } }] });
        let rule = Rule::post(HOST, BROWSE).respond(ReplayResponse::json(&page));
        let proxy = ReplayProxy::start(Script::new().rule(rule))?;
        let found = read(&lister(&proxy)?, PLAYLIST, 1).await;
        let Some(id) = id else {
            ensure!(found.is_err_and(|error| error.reason().as_str() == "unreadable"), "{file}");
            continue;
        };
        let pages = found?.map_err(anyhow::Error::msg)?;
        let listed = &pages[0].videos[0];
        ensure!(listed.video.id() == id, "{file}: {listed:?}");
        ensure!(listed.members_only == (file == "renderer_members_only"), "{file}: {listed:?}");
        let is_live = listed.live.is_some_and(|live| live.as_str() == "live");
        ensure!(is_live == (file == "renderer_live_no_length"), "{file}: {listed:?}");
        ensure!(listed.title.is_none() == (file == "renderer_no_title"), "{file}: {listed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn youtube_recorded_channel_addresses_are_resolved() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    for (address, files, channel) in CHANNELS {
        let page = responses(&folder, BROWSE, &["channel/videos_lockup_first"])?;
        let script = Script::new().rule(responses(&folder, RESOLVE, files)?).rule(page);
        let proxy = ReplayProxy::start(script)?;
        let found = read(&lister(&proxy)?, address, 1).await?;
        let requests = proxy.requests();
        let browsed = requests.last().and_then(|request| request.json("/browseId"));
        match channel {
            Some(id) => {
                ensure!(found.is_ok() && browsed == Some(json!(id)), "{address}: {found:?}, {browsed:?}")
            }
            None => ensure!(found == Err("removed".to_owned()), "{address}: {found:?}"),
        }
    }
    Ok(())
}

#[test]
fn youtube_recorded_list_files_are_all_used() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    let used: BTreeSet<&str> = ROWS.iter().flat_map(|(_, files, _)| *files).copied().collect();
    let resolved = CHANNELS.iter().flat_map(|(_, files, _)| *files).copied();
    let used: BTreeSet<&str> = used.into_iter().chain(resolved).collect();
    for part in ["playlist", "channel", "resolve", "search"] {
        for entry in std::fs::read_dir(folder.join(part))? {
            let file = entry?.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(".json").filter(|name| !name.ends_with(".meta")) else {
                continue;
            };
            ensure!(used.contains(format!("{part}/{name}").as_str()), "no row uses {part}/{name}");
        }
    }
    Ok(())
}
