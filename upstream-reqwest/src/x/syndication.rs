//! The syndication service for posts on other sites: its token, and its format of a post. No I/O.

use serde_json::Value;
use transcript_core::video::VideoId;

use super::{
    classify,
    media::{self, MEDIA_MAX, XPost},
    tweet::{self, XAuthor},
};
use crate::{
    json::{field, items},
    social::SocialFailure,
};

/// Digits of the token.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The token of a post: `((id / 1e15) * π).toString(36)` in JavaScript, without zeros and the point.
pub(super) fn token(id: &str) -> String {
    let number: f64 = id.parse().unwrap_or(0.0);
    let mut digits = in_base_36(number / 1e15 * std::f64::consts::PI);
    digits.retain(|c| !matches!(c, '0' | '.'));
    digits
}

/// Formats a number like JavaScript in base 36.
///
/// The fraction is the shortest one that identifies the number, with the last digit rounded.
///
/// Valid for numbers from 0 to a few millions.
fn in_base_36(value: f64) -> String {
    const BASE: f64 = 36.0;
    let mut whole = value.floor();
    let mut rest = value - whole;
    let mut delta = (0.5 * (value.next_up() - value)).max(f64::from_bits(1));
    let mut fraction: Vec<u8> = Vec::new();
    while rest >= delta {
        rest *= BASE;
        delta *= BASE;
        // From 0 to 35, since the remainder was below one.
        let digit = rest as u8;
        fraction.push(digit);
        rest -= f64::from(digit);
        let rounds_up = rest > 0.5 || (rest == 0.5 && digit % 2 == 1);
        if rounds_up && rest + delta > 1.0 {
            whole += carry(&mut fraction);
            break;
        }
    }
    let mut text = String::new();
    // Below 2^53 the whole part is exact.
    let mut left = whole as u64;
    while left > 0 {
        text.insert(0, digit(left % 36));
        left /= 36;
    }
    text.push('.');
    text.extend(fraction.iter().map(|&index| digit(u64::from(index))));
    text
}

/// Adds one to the last digit; returns the carry into the whole part.
fn carry(fraction: &mut Vec<u8>) -> f64 {
    while let Some(last) = fraction.pop() {
        if last < 35 {
            fraction.push(last + 1);
            return 0.0;
        }
    }
    1.0
}

fn digit(value: u64) -> char {
    let digit = usize::try_from(value).ok().and_then(|index| DIGITS.get(index));
    digit.map_or('0', |&digit| char::from(digit))
}

/// Parses the service's response for the post `requested`.
///
/// `None` if the service has nothing about the post, or lists none of its media: it serves neither every post nor the
/// media of every post.
pub(super) fn interpret(body: &[u8], requested: &VideoId) -> Result<Option<XPost>, SocialFailure> {
    let unreadable = || SocialFailure::Unreadable("it is not a post".to_owned());
    let value: Value = classify::parse_bounded(body).ok_or_else(unreadable)?;
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(None);
    }
    match field(&value, "__typename").as_str() {
        Some("TweetTombstone") => return Err(classify::tombstone(&value)),
        Some("Tweet") => {}
        _ => return Err(unreadable()),
    }
    if field(&value, "id_str").as_str() != Some(requested.id()) {
        return Err(SocialFailure::OtherVideo);
    }
    let user = field(&value, "user");
    if !user.is_object() {
        return Err(SocialFailure::AccountRemoved);
    }
    let author =
        XAuthor { name: field(user, "name"), handle: field(user, "screen_name"), id: field(user, "id_str") };
    let details = tweet::details(field(&value, "text"), author, field(&value, "created_at"));
    let list: Vec<_> = items(&value, "mediaDetails", MEDIA_MAX).collect();
    let quoted = field(&value, "quoted_tweet");
    let quotes = items(quoted, "mediaDetails", MEDIA_MAX).any(media::is_video);
    let quoted = media::quoted_id(field(quoted, "id_str")).filter(|_| quotes);
    if list.is_empty() && quoted.is_none() {
        return Ok(None);
    }
    media::choose(&list, details, quoted).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn token_matches_javascript() {
        for (id, expect) in [
            ("20", "6dq1a2xwd93"),
            ("1234567890123456789", "2zqic77uqyk"),
            ("1585341984679469056", "3uchycv2wqc"),
            ("1820160924512919999", "4eu7cmmrz7r"),
            ("1841206275088290279", "4gobiuxs3yx"),
            ("1902059299591090335", "4lzhu735uk7"),
            ("2085101081260904717", "51yjdk2mxka"),
        ] {
            assert_eq!(token(id), expect, "{id}");
        }
    }

    #[test]
    fn token_any_number_is_alphanumeric() {
        for id in ["0", "1", "18446744073709551615", "9007199254740993", "no number", "", "1e400"] {
            let token = token(id);
            assert!(token.bytes().all(|c| c.is_ascii_alphanumeric()) && token.len() < 40, "{id}: {token}");
        }
    }

    fn read_post(value: &Value) -> Result<Option<XPost>, SocialFailure> {
        interpret(value.to_string().as_bytes(), &VideoId::new(Platform::X, "20").unwrap())
    }

    #[test]
    fn syndicated_post_is_read() {
        let video = json!({"type": "video", "video_info": {"duration_millis": 1_500, "variants": [
            {"content_type": "application/x-mpegURL", "url": "https://video.twimg.com/a.m3u8"}]}});
        let post = json!({"__typename": "Tweet", "id_str": "20", "text": "Slack water https://t.co/a",
            "user": {"name": "Tide", "screen_name": "tide"}, "mediaDetails": [{"type": "photo"}, video]});
        let read = read_post(&post).unwrap().unwrap();
        assert_eq!(read.details.title.as_deref(), Some("Slack water"));
        assert_eq!(read.playlist.as_deref(), Some("https://video.twimg.com/a.m3u8"));
        let mut quoting = post.clone();
        quoting["mediaDetails"] = json!([]);
        quoting["quoted_tweet"] = json!({"id_str": "19", "mediaDetails": [video]});
        assert_eq!(read_post(&quoting), Err(SocialFailure::Quoted("19".to_owned())));
        quoting["quoted_tweet"]["id_str"] = json!("19. Pay here");
        assert_eq!(read_post(&quoting), Ok(None));
        let mut pictures = post.clone();
        pictures["mediaDetails"] = json!([{"type": "photo"}]);
        assert_eq!(read_post(&pictures), Err(SocialFailure::NoVideo));
        let mut without = post.clone();
        without.as_object_mut().unwrap().remove("mediaDetails");
        assert_eq!(read_post(&without), Ok(None));
        without["user"] = json!(null);
        assert_eq!(read_post(&without), Err(SocialFailure::AccountRemoved));
        let mut other = post;
        other["id_str"] = json!("21");
        assert_eq!(read_post(&other), Err(SocialFailure::OtherVideo));
    }

    #[test]
    fn syndicated_failure_is_classified() {
        assert_eq!(read_post(&json!({})), Ok(None));
        assert_eq!(
            read_post(&json!({"__typename": "TweetTombstone", "tombstone": {}})),
            Err(SocialFailure::Age)
        );
        let deleted = json!({"text": {"text": "This Post was deleted by the Post author. Learn more"}});
        assert_eq!(
            read_post(&json!({"__typename": "TweetTombstone", "tombstone": deleted})),
            Err(SocialFailure::Removed)
        );
        for odd in [json!([]), json!(7), json!({"__typename": "New"}), json!({"a": 1})] {
            assert!(matches!(read_post(&odd), Err(SocialFailure::Unreadable(_))), "{odd}");
        }
    }
}
