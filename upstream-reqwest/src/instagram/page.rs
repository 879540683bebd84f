//! From a post's page to what it says of the post. Pure and total.
//!
//! A page holds dozens of scripts of JSON, and in one of them the post, among a dozen others of its author.

use serde_json::Value;

use super::signals;
use crate::social::{Refusal, json::field};

/// The longest script that is built up in memory, in bytes: that takes a hundred times its length. The one with
/// the post has 20 to 200 KB.
const SCRIPT_MAX: usize = 512 << 10;
/// The most such scripts of a page that are looked into.
const SCRIPTS_MAX: usize = 8;
/// The names under which a page holds a post: of today, and of the years before.
const NAMES: [&str; 3] = ["xig_polaris_media", "xdt_shortcode_media", "shortcode_media"];

/// What a page says of the post with this code.
pub(super) fn post(body: &[u8], code: &str) -> Result<Value, Refusal> {
    let text = String::from_utf8_lossy(body);
    let mut refusal = None;
    let mut looked_into = 0;
    for script in scripts(&text).filter(|script| NAMES.iter().any(|name| script.contains(name))) {
        looked_into += 1;
        if looked_into > SCRIPTS_MAX {
            break;
        }
        if script.len() > SCRIPT_MAX {
            refusal.get_or_insert_with(|| Refusal::Unreadable("the post's data is too large".to_owned()));
            continue;
        }
        let Ok(value) = serde_json::from_str::<Value>(script) else {
            refusal.get_or_insert_with(|| Refusal::Unreadable("the post's data is damaged".to_owned()));
            continue;
        };
        match find(value, code) {
            Some(Ok(post)) => return Ok(post),
            Some(Err(other)) => {
                refusal.get_or_insert(other);
            }
            None => {}
        }
    }
    Err(refusal.unwrap_or_else(|| signals::page(&text)))
}

/// The contents of the page's script elements.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once('>')?;
        rest.split_once("</script").map(|(content, _)| content)
    })
}

/// The post with this code in a value, or why it is not shown; none when there is nothing of it. The value's
/// depth is bounded by what its parser takes.
fn find(value: Value, code: &str) -> Option<Result<Value, Refusal>> {
    match value {
        Value::Object(mut fields) => {
            for name in NAMES {
                if let Some(found) = fields.get_mut(name) {
                    return Some(shown(found.take(), code));
                }
            }
            first(fields.into_iter().map(|(_, value)| value), code)
        }
        Value::Array(items) => first(items.into_iter(), code),
        _ => None,
    }
}

fn first(values: impl Iterator<Item = Value>, code: &str) -> Option<Result<Value, Refusal>> {
    let mut refused = None;
    for value in values {
        match find(value, code) {
            Some(Ok(post)) => return Some(Ok(post)),
            Some(Err(refusal)) => {
                refused.get_or_insert(Err(refusal));
            }
            None => {}
        }
    }
    refused
}

/// What stands under a post's name: the post, behind a gate or not, or nothing.
fn shown(mut found: Value, code: &str) -> Result<Value, Refusal> {
    let own = |value: &Value| {
        let named = field(value, "code").as_str().or_else(|| field(value, "shortcode").as_str());
        named.is_none_or(|named| named == code)
    };
    if found.is_null() {
        // Removed, private, or for some viewers only: it says no more.
        return Err(Refusal::Withheld(None));
    }
    if !own(&found) {
        return Err(Refusal::OtherVideo);
    }
    match found.get_mut("if_not_gated_logged_out").map(Value::take) {
        None => Ok(found),
        Some(Value::Null) => Err(Refusal::Age),
        Some(post) if own(&post) => Ok(post),
        Some(_) => Err(Refusal::OtherVideo),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn told(scripts: &[Value]) -> Result<Value, Refusal> {
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
    fn the_post_is_found_wherever_it_lies() {
        let inner = json!({"code": "Code1", "a": 1});
        let gated = nested(json!({"code": "Code1", "if_not_gated_logged_out": inner}));
        assert_eq!(told(&[json!({"xig": 1}), gated.clone()]), Ok(inner));
        let older = json!({"data": {"xdt_shortcode_media": {"shortcode": "Code1"}}});
        assert_eq!(told(&[older]), Ok(json!({"shortcode": "Code1"})));
        let both = json!([{"shortcode_media": null}, gated]);
        assert!(told(&[both]).is_ok(), "what is shown counts before what is not");
    }

    #[test]
    fn what_is_not_shown_says_why() {
        let closed =
            nested(json!({"code": "Code1", "gating_ruling": {"x": 1}, "if_not_gated_logged_out": null}));
        assert_eq!(told(&[closed]), Err(Refusal::Age));
        assert_eq!(told(&[nested(json!(null))]), Err(Refusal::Withheld(None)));
        assert_eq!(told(&[nested(json!({"code": "Code2"}))]), Err(Refusal::OtherVideo));
        let other = nested(json!({"if_not_gated_logged_out": {"code": "Code2"}}));
        assert_eq!(told(&[other]), Err(Refusal::OtherVideo));
        assert_eq!(told(&[json!({"a": 1})]), Err(Refusal::Shell));
        let of = |content: &str| post(format!("<script>{content}</script>").as_bytes(), "Code1");
        assert!(matches!(of("xig_polaris_media = 5"), Err(Refusal::Unreadable(_))));
        let long = format!("{{\"xig_polaris_media\":\"{}\"}}", "x".repeat(SCRIPT_MAX));
        assert!(matches!(of(&long), Err(Refusal::Unreadable(_))));
        let deep = format!("{{\"xig_polaris_media\":{}", "[".repeat(90_000));
        assert!(matches!(of(&deep), Err(Refusal::Unreadable(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_meaning(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = post(&body, "Code1");
        }
    }
}
