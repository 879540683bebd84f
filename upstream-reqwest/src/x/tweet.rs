//! A post in the format of X's own pages: unwraps it and reads its video. No I/O.

use serde_json::Value;
use transcript_core::{time::Timestamp, transcript::VideoMetadata, video::VideoId};

use super::{
    classify,
    media::{self, MEDIA_MAX, XPost},
};
use crate::{
    json::{field, items, path, profile_url, text},
    social::{SocialFailure, TrackDetails, title},
};

/// Maximum length of a name in characters.
const AUTHOR_MAX: usize = 200;
/// Maximum number of characters of a post's text that are read for a title.
const TEXT_MAX: usize = 2_000;

/// Parses the response for the post `requested`.
pub(super) fn interpret(body: &[u8], requested: &VideoId) -> Result<XPost, SocialFailure> {
    let value = classify::parse_bounded(body)
        .ok_or_else(|| SocialFailure::Unreadable("it is not a post".to_owned()))?;
    let data = field(&value, "data");
    let result = path(data, &["tweetResult", "result"]);
    let result = if result.is_null() { classify::in_conversation(data, requested.id()) } else { result };
    if result.is_null() {
        let failure = classify::errors(body);
        let is_empty = field(data, "tweetResult").as_object().is_some_and(serde_json::Map::is_empty);
        let none = || {
            if is_empty {
                SocialFailure::Removed
            } else {
                SocialFailure::Unreadable("it is not a post".to_owned())
            }
        };
        return Err(failure.unwrap_or_else(none));
    }
    let tweet = unwrapped(result)?;
    let legacy = field(tweet, "legacy");
    let id = field(tweet, "rest_id").as_str().or_else(|| field(legacy, "id_str").as_str());
    match id {
        Some(id) if id == requested.id() => {}
        Some(_) => return Err(SocialFailure::OtherVideo),
        None => return Err(SocialFailure::Unreadable("it names no post id".to_owned())),
    }
    // A repost adds nothing: video, text and author are those of the original post.
    match path(legacy, &["retweeted_status_result", "result"]) {
        Value::Null => post(tweet),
        inner => post(unwrapped(inner)?),
    }
}

/// Unwraps a post, or returns its failure.
fn unwrapped(result: &Value) -> Result<&Value, SocialFailure> {
    match field(result, "__typename").as_str() {
        Some("TweetUnavailable") => Err(classify::unavailable(result)),
        Some("TweetTombstone") => Err(classify::tombstone(result)),
        Some("TweetWithVisibilityResults") => Ok(field(result, "tweet")),
        _ => Ok(result),
    }
}

fn post(tweet: &Value) -> Result<XPost, SocialFailure> {
    let legacy = field(tweet, "legacy");
    if !legacy.is_object() {
        return Err(SocialFailure::Unreadable("the post has no content".to_owned()));
    }
    let user = path(tweet, &["core", "user_results", "result"]);
    // X moved the names; the old fields are empty now.
    let name = |key| [path(user, &["core", key]), path(user, &["legacy", key])];
    let named = |key| name(key).into_iter().find(|name| text(name, 1).is_some()).unwrap_or(&Value::Null);
    let note = path(tweet, &["note_tweet", "note_tweet_results", "result", "text"]);
    let words = if note.is_string() { note } else { field(legacy, "full_text") };
    let author = XAuthor { name: named("name"), handle: named("screen_name"), id: field(user, "rest_id") };
    let details = details(words, author, field(legacy, "created_at"));

    let own = [field(legacy, "extended_entities"), field(legacy, "entities")];
    let own = own.into_iter().find(|entities| items(entities, "media", 1).next().is_some());
    let cards = media::of_card(field(tweet, "card"));
    let list = own.into_iter().flat_map(|entities| items(entities, "media", MEDIA_MAX)).chain(&cards);
    media::choose(&list.collect::<Vec<_>>(), details, quoted(tweet))
}

/// The id of the quoted post, if that has a video.
fn quoted(tweet: &Value) -> Option<String> {
    let result = path(tweet, &["quoted_status_result", "result"]);
    let quoted = unwrapped(result).ok()?;
    let mut media = items(path(quoted, &["legacy", "extended_entities"]), "media", MEDIA_MAX);
    let id = media::quoted_id(field(quoted, "rest_id"))?;
    media.any(media::is_video).then_some(id)
}

/// The author of a post.
pub(super) struct XAuthor<'a> {
    pub(super) name: &'a Value,
    pub(super) handle: &'a Value,
    pub(super) id: &'a Value,
}

/// Metadata of a post: its first words as the title, its author and its time.
pub(super) fn details(words: &Value, author: XAuthor<'_>, time: &Value) -> TrackDetails {
    let handle = text(author.handle, AUTHOR_MAX);
    let author_id = text(author.id, AUTHOR_MAX);
    let author = text(author.name, AUTHOR_MAX).or_else(|| handle.as_ref().map(|handle| format!("@{handle}")));
    let untitled = || author.as_ref().map(|author| format!("Post by {author}"));
    let words = text(words, TEXT_MAX).map(|words| decode_entities(&words));
    let metadata = VideoMetadata {
        author_id,
        author_url: profile_url("https://x.com/", handle.as_deref(), "_"),
        published_at: time.as_str().and_then(post_time),
        description: words.clone(),
        ..VideoMetadata::default()
    };
    let title = words.and_then(|words| title(&words)).or_else(untitled);
    TrackDetails { title, author, duration_ms: None, metadata }
}

/// The time of a post: `Wed Oct 02 06:29:17 +0000 2024`, or RFC 3339 from the syndication service.
fn post_time(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_ascii_whitespace().skip(1);
    let Some(month) = parts.next() else { return Timestamp::parse(text) };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, clock, offset, year) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{clock}{offset}"))
}

