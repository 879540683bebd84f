//! `If-None-Match` (RFC 9110, 13.1.2).

use http::{HeaderMap, HeaderValue, header::IF_NONE_MATCH};

/// Maximum number of tags that are compared: a client stores one per variant of a body, not hundreds.
const TAGS_MAX: usize = 64;

/// Whether `If-None-Match` names this tag.
///
/// An unreadable header is ignored: the client then receives the body, which is always correct.
pub(super) fn is_not_modified(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let mut values = headers.get_all(IF_NONE_MATCH).iter();
    values.any(|value| value == etag || value.to_str().is_ok_and(|list| contains_tag(list, etag)))
}

/// Whether a list of tags contains this one or is `*`. Weak and strong tags compare alike.
fn contains_tag(list: &str, etag: &HeaderValue) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let mut rest = list;
    for _ in 0..TAGS_MAX {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let tag = rest.strip_prefix("W/").unwrap_or(rest);
        // The opaque part is between two quotation marks and may contain commas.
        let Some(end) = tag.strip_prefix('"').and_then(|opaque| opaque.find('"')) else { return false };
        let (tag, after) = tag.split_at(end + 2);
        if tag.as_bytes() == etag.as_bytes() {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], expect: bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_NONE_MATCH, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(is_not_modified(&headers, &HeaderValue::from_static("\"abc\"")), expect, "{values:?}");
    }

    #[test]
    fn if_none_match_matching_tag_matches() {
        for values in [
            &["\"abc\""][..],
            &["W/\"abc\""],
            &["*"],
            &[" * "],
            &["\"x\", \"abc\""],
            &["\"x\",W/\"abc\" , \"y\""],
            &["\"a,b\",\"abc\""],
            &[",, \"abc\""],
            &["\"x\"", "\"abc\""],
            &["nonsense", "\"abc\""],
            &["\"abc\", nonsense"],
        ] {
            check(values, true);
        }
    }

    #[test]
    fn if_none_match_other_or_invalid_tag_does_not_match() {
        for values in [
            &[][..],
            &[""],
            &["abc"],
            &["\"abc"],
            &["\"ab\""],
            &["\"abcd\""],
            &["\"ABC\""],
            &["w/\"abc\""],
            &["\"x\" *"],
            &["nonsense, \"abc\""],
            &["\"x\\\"abc\""],
            &["\u{e9}\"abc\""],
        ] {
            check(values, false);
        }
        check(&[&"\"x\",".repeat(7_000)], false);
        check(&[&",".repeat(30_000)], false);
    }
}
