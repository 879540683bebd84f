//! How X says no: errors, posts that are not shown, and what stands in their place. Pure.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    http::HttpFault,
    social::{
        Refusal,
        json::{self, field, items, path},
    },
};

/// The longest answer that is built up in memory, in bytes: that takes a hundred times its length. Posts have
/// 5 to 30 KB.
const BODY_MAX: usize = 512 << 10;
/// The most errors that are looked at.
const ERRORS_MAX: usize = 20;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
}

/// An answer's JSON; none when it is none, or too long or too deep to be built up.
pub(super) fn bounded(body: &[u8]) -> Option<Value> {
    serde_json::from_slice::<&RawValue>(body).ok().and_then(|raw| json::part(raw, BODY_MAX))
}

/// What the errors of an answer mean; none where there are none that count.
///
/// A pass that is no longer taken is [`Refusal::Forbidden`].
pub(super) fn errors(body: &[u8]) -> Option<Refusal> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let errors = json::part(envelope.errors?, BODY_MAX)?;
    let list = errors.as_array()?;
    list.iter().take(ERRORS_MAX).find_map(error)
}

fn error(error: &Value) -> Option<Refusal> {
    let words = field(error, "message").as_str().unwrap_or("");
    let code = field(error, "code").as_u64().or_else(|| path(error, &["extensions", "code"]).as_u64());
    let says = |part: &str| words.to_ascii_lowercase().contains(part);
    match code {
        // A part of the answer is missing that nobody wants.
        _ if says("dependency: unspecified") => None,
        Some(88) => Some(Refusal::Fault(HttpFault::Throttled(None))),
        Some(239) => Some(Refusal::Forbidden(403)),
        Some(32) => Some(Refusal::Forbidden(401)),
        Some(144) => Some(Refusal::Gone),
        _ if says("rate limit") => Some(Refusal::Fault(HttpFault::Throttled(None))),
        _ if says("bad guest token") => Some(Refusal::Forbidden(403)),
        _ if says("cannot be null") || says("features") => Some(Refusal::Stale("x.features")),
        _ if says("not authorized") => Some(Refusal::Login),
        _ => Some(Refusal::quoting(words)),
    }
}

/// What a post that is not shown says of itself by its reason.
pub(super) fn unavailable(result: &Value) -> Refusal {
    match field(result, "reason").as_str().unwrap_or("") {
        "NsfwLoggedOut" | "NsfwViewerHasNoStatedAge" | "NsfwViewerIsUnderage" => Refusal::Age,
        "Protected" => Refusal::Private,
        "Suspended" | "Deactivated" => Refusal::AccountGone,
        "" => Refusal::Withheld(None),
        reason => Refusal::quoting(reason),
    }
}

/// What stands in the place of a post says of it, in English.
pub(super) fn tombstone(result: &Value) -> Refusal {
    let words = path(result, &["tombstone", "text", "text"]).as_str().unwrap_or("");
    let words = words.trim().trim_end_matches("Learn more").trim();
    let says = |parts: &[&str]| parts.iter().any(|part| words.to_ascii_lowercase().contains(part));
    if words.is_empty() || says(&["age-restricted", "adult content"]) {
        // Where it says nothing, the post is kept from those who are not logged in.
        Refusal::Age
    } else if says(&["suspended account", "account no longer exists", "account that no longer"]) {
        Refusal::AccountGone
    } else if says(&["deleted", "violated the"]) {
        Refusal::Gone
    } else if says(&["limits who can", "limited who can", "protected"]) {
        Refusal::Private
    } else if says(&["withheld in"]) {
        Refusal::Region
    } else {
        Refusal::quoting(words)
    }
}

/// The tweet in a conversation: another query's answer about the same post.
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
    fn errors_are_understood() {
        let throttled = Refusal::Fault(HttpFault::Throttled(None));
        for (error, expect) in [
            (json!({"message": "Not authorized to view this status.", "code": 179}), Some(Refusal::Login)),
            (json!({"message": "Rate limit exceeded", "code": 88}), Some(throttled.clone())),
            (json!({"message": "Rate limit exceeded."}), Some(throttled)),
            (json!({"message": "Bad guest token", "code": 239}), Some(Refusal::Forbidden(403))),
            (json!({"message": "Could not authenticate you", "code": 32}), Some(Refusal::Forbidden(401))),
            (json!({"message": "No status found with that ID.", "code": 144}), Some(Refusal::Gone)),
            (json!({"message": "Dependency: Unspecified"}), None),
            (
                json!({"message": "The following features cannot be null: vibe_api_enabled", "code": 336}),
                Some(Refusal::Stale("x.features")),
            ),
            (json!({"message": "Something else"}), Some(Refusal::Other("Something else".to_owned()))),
        ] {
            assert_eq!(errors(json!({"errors": [error]}).to_string().as_bytes()), expect, "{error}");
        }
        for none in ["{}", "[]", "", "{\"errors\":[]}", "{\"errors\":7}", "<html>"] {
            assert_eq!(errors(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn posts_that_are_not_shown_say_why() {
        for (reason, expect) in [
            ("NsfwLoggedOut", Refusal::Age),
            ("NsfwViewerHasNoStatedAge", Refusal::Age),
            ("Protected", Refusal::Private),
            ("Suspended", Refusal::AccountGone),
            ("NewReason", Refusal::Other("NewReason".to_owned())),
        ] {
            assert_eq!(unavailable(&json!({"reason": reason})), expect);
        }
        assert_eq!(unavailable(&json!({})), Refusal::Withheld(None));
        for (words, expect) in [
            ("Age-restricted adult content. This content might not be appropriate", Refusal::Age),
            ("This Post was deleted by the Post author. Learn more", Refusal::Gone),
            ("This Post is from a suspended account. Learn more", Refusal::AccountGone),
            ("This Post is from an account that no longer exists. Learn more", Refusal::AccountGone),
            ("This Post violated the X Rules. Learn more", Refusal::Gone),
            (
                "You're unable to view this Post because this account owner limits who can view",
                Refusal::Private,
            ),
            ("This Post is unavailable. Learn more", Refusal::Other("This Post is unavailable".to_owned())),
            ("", Refusal::Age),
        ] {
            assert_eq!(tombstone(&json!({"tombstone": {"text": {"text": words}}})), expect, "{words}");
        }
    }

    #[test]
    fn long_and_deep_answers_are_not_built_up() {
        assert!(bounded(b"{\"a\":1}").is_some());
        assert!(bounded(format!("[{}1]", "1,".repeat(BODY_MAX)).as_bytes()).is_none());
        assert!(bounded("[".repeat(100_000).as_bytes()).is_none());
    }
}
