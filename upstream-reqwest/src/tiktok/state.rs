//! From the part of a page's state that is about a post to its details and tracks. Pure.

use serde_json::Value;
use transcript_core::video::VideoId;

use super::{signals, subtitles};
use crate::social::{
    Details, Refusal, Tracks,
    json::{field, items, number, path, seconds_as_ms, text},
};

/// How much of a title and a name is taken, in characters.
const TITLE_MAX: usize = 500;
const AUTHOR_MAX: usize = 200;

/// A post that has a video with captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) details: Details,
    pub(super) tracks: Tracks,
}

/// What the state says of the post `requested`.
pub(super) fn interpret<'a>(detail: &'a Value, requested: &VideoId) -> Result<&'a Value, Refusal> {
    if let Some(refusal) = signals::status(detail) {
        return Err(refusal);
    }
    let item = path(detail, &["itemInfo", "itemStruct"]);
    if !item.is_object() {
        return Err(Refusal::Shell);
    }
    match number(field(item, "id")) {
        Some(id) if requested.id().trim_start_matches('0').parse() == Ok(id) => {}
        Some(_) => return Err(Refusal::OtherVideo),
        None => return Err(Refusal::Unreadable("it does not say which post it is about".to_owned())),
    }
    match signals::post(item) {
        Some(refusal) => Err(refusal),
        None => Ok(item),
    }
}

/// A post's details and tracks, or why it has none.
pub(super) fn post(item: &Value) -> Result<Post, Refusal> {
    let tracks = subtitles::read(field(item, "video"));
    if tracks.0.is_empty() {
        return Err(if is_slide_show(item) { Refusal::NoVideo } else { Refusal::NoCaptions });
    }
    Ok(Post { details: details(item), tracks })
}

/// Whether a post is pictures, with music at best.
pub(super) fn is_slide_show(item: &Value) -> bool {
    items(field(item, "imagePost"), "images", 1).next().is_some()
}

/// What is known of a post beside its captions.
pub(super) fn details(item: &Value) -> Details {
    let author = field(item, "author");
    let duration = seconds_as_ms(path(item, &["video", "duration"]));
    let id = field(item, "id").as_str().map(|id| format!("TikTok video #{id}"));
    Details {
        // What stands under a video is all the title that it has.
        title: text(field(item, "desc"), TITLE_MAX).or(id),
        author: text(field(author, "nickname"), AUTHOR_MAX)
            .or_else(|| text(field(author, "uniqueId"), AUTHOR_MAX)),
        duration_ms: duration.or_else(|| seconds_as_ms(path(item, &["music", "duration"]))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::video::Platform;

    use super::*;

    fn video(id: &str) -> VideoId {
        VideoId::new(Platform::ShortVideo, id).unwrap()
    }

    fn detail(item: Value) -> Value {
        json!({"statusCode": 0, "itemInfo": {"itemStruct": item}})
    }

    #[test]
    fn only_the_post_that_was_asked_for_counts() {
        let told = |item: Value| interpret(&detail(item), &video("7100000000000000001")).map(drop);
        assert_eq!(told(json!({"id": "7100000000000000001"})), Ok(()));
        assert_eq!(told(json!({"id": 7_100_000_000_000_000_001_u64})), Ok(()));
        assert_eq!(told(json!({"id": "7100000000000000002"})), Err(Refusal::OtherVideo));
        assert!(matches!(told(json!({"id": null})), Err(Refusal::Unreadable(_))));
        assert_eq!(told(json!("a post")), Err(Refusal::Shell));
        assert_eq!(told(json!({"id": "7100000000000000001", "takeDown": 1})), Err(Refusal::Gone));
    }

    #[test]
    fn details_are_told_as_far_as_they_are_known() {
        let told = details(&json!({
            "id": "71", "desc": " How rope is made \n", "author": {"uniqueId": "rope.maker", "nickname": "Rope Walk"},
            "video": {"duration": 31},
        }));
        assert_eq!(told.title.as_deref(), Some("How rope is made"));
        assert_eq!((told.author.as_deref(), told.duration_ms), (Some("Rope Walk"), Some(31_000)));
        let bare =
            details(&json!({"id": "71", "desc": "", "video": {"duration": 0}, "music": {"duration": 9}}));
        assert_eq!(bare.title.as_deref(), Some("TikTok video #71"));
        assert_eq!((bare.author, bare.duration_ms), (None, Some(9_000)));
    }

    #[test]
    fn a_post_without_captions_says_why() {
        let none = |item: Value| post(&item).unwrap_err();
        assert_eq!(none(json!({"video": {"subtitleInfos": []}})), Refusal::NoCaptions);
        assert_eq!(none(json!({"video": {}, "imagePost": {"images": [{}]}})), Refusal::NoVideo);
        assert_eq!(none(json!(null)), Refusal::NoCaptions);
    }
}
