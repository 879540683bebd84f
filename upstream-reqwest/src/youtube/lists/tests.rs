//! Tests of the lister against a local platform, with small responses of each layout.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use transcript_core::{
    supplier::{ListAbsenceReason, ListOutcome, SupplyError, SupplyReason, VideoListPage, VideoLister},
    test_doubles::ManualClock,
    time::Timestamp,
    transcript::LiveStatus,
    video::VideoList,
};

use super::YouTubeLists;
use crate::{
    http::testing::{FakePlatform, ScriptStep, SeenRequest, reply},
    youtube::YouTubeOptions,
};

const PLAYLIST: &str = "PL0123456789abcdef";
const CHANNEL: &str = "UC0123456789abcdefghij-_";

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000)
}

fn lister(platform: &FakePlatform) -> YouTubeLists {
    let options = YouTubeOptions { list_pause: Duration::from_millis(5), ..YouTubeOptions::default() };
    YouTubeLists::new(platform.http(), options, Arc::new(ManualClock::new(now())))
}

/// Reads a list to its end or to its first failure.
async fn read(
    platform: &FakePlatform,
    list: &str,
) -> (Vec<VideoListPage>, Option<Result<ListAbsenceReason, SupplyError>>) {
    let (lister, list) = (lister(platform), VideoList::parse(list).unwrap());
    let mut pages: Vec<VideoListPage> = Vec::new();
    loop {
        let position = pages.last().and_then(|page| page.next.clone());
        if !pages.is_empty() && position.is_none() {
            return (pages, None);
        }
        let deadline = now().plus(Duration::from_secs(20));
        match lister.list_page(&list, position.as_ref(), deadline).await {
            Ok(ListOutcome::Page(page)) => pages.push(page),
            Ok(ListOutcome::Absent(absence)) => return (pages, Some(Ok(absence.reason))),
            Err(error) => return (pages, Some(Err(error))),
        }
    }
}

fn ids(pages: &[VideoListPage]) -> Vec<String> {
    pages.iter().flat_map(|page| &page.videos).map(|video| video.video.id().to_owned()).collect()
}

fn id(number: usize) -> String {
    format!("vb-list-{number:0>3}")
}

fn lockup(number: usize, badge: &str, parts: &[&str]) -> Value {
    let parts: Vec<_> = parts.iter().map(|part| json!({"text": {"content": part}})).collect();
    json!({"lockupViewModel": {
        "contentId": id(number),
        "contentType": "LOCKUP_CONTENT_TYPE_VIDEO",
        "contentImage": {"thumbnailViewModel": {"overlays": [{"thumbnailBottomOverlayViewModel": {"badges": [
            {"thumbnailBadgeViewModel": {"text": badge, "badgeStyle": "THUMBNAIL_OVERLAY_BADGE_STYLE_DEFAULT"}}]}}]}},
        "metadata": {"lockupMetadataViewModel": {
            "title": {"content": format!("Title {number}")},
            "metadata": {"contentMetadataViewModel": {"metadataRows": [{"metadataParts": parts}]}},
        }},
    }})
}

fn old(number: usize) -> Value {
    json!({"playlistVideoRenderer": {
        "videoId": id(number),
        "title": {"runs": [{"text": format!("Title {number}")}]},
        "shortBylineText": {"runs": [{"text": "Miller"}]},
        "lengthSeconds": "90",
        "videoInfo": {"runs": [{"text": "2m views"}, {"text": " • "}, {"text": "11 months ago"}]},
        "isPlayable": true,
    }})
}

fn token(token: &str) -> Value {
    json!({"continuationItemViewModel": {"continuationCommand": {"innertubeCommand": {
        "continuationCommand": {"token": token}}}}})
}

/// The first page of a playlist with these items, beside a token that is not its own.
fn playlist(count: &str, items: &[Value]) -> Value {
    json!({
        "responseContext": {"visitorData": "visitor-1"},
        "metadata": {"playlistMetadataRenderer": {"title": "Mills"}},
        "sidebar": {"playlistSidebarRenderer": {"items": [
            {"playlistSidebarPrimaryInfoRenderer": {"stats": [{"simpleText": "5 views"}, {"simpleText": count}]}},
            {"playlistSidebarSecondaryInfoRenderer": {"videoOwner": {"videoOwnerRenderer": {
                "title": {"runs": [{"text": "Owner"}]}}}}}]}},
        "contents": {"twoColumnBrowseResultsRenderer": {"tabs": [{"tabRenderer": {"selected": true, "content": {
            "sectionListRenderer": {"contents": [
                {"itemSectionRenderer": {"contents": items}}, token("RECOMMENDATIONS")]}}}}]}},
    })
}

