//! The video among the media of a post. No I/O.

use serde_json::Value;

use transcript_core::{
    transcript::VideoMetadata,
    video::{Platform, VideoId},
};

use crate::{
    json::{field, items, parse, path, text},
    social::{SocialFailure, TrackDetails},
};

/// Maximum number of media per post, and of variants per video. Four, and eight, are usual.
pub(super) const MEDIA_MAX: usize = 16;
const VARIANTS_MAX: usize = 32;
/// Maximum length of a URL in bytes.
const ADDRESS_MAX: usize = 4_096;
/// Upper bound of a video's length in milliseconds.
const DURATION_MAX_MS: u64 = 48 * 3_600 * 1_000;

/// A post with a video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XPost {
    pub(super) details: TrackDetails,
    /// The playlist of its variants, which lists the captions; not every video has one.
    pub(super) playlist: Option<String>,
    /// URLs of its files with their bits per second; the smallest first.
    pub(super) files: Vec<(u64, String)>,
}

/// Whether a medium is a video with audio, according to its type.
pub(super) fn is_video(medium: &Value) -> bool {
    field(medium, "type").as_str() == Some("video")
}

/// The id of a quoted post, which a message quotes; `None` if it is malformed.
pub(super) fn quoted_id(id: &Value) -> Option<String> {
    VideoId::new(Platform::X, id.as_str()?).ok().map(|post| post.id().to_owned())
}

/// The first available video of these media.
///
/// `quoted` is the id of the quoted post, if that has a video.
pub(super) fn choose(
    media: &[&Value],
    details: TrackDetails,
    quoted: Option<String>,
) -> Result<XPost, SocialFailure> {
    let mut withheld = None;
    for medium in media.iter().filter(|medium| is_video(medium)) {
        match unavailable(medium) {
            Some(failure) => withheld = withheld.or(Some(failure)),
            None => return Ok(post(medium, details)),
        }
    }
    let is_animation = |medium: &&&Value| field(medium, "type").as_str() == Some("animated_gif");
    Err(match (withheld, quoted) {
        (Some(failure), _) => failure,
        (None, Some(quoted)) => SocialFailure::Quoted(quoted),
        (None, None) if media.iter().any(|medium| is_animation(&medium)) => SocialFailure::NoAudio,
        (None, None) => SocialFailure::NoVideo,
    })
}

/// Why a medium is unavailable, if it states a reason.
fn unavailable(medium: &Value) -> Option<SocialFailure> {
    let availability = field(medium, "ext_media_availability");
    let status = field(availability, "status").as_str()?;
    if status.eq_ignore_ascii_case("available") {
        return None;
    }
    let reason = field(availability, "reason").as_str().unwrap_or("").to_ascii_lowercase();
    Some(if reason.contains("geo") {
        SocialFailure::Region
    } else if reason.contains("dmca") || reason.contains("copyright") {
        SocialFailure::Removed
    } else {
        SocialFailure::from_platform_message(&format!("{status} {reason}"))
    })
}

fn post(medium: &Value, details: TrackDetails) -> XPost {
    let info = field(medium, "video_info");
    let duration = field(info, "duration_millis").as_u64();
    let is_playlist = |variant: &&Value| {
        field(variant, "content_type")
            .as_str()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-mpegurl"))
    };
    let address =
        |variant: &Value| text(field(variant, "url"), ADDRESS_MAX + 1).filter(|url| url.len() <= ADDRESS_MAX);
    let is_file = |variant: &&Value| field(variant, "content_type").as_str() == Some("video/mp4");
    let bitrate = |variant: &Value| field(variant, "bitrate").as_u64().unwrap_or(0);
    let files = items(info, "variants", VARIANTS_MAX).filter(is_file);
    let mut files: Vec<_> = files.filter_map(|variant| Some((bitrate(variant), address(variant)?))).collect();
    files.sort_by_key(|(bitrate, _)| *bitrate);
    XPost {
        files,
        details: TrackDetails {
            duration_ms: duration.filter(|duration| (1..=DURATION_MAX_MS).contains(duration)),
            metadata: VideoMetadata {
                thumbnail_url: text(field(medium, "media_url_https"), ADDRESS_MAX),
                ..details.metadata
            },
            ..details
        },
        playlist: items(info, "variants", VARIANTS_MAX).filter(is_playlist).find_map(address),
    }
}

