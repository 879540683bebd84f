//! `If-None-Match` (RFC 9110, 13.1.2).

use http::{HeaderMap, HeaderValue, header::IF_NONE_MATCH};

/// How many tags are looked at: a caller keeps one for each form of a body, not hundreds.
const TAGS_MAX: usize = 64;

/// Whether the caller has the body with this tag already. A header that cannot be read is not there: the
/// caller gets the body, which is never wrong.
pub(super) fn has_already(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let mut values = headers.get_all(IF_NONE_MATCH).iter();
    values.any(|value| value == etag || value.to_str().is_ok_and(|list| names(list, etag)))
}

/// Whether a list of tags has this one, or is `*`. Weak tags compare as strong ones do.
fn names(list: &str, etag: &HeaderValue) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let mut rest = list;
    for _ in 0..TAGS_MAX {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let tag = rest.strip_prefix("W/").unwrap_or(rest);
        // The opaque part is between two quotation marks; it may have commas in it.
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
        assert_eq!(has_already(&headers, &HeaderValue::from_static("\"abc\"")), expect, "{values:?}");
    }

    #[test]
    fn a_tag_is_found_in_every_way_of_writing_it() {
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
    fn other_tags_and_nonsense_are_no_match() {
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
