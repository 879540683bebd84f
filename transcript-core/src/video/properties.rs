//! Property tests of link parsing: arbitrary texts, ids in every form, and look-alike hosts.

use proptest::prelude::*;

use super::{Platform, VideoId, VideoLink};

const YOUTUBE_FORMS: [&str; 24] = [
    "{}",
    "https://www.youtube.com/watch?v={}",
    "http://youtube.com/watch?feature=share&v={}&t=1",
    "//m.youtube.com/watch?v={}#t=5",
    "music.youtube.com/watch?v={}",
    "https://www.youtube.com/watch?a=b&amp;amp;v={}",
    "https://www.youtube.com/watch/{}",
    "https://www.youtube.com/#/watch?v={}",
    "https://www.youtube.com/v/{}&hl=en",
    "https://www.youtube.com/embed/{}?rel=0",
    "https://www.youtube-nocookie.com/embed/{}",
    "https://youtube.com/shorts/{}",
    "https://youtube.com/live/{}?si=x",
    "https://youtu.be/{}",
    "youtu.be/{}?t=1",
    "https://youtu.be/{}).",
    "vnd.youtube:{}",
    "youtube://{}",
    "https://i.ytimg.com/vi/{}/0.jpg",
    "http://www.youtube.com/user/Name#p/u/1/{}",
    "https://www.youtube.com/attribution_link?u=%2Fwatch%3Fv%3D{}%26feature%3Dshare",
    "https://www.google.com/url?url=https%3A%2F%2Fyoutu.be%2F{}",
    "<iframe src=\"https://www.youtube.com/embed/{}\"></iframe>",
    "Look at [this](https://youtu.be/{}), please",
];

const TIKTOK_FORMS: [&str; 8] = [
    "https://www.tiktok.com/@name/video/{}",
    "tiktok.com/@/video/{}/",
    "https://www.tiktok.com/@name/photo/{}?lang=en",
    "https://www.tiktokv.com/share/video/{}/",
    "https://www.tiktok.com/embed/v2/{}",
    "https://www.tiktok.com/player/v1/{}",
    "https://m.tiktok.com/v/{}.html",
    "See https://www.tiktok.com/@name/video/{}.",
];

const INSTAGRAM_FORMS: [&str; 8] = [
    "https://www.instagram.com/reel/{}/",
    "instagram.com/reels/{}",
    "https://www.instagram.com/p/{}/?igsh=x",
    "https://www.instagram.com/tv/{}/embed/captioned/",
    "https://www.instagram.com/name/reel/{}/",
    "https://www.instagram.com/p/{}ABCDEFGHIJKLMNOPQRSTUVWXYZ01/",
    "(https://www.instagram.com/reel/{})",
    "<https://instagr.am/p/{}>",
];

const X_FORMS: [&str; 8] = [
    "https://x.com/name/status/{}",
    "twitter.com/name/statuses/{}?s=20",
    "https://mobile.twitter.com/i/web/status/{}/video/1",
    "https://x.com/i/bookmarks?post_id={}",
    "https://twitter.com/#!/name/status/{}",
    "https://platform.twitter.com/embed/Tweet.html?id={}",
    "twitter://status?id={}",
    "See https://x.com/name/status/{}, please",
];

fn forms_for(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::YouTube => &YOUTUBE_FORMS,
        Platform::TikTok => &TIKTOK_FORMS,
        Platform::Instagram => &INSTAGRAM_FORMS,
        Platform::X => &X_FORMS,
    }
}

/// An id of any platform, in canonical form.
fn any_video() -> impl Strategy<Value = VideoId> {
    prop_oneof![
        // These two words name a playlist and a stream in the path of an embedded player.
        "[A-Za-z0-9_-]{11}"
            .prop_filter("a word of the player", |id| id != "videoseries" && id != "live_stream")
            .prop_map(|id| (Platform::YouTube, id)),
        "[1-9][0-9]{0,20}".prop_map(|id| (Platform::TikTok, id)),
        // "audio" after "reel/" is a separate page; codes of 5 characters are older than reels.
        "[A-Za-z0-9_-]{6,11}".prop_map(|id| (Platform::Instagram, id)),
        (1..=u64::MAX).prop_map(|id| (Platform::X, id.to_string())),
    ]
    .prop_map(|(platform, id)| VideoId::new(platform, &id).expect("generated in canonical form"))
}

