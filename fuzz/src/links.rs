//! Links, short links and their redirects, and the ids and tags of requests.

use transcript_core::{
    accounts::Email,
    directory::api_key::ApiKey,
    transcript::{LanguageTag, TrackSelector},
    video::{Platform, ShortLink, VideoId, VideoLink, VideoList},
};
use upstream_reqwest::fuzzing::short_links;

use crate::seeds;

const PLATFORMS: [Platform; 4] = [Platform::YouTube, Platform::TikTok, Platform::Instagram, Platform::X];

/// The input is one text: every parser of a short text reads it.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match VideoLink::parse(&text) {
        Ok(link) => check_link(&link),
        Err(error) => assert!(!error.message().is_empty()),
    }
    match VideoList::parse(&text) {
        Ok(list) => assert_eq!(VideoList::parse(&list.address()).as_ref(), Ok(&list)),
        Err(error) => assert!(!error.message().is_empty()),
    }
    for platform in PLATFORMS {
        if let Ok(video) = VideoId::new(platform, &text) {
            assert_eq!(video.id(), text);
            check_link(&VideoLink::Video(video));
        }
        if let Some(link) = ShortLink::from_name(platform, &text) {
            assert_eq!(link.name(), text);
            check_link(&VideoLink::Short(link));
        }
        if let Some(link) = short_links::redirect_target(platform, &text) {
            let target = match &link {
                VideoLink::Video(video) => video.platform(),
                VideoLink::Short(link) => link.platform(),
            };
            assert_eq!(target, platform);
            check_link(&link);
        }
    }
    if let Ok(tag) = LanguageTag::parse(&text) {
        assert_eq!(
            LanguageTag::parse(tag.as_str()).ok().as_ref(),
            Some(&tag),
            "the canonical form is stable"
        );
        assert!(tag.matches(&tag));
        tag.without_likely_region();
        tag.is_right_to_left();
    }
    let selector = TrackSelector::from_name(&text);
    assert_eq!(TrackSelector::from_name(&String::from(selector.clone())), selector);
    if let Some(key) = ApiKey::parse(&text) {
        assert_eq!(key.reveal(), text);
    }
    if let Ok(address) = Email::parse(&text) {
        assert_eq!(Email::parse(address.as_str()).ok().as_ref(), Some(&address), "the normal form is stable");
    }
}

/// An accepted link is read back from its canonical address.
fn check_link(link: &VideoLink) {
    match link {
        VideoLink::Video(video) => {
            assert_eq!(VideoId::new(video.platform(), video.id()).as_ref(), Ok(video));
            assert_eq!(VideoLink::parse(&video.address()).as_ref(), Ok(link));
            assert_eq!(VideoLink::parse(&video.address_at(75)).as_ref(), Ok(link));
        }
        VideoLink::Short(short) => {
            assert_eq!(VideoLink::parse(short.address()).as_ref(), Ok(link));
            assert_eq!(ShortLink::from_name(short.platform(), &short.name()).as_ref(), Some(short));
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        "dQw4w9WgXcQ",
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=43s&list=PLx",
        "See (https://youtu.be/dQw4w9WgXcQ?t=43).",
        "vnd.youtube://dQw4w9WgXcQ",
        "https://www.youtube.com/playlist?list=PL0123456789abcdef",
        "https://www.youtube.com/@name/shorts",
        "https://music.youtube.com/browse/VLRDCLAK5uy_0123456789",
        "https://m.youtube.com/shorts/dQw4w9WgXcQ",
        "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ",
        "https://i.ytimg.com/vi/dQw4w9WgXcQ/hqdefault.jpg",
        "https://consent.youtube.com/m?continue=https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3DdQw4w9WgXcQ",
        "https://www.google.com/url?q=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ",
        "https://www.youtube.com/attribution_link?u=%2Fwatch%3Fv%3DdQw4w9WgXcQ",
        "https://www.tiktok.com/@name/video/7123456789012345678",
        "https://vm.tiktok.com/ZMabc123/",
        "snssdk1233://aweme/detail/7123456789012345678",
        "https://www.instagram.com/reel/DaB3-_xYz01/?igsh=x",
        "https://www.instagram.com/share/reel/BAaB3xYz01",
        "instagram://media?id=3123456789012345678",
        "https://l.instagram.com/?u=https%3A%2F%2Fwww.instagram.com%2Fp%2FDaB3-_xYz01%2F",
        "https://x.com/name/status/1234567890123456789",
        "twitter://status?id=20",
        "https://t.co/aBcDeFgHiJ",
        "pic.twitter.com/aBcDeFgHiJ",
        "https://platform.twitter.com/embed/Tweet.html?id=20",
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https%3A%2F%2Fx.com%2Fi%2Fstatus%2F20",
        "<a href=\"https:&#47;&#47;youtu.be/dQw4w9WgXcQ\">",
        "https://user:password@youtube.com:443/watch?v=dQw4w9WgXcQ#x",
        "share:BAaB3xYz01",
        "zh-Hant-TW",
        "de-CH-1996-x-a",
        "Ann.Example+tag@b\u{fc}cher.example",
        "vb_live_0123456789abcdefghijABCDEFGHIJ0123456789ab",
    ])
}
