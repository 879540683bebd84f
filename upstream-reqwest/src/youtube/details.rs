//! Metadata of a video in its player data. No I/O.

use serde_json::Value;
use transcript_core::{
    time::Timestamp,
    transcript::{LiveStatus, VideoMetadata},
};

use super::{chapters, player::text};
use crate::json::{ADDRESS_MAX, DESCRIPTION_MAX, field, items, path, profile_url};

/// Maximum length of a title, a channel name and a channel id, in characters.
const TITLE_MAX: usize = 500;
const AUTHOR_MAX: usize = 200;
/// Maximum number of previews read. Five are usual.
const PREVIEWS_MAX: usize = 50;
/// Upper bound of a video's length in seconds: a year of live stream.
const LENGTH_MAX_S: u64 = 366 * 86_400;
/// The beginning of the URLs of channels.
const SITE: &str = "https://www.youtube.com/";

/// Metadata of the video in the player data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct YouTubeDetails {
    /// The id, if the response contains one.
    pub(super) video: Option<String>,
    pub(super) title: Option<String>,
    pub(super) author: Option<String>,
    pub(super) duration_ms: Option<u64>,
    /// A finished live stream that is still being processed.
    pub(super) is_ended: bool,
    /// The rest, within the limits of metadata.
    pub(super) metadata: VideoMetadata,
}

impl YouTubeDetails {
    /// Reads `videoDetails` and `microformat`, which only some clients receive.
    pub(super) fn read(value: &Value, microformat: &Value) -> Self {
        let length = field(value, "lengthSeconds");
        let length = length.as_u64().or_else(|| length.as_str()?.parse().ok());
        let length = length.filter(|length| (1..=LENGTH_MAX_S).contains(length));
        let duration_ms = length.map(|seconds| seconds * 1_000);
        let microformat = field(microformat, "playerMicroformatRenderer");
        Self {
            video: field(value, "videoId").as_str().map(str::to_owned),
            title: text(field(value, "title"), TITLE_MAX),
            author: text(field(value, "author"), AUTHOR_MAX),
            duration_ms,
            is_ended: flag(field(value, "isPostLiveDvr")).unwrap_or(false),
            metadata: metadata(value, microformat, duration_ms).cleaned(duration_ms),
        }
    }
}

fn metadata(value: &Value, microformat: &Value, duration_ms: Option<u64>) -> VideoMetadata {
    let ids = [field(value, "channelId"), field(microformat, "externalChannelId")];
    let author_id = ids.into_iter().find_map(|id| text(id, AUTHOR_MAX));
    let description = text(field(value, "shortDescription"), DESCRIPTION_MAX);
    let chapters = description.as_ref().map(|text| chapters::in_description(text, duration_ms));
    let previews = [value, microformat].map(|value| field(value, "thumbnail"));
    let dates = ["publishDate", "uploadDate"].map(|name| field(microformat, name).as_str());
    VideoMetadata {
        author_url: author_url(author_id.as_deref(), microformat),
        author_id,
        published_at: dates.into_iter().flatten().find_map(Timestamp::parse_time_or_date),
        thumbnail_url: previews.into_iter().find_map(largest_preview),
        live: live_status(value, microformat),
        description,
        chapters: chapters.unwrap_or_default(),
    }
}

/// The URL of the channel: the one that is stated, else that of its id.
fn author_url(id: Option<&str>, microformat: &Value) -> Option<String> {
    let stated = text(field(microformat, "ownerProfileUrl"), ADDRESS_MAX);
    // YouTube states it without encryption.
    let stated = stated.map(|url| url.replacen("http://", "https://", 1));
    let by_id = || profile_url(&format!("{SITE}channel/"), id, "_-");
    stated.filter(|url| url.starts_with(SITE)).or_else(by_id)
}

fn largest_preview(list: &Value) -> Option<String> {
    let previews = items(list, "thumbnails", PREVIEWS_MAX);
    let largest = previews.max_by_key(|preview| field(preview, "width").as_u64())?;
    text(field(largest, "url"), ADDRESS_MAX)
}

/// A flag, also as a text or number: a live stream must not be taken for a finished one.
fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64().map(|number| number != 0),
        other => other.as_bool(),
    }
}