/// Hosts that resemble a platform's host, but are none.
fn any_look_alike() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "youtube.com",
        "www.youtube.com",
        "youtu.be",
        "www.tiktok.com",
        "vm.tiktok.com",
        "www.instagram.com",
        "x.com",
        "twitter.com",
        "t.co",
    ]);
    (host, "[a-z0-9-]{0,6}[a-z]", 0..14_usize).prop_map(|(host, word, kind)| match kind {
        0 => format!("{host}.{word}.example"),
        1 => format!("{word}evil{host}"),
        2 => format!("{word}evil-{host}"),
        3 => format!("{word}evil_{host}"),
        4 => format!("evil{word}.{host}"),
        5 => format!("{host}@{word}.example"),
        6 => format!("{word}.example@{host}"),
        7 => format!("{host}:1{}", word.len()),
        8 => format!("{host}."),
        9 => format!("{host}\\@{word}.example"),
        10 => format!("{word}.example\\.{host}"),
        11 => host.replacen('.', "%2E", 1),
        12 => host.replacen('o', "о", 1).replacen('t', "ｔ", 1).replacen('x', "х", 1),
        _ => format!("{word}.example?{host}"),
    })
}

fn parse_video(text: &str) -> Option<VideoId> {
    match VideoLink::parse(text) {
        Ok(VideoLink::Video(video)) => Some(video),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn link_any_text_returns_link_or_error(text in any::<String>()) {
        if let Err(error) = VideoLink::parse(&text) {
            prop_assert!(!error.message().is_empty());
        }
    }

    #[test]
    fn link_any_linklike_text_returns_link_or_error(
        text in r"(https?:|//|vnd\.youtube:|instagram://|youtube\.com|[a-zA-Z0-9./?#@:&=%\\_<>()\[\]é -]){0,60}",
    ) {
        if let Ok(VideoLink::Video(video)) = VideoLink::parse(&text) {
            prop_assert!(VideoId::new(video.platform(), video.id()).is_ok());
        }
    }

    #[test]
    fn link_id_is_read_from_every_form(video in any_video()) {
        for form in forms_for(video.platform()) {
            let text = form.replace("{}", video.id());
            prop_assert_eq!(parse_video(&text), Some(video.clone()), "{}", text);
        }
    }

    #[test]
    fn link_canonical_address_names_video(video in any_video(), seconds in 0..100_000_u64) {
        prop_assert_eq!(parse_video(&video.address()), Some(video.clone()));
        prop_assert_eq!(parse_video(&video.address_at(seconds)), Some(video));
    }

    #[test]
    fn short_link_round_trips(code in "[A-Za-z0-9_-]{1,32}", spelling in 0..6_usize) {
        let text = match spelling {
            0 => format!("http://vm.tiktok.com/{code}"),
            1 => format!("vt.tiktok.com/{code}/?k=1"),
            2 => format!("https://tiktok.com/t/{code}"),
            3 => format!("instagram.com/share/reel/{code}?x=1"),
            4 => format!("https://t.co/{code}/"),
            _ => format!("pic.twitter.com/{code}"),
        };
        let Ok(VideoLink::Short(link)) = VideoLink::parse(&text) else {
            return Err(TestCaseError::fail(text));
        };
        prop_assert_eq!(link.code(), &code);
        prop_assert_eq!(VideoLink::parse(link.address()), Ok(VideoLink::Short(link)));
    }

    #[test]
    fn link_look_alike_host_is_rejected(
        host in any_look_alike(),
        scheme in prop::sample::select(vec!["https://", "http://", "//", "", "HTTPS://", "https:/"]),
        path in prop::sample::select(vec![
            "/watch?v=aB3-_xYz019",
            "/embed/aB3-_xYz019",
            "/aB3-_xYz019",
            "/@name/video/7123456789012345678",
            "/reel/DaB3-_xYz01/",
            "/name/status/20",
        ]),
    ) {
        let text = format!("{scheme}{host}{path}");
        prop_assert!(VideoLink::parse(&text).is_err(), "{}", text);
    }
}
