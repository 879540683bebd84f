//! Entries of a list that yt-dlp prints, a line for each. No I/O.

use std::time::Duration;

use serde_json::Value;
use transcript_core::{
    supplier::{ListedVideo, TimeRange},
    time::Timestamp,
    transcript::LiveStatus,
    video::{Platform, VideoId},
};

use super::super::metadata::live_status;
use crate::json::{field, number, parse, seconds_as_ms, text, timestamp};

/// Maximum length of a line in bytes. A line of the requested fields has hundreds.
const LINE_MAX: usize = 64 << 10;
/// Maximum length of a title or name in characters.
const TEXT_MAX: usize = 500;
/// Precision of a date that yt-dlp computes.
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Titles of entries without a video.
const UNAVAILABLE: [&str; 2] = ["[Private video]", "[Deleted video]"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListEntries {
    /// The title of the list.
    pub(super) title: Option<String>,
    /// The number of videos that it states.
    pub(super) stated_count: Option<u64>,
    /// Its videos.
    pub(super) videos: Vec<ListedVideo>,
}

/// Reads the first `wanted` lines of the output; of an output that is not whole, the last line may be cut and is left
/// out.
///
/// `None` if a line does not describe a video of the platform.
pub(super) fn read_entries(
    output: &[u8],
    platform: Platform,
    wanted: u64,
    is_whole: bool,
    now: Timestamp,
) -> Option<ListEntries> {
    let mut entries = ListEntries::default();
    let end = match is_whole {
        true => output.len(),
        false => output.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1),
    };
    let lines = output.get(..end)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines.take(usize::try_from(wanted).unwrap_or(usize::MAX)) {
        if line.len() > LINE_MAX {
            return None;
        }
        let entry: Value = parse(line).ok()?;
        entries.videos.push(listed_video(&entry, platform, now)?);
        entries.title = entries.title.or_else(|| text(field(&entry, "playlist_title"), TEXT_MAX));
        entries.stated_count = entries.stated_count.or_else(|| number(field(&entry, "playlist_count")));
    }
    Some(entries)
}

fn listed_video(entry: &Value, platform: Platform, now: Timestamp) -> Option<ListedVideo> {
    let video = VideoId::new(platform, field(entry, "id").as_str()?).ok()?;
    let title = text(field(entry, "title"), TEXT_MAX);
    let is_unavailable = title.as_deref().is_some_and(|title| UNAVAILABLE.contains(&title));
    let live = field(entry, "live_status").as_str().and_then(live_status);
    let published = timestamp(field(entry, "timestamp")).filter(|_| live != Some(LiveStatus::Upcoming));
    Some(ListedVideo {
        video,
        title: title.filter(|_| !is_unavailable),
        author: ["channel", "uploader"].into_iter().find_map(|name| text(field(entry, name), TEXT_MAX)),
        duration_s: seconds_as_ms(field(entry, "duration")).map(|ms| ms / 1_000),
        published: published.map(|at| time_range(at, platform, now)),
        live,
        members_only: field(entry, "availability").as_str() == Some("subscriber_only"),
        is_unavailable,
    })
}

