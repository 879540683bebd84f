//! Posts of TikTok, X and Instagram in the format of their pages.

use serde_json::{Value, json};

use crate::corpus::WordSource;

/// Bytes of a page of TikTok and of Instagram.
const PAGE_BYTES: usize = 300_000;

/// The token that yt-dlp reads from the front page of Instagram.
pub(crate) const INSTAGRAM_FRONT: &str =
    r#"<html><script>[["LSD",[],{"token":"AVrBench0001"},323]]</script></html>"#;

/// Captions of one minute, as WebVTT.
pub(crate) fn words(word_source: &mut WordSource) -> String {
    let mut text = "WEBVTT\n\n".to_owned();
    for second in (0..60).step_by(2) {
        let line = word_source.generate(7);
        text.push_str(&format!("00:00:{second:02}.000 --> 00:00:{:02}.900\n{line}\n\n", second + 1));
    }
    text
}

/// Padding of a page.
pub(crate) fn pad(word_source: &mut WordSource) -> String {
    let mut text = String::with_capacity(PAGE_BYTES + 200);
    while text.len() < PAGE_BYTES {
        text.push_str(&word_source.generate(12));
    }
    text
}

/// A page of TikTok with a video of this many seconds, with or without captions.
pub(crate) fn tiktok(post: u64, seconds: u64, has_captions: bool, padding: &str) -> String {
    let captions = has_captions.then(|| {
        json!({
            "LanguageCodeName": "eng-US", "Url": format!("https://v16-webapp.tiktok.com/captions/{post}"),
            "Format": "webvtt", "Source": "ASR", "UrlExpire": "1795000000"
        })
    });
    let video = json!({
        "id": post.to_string(), "duration": seconds, "width": 576, "height": 1024, "format": "mp4",
        "playAddr": format!("https://v16-webapp.tiktok.com/video/{post}"),
        "subtitleInfos": captions.into_iter().collect::<Vec<_>>(),
    });
    let item = json!({
        "id": post.to_string(), "desc": "A walk along the dyke", "createTime": "1790000000",
        "author": { "uniqueId": "dyke", "nickname": "Dyke Society", "id": "1", "secUid": "MS4" },
        "music": {}, "stats": {}, "video": video
    });
    let state = json!({ "__DEFAULT_SCOPE__": {
        "webapp.app-context": { "padding": padding },
        "webapp.video-detail": { "statusCode": 0, "statusMsg": "", "itemInfo": { "itemStruct": item } }
    } });
    format!(
        "<!DOCTYPE html><html><body><script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\" type=\"application/json\">\
         {state}</script></body></html>"
    )
}

/// X's response about a post.
pub(crate) fn x(post: u64) -> Value {
    let video = json!({
        "type": "video", "id_str": post.to_string(), "media_key": format!("13_{post}"), "ext_media_availability": { "status": "Available" },
        "media_url_https": "https://pbs.twimg.com/a.jpg", "sizes": {},
        "video_info": { "duration_millis": 60_000, "aspect_ratio": [16, 9], "variants": [
            { "content_type": "application/x-mpegURL", "url": format!("https://video.twimg.com/pl/{post}.m3u8") },
            { "content_type": "video/mp4", "bitrate": 256_000, "url": "https://video.twimg.com/480x270/a.mp4" }
        ] }
    });
    let user = json!({ "__typename": "User", "rest_id": "77", "legacy": { "name": "Dyke Society", "screen_name": "dyke" } });
    json!({ "data": { "tweetResult": { "result": {
        "__typename": "Tweet", "rest_id": post.to_string(), "core": { "user_results": { "result": user } },
        "legacy": {
            "id_str": post.to_string(), "full_text": "A walk along the dyke https://t.co/a", "lang": "en",
            "created_at": "Tue Oct 06 08:00:00 +0000 2026", "extended_entities": { "media": [video] }
        }
    } } } })
}

/// A page of Instagram with a video.
pub(crate) fn instagram(code: &str, padding: &str) -> String {
    let user = json!({ "pk": "77", "username": "dyke", "full_name": "Dyke Society" });
    let versions = json!([{ "type": 101, "width": 540, "height": 960,
        "url": "https://instagram.fams1-1.fna.fbcdn.net/o1/v/t2/f2/m86/reel.mp4" }]);
    let post = json!({
        "code": code, "pk": "3141592653589793", "id": "3141592653589793_77", "media_type": 2, "product_type": "clips",
        "taken_at": 1_790_000_000, "video_duration": 60.0, "has_audio": true, "user": user, "owner": user,
        "caption": { "text": "A walk along the dyke" }, "video_versions": versions
    });
    let media = json!({ "code": code, "pk": "3141592653589793", "if_not_gated_logged_out": post });
    let result = json!({ "__bbox": { "result": { "data": { "xig_polaris_media": media } } } });
    let stream = json!(["RelayPrefetchedStreamCache", "next", [], [code, result]]);
    let state = json!({ "require": [["ScheduledServerJS", "handle", null, [{ "__bbox": { "require": [stream] } }]]] });
    let padding = json!({ "padding": padding });
    format!(
        "<!DOCTYPE html><html><body><script type=\"application/json\">{padding}</script>\
         <script type=\"application/json\" data-content-len=\"1\" data-sjs>{state}</script></body></html>"
    )
}
