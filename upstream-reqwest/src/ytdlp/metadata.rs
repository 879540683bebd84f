//! What yt-dlp prints of a video besides its title, its author and its captions. No I/O.

use serde_json::Value;
use transcript_core::{
    time::Timestamp,
    transcript::{CHAPTERS_MAX, Chapter, LiveStatus, VideoMetadata},
};

use crate::json::{ADDRESS_MAX, DESCRIPTION_MAX, field, text, timestamp};

/// Maximum length of a name in characters.
const NAME_MAX: usize = 500;
/// Upper bound of the start of a chapter in seconds.
const START_MAX_S: f64 = 1e7;

/// Reads the metadata, which may exceed its limits. A field of an unexpected type counts as absent.
pub(super) fn read(info: &Value) -> VideoMetadata {
    let first = |names: [&str; 2], max| names.into_iter().find_map(|name| text(field(info, name), max));
    VideoMetadata {
        author_id: first(["channel_id", "uploader_id"], NAME_MAX),
        author_url: first(["channel_url", "uploader_url"], ADDRESS_MAX),
        published_at: timestamp(field(info, "timestamp"))
            .or_else(|| day(field(info, "upload_date").as_str()?)),
        thumbnail_url: text(field(info, "thumbnail"), ADDRESS_MAX),
        live: field(info, "live_status").as_str().and_then(live_status),
        description: text(field(info, "description"), DESCRIPTION_MAX),
        chapters: chapters(field(info, "chapters")),
    }
}

/// The beginning of a day, `20260102`, in UTC.
fn day(text: &str) -> Option<Timestamp> {
    let (year, rest) = text.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2)?;
    Timestamp::parse(&format!("{year}-{month}-{day}T00:00:00Z"))
}

pub(super) fn live_status(status: &str) -> Option<LiveStatus> {
    match status {
        "not_live" => Some(LiveStatus::NotLive),
        "is_upcoming" => Some(LiveStatus::Upcoming),
        "is_live" => Some(LiveStatus::Live),
        "was_live" | "post_live" => Some(LiveStatus::WasLive),
        _ => None,
    }
}

fn chapters(list: &Value) -> Vec<Chapter> {
    let chapter = |chapter: &Value| {
        let start =
            field(chapter, "start_time").as_f64().filter(|start| (0.0..=START_MAX_S).contains(start))?;
        let title = text(field(chapter, "title"), NAME_MAX)?;
        // yt-dlp names a part without a title so.
        let is_untitled = title.starts_with("<Untitled Chapter");
        // The value is bounded, so the cast is exact enough.
        (!is_untitled).then(|| Chapter { title, start_ms: (start * 1_000.0).round() as u64 })
    };
    list.as_array().into_iter().flatten().take(CHAPTERS_MAX).filter_map(chapter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_of_video_is_read() {
        let metadata = read(&json!({
            "channel_id": "UCmill", "channel_url": "https://www.youtube.com/channel/UCmill", "uploader_id": "@mill",
            "timestamp": 1_700_000_000, "upload_date": "20231114", "thumbnail": "https://i.ytimg.com/a.jpg",
            "live_status": "was_live", "description": "Grain",
            "chapters": [{"start_time": 0.0, "end_time": 9.5, "title": "In"}, {"start_time": 9.5, "title": "Out"},
                {"start_time": 20, "title": "<Untitled Chapter 3>"}, {"start_time": -1, "title": "x"}, {"title": "x"}],
        }));
        let chapter = |title: &str, start_ms| Chapter { title: title.to_owned(), start_ms };
        let expect = VideoMetadata {
            author_id: Some("UCmill".to_owned()),
            author_url: Some("https://www.youtube.com/channel/UCmill".to_owned()),
            published_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            thumbnail_url: Some("https://i.ytimg.com/a.jpg".to_owned()),
            live: Some(LiveStatus::WasLive),
            description: Some("Grain".to_owned()),
            chapters: vec![chapter("In", 0), chapter("Out", 9_500)],
        };
        assert_eq!(metadata, expect);
    }

    #[test]
    fn metadata_of_other_platforms_and_types_is_read() {
        let post = read(
            &json!({"uploader_id": "tide", "uploader_url": "https://x.com/tide", "upload_date": "20231114"}),
        );
        assert_eq!(post.author_id.as_deref(), Some("tide"));
        assert_eq!(post.published_at, Timestamp::parse("2023-11-14T00:00:00Z"));
        let odd = json!({"channel_id": 5, "timestamp": "soon", "upload_date": "é5", "chapters": {}, "live_status": [],
            "description": "", "thumbnail": null});
        assert!(read(&odd).is_empty());
    }
}
