//! Finds the media URLs of a TikTok video. No I/O.

use serde_json::Value;

use crate::{
    json::{field, items, number, path},
    social::MediaAddress,
};

/// Maximum number of formats, and of URLs per format. Five to ten, and three, are usual.
const FORMS_MAX: usize = 50;
const ADDRESSES_MAX: usize = 4;
/// Maximum length of a URL in bytes.
const ADDRESS_MAX: usize = 8_192;

/// URLs of a post's video, the smallest format first: all have the same audio.
pub(super) fn addresses(video: &Value) -> Vec<MediaAddress> {
    let mut forms: Vec<_> = items(video, "bitrateInfo", FORMS_MAX).filter(|form| is_playable(form)).collect();
    forms.sort_by_key(|form| number(field(form, "Bitrate")).unwrap_or(u64::MAX));
    let mut found: Vec<MediaAddress> = Vec::new();
    for form in forms {
        let bitrate = number(field(form, "Bitrate"));
        let bytes = number(path(form, &["PlayAddr", "DataSize"]));
        for address in items(field(form, "PlayAddr"), "UrlList", ADDRESSES_MAX) {
            add(&mut found, address, bitrate, bytes);
        }
    }
    add(&mut found, field(video, "playAddr"), None, None);
    for address in items(field(video, "PlayAddrStruct"), "UrlList", ADDRESSES_MAX) {
        add(&mut found, address, None, number(path(video, &["PlayAddrStruct", "DataSize"])));
    }
    found
}

/// Whether a format can be decoded outside TikTok's own player.
fn is_playable(form: &Value) -> bool {
    !path(form, &["PlayAddr", "UrlKey"]).as_str().is_some_and(|key| key.contains("bytevc2"))
}

fn add(found: &mut Vec<MediaAddress>, address: &Value, bitrate: Option<u64>, bytes: Option<u64>) {
    let text = address.as_str().filter(|text| !text.is_empty() && text.len() <= ADDRESS_MAX);
    let Some(mut address) = text.and_then(|text| MediaAddress::at("https://www.tiktok.com/", text)) else {
        return;
    };
    // URLs on the site itself return no file, and those with this path have no audio.
    let is_site = address.url.host_str() == Some("www.tiktok.com");
    if is_site || address.url.path().ends_with("/media-video-hvc1/") {
        return;
    }
    (address.bitrate, address.bytes) = (bitrate, bytes);
    if !found.iter().any(|other| other.url == address.url) {
        found.push(address);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn media_urls_smallest_playable_comes_first() {
        let form = |bitrate: u64, key: &str, urls: Value| {
            json!({"Bitrate": bitrate, "PlayAddr":
            {"UrlKey": key, "DataSize": "99", "UrlList": urls}})
        };
        let video = json!({
            "bitrateInfo": [
                form(900, "v_h264_720p", json!(["https://v16.tiktok.com/720"])),
                form(300, "v_h264_540p", json!(["//v19.tiktok.com/540", "https://www.tiktok.com/aweme/v1/play/", 5])),
                form(100, "v_bytevc2_540p", json!(["https://v16.tiktok.com/unplayable"])),
                form(200, "v_h265", json!(["https://v16.tiktok.com/a/media-video-hvc1/"])),
            ],
            "playAddr": "https://v16.tiktok.com/play",
            "PlayAddrStruct": {"UrlList": ["https://v16.tiktok.com/play", "https://v19.tiktok.com/play"]},
        });
        let found = addresses(&video);
        let urls: Vec<_> = found.iter().map(|address| address.url.as_str()).collect();
        assert_eq!(
            urls,
            [
                "https://v19.tiktok.com/540",
                "https://v16.tiktok.com/720",
                "https://v16.tiktok.com/play",
                "https://v19.tiktok.com/play",
            ]
        );
        assert_eq!((found[0].bitrate, found[0].bytes), (Some(300), Some(99)));
        for odd in [json!(null), json!({"bitrateInfo": 5, "playAddr": ""}), json!({"playAddr": "https://["})]
        {
            assert!(addresses(&odd).is_empty(), "{odd}");
        }
    }
}