fn live_status(value: &Value, microformat: &Value) -> Option<LiveStatus> {
    let flag_of = |name| flag(field(value, name));
    let is_on_now = flag(path(microformat, &["liveBroadcastDetails", "isLiveNow"]));
    // Videos that were live keep `isLiveContent`.
    match (
        flag_of("isUpcoming"),
        [flag_of("isLive"), is_on_now].contains(&Some(true)),
        flag_of("isLiveContent").or(is_on_now.map(|_| true)),
    ) {
        (Some(true), ..) => Some(LiveStatus::Upcoming),
        (_, true, _) => Some(LiveStatus::Live),
        (.., Some(true)) => Some(LiveStatus::WasLive),
        (.., Some(false)) => Some(LiveStatus::NotLive),
        (.., None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::transcript::Chapter;

    use super::*;

    #[test]
    fn details_have_metadata() {
        let preview = |width: u32| json!({"url": format!("https://i.ytimg.com/{width}.jpg"), "width": width});
        let value = json!({
            "videoId": "vb-player-0", "title": "A mill", "author": "Miller", "lengthSeconds": "90",
            "channelId": "UCmill", "isLiveContent": true, "shortDescription": "Grain\n0:00 In\n0:10 Up\n0:20 Out\n",
            "thumbnail": {"thumbnails": [preview(120), preview(640), preview(320), {"width": "wide"}]},
        });
        let microformat = json!({"playerMicroformatRenderer": {
            "ownerProfileUrl": "http://www.youtube.com/@mill", "publishDate": "2015-01-27T21:14:36-08:00",
        }});
        let details = YouTubeDetails::read(&value, &microformat);
        let chapter = |title: &str, start_ms| Chapter { title: title.to_owned(), start_ms };
        let expect = VideoMetadata {
            author_id: Some("UCmill".to_owned()),
            author_url: Some("https://www.youtube.com/@mill".to_owned()),
            published_at: Timestamp::parse("2015-01-28T05:14:36Z"),
            thumbnail_url: Some("https://i.ytimg.com/640.jpg".to_owned()),
            live: Some(LiveStatus::WasLive),
            description: Some("Grain\n0:00 In\n0:10 Up\n0:20 Out".to_owned()),
            chapters: vec![chapter("In", 0), chapter("Up", 10_000), chapter("Out", 20_000)],
        };
        assert_eq!(details.metadata, expect);
        let bare = YouTubeDetails::read(&value, &json!(null)).metadata;
        assert_eq!(bare.author_url.as_deref(), Some("https://www.youtube.com/channel/UCmill"));
        assert_eq!(bare.published_at, None);
    }

    #[test]
    fn details_hostile_metadata_is_left_out() {
        let value = json!({
            "channelId": "a/../b", "shortDescription": ["x"],
            "thumbnail": {"thumbnails": [{"url": "javascript:alert(1)", "width": 9}]},
        });
        let microformat = json!({"playerMicroformatRenderer": {
            "ownerProfileUrl": "https://evil.example/@mill", "publishDate": "yesterday", "uploadDate": "2015-01-27",
        }});
        let metadata = YouTubeDetails::read(&value, &microformat).metadata;
        let expect = VideoMetadata {
            author_id: Some("a/../b".to_owned()),
            published_at: Timestamp::parse("2015-01-27T00:00:00Z"),
            ..VideoMetadata::default()
        };
        assert_eq!(metadata, expect);
        assert!(YouTubeDetails::read(&json!(5), &json!([])).metadata.is_empty());
    }

    #[test]
    fn details_live_status_is_detected() {
        for (value, expect) in [
            (json!({"isUpcoming": true, "isLiveContent": true}), Some(LiveStatus::Upcoming)),
            (json!({"isLive": true, "isLiveContent": true}), Some(LiveStatus::Live)),
            (json!({"isLive": "true", "isUpcoming": "false"}), Some(LiveStatus::Live)),
            (json!({"isLive": 1, "isUpcoming": 0}), Some(LiveStatus::Live)),
            (json!({"isLive": "?", "isLiveContent": true}), Some(LiveStatus::WasLive)),
            (json!({"isLiveContent": true}), Some(LiveStatus::WasLive)),
            (json!({"isLiveContent": false}), Some(LiveStatus::NotLive)),
            (json!({}), None),
        ] {
            assert_eq!(YouTubeDetails::read(&value, &json!(null)).metadata.live, expect, "{value}");
        }
        for (is_on_now, expect) in [(false, LiveStatus::WasLive), (true, LiveStatus::Live)] {
            let aired =
                json!({"playerMicroformatRenderer": {"liveBroadcastDetails": {"isLiveNow": is_on_now}}});
            let live = |value| YouTubeDetails::read(&value, &aired).metadata.live;
            assert_eq!(live(json!({})), Some(expect));
            assert_eq!(live(json!({"isLive": false, "isLiveContent": true})), Some(expect));
        }
    }
}
