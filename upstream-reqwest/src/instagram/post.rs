//! Reads the video from a post's data. No I/O.

use base64::{Engine as _, engine::general_purpose};
use serde_json::Value;
use transcript_core::transcript::VideoMetadata;

use crate::{
    json::{field, items, parse, path, profile_url, seconds_as_ms, text, timestamp},
    social::{MediaAddress, SocialFailure, TrackDetails, title},
};

/// Maximum number of parts per post, and of files per video.
const PARTS_MAX: usize = 20;
const FILES_MAX: usize = 20;
/// Maximum lengths of a caption and a name in characters, and of a URL in bytes.
const TEXT_MAX: usize = 2_200;
const NAME_MAX: usize = 200;
const ADDRESS_MAX: usize = 8_192;

/// A post with a video.
#[derive(Debug)]
pub(super) struct InstagramPost {
    pub(super) details: TrackDetails,
    pub(super) has_audio: Option<bool>,
    pub(super) addresses: Vec<MediaAddress>,
}

/// Reads the video of a post, in the current or the older format.
pub(super) fn read(node: &Value, code: &str) -> Result<InstagramPost, SocialFailure> {
    if field(field(node, "owner"), "is_private").as_bool() == Some(true) && addresses(node).is_empty() {
        return Err(SocialFailure::PrivateAccount);
    }
    let edges =
        items(field(node, "edge_sidecar_to_children"), "edges", PARTS_MAX).map(|edge| field(edge, "node"));
    let parts = std::iter::once(node).chain(items(node, "carousel_media", PARTS_MAX)).chain(edges);
    let (mut silent, mut withheld) = (false, false);
    for part in parts {
        let addresses = addresses(part);
        if addresses.is_empty() {
            withheld |= is_video(part);
            continue;
        }
        let has_audio = field(part, "has_audio").as_bool();
        if has_audio == Some(false) {
            silent = true;
            continue;
        }
        let mut details = details(node, code);
        details.metadata.thumbnail_url = thumbnail(part).or_else(|| thumbnail(node));
        details.duration_ms = seconds_as_ms(field(part, "video_duration")).or_else(|| duration(&addresses));
        return Ok(InstagramPost { details, has_audio, addresses });
    }
    Err(match (withheld, silent) {
        (true, _) => SocialFailure::Withheld(None),
        (false, true) => SocialFailure::NoAudio,
        (false, false) => SocialFailure::NoVideo,
    })
}

/// Whether a part states that it is a video, with or without a file.
fn is_video(part: &Value) -> bool {
    field(part, "media_type").as_u64() == Some(2) || field(part, "is_video").as_bool() == Some(true)
}

fn details(node: &Value, code: &str) -> TrackDetails {
    let user = if field(node, "user").is_object() { field(node, "user") } else { field(node, "owner") };
    let name = text(field(user, "username"), NAME_MAX);
    let author = text(field(user, "full_name"), NAME_MAX).or_else(|| name.clone());
    let edges =
        items(field(node, "edge_media_to_caption"), "edges", 1).map(|edge| path(edge, &["node", "text"]));
    let caption = std::iter::once(path(node, &["caption", "text"])).chain(edges);
    let caption = caption.filter_map(|caption| text(caption, TEXT_MAX)).next();
    let untitled = match &name {
        Some(name) => format!("Video by {name}"),
        None => format!("Instagram video {code}"),
    };
    let named = text(field(node, "title"), NAME_MAX).or_else(|| title(caption.as_ref()?));
    // The page of a reel has only the time of its caption.
    let times = [&["taken_at"][..], &["taken_at_timestamp"], &["caption", "created_at"]];
    let metadata = VideoMetadata {
        author_id: ["pk", "id"].into_iter().find_map(|key| text(field(user, key), NAME_MAX)),
        author_url: profile_url("https://www.instagram.com/", name.as_deref(), "_.").map(|url| url + "/"),
        published_at: times.into_iter().find_map(|names| timestamp(path(node, names))),
        description: caption,
        ..VideoMetadata::default()
    };
    TrackDetails { title: named.or(Some(untitled)), author, duration_ms: None, metadata }
}

/// URL of a picture of a part.
fn thumbnail(part: &Value) -> Option<String> {
    let pictures =
        items(field(part, "image_versions2"), "candidates", 1).map(|picture| field(picture, "url"));
    let mut pictures = pictures.chain([field(part, "display_url"), field(part, "display_uri")]);
    pictures.find_map(|picture| text(picture, ADDRESS_MAX))
}

/// URLs of one part's files, each once.
fn addresses(part: &Value) -> Vec<MediaAddress> {
    let versions = items(part, "video_versions", FILES_MAX).map(|version| field(version, "url"));
    let mut found: Vec<MediaAddress> = Vec::new();
    for address in versions.chain(std::iter::once(field(part, "video_url"))) {
        let text = address.as_str().filter(|text| !text.is_empty() && text.len() <= ADDRESS_MAX);
        let Some(address) = text.and_then(|text| MediaAddress::at("https://www.instagram.com/", text)) else {
            continue;
        };
        if !found.iter().any(|other| other.url == address.url) {
            found.push(address);
        }
    }
    found
}