/// When a video was published that has this date. TikTok's are exact.
///
/// On YouTube yt-dlp makes a date of "2 weeks ago", of which a part of a third week is lost: at most as much as the
/// whole age, which is at least one unit.
fn time_range(at: Timestamp, platform: Platform, now: Timestamp) -> TimeRange {
    if platform != Platform::YouTube {
        return TimeRange { earliest: at, latest: at };
    }
    let age = now.since(at);
    TimeRange { earliest: at.minus(age).minus(DAY), latest: at.plus(DAY) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000)
    }

    fn read(lines: &[Value], platform: Platform) -> Option<ListEntries> {
        let output: Vec<String> = lines.iter().map(Value::to_string).collect();
        read_entries(output.join("\n").as_bytes(), platform, 60, true, now())
    }

    #[test]
    fn entries_of_profile_are_read() {
        let entries = read(
            &[
                json!({"id": "7600000000000000001", "title": "Knots", "duration": 31, "timestamp": 1_780_000_000,
                    "channel": "The Rope Walk", "uploader": "rope.walk", "playlist_title": "rope.walk",
                    "url": "http://169.254.169.254/latest"}),
                json!({"id": "7600000000000000002", "title": null, "uploader": "rope.walk", "playlist_count": "x"}),
            ],
            Platform::TikTok,
        )
        .unwrap();
        assert_eq!((entries.title.as_deref(), entries.stated_count), (Some("rope.walk"), None));
        let [first, second] = entries.videos.as_slice() else { panic!("{entries:?}") };
        assert_eq!(first.video.address(), "https://www.tiktok.com/@_/video/7600000000000000001");
        assert_eq!((first.title.as_deref(), first.author.as_deref()), (Some("Knots"), Some("The Rope Walk")));
        let at = Timestamp::from_millis(1_780_000_000_000);
        assert_eq!(
            (first.duration_s, first.published),
            (Some(31), Some(TimeRange { earliest: at, latest: at }))
        );
        assert_eq!(
            (&second.title, second.author.as_deref(), second.published),
            (&None, Some("rope.walk"), None)
        );
    }

    #[test]
    fn entries_of_youtube_have_state_and_date_ranges() {
        let week = 7 * 24 * 3_600;
        let at = now().as_millis() / 1_000 - 2 * week;
        let entries = read(
            &[
                json!({"id": "vb-tracks-0", "title": "A", "timestamp": at, "live_status": "was_live", "playlist_count": 9}),
                json!({"id": "vb-members0", "title": "B", "availability": "subscriber_only", "duration": 60.7}),
                json!({"id": "vb-private0", "title": "[Private video]"}),
                json!({"id": "vb-later-00", "title": "C", "live_status": "is_upcoming", "timestamp": at}),
            ],
            Platform::YouTube,
        )
        .unwrap();
        let [stream, members, private, upcoming] = entries.videos.as_slice() else { panic!("{entries:?}") };
        assert_eq!((entries.stated_count, stream.live), (Some(9), Some(LiveStatus::WasLive)));
        // Two weeks ago is 14 to 21 days ago.
        let range = stream.published.unwrap();
        assert!(
            range.latest >= now().minus(DAY * 14) && range.earliest <= now().minus(DAY * 21),
            "{range:?}"
        );
        assert!(members.members_only && members.duration_s == Some(60) && members.published.is_none());
        assert!(private.is_unavailable && private.title.is_none());
        assert_eq!((upcoming.live, upcoming.published), (Some(LiveStatus::Upcoming), None));
    }

    #[test]
    fn entry_without_video_of_platform_is_unreadable() {
        for entry in [
            json!({"id": "dQw4w9WgXcQ"}),
            json!({"id": "http://127.0.0.1/"}),
            json!({"id": "../7600000000000000001"}),
            json!({"id": ""}),
            json!({"id": 7_600_000_000_000_000_001_u64}),
            json!({"title": "Knots"}),
            json!({"id": "7600000000000000001", "title": "x".repeat(LINE_MAX)}),
            json!(["7600000000000000001"]),
            json!(null),
        ] {
            let good = json!({"id": "7600000000000000001"});
            assert_eq!(read(&[good, entry.clone()], Platform::TikTok), None, "{entry}");
        }
        assert_eq!(read_entries(b"\xff\n", Platform::TikTok, 60, true, now()), None);
    }

    #[test]
    fn cut_line_and_further_lines_are_left_out() {
        let count = |output: &str, wanted, is_whole| {
            let entries = read_entries(output.as_bytes(), Platform::TikTok, wanted, is_whole, now());
            entries.map(|entries| entries.videos.len())
        };
        let two = "{\"id\": \"1\"}\n{\"id\": \"2\"}";
        assert_eq!(
            (count(two, 60, true), count(two, 60, false), count(two, 1, true)),
            (Some(2), Some(1), Some(1))
        );
        assert_eq!(count("{\"id\": \"1\"}\n{\"id", 60, false), Some(1));
        assert_eq!((count("{\"id", 60, false), count("", 60, true)), (Some(0), Some(0)));
    }
}
