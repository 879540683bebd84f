//! Extracts a post's data from its page. No I/O, and total.
//!
//! A page contains dozens of JSON scripts. One of them contains the post, among a dozen others of its author.

use serde_json::Value;

use super::classify;
use crate::{
    json::{self, field},
    social::SocialFailure,
};

/// Maximum length of a script that is parsed, in bytes: it takes a hundred times its length in memory.
///
/// The one with the post has 20 to 200 KB.
const SCRIPT_MAX: usize = 512 << 10;
/// Maximum number of such scripts per page.
const SCRIPTS_MAX: usize = 8;
/// Field names of a post, current and older.
const NAMES: [&str; 3] = ["xig_polaris_media", "xdt_shortcode_media", "shortcode_media"];

/// The data of the post with this code.
pub(super) fn post(body: &[u8], code: &str) -> Result<Value, SocialFailure> {
    let text = String::from_utf8_lossy(body);
    let mut failure = None;
    let mut parsed = 0;
    for script in scripts(&text).filter(|script| NAMES.iter().any(|name| script.contains(name))) {
        parsed += 1;
        if parsed > SCRIPTS_MAX {
            break;
        }
        if script.len() > SCRIPT_MAX {
            failure
                .get_or_insert_with(|| SocialFailure::Unreadable("the post's data is too large".to_owned()));
            continue;
        }
        let Ok(value) = json::parse::<Value>(script.as_bytes()) else {
            failure.get_or_insert_with(|| SocialFailure::Unreadable("the post's data is damaged".to_owned()));
            continue;
        };
        match find(value, code) {
            Some(Ok(post)) => return Ok(post),
            Some(Err(other)) => {
                failure.get_or_insert(other);
            }
            None => {}
        }
    }
    Err(failure.unwrap_or_else(|| classify::page(&text)))
}

/// The contents of the page's script elements.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once('>')?;
        rest.split_once("</script").map(|(content, _)| content)
    })
}

/// The post with this code in a value, or why it is hidden; `None` if it is absent.
///
/// The JSON parser bounds the depth of the value.
fn find(value: Value, code: &str) -> Option<Result<Value, SocialFailure>> {
    match value {
        Value::Object(mut fields) => {
            for name in NAMES {
                if let Some(found) = fields.get_mut(name) {
                    return Some(unwrap_gate(found.take(), code));
                }
            }
            first(fields.into_iter().map(|(_, value)| value), code)
        }
        Value::Array(items) => first(items.into_iter(), code),
        _ => None,
    }
}

fn first(values: impl Iterator<Item = Value>, code: &str) -> Option<Result<Value, SocialFailure>> {
    let mut refused = None;
    for value in values {
        match find(value, code) {
            Some(Ok(post)) => return Some(Ok(post)),
            Some(Err(failure)) => {
                refused.get_or_insert(Err(failure));
            }
            None => {}
        }
    }
    refused
}

/// Unwraps the value of a post: the post, with or without a gate, or a failure.
fn unwrap_gate(mut found: Value, code: &str) -> Result<Value, SocialFailure> {
    let matches_code = |value: &Value| {
        let named = field(value, "code").as_str().or_else(|| field(value, "shortcode").as_str());
        named.is_none_or(|named| named == code)
    };
    if found.is_null() {
        // Removed, private, or restricted to some viewers: the page does not distinguish them.
        return Err(SocialFailure::Withheld(None));
    }
    if !matches_code(&found) {
        return Err(SocialFailure::OtherVideo);
    }
    match found.get_mut("if_not_gated_logged_out").map(Value::take) {
        None => Ok(found),
        Some(Value::Null) => Err(gate(field(&found, "gating_ruling"))),
        Some(post) if matches_code(&post) => Ok(post),
        Some(_) => Err(SocialFailure::OtherVideo),
    }
}

/// Why a gated post is hidden from viewers without an account, by the title and description of its gate.
fn gate(ruling: &Value) -> SocialFailure {
    let texts =
        ["title", "description"].map(|name| field(ruling, name).as_str().unwrap_or("").to_lowercase());
    let says = |words: &[&str]| words.iter().any(|word| texts.iter().any(|text| text.contains(word)));
    if says(&["region", "country", "location"]) {
        SocialFailure::Region
    } else if ruling.is_null() {
        SocialFailure::Withheld(None)
    } else {
        SocialFailure::Age
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_post(scripts: &[Value]) -> Result<Value, SocialFailure> {
        let scripts: String = scripts
            .iter()
            .map(|json| format!("<script type=\"application/json\" data-sjs>{json}</script>"))
            .collect();
        post(format!("<html>{scripts}</html>").as_bytes(), "Code1")
    }

    fn nested(media: Value) -> Value {
        json!({"require": [["X", null, [{"__bbox": {"result": {"data": {"xig_polaris_media": media}}}}]]]})
    }

    #[test]
    fn page_post_is_found_at_any_depth() {
        let inner = json!({"code": "Code1", "a": 1});
        let gated = nested(json!({"code": "Code1", "if_not_gated_logged_out": inner}));
        assert_eq!(read_post(&[json!({"xig": 1}), gated.clone()]), Ok(inner));
        let older = json!({"data": {"xdt_shortcode_media": {"shortcode": "Code1"}}});
        assert_eq!(read_post(&[older]), Ok(json!({"shortcode": "Code1"})));
        let both = json!([{"shortcode_media": null}, gated]);
        assert!(read_post(&[both]).is_ok(), "a visible post takes precedence over a hidden one");
    }

    #[test]
    fn page_hidden_post_is_classified() {
        let closed =
            nested(json!({"code": "Code1", "gating_ruling": {"x": 1}, "if_not_gated_logged_out": null}));
        assert_eq!(read_post(&[closed]), Err(SocialFailure::Age));
        let closed = |ruling: Value| {
            read_post(&[nested(json!({"gating_ruling": ruling, "if_not_gated_logged_out": null}))])
        };
        let titled = |title: &str| closed(json!({"gating_type": 3, "title": title}));
        assert_eq!(titled("Age-restricted content"), Err(SocialFailure::Age));
        assert_eq!(titled("Not available in your region"), Err(SocialFailure::Region));
        assert_eq!(closed(json!(null)), Err(SocialFailure::Withheld(None)));
        assert_eq!(read_post(&[nested(json!(null))]), Err(SocialFailure::Withheld(None)));
        assert_eq!(read_post(&[nested(json!({"code": "Code2"}))]), Err(SocialFailure::OtherVideo));
        let other = nested(json!({"if_not_gated_logged_out": {"code": "Code2"}}));
        assert_eq!(read_post(&[other]), Err(SocialFailure::OtherVideo));
        assert_eq!(read_post(&[json!({"a": 1})]), Err(SocialFailure::EmptyPage));
        let of = |content: &str| post(format!("<script>{content}</script>").as_bytes(), "Code1");
        assert!(matches!(of("xig_polaris_media = 5"), Err(SocialFailure::Unreadable(_))));
        let long = format!("{{\"xig_polaris_media\":\"{}\"}}", "x".repeat(SCRIPT_MAX));
        assert!(matches!(of(&long), Err(SocialFailure::Unreadable(_))));
        let deep = format!("{{\"xig_polaris_media\":{}", "[".repeat(90_000));
        assert!(matches!(of(&deep), Err(SocialFailure::Unreadable(_))));
    }

    proptest! {
        #[test]
        fn page_any_bytes_do_not_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = post(&body, "Code1");
        }
    }
}
