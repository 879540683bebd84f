//! A post as X's own pages are given it: through wrappers and repostings to its video. Pure.

use serde_json::Value;
use transcript_core::video::VideoId;

use super::{
    media::{self, MEDIA_MAX, Post},
    signals,
};
use crate::social::{
    Details, Refusal,
    json::{field, items, path, text},
    title,
};

/// How much of a name is taken, in characters.
const AUTHOR_MAX: usize = 200;
/// How much of a post's text is looked at for a title, in characters.
const TEXT_MAX: usize = 2_000;

/// What an answer says of the post `requested`.
pub(super) fn interpret(body: &[u8], requested: &VideoId) -> Result<Post, Refusal> {
    let value = signals::bounded(body).ok_or_else(|| Refusal::Unreadable("it is no post".to_owned()))?;
    let data = field(&value, "data");
    let result = path(data, &["tweetResult", "result"]);
    let result = if result.is_null() { signals::in_conversation(data, requested.id()) } else { result };
    if result.is_null() {
        let refusal = signals::errors(body);
        let is_empty = field(data, "tweetResult").as_object().is_some_and(serde_json::Map::is_empty);
        let none = || if is_empty { Refusal::Gone } else { Refusal::Unreadable("it is no post".to_owned()) };
        return Err(refusal.unwrap_or_else(none));
    }
    let tweet = unwrapped(result)?;
    let legacy = field(tweet, "legacy");
    let id = field(tweet, "rest_id").as_str().or_else(|| field(legacy, "id_str").as_str());
    match id {
        Some(id) if id == requested.id() => {}
        Some(_) => return Err(Refusal::OtherVideo),
        None => return Err(Refusal::Unreadable("it does not say which post it is".to_owned())),
    }
    // Who reposts adds nothing: the video, its words and its author are those of the post behind it.
    match path(legacy, &["retweeted_status_result", "result"]) {
        Value::Null => post(tweet),
        inner => post(unwrapped(inner)?),
    }
}

/// The post inside its wrapper, or what stands in its place.
fn unwrapped(result: &Value) -> Result<&Value, Refusal> {
    match field(result, "__typename").as_str() {
        Some("TweetUnavailable") => Err(signals::unavailable(result)),
        Some("TweetTombstone") => Err(signals::tombstone(result)),
        Some("TweetWithVisibilityResults") => Ok(field(result, "tweet")),
        _ => Ok(result),
    }
}

fn post(tweet: &Value) -> Result<Post, Refusal> {
    let legacy = field(tweet, "legacy");
    if !legacy.is_object() {
        return Err(Refusal::Unreadable("the post has nothing in it".to_owned()));
    }
    let user = path(tweet, &["core", "user_results", "result"]);
    // The names moved from one place to the other, where they are empty now.
    let name = |key| [path(user, &["core", key]), path(user, &["legacy", key])];
    let named = |key| name(key).into_iter().find(|name| text(name, 1).is_some()).unwrap_or(&Value::Null);
    let note = path(tweet, &["note_tweet", "note_tweet_results", "result", "text"]);
    let words = if note.is_string() { note } else { field(legacy, "full_text") };
    let details = details(words, named("name"), named("screen_name"));

    let own = [field(legacy, "extended_entities"), field(legacy, "entities")];
    let own = own.into_iter().find(|entities| items(entities, "media", 1).next().is_some());
    let cards = media::of_card(field(tweet, "card"));
    let list = own.into_iter().flat_map(|entities| items(entities, "media", MEDIA_MAX)).chain(&cards);
    media::choose(&list.collect::<Vec<_>>(), details, quoted(tweet))
}

/// The number of the post that is quoted, where that one has a video.
fn quoted(tweet: &Value) -> Option<String> {
    let result = path(tweet, &["quoted_status_result", "result"]);
    let quoted = unwrapped(result).ok()?;
    let mut media = items(path(quoted, &["legacy", "extended_entities"]), "media", MEDIA_MAX);
    let id = field(quoted, "rest_id").as_str().filter(|id| id.bytes().all(|c| c.is_ascii_digit()))?;
    media.any(media::is_video).then(|| id.to_owned())
}

/// What is known of a post: its first words as the title, and who wrote it.
pub(super) fn details(words: &Value, name: &Value, handle: &Value) -> Details {
    let handle = text(handle, AUTHOR_MAX).map(|handle| format!("@{handle}"));
    let author = text(name, AUTHOR_MAX).or_else(|| handle.clone());
    let untitled = || author.as_ref().map(|author| format!("Post by {author}"));
    Details {
        title: text(words, TEXT_MAX).and_then(|words| title(&unescaped(&words))).or_else(untitled),
        author,
        duration_ms: None,
    }
}

