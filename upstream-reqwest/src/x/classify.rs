//! Classifies X's errors, hidden posts and tombstones. No I/O.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    http::HttpError,
    json::{self, field, items, path},
    social::SocialFailure,
};

/// Maximum length of a response that is parsed, in bytes.
///
/// Parsed JSON takes a hundred times its length in memory. Posts have 5 to 30 KB.
const BODY_MAX: usize = 512 << 10;
/// Maximum number of errors read.
const ERRORS_MAX: usize = 20;

#[derive(Deserialize)]
struct XEnvelope<'a> {
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
}

/// Parses a response; `None` if it is not JSON, too long or too deeply nested.
pub(super) fn parse_bounded(body: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(body);
    serde_json::from_str::<&RawValue>(&text).ok().and_then(|raw| json::part(raw, BODY_MAX))
}

/// Classifies the errors in a response; `None` if there are no relevant ones.
///
/// An expired guest token is [`SocialFailure::Forbidden`].
pub(super) fn errors(body: &[u8]) -> Option<SocialFailure> {
    let text = String::from_utf8_lossy(body);
    let envelope: XEnvelope<'_> = serde_json::from_str(&text).ok()?;
    let errors = json::part(envelope.errors?, BODY_MAX)?;
    let list = errors.as_array()?;
    list.iter().take(ERRORS_MAX).find_map(error)
}

fn error(error: &Value) -> Option<SocialFailure> {
    let words = field(error, "message").as_str().unwrap_or("");
    let code = field(error, "code").as_u64().or_else(|| path(error, &["extensions", "code"]).as_u64());
    let says = |part: &str| words.to_ascii_lowercase().contains(part);
    match code {
        // An unused part of the response is missing.
        _ if says("dependency: unspecified") => None,
        Some(88) => Some(SocialFailure::Transport(HttpError::Throttled(None))),
        Some(239) => Some(SocialFailure::Forbidden(403)),
        Some(32) => Some(SocialFailure::Forbidden(401)),
        Some(144) => Some(SocialFailure::Removed),
        _ if says("rate limit") => Some(SocialFailure::Transport(HttpError::Throttled(None))),
        _ if says("bad guest token") => Some(SocialFailure::Forbidden(403)),
        _ if says("cannot be null") || says("features") => Some(SocialFailure::Stale("x.features")),
        _ if says("not authorized") => Some(SocialFailure::Login),
        _ => Some(SocialFailure::from_platform_message(words)),
    }
}

/// Classifies the reason of a hidden post.
pub(super) fn unavailable(result: &Value) -> SocialFailure {
    match field(result, "reason").as_str().unwrap_or("") {
        "NsfwLoggedOut" | "NsfwViewerHasNoStatedAge" | "NsfwViewerIsUnderage" => SocialFailure::Age,
        "Protected" => SocialFailure::Private,
        "Suspended" | "Deactivated" => SocialFailure::AccountRemoved,
        "" => SocialFailure::Withheld(None),
        reason => SocialFailure::from_platform_message(reason),
    }
}

/// Classifies the English text of a tombstone.
pub(super) fn tombstone(result: &Value) -> SocialFailure {
    let words = path(result, &["tombstone", "text", "text"]).as_str().unwrap_or("");
    let words = words.trim().trim_end_matches("Learn more").trim();
    let says = |parts: &[&str]| parts.iter().any(|part| words.to_ascii_lowercase().contains(part));
    if words.is_empty() || says(&["age-restricted", "adult content"]) {
        // Without a text the post is restricted to logged-in viewers.
        SocialFailure::Age
    } else if says(&["suspended account", "account no longer exists", "account that no longer"]) {
        SocialFailure::AccountRemoved
    } else if says(&["deleted", "violated the"]) {
        SocialFailure::Removed
    } else if says(&["limits who can", "limited who can", "protected"]) {
        SocialFailure::Private
    } else if says(&["withheld in"]) {
        SocialFailure::Region
    } else {
        SocialFailure::from_platform_message(words)
    }
}