/// The videos of a unified card, which are in an embedded JSON text.
pub(super) fn of_card(card: &Value) -> Vec<Value> {
    let values = items(path(card, &["legacy"]), "binding_values", 100);
    let unified = values.filter(|value| field(value, "key").as_str() == Some("unified_card"));
    let texts = unified.filter_map(|value| path(value, &["value", "string_value"]).as_str());
    let cards = texts.filter(|text| text.len() <= 64 << 10).filter_map(|text| parse(text.as_bytes()).ok());
    let media = cards.flat_map(|card: Value| match field(&card, "media_entities") {
        Value::Object(media) => media.values().take(MEDIA_MAX).cloned().collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    media.take(MEDIA_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn video(more: Value) -> Value {
        let mut video = json!({"type": "video", "video_info": {"duration_millis": 2_500, "variants": [
            {"content_type": "video/mp4", "bitrate": 256_000, "url": "https://video.twimg.com/a.mp4"},
            {"content_type": "application/x-mpegURL", "url": "https://video.twimg.com/a.m3u8?tag=12"},
        ]}});
        video.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        video
    }

    fn chosen(media: &[Value], quoted: Option<&str>) -> Result<XPost, SocialFailure> {
        choose(&media.iter().collect::<Vec<_>>(), TrackDetails::default(), quoted.map(str::to_owned))
    }

    #[test]
    fn media_first_available_video_is_chosen() {
        let blocked = |reason: &str| {
            video(json!({"ext_media_availability": {"status": "Unavailable", "reason": reason}}))
        };
        let good = video(json!({"ext_media_availability": {"status": "Available"}}));
        let post = chosen(&[json!({"type": "photo"}), blocked("Geoblocked"), good.clone()], None).unwrap();
        assert_eq!(post.playlist.as_deref(), Some("https://video.twimg.com/a.m3u8?tag=12"));
        assert_eq!(post.details.duration_ms, Some(2_500));
        assert_eq!(post.files, [(256_000, "https://video.twimg.com/a.mp4".to_owned())]);
        assert_eq!(chosen(&[good], Some("19")).unwrap().playlist, post.playlist);
        assert_eq!(chosen(&[blocked("Geoblocked")], None), Err(SocialFailure::Region));
        assert_eq!(chosen(&[blocked("Dmcaed")], Some("19")), Err(SocialFailure::Removed));
        assert_eq!(chosen(&[blocked("New")], None), Err(SocialFailure::Other("Unavailable new".to_owned())));
    }

    #[test]
    fn media_without_video_is_classified() {
        assert_eq!(chosen(&[], None), Err(SocialFailure::NoVideo));
        assert_eq!(chosen(&[json!({"type": "photo"}), json!(5)], None), Err(SocialFailure::NoVideo));
        assert_eq!(chosen(&[json!({"type": "animated_gif"})], None), Err(SocialFailure::NoAudio));
        assert_eq!(chosen(&[], Some("19")), Err(SocialFailure::Quoted("19".to_owned())));
        let odd = chosen(
            &[json!({"type": "video", "video_info": {"variants": [{"url": 5}], "duration_millis": "x"}})],
            None,
        );
        assert_eq!(odd, Ok(XPost::default()));
    }

    #[test]
    fn media_video_in_card_is_found() {
        let inner = json!({"media_entities": {"7_1": video(json!({}))}}).to_string();
        let card = |text: &str| {
            json!({"legacy": {"binding_values": [
            {"key": "x"}, {"key": "unified_card", "value": {"string_value": text}}]}})
        };
        assert_eq!(of_card(&card(&inner)).len(), 1);
        for none in [card("{"), card("[]"), card(&" ".repeat(70_000)), json!(null)] {
            assert!(of_card(&none).is_empty());
        }
    }
}