/// X escapes these three characters in texts, and no others.
pub(crate) fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use transcript_core::video::Platform;

    use super::*;

    fn requested() -> VideoId {
        VideoId::new(Platform::Microblog, "20").unwrap()
    }

    fn told(result: Value) -> Result<Post, Refusal> {
        let body = json!({"data": {"tweetResult": {"result": result}}}).to_string();
        interpret(body.as_bytes(), &requested())
    }

    fn tweet(id: &str, legacy: Value) -> Value {
        json!({"__typename": "Tweet", "rest_id": id, "legacy": legacy,
            "core": {"user_results": {"result": {"core": {"name": "Tide", "screen_name": "tide"}, "legacy": {"name": ""}}}}})
    }

    fn video() -> Value {
        json!({"full_text": "Slack water &amp; wind https://t.co/a", "extended_entities": {"media": [{"type": "video",
            "video_info": {"duration_millis": 9, "variants": [{"content_type": "application/x-mpegURL", "url": "p"}]}}]}})
    }

    #[test]
    fn a_post_is_found_behind_wrappers_and_repostings() {
        let plain = told(tweet("20", video())).unwrap();
        assert_eq!(plain.details.title.as_deref(), Some("Slack water & wind"));
        assert_eq!(plain.details.author.as_deref(), Some("Tide"));
        assert_eq!(plain.playlist.as_deref(), Some("p"));
        let wrapped = json!({"__typename": "TweetWithVisibilityResults", "tweet": tweet("20", video())});
        assert_eq!(told(wrapped.clone()).unwrap(), plain);
        let inner = json!({"__typename": "TweetWithVisibilityResults", "tweet": tweet("7", video())});
        assert_eq!(told(tweet("20", json!({"retweeted_status_result": {"result": inner}}))).unwrap(), plain);
        let older = json!({"rest_id": "20", "legacy": video(),
            "core": {"user_results": {"result": {"legacy": {"screen_name": "tide"}}}}});
        assert_eq!(told(older).unwrap().details.author.as_deref(), Some("@tide"));
        let entries = json!([{"entryId": "tweet-9"}, {"entryId": "tweet-20", "content": {"itemContent":
            {"tweet_results": {"result": tweet("20", video())}}}}]);
        let conversation = json!({"data": {"threaded_conversation_with_injections_v2": {"instructions":
            [{"type": "TimelineClearCache"}, {"entries": entries}]}}});
        assert_eq!(interpret(conversation.to_string().as_bytes(), &requested()).unwrap(), plain);
    }

    #[test]
    fn what_is_no_video_says_what_it_is() {
        assert_eq!(told(tweet("20", json!({"full_text": "words"}))), Err(Refusal::NoVideo));
        let mut quoting = tweet("20", json!({"full_text": "look"}));
        quoting["quoted_status_result"] = json!({"result": tweet("19", video())});
        assert_eq!(told(quoting), Err(Refusal::Quoted("19".to_owned())));
        assert_eq!(told(tweet("21", video())), Err(Refusal::OtherVideo));
        let gone = json!({"__typename": "TweetUnavailable", "reason": "Protected"});
        assert_eq!(told(gone.clone()), Err(Refusal::Private));
        assert_eq!(
            told(tweet("20", json!({"retweeted_status_result": {"result": gone}}))),
            Err(Refusal::Private)
        );
        for odd in [json!({}), json!("x"), json!({"rest_id": "20"}), json!({"rest_id": 20})] {
            assert!(matches!(told(odd.clone()), Err(Refusal::Unreadable(_))), "{odd}");
        }
        let of = |body: &str| interpret(body.as_bytes(), &requested()).unwrap_err();
        assert_eq!(of("{\"data\":{\"tweetResult\":{}}}"), Refusal::Gone);
        assert_eq!(
            of("{\"data\":{\"tweetResult\":{}},\"errors\":[{\"message\":\"Dependency: Unspecified\"}]}"),
            Refusal::Gone
        );
        assert_eq!(
            of("{\"data\":{},\"errors\":[{\"message\":\"x\",\"code\":179}]}"),
            Refusal::Other("x".to_owned())
        );
        assert!(matches!(of("{\"data\":{}}"), Refusal::Unreadable(_)));
        assert!(matches!(of("<html>"), Refusal::Unreadable(_)));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_meaning(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = interpret(&body, &requested());
        }
    }
}