/// The post in a conversation, the response format of another query.
pub(super) fn in_conversation<'a>(data: &'a Value, id: &str) -> &'a Value {
    let instructions = items(field(data, "threaded_conversation_with_injections_v2"), "instructions", 20);
    let entries = instructions.flat_map(|instruction| items(instruction, "entries", 200));
    let name = format!("tweet-{id}");
    let mut own = entries.filter(|entry| field(entry, "entryId").as_str() == Some(&name));
    let entry = own.next().unwrap_or(&Value::Null);
    path(entry, &["content", "itemContent", "tweet_results", "result"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn error_response_is_classified() {
        let throttled = SocialFailure::Transport(HttpError::Throttled(None));
        for (error, expect) in [
            (
                json!({"message": "Not authorized to view this status.", "code": 179}),
                Some(SocialFailure::Login),
            ),
            (json!({"message": "Rate limit exceeded", "code": 88}), Some(throttled.clone())),
            (json!({"message": "Rate limit exceeded."}), Some(throttled)),
            (json!({"message": "Bad guest token", "code": 239}), Some(SocialFailure::Forbidden(403))),
            (
                json!({"message": "Could not authenticate you", "code": 32}),
                Some(SocialFailure::Forbidden(401)),
            ),
            (json!({"message": "No status found with that ID.", "code": 144}), Some(SocialFailure::Removed)),
            (json!({"message": "Dependency: Unspecified"}), None),
            (
                json!({"message": "The following features cannot be null: vibe_api_enabled", "code": 336}),
                Some(SocialFailure::Stale("x.features")),
            ),
            (json!({"message": "Something else"}), Some(SocialFailure::Other("Something else".to_owned()))),
        ] {
            assert_eq!(errors(json!({"errors": [error]}).to_string().as_bytes()), expect, "{error}");
        }
        for none in ["{}", "[]", "", "{\"errors\":[]}", "{\"errors\":7}", "<html>"] {
            assert_eq!(errors(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn hidden_post_is_classified() {
        for (reason, expect) in [
            ("NsfwLoggedOut", SocialFailure::Age),
            ("NsfwViewerHasNoStatedAge", SocialFailure::Age),
            ("Protected", SocialFailure::Private),
            ("Suspended", SocialFailure::AccountRemoved),
            ("NewReason", SocialFailure::Other("NewReason".to_owned())),
        ] {
            assert_eq!(unavailable(&json!({"reason": reason})), expect);
        }
        assert_eq!(unavailable(&json!({})), SocialFailure::Withheld(None));
        for (words, expect) in [
            ("Age-restricted adult content. This content might not be appropriate", SocialFailure::Age),
            ("This Post was deleted by the Post author. Learn more", SocialFailure::Removed),
            ("This Post is from a suspended account. Learn more", SocialFailure::AccountRemoved),
            ("This Post is from an account that no longer exists. Learn more", SocialFailure::AccountRemoved),
            ("This Post violated the X Rules. Learn more", SocialFailure::Removed),
            (
                "You're unable to view this Post because this account owner limits who can view",
                SocialFailure::Private,
            ),
            (
                "This Post is unavailable. Learn more",
                SocialFailure::Other("This Post is unavailable".to_owned()),
            ),
            ("", SocialFailure::Age),
        ] {
            assert_eq!(tombstone(&json!({"tombstone": {"text": {"text": words}}})), expect, "{words}");
        }
    }

    #[test]
    fn response_damaged_character_is_replaced() {
        assert_eq!(parse_bounded(b"{\"a\":\"\xF0\x9F\"}"), Some(json!({"a": "\u{FFFD}"})));
        let body = b"{\"errors\":[{\"code\":144,\"message\":\"\xFF\"}]}";
        assert_eq!(errors(body), Some(SocialFailure::Removed));
    }

    #[test]
    fn response_long_or_deep_is_not_parsed() {
        assert!(parse_bounded(b"{\"a\":1}").is_some());
        assert!(parse_bounded(format!("[{}1]", "1,".repeat(BODY_MAX)).as_bytes()).is_none());
        assert!(parse_bounded("[".repeat(100_000).as_bytes()).is_none());
    }
}