fn further(items: &[Value]) -> Value {
    json!({"onResponseReceivedActions": [{"appendContinuationItemsAction": {"continuationItems": items}}]})
}

fn tab(url: &str, items: &[Value]) -> Value {
    let items: Vec<_> = items.iter().map(|item| json!({"richItemRenderer": {"content": item}})).collect();
    json!({
        "metadata": {"channelMetadataRenderer": {"title": "Miller"}},
        "contents": {"twoColumnBrowseResultsRenderer": {"tabs": [{"tabRenderer": {
            "selected": true,
            "endpoint": {"commandMetadata": {"webCommandMetadata": {"url": url}}},
            "content": {"richGridRenderer": {"contents": items}}}}]}},
    })
}

fn alert(kind: &str, words: &str) -> Value {
    json!({"alerts": [{"alertRenderer": {"type": kind, "text": {"simpleText": words}}}]})
}

fn body(request: &SeenRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

fn json_reply(json: &Value) -> Vec<ScriptStep> {
    reply(200, "", json.to_string())
}

/// A platform that sends these responses in order, then the last one again.
async fn platform(responses: Vec<Value>) -> FakePlatform {
    FakePlatform::start(move |_, number| json_reply(&responses[number.min(responses.len() - 1)])).await
}

#[tokio::test]
async fn list_of_mixed_layouts_is_read_to_its_end() {
    let platform = platform(vec![
        playlist("5 videos", &[lockup(1, "1:02:03", &["2m views", "2 weeks ago"]), old(2), token("T1")]),
        further(&[token("T2")]),
        further(&[old(1), lockup(3, "LIVE", &["500 watching"])]),
    ])
    .await;
    let (pages, failure) = read(&platform, PLAYLIST).await;
    assert_eq!(failure, None);
    assert_eq!(ids(&pages), [id(1), id(2), id(1), id(3)], "duplicates stay, in order");
    let first = &pages[0].videos[0];
    assert_eq!((first.title.as_deref(), first.duration_s), (Some("Title 1"), Some(3_723)));
    assert_eq!(first.published.map(|at| now().since(at.latest).as_secs()), Some(14 * 86_400));
    assert_eq!(
        (pages[0].videos[1].author.as_deref(), pages[0].videos[1].duration_s),
        (Some("Miller"), Some(90))
    );
    assert_eq!(pages[2].videos[1].live, Some(LiveStatus::Live));
    assert_eq!((pages[0].title.as_deref(), pages[0].stated_count), (Some("Mills"), Some(5)));
    assert_eq!(pages[2].hidden_count, 1, "the list states five videos");
    let requests = platform.requests();
    assert_eq!(requests[0].line, "POST /youtubei/v1/browse?prettyPrint=false");
    let sent: Vec<_> = requests.iter().map(body).collect();
    assert_eq!(sent[0]["browseId"], format!("VL{PLAYLIST}"));
    assert_eq!(sent[0]["context"]["client"]["clientName"], "WEB");
    assert_eq!((&sent[1]["continuation"], &sent[2]["continuation"]), (&json!("T1"), &json!("T2")));
    assert_eq!(requests[2].headers["x-goog-visitor-id"], "visitor-1");
}

#[tokio::test]
async fn empty_list_is_proved() {
    let of_type = |kind: &str| {
        let mut item = lockup(1, "", &[]);
        item["lockupViewModel"]["contentType"] = json!(format!("LOCKUP_CONTENT_TYPE_{kind}"));
        playlist("3 views", &[item])
    };
    for (response, is_empty) in [
        (of_type("PLAYLIST"), true),
        (of_type("NEW_VIDEO"), false),
        (playlist("No videos", &[]), true),
        (playlist("3 views", &[json!({"messageRenderer": {"text": {"simpleText": "None."}}})]), true),
        (playlist("3 videos", &[]), false),
        (playlist("3 views", &[]), false),
        (playlist("3 videos", &[json!({"videoViewModel": {"id": "x"}})]), false),
        (json!({"contents": {"newLayout": {}}}), false),
        (json!([1]), false),
    ] {
        let platform = platform(vec![response.clone()]).await;
        match read(&platform, PLAYLIST).await {
            (pages, None) => assert!(is_empty && ids(&pages).is_empty(), "{response}"),
            (_, Some(failure)) => {
                let error = failure.unwrap_err();
                assert!(!is_empty, "{response}: {error}");
                assert_eq!(*error.reason(), SupplyReason::Unreadable, "{response}");
            }
        }
    }
}

#[tokio::test]
async fn page_with_too_many_values_is_unreadable() {
    for (values, is_read) in [(100_000, true), (200_000, false)] {
        let mut page = playlist("1 video", &[old(1)]);
        page["filler"] = json!(vec![0; values]);
        let (pages, failure) = read(&platform(vec![page]).await, PLAYLIST).await;
        assert_eq!(ids(&pages).len(), usize::from(is_read), "{values} values: {failure:?}");
        let error = failure.map(Result::unwrap_err);
        assert_eq!(error.is_none(), is_read, "{values} values");
        let is_named = |error: &SupplyError| error.message().contains("unknown format");
        assert!(error.as_ref().is_none_or(is_named), "{error:?}");
    }
}

#[tokio::test]
async fn alert_names_reason_of_absent_list() {
    for (kind, words, expect) in [
        ("ERROR", "This playlist is private.", Some(ListAbsenceReason::Private)),
        ("ERROR", "The playlist does not exist.", Some(ListAbsenceReason::Removed)),
        ("ERROR", "This account has been terminated.", Some(ListAbsenceReason::Removed)),
        ("ERROR", "This playlist type is unviewable.", Some(ListAbsenceReason::Unviewable)),
        ("ERROR", "An unknown error has occurred.", None),
        ("INFO", "Unavailable videos are hidden", None),
    ] {
        let platform = platform(vec![alert(kind, words)]).await;
        let (_, failure) = read(&platform, PLAYLIST).await;
        match (failure, expect) {
            (Some(Ok(reason)), Some(expect)) => assert_eq!(reason, expect, "{words}"),
            (Some(Err(error)), None) => assert!(error.reason().is_transient(), "{words}: {error}"),
            (failure, _) => panic!("{words}: {failure:?}"),
        }
    }
}

#[tokio::test]
async fn channel_is_resolved_moved_and_its_tab_checked() {
    let platform = FakePlatform::start(|request, _| {
        let body = body(request);
        json_reply(&match (body["url"].as_str(), body["browseId"].as_str()) {
            (Some("https://www.youtube.com/@name"), _) => {
                json!({"endpoint": {"urlEndpoint": {"url": "https://www.youtube.com/other"}}})
            }
            (Some(_), _) => json!({"endpoint": {"browseEndpoint": {"browseId": "UC-old"}}}),
            (_, Some("UC-old")) => json!({"onResponseReceivedActions": [
                {"navigateAction": {"endpoint": {"browseEndpoint": {"browseId": "UC-new"}}}}]}),
            _ => tab(
                "/@other/shorts",
                &[
                    json!({"shortsLockupViewModel": {"entityId": format!("shorts-item-{}", id(7)),
                    "overlayMetadata": {"primaryText": {"content": "Short"}}}}),
                    json!({"reelItemRenderer": {"videoId": id(8), "headline": {"simpleText": "Reel"}}}),
                ],
            ),
        })
    })
    .await;
    let (pages, failure) = read(&platform, "https://www.youtube.com/@name/shorts").await;
    assert_eq!((failure, ids(&pages)), (None, vec![id(7), id(8)]));
    assert_eq!(pages[0].videos[0].author.as_deref(), Some("Miller"), "a tab is of one channel");
    assert_eq!(platform.requests().len(), 4);
    let (_, failure) = read(&platform, "https://www.youtube.com/@name/streams").await;
    assert_eq!(failure, Some(Ok(ListAbsenceReason::NoTab)), "YouTube selects another tab");
}

#[tokio::test]
async fn channel_with_age_gate_is_read_as_playlist() {
    let gate = json!({"contents": {"twoColumnBrowseResultsRenderer": {"tabs": [{"tabRenderer": {"selected": true,
        "content": {"sectionListRenderer": {"contents": [{"channelAgeGateRenderer": {"channelTitle": "A"}}]}}}}]}}});
    let platform = FakePlatform::start(move |request, _| {
        json_reply(&match body(request)["browseId"].as_str() {
            Some("VLUULF0123456789abcdefghij-_") => playlist("1 video", &[old(1)]),
            Some(CHANNEL) => gate.clone(),
            _ => alert("ERROR", "The playlist does not exist."),
        })
    })
    .await;
    let (pages, failure) = read(&platform, CHANNEL).await;
    assert_eq!((failure, ids(&pages)), (None, vec![id(1)]));
    let (_, failure) = read(&platform, &format!("https://www.youtube.com/channel/{CHANNEL}/shorts")).await;
    assert_eq!(failure, Some(Ok(ListAbsenceReason::NoTab)));
}

#[tokio::test]
async fn block_is_reported_without_further_requests() {
    for (status, headers, words, expect) in [
        (429, "retry-after: 700\r\n", "", SupplyReason::Throttled(Some(Duration::from_secs(600)))),
        (403, "", "", SupplyReason::Throttled(None)),
        (302, "location: https://www.google.com/sorry/index\r\n", "", SupplyReason::BotCheck),
        (200, "", "<html><div class=\"g-recaptcha\"></div></html>", SupplyReason::BotCheck),
    ] {
        let platform = FakePlatform::start(move |_, _| reply(status, headers, words)).await;
        let (_, failure) = read(&platform, PLAYLIST).await;
        let error = failure.unwrap().unwrap_err();
        let is_same = std::mem::discriminant(error.reason()) == std::mem::discriminant(&expect);
        assert!(is_same, "{status}: {:?}", error.reason());
        assert_eq!(platform.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn page_without_turn_is_not_attempted() {
    let platform = platform(vec![playlist("1 video", &[old(1)])]).await;
    let (lister, list) = (lister(&platform), VideoList::parse(PLAYLIST).unwrap());
    let read = async || {
        let deadline = now().plus(Duration::from_millis(20));
        let error = lister.list_page(&list, None, deadline).await.unwrap_err();
        (error.reason().clone(), error.was_attempted())
    };
    // Another request runs until the deadline.
    let turn = lister.next_request.lock().await;
    assert_eq!(read().await, (SupplyReason::Timeout, false));
    drop(turn);
    // The pause after it is longer.
    *lister.next_request.lock().await = Some(Instant::now() + Duration::from_secs(600));
    assert_eq!(read().await, (SupplyReason::Timeout, false));
    assert!(platform.requests().is_empty());
}

/// The first page of a search with these items in sections, and the next token beside them.
fn results(sections: &[&[Value]], next: Option<&str>) -> Value {
    let sections = sections.iter().map(|items| json!({"itemSectionRenderer": {"contents": items}}));
    let contents: Vec<Value> = sections.chain(next.map(token)).collect();
    json!({
        "responseContext": {"visitorData": "visitor-2"},
        "estimatedResults": "7000",
        "contents": {"twoColumnSearchResultsRenderer": {"primaryContents": {"sectionListRenderer": {
            "contents": contents}}}},
    })
}

fn further_results(items: &[Value]) -> Value {
    json!({"onResponseReceivedCommands": [{"appendContinuationItemsAction": {"continuationItems": items}}]})
}

#[tokio::test]
async fn search_is_read_without_shelves_and_corrections() {
    let recommended = json!({"shelfRenderer": {"content": {"verticalListRenderer": {"items": [old(90)]}}}});
    let corrected = json!({"showingResultsForRenderer": {"correctedQuery": {"simpleText": "wind mill"}}});
    let video = |number: usize| json!({"videoRenderer": old(number)["playlistVideoRenderer"]});
    let end = json!({"itemSectionRenderer": {"contents": [{"messageRenderer": {"text": {"simpleText": "No more"}}}]}});
    let platform = platform(vec![
        results(&[&[corrected, video(1), recommended], &[lockup(2, "1:00", &["2 days ago"])]], Some("T1")),
        further_results(&[json!({"itemSectionRenderer": {"contents": [video(3)]}}), token("T2")]),
        further_results(&[end]),
    ])
    .await;
    let address = VideoList::search(" wind  mil& ").unwrap().address();
    let (pages, failure) = read(&platform, &address).await;
    assert_eq!((failure, ids(&pages)), (None, vec![id(1), id(2), id(3)]));
    assert_eq!((pages.len(), pages[2].hidden_count, pages[0].stated_count), (3, 0, None));
    assert_eq!(pages[0].videos[0].author.as_deref(), Some("Miller"));
    let requests = platform.requests();
    assert!(requests.iter().all(|request| request.line == "POST /youtubei/v1/search?prettyPrint=false"));
    let sent: Vec<_> = requests.iter().map(body).collect();
    assert_eq!((&sent[0]["query"], &sent[0]["params"]), (&json!("wind mil&"), &json!("EgIQAfABAQ==")));
    assert_eq!((&sent[1]["continuation"], &sent[2]["continuation"]), (&json!("T1"), &json!("T2")));
    assert_eq!(requests[1].headers["x-goog-visitor-id"], "visitor-2");
}

#[tokio::test]
async fn search_without_results_is_proved() {
    let message = json!({"messageRenderer": {"text": {"simpleText": "No results found"}}});
    let promotion = json!({"backgroundPromoRenderer": {"title": {"simpleText": "No results found"}}});
    let correction = json!({"didYouMeanRenderer": {"correctedQuery": {"simpleText": "mill"}}});
    for (response, is_empty) in [
        (results(&[&[promotion]], None), true),
        (results(&[&[correction.clone(), message]], None), true),
        (results(&[&[correction]], None), false),
        (results(&[&[]], None), false),
        (results(&[&[json!({"videoViewModel": {"id": "x"}})]], Some("T")), false),
        (json!({"contents": {"twoColumnSearchResultsRenderer": {}}}), false),
        (json!({"responseContext": {}}), false),
        (alert("ERROR", "The service is unavailable."), false),
    ] {
        let platform = platform(vec![response.clone()]).await;
        match read(&platform, "https://www.youtube.com/results?search_query=mil").await {
            (pages, None) => assert!(is_empty && ids(&pages).is_empty(), "{response}"),
            (_, Some(failure)) => {
                let error = failure.unwrap_err();
                assert!(!is_empty, "{response}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn endless_search_ends_at_its_bound() {
    let platform = FakePlatform::start(|_, number| {
        let (video, next) = (old(number), format!("T{number}"));
        json_reply(&match number {
            0 => results(&[&[video]], Some(&next)),
            _ => further_results(&[video, token(&next)]),
        })
    })
    .await;
    let (pages, failure) = read(&platform, "https://www.youtube.com/results?search_query=mill").await;
    assert_eq!((failure, pages.len()), (None, 50));
}

#[tokio::test]
async fn repeated_pages_and_endless_empty_pages_end() {
    let loops =
        platform(vec![playlist("9 videos", &[old(1), token("T")]), further(&[old(2), token("T")])]).await;
    let (pages, failure) = read(&loops, PLAYLIST).await;
    assert_eq!((failure, ids(&pages)), (None, vec![id(1), id(2)]));
    assert_eq!(pages[1].hidden_count, 7);
    let alternating = FakePlatform::start(|_, number| {
        let next = token(&format!("T{number}"));
        json_reply(&match number {
            0 => playlist("3 videos", &[old(1), old(2), next]),
            number if number % 2 == 1 => further(&[old(3), old(4), next]),
            _ => further(&[old(1), old(2), next]),
        })
    })
    .await;
    let (pages, failure) = read(&alternating, PLAYLIST).await;
    assert_eq!(*failure.unwrap().unwrap_err().reason(), SupplyReason::Unreadable);
    assert_eq!(pages.len(), 3, "the fourth page is the second one");
    let idle = FakePlatform::start(|_, number| {
        json_reply(&match number {
            0 => playlist("9 videos", &[old(1), token("T")]),
            number => further(&[token(&format!("T{number}"))]),
        })
    })
    .await;
    let (pages, failure) = read(&idle, PLAYLIST).await;
    assert_eq!(*failure.unwrap().unwrap_err().reason(), SupplyReason::Unreadable);
    assert!(pages.len() < 7, "{} pages", pages.len());
}
