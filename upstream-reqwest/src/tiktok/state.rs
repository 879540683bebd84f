//! Reads metadata and tracks from a post's data. No I/O.

use serde_json::Value;
use transcript_core::{transcript::VideoMetadata, video::VideoId};

use super::{classify, subtitles};
use crate::{
    json::{
        ADDRESS_MAX, DESCRIPTION_MAX, field, items, number, path, profile_url, seconds_as_ms, text, timestamp,
    },
    social::{SocialFailure, SocialTracks, TrackDetails},
};

/// Maximum length of a title and a name in characters.
const TITLE_MAX: usize = 500;
const AUTHOR_MAX: usize = 200;

/// A post with captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TikTokPost {
    pub(super) details: TrackDetails,
    pub(super) tracks: SocialTracks,
}

/// Validates the data of the post `requested`.
pub(super) fn interpret<'a>(detail: &'a Value, requested: &VideoId) -> Result<&'a Value, SocialFailure> {
    if let Some(failure) = classify::status(detail) {
        return Err(failure);
    }
    let item = path(detail, &["itemInfo", "itemStruct"]);
    if !item.is_object() {
        return Err(SocialFailure::EmptyPage);
    }
    match number(field(item, "id")) {
        Some(id) if requested.id().trim_start_matches('0').parse() == Ok(id) => {}
        Some(_) => return Err(SocialFailure::OtherVideo),
        None => return Err(SocialFailure::Unreadable("it names no post id".to_owned())),
    }
    match classify::post(item) {
        Some(failure) => Err(failure),
        None => Ok(item),
    }
}

/// A post's metadata and tracks, or why it has none.
pub(super) fn post(item: &Value) -> Result<TikTokPost, SocialFailure> {
    let video = field(item, "video");
    let tracks = subtitles::read(video);
    if !tracks.0.is_empty() {
        return Ok(TikTokPost { details: details(item), tracks });
    }
    Err(if is_slide_show(item) {
        SocialFailure::NoVideo
    } else if video.as_object().is_none_or(serde_json::Map::is_empty) {
        // Nothing is known of its captions.
        SocialFailure::EmptyPage
    } else if subtitles::are_listed(video) {
        SocialFailure::UnreadableCaptions("they have no URL".to_owned())
    } else {
        SocialFailure::NoCaptions
    })
}

/// Whether a post is a slide show, possibly with music.
pub(super) fn is_slide_show(item: &Value) -> bool {
    items(field(item, "imagePost"), "images", 1).next().is_some()
}

/// Metadata of a post.
pub(super) fn details(item: &Value) -> TrackDetails {
    let author = field(item, "author");
    let duration = seconds_as_ms(path(item, &["video", "duration"]));
    let id = field(item, "id").as_str().map(|id| format!("TikTok video #{id}"));
    TrackDetails {
        // The description is the only title of a video.
        title: text(field(item, "desc"), TITLE_MAX).or(id),
        author: text(field(author, "nickname"), AUTHOR_MAX)
            .or_else(|| text(field(author, "uniqueId"), AUTHOR_MAX)),
        duration_ms: duration.or_else(|| seconds_as_ms(path(item, &["music", "duration"]))),
        metadata: metadata(item),
    }
}

fn metadata(item: &Value) -> VideoMetadata {
    let author = field(item, "author");
    let name = text(field(author, "uniqueId"), AUTHOR_MAX);
    let covers = ["originCover", "cover"].map(|key| path(item, &["video", key]));
    VideoMetadata {
        author_id: text(field(author, "id"), AUTHOR_MAX),
        author_url: profile_url("https://www.tiktok.com/@", name.as_deref(), "_."),
        published_at: timestamp(field(item, "createTime")),
        thumbnail_url: covers.into_iter().find_map(|cover| text(cover, ADDRESS_MAX)),
        description: text(field(item, "desc"), DESCRIPTION_MAX),
        ..VideoMetadata::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::{time::Timestamp, video::Platform};

    use super::*;

    fn video(id: &str) -> VideoId {
        VideoId::new(Platform::TikTok, id).unwrap()
    }

    fn detail(item: Value) -> Value {
        json!({"statusCode": 0, "itemInfo": {"itemStruct": item}})
    }

    #[test]
    fn state_of_other_post_is_rejected() {
        let result = |item: Value| interpret(&detail(item), &video("7100000000000000001")).map(drop);
        assert_eq!(result(json!({"id": "7100000000000000001"})), Ok(()));
        assert_eq!(result(json!({"id": 7_100_000_000_000_000_001_u64})), Ok(()));
        assert_eq!(result(json!({"id": "7100000000000000002"})), Err(SocialFailure::OtherVideo));
        assert!(matches!(result(json!({"id": null})), Err(SocialFailure::Unreadable(_))));
        assert_eq!(result(json!("a post")), Err(SocialFailure::EmptyPage));
        assert_eq!(result(json!({"id": "7100000000000000001", "takeDown": 1})), Err(SocialFailure::Removed));
    }

    #[test]
    fn post_metadata_has_fallbacks() {
        let result = details(&json!({
            "id": "71", "desc": " How rope is made \n", "createTime": "1700000000",
            "author": {"id": "68", "uniqueId": "rope.maker", "nickname": "Rope Walk"},
            "video": {"duration": 31, "cover": "https://p16.tiktokcdn.com/a.jpeg", "originCover": ""},
        }));
        assert_eq!(result.title.as_deref(), Some("How rope is made"));
        assert_eq!((result.author.as_deref(), result.duration_ms), (Some("Rope Walk"), Some(31_000)));
        let expect = VideoMetadata {
            author_id: Some("68".to_owned()),
            author_url: Some("https://www.tiktok.com/@rope.maker".to_owned()),
            published_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            thumbnail_url: Some("https://p16.tiktokcdn.com/a.jpeg".to_owned()),
            description: Some("How rope is made".to_owned()),
            ..VideoMetadata::default()
        };
        assert_eq!(result.metadata, expect);
        let author = json!({"id": 5, "uniqueId": "a/b"});
        let odd = details(&json!({"author": author, "createTime": "soon", "video": {"cover": 7}}));
        assert!(odd.metadata.is_empty());
        let bare =
            details(&json!({"id": "71", "desc": "", "video": {"duration": 0}, "music": {"duration": 9}}));
        assert_eq!(bare.title.as_deref(), Some("TikTok video #71"));
        assert_eq!((bare.author, bare.duration_ms), (None, Some(9_000)));
    }

    #[test]
    fn post_without_captions_is_classified() {
        let none = |item: Value| post(&item).unwrap_err();
        assert_eq!(none(json!({"video": {"subtitleInfos": []}})), SocialFailure::NoCaptions);
        assert_eq!(none(json!({"video": {}, "imagePost": {"images": [{}]}})), SocialFailure::NoVideo);
        for unknown in [json!(null), json!({"video": {}}), json!({"video": null})] {
            assert_eq!(none(unknown), SocialFailure::EmptyPage);
        }
        for list in [
            json!({"subtitleInfos": [{"Url": ""}]}),
            json!({"claInfo": {"captionInfos": [{}]}}),
            json!({"subtitleInfos": {"0": {"Url": "u"}}}),
        ] {
            assert!(matches!(none(json!({"video": list})), SocialFailure::UnreadableCaptions(_)), "{list}");
        }
    }
}