/// Length of the video in its URL, if the post does not state it: JSON in base64.
fn duration(addresses: &[MediaAddress]) -> Option<u64> {
    addresses.iter().find_map(|address| {
        let (_, tag) = address.url.query_pairs().find(|(key, _)| key == "efg")?;
        let engine = general_purpose::STANDARD_NO_PAD;
        let json = engine.decode(tag.trim_end_matches('=')).ok()?;
        let value: Value = parse(&json).ok()?;
        seconds_as_ms(field(&value, "duration_s"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::time::Timestamp;

    use super::*;

    fn efg(json: &str) -> String {
        general_purpose::STANDARD.encode(json).replace('=', "%3D")
    }

    #[test]
    fn reel_in_current_format_is_read() {
        let url = format!("https://a.fbcdn.net/v.mp4?efg={}", efg("{\"duration_s\":72}"));
        let reel = json!({
            "code": "C", "media_type": 2, "has_audio": true,
            "user": {"pk": "7", "username": "rope.walk", "full_name": "Rope Walk"},
            "caption": {"text": "How a rope is laid.\nAll of it.", "created_at": 1_700_000_000},
            "image_versions2": {"candidates": [{"url": "https://a.fbcdn.net/p.jpg"}]},
            "video_versions": [{"type": 101, "url": url}, {"type": 102, "url": url}, {"url": 5}],
        });
        let post = read(&reel, "C").unwrap();
        assert_eq!(post.details.title.as_deref(), Some("How a rope is laid. All of it."));
        assert_eq!(
            (post.details.author.as_deref(), post.details.duration_ms),
            (Some("Rope Walk"), Some(72_000))
        );
        let expect = VideoMetadata {
            author_id: Some("7".to_owned()),
            author_url: Some("https://www.instagram.com/rope.walk/".to_owned()),
            published_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            thumbnail_url: Some("https://a.fbcdn.net/p.jpg".to_owned()),
            description: Some("How a rope is laid.\nAll of it.".to_owned()),
            ..VideoMetadata::default()
        };
        assert_eq!(post.details.metadata, expect);
        assert_eq!((post.has_audio, post.addresses.len()), (Some(true), 1));
    }

    #[test]
    fn older_format_and_gallery_are_read() {
        let old = json!({"shortcode": "C", "is_video": true, "video_url": "https://a.cdninstagram.com/v.mp4",
            "video_duration": 12.5, "owner": {"id": "7", "username": "rope.walk"}, "taken_at_timestamp": 1_700_000_000,
            "display_url": "https://a.cdninstagram.com/p.jpg",
            "edge_media_to_caption": {"edges": [{"node": {"text": "A splice"}}]}});
        let post = read(&old, "C").unwrap();
        assert_eq!(
            (post.details.title.as_deref(), post.details.duration_ms),
            (Some("A splice"), Some(12_500))
        );
        assert_eq!((post.details.author.as_deref(), post.has_audio), (Some("rope.walk"), None));
        let metadata = post.details.metadata;
        assert_eq!(
            (metadata.author_id.as_deref(), metadata.description.as_deref()),
            (Some("7"), Some("A splice"))
        );
        assert!(metadata.published_at.is_some() && metadata.thumbnail_url.is_some());
        let picture = json!({"media_type": 1});
        let silent = json!({"has_audio": false, "video_versions": [{"url": "https://a.fbcdn.net/silent"}]});
        let video = json!({"has_audio": true, "video_versions": [{"url": "https://a.fbcdn.net/b"}]});
        let gallery = json!({"media_type": 8, "carousel_media": [picture, silent, video]});
        let post = read(&gallery, "C").unwrap();
        assert_eq!(post.addresses[0].url.as_str(), "https://a.fbcdn.net/b");
        assert_eq!(post.details.title.as_deref(), Some("Instagram video C"));
        let sidecar =
            json!({"edge_sidecar_to_children": {"edges": [{"node": {"is_video": false}}, {"node": old}]}});
        assert!(read(&sidecar, "C").is_ok());
    }

    #[test]
    fn post_without_audio_is_classified() {
        let none = |node: Value| read(&node, "C").unwrap_err();
        assert_eq!(none(json!({"media_type": 1})), SocialFailure::NoVideo);
        assert_eq!(none(json!({"is_video": false})), SocialFailure::NoVideo);
        assert_eq!(none(json!(null)), SocialFailure::NoVideo);
        assert_eq!(
            none(json!({"has_audio": false, "video_url": "https://a.fbcdn.net/a"})),
            SocialFailure::NoAudio
        );
        assert_eq!(none(json!({"owner": {"is_private": true}})), SocialFailure::PrivateAccount);
        // A video without a file has audio for all that is known.
        for withheld in [
            json!({"media_type": 2, "video_versions": null}),
            json!({"is_video": true}),
            json!({"media_type": 8, "carousel_media": [{"media_type": 1}, {"media_type": 2}]}),
        ] {
            assert_eq!(none(withheld), SocialFailure::Withheld(None));
        }
    }

    #[test]
    fn media_url_invalid_parameters_are_ignored() {
        for query in ["efg=%%", "efg=e30=", "efg=W10"] {
            let post = read(&json!({"video_url": format!("https://a.fbcdn.net/v?{query}")}), "C").unwrap();
            assert_eq!(post.details.duration_ms, None, "{query}");
        }
    }
}