/// Decodes the three HTML entities that X uses in texts.
pub(crate) fn decode_entities(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use transcript_core::video::Platform;

    use super::*;

    fn requested() -> VideoId {
        VideoId::new(Platform::X, "20").unwrap()
    }

    fn read_post(result: Value) -> Result<XPost, SocialFailure> {
        let body = json!({"data": {"tweetResult": {"result": result}}}).to_string();
        interpret(body.as_bytes(), &requested())
    }

    fn tweet(id: &str, legacy: Value) -> Value {
        json!({"__typename": "Tweet", "rest_id": id, "legacy": legacy,
            "core": {"user_results": {"result": {"rest_id": "7", "core": {"name": "Tide", "screen_name": "tide"},
            "legacy": {"name": ""}}}}})
    }

    fn video() -> Value {
        json!({"full_text": "Slack water &amp; wind https://t.co/a", "created_at": "Wed Oct 02 06:29:17 +0000 2024",
            "extended_entities": {"media": [{"type": "video", "media_url_https": "https://pbs.twimg.com/a.jpg",
            "video_info": {"duration_millis": 9, "variants": [{"content_type": "application/x-mpegURL", "url": "p"}]}}]}})
    }

    #[test]
    fn post_in_wrapper_or_repost_is_found() {
        let plain = read_post(tweet("20", video())).unwrap();
        assert_eq!(plain.details.title.as_deref(), Some("Slack water & wind"));
        assert_eq!(plain.details.author.as_deref(), Some("Tide"));
        let expect = VideoMetadata {
            author_id: Some("7".to_owned()),
            author_url: Some("https://x.com/tide".to_owned()),
            published_at: Timestamp::parse("2024-10-02T06:29:17Z"),
            thumbnail_url: Some("https://pbs.twimg.com/a.jpg".to_owned()),
            description: Some("Slack water & wind https://t.co/a".to_owned()),
            ..VideoMetadata::default()
        };
        assert_eq!(plain.details.metadata, expect);
        assert_eq!(plain.playlist.as_deref(), Some("p"));
        let wrapped = json!({"__typename": "TweetWithVisibilityResults", "tweet": tweet("20", video())});
        assert_eq!(read_post(wrapped.clone()).unwrap(), plain);
        let inner = json!({"__typename": "TweetWithVisibilityResults", "tweet": tweet("7", video())});
        assert_eq!(
            read_post(tweet("20", json!({"retweeted_status_result": {"result": inner}}))).unwrap(),
            plain
        );
        let older = json!({"rest_id": "20", "legacy": video(),
            "core": {"user_results": {"result": {"legacy": {"screen_name": "tide"}}}}});
        assert_eq!(read_post(older).unwrap().details.author.as_deref(), Some("@tide"));
        let entries = json!([{"entryId": "tweet-9"}, {"entryId": "tweet-20", "content": {"itemContent":
            {"tweet_results": {"result": tweet("20", video())}}}}]);
        let conversation = json!({"data": {"threaded_conversation_with_injections_v2": {"instructions":
            [{"type": "TimelineClearCache"}, {"entries": entries}]}}});
        assert_eq!(interpret(conversation.to_string().as_bytes(), &requested()).unwrap(), plain);
    }

    #[test]
    fn post_time_in_both_notations_is_read() {
        let time = Timestamp::parse("2024-10-02T06:29:17Z");
        for text in ["Wed Oct 02 06:29:17 +0000 2024", "2024-10-02T06:29:17.000Z"] {
            assert_eq!(post_time(text), time, "{text}");
        }
        for text in
            ["", "Wed", "Wed Okt 02 06:29:17 +0000 2024", "Wed Oct 99 06:29:17 +0000 2024", "a b c d e f"]
        {
            assert_eq!(post_time(text), None, "{text}");
        }
    }

    #[test]
    fn post_without_video_is_classified() {
        assert_eq!(read_post(tweet("20", json!({"full_text": "words"}))), Err(SocialFailure::NoVideo));
        let mut quoting = tweet("20", json!({"full_text": "look"}));
        quoting["quoted_status_result"] = json!({"result": tweet("19", video())});
        assert_eq!(read_post(quoting), Err(SocialFailure::Quoted("19".to_owned())));
        assert_eq!(read_post(tweet("21", video())), Err(SocialFailure::OtherVideo));
        let gone = json!({"__typename": "TweetUnavailable", "reason": "Protected"});
        assert_eq!(read_post(gone.clone()), Err(SocialFailure::Private));
        assert_eq!(
            read_post(tweet("20", json!({"retweeted_status_result": {"result": gone}}))),
            Err(SocialFailure::Private)
        );
        for odd in [json!({}), json!("x"), json!({"rest_id": "20"}), json!({"rest_id": 20})] {
            assert!(matches!(read_post(odd.clone()), Err(SocialFailure::Unreadable(_))), "{odd}");
        }
        let of = |body: &str| interpret(body.as_bytes(), &requested()).unwrap_err();
        assert_eq!(of("{\"data\":{\"tweetResult\":{}}}"), SocialFailure::Removed);
        assert_eq!(
            of("{\"data\":{\"tweetResult\":{}},\"errors\":[{\"message\":\"Dependency: Unspecified\"}]}"),
            SocialFailure::Removed
        );
        assert_eq!(
            of("{\"data\":{},\"errors\":[{\"message\":\"x\",\"code\":179}]}"),
            SocialFailure::Other("x".to_owned())
        );
        assert!(matches!(of("{\"data\":{}}"), SocialFailure::Unreadable(_)));
        assert!(matches!(of("<html>"), SocialFailure::Unreadable(_)));
    }

    proptest! {
        #[test]
        fn post_any_bytes_do_not_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = interpret(&body, &requested());
        }
    }
}
