//! Classifies TikTok's status codes and messages as [`SocialFailure`]. No I/O.

use serde_json::Value;
use url::Url;

use crate::{
    json::{field, number},
    social::SocialFailure,
};

/// The failure of a page's status; `None` for a success.
pub(super) fn status(detail: &Value) -> Option<SocialFailure> {
    // A missing or non-numeric status is a success as long as the post's data exists.
    let code = number(field(detail, "statusCode")).unwrap_or(0);
    let message = field(detail, "statusMsg").as_str().unwrap_or("");
    match code {
        0 => None,
        10_216 => Some(SocialFailure::Private),
        10_222 => Some(SocialFailure::PrivateAccount),
        10_217 => Some(SocialFailure::Removed),
        10_221 => Some(SocialFailure::AccountRemoved),
        10_231 => Some(classify_message(message).unwrap_or(SocialFailure::Region)),
        code => Some(classify_message(message).unwrap_or(SocialFailure::Withheld(Some(code)))),
    }
}

/// Classifies the message of a status.
///
/// It joins several with `&`; the most specific ones come first here.
fn classify_message(message: &str) -> Option<SocialFailure> {
    let known: [(&[&str], SocialFailure); 8] = [
        (
            &["status_deleted", "doesn't exist", "not exist", "vigo", "invalid item id"],
            SocialFailure::Removed,
        ),
        (&["author_secret"], SocialFailure::PrivateAccount),
        (&["status_self_see", "status_friend_see", "private"], SocialFailure::Private),
        (&["status_reviewing"], SocialFailure::InReview),
        (&["status_audit_not_pass"], SocialFailure::Removed),
        (&["cross_border_violation", "geo_fencing", "geo_filter"], SocialFailure::Region),
        (&["content_classification"], SocialFailure::Age),
        (&["user_banned", "author_status"], SocialFailure::AccountRemoved),
    ];
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    known.into_iter().find(|(words, _)| says(words)).map(|(_, failure)| failure)
}

/// The failure that a post's own data shows.
pub(super) fn post(item: &Value) -> Option<SocialFailure> {
    let is = |name: &str| field(item, name).as_bool() == Some(true);
    let has_video = field(item, "video").as_object().is_some_and(|video| !video.is_empty());
    if is("isContentClassified") && !has_video {
        Some(SocialFailure::Age)
    } else if number(field(item, "takeDown")).is_some_and(|code| code > 0) {
        Some(SocialFailure::Removed)
    } else if is("privateItem") || is("secret") {
        Some(SocialFailure::Private)
    } else if is("isReviewing") {
        Some(SocialFailure::InReview)
    } else {
        None
    }
}

/// Classifies a redirect.
pub(super) fn classify_redirect(location: &Url) -> Option<SocialFailure> {
    let path = location.path();
    if path == "/login" || path.starts_with("/login/") {
        Some(SocialFailure::Login)
    } else if path.starts_with("/captcha") || path.starts_with("/verify") {
        Some(SocialFailure::BotCheck)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(code: Value, message: &str, expect: Option<SocialFailure>) {
        let detail = json!({"statusCode": code, "statusMsg": message});
        assert_eq!(status(&detail), expect, "{detail}");
    }

    #[test]
    fn status_code_and_message_are_classified() {
        check(json!(0), "", None);
        check(json!("0"), "", None);
        check(json!(null), "", None);
        check(json!(10_216), "", Some(SocialFailure::Private));
        check(json!("10222"), "", Some(SocialFailure::PrivateAccount));
        check(json!(10_217), "", Some(SocialFailure::Removed));
        check(json!(10_221), "", Some(SocialFailure::AccountRemoved));
        check(json!(10_231), "", Some(SocialFailure::Region));
        check(json!(10_231), "status_audit_not_pass", Some(SocialFailure::Removed));
        for (message, expect) in [
            ("item doesn't exist", SocialFailure::Removed),
            ("item_privacy_authorization&status_deleted", SocialFailure::Removed),
            ("status_deleted", SocialFailure::Removed),
            ("status_self_see", SocialFailure::Private),
            ("author_secret", SocialFailure::PrivateAccount),
            ("vigo", SocialFailure::Removed),
            ("invalid item id", SocialFailure::Removed),
            ("status_reviewing", SocialFailure::InReview),
            ("status_audit_not_pass", SocialFailure::Removed),
            ("cross_border_violation_ur", SocialFailure::Region),
            ("person_geo_fencing", SocialFailure::Region),
            ("copyright_geo_filter", SocialFailure::Region),
            ("content_classification", SocialFailure::Age),
            ("", SocialFailure::Withheld(Some(10_204))),
            ("something new", SocialFailure::Withheld(Some(10_204))),
        ] {
            check(json!(10_204), message, Some(expect));
        }
        check(json!(100_004), "", Some(SocialFailure::Withheld(Some(100_004))));
    }

    #[test]
    fn post_without_video_is_classified() {
        for (item, expect) in [
            (json!({"isContentClassified": true}), Some(SocialFailure::Age)),
            (json!({"isContentClassified": true, "video": {"duration": 3}}), None),
            (json!({"takeDown": 1, "video": {}}), Some(SocialFailure::Removed)),
            (json!({"takeDown": 0, "privateItem": true}), Some(SocialFailure::Private)),
            (json!({"isReviewing": true}), Some(SocialFailure::InReview)),
            (json!({"privateItem": false, "secret": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(post(&item), expect, "{item}");
        }
    }

    #[test]
    fn redirect_target_is_classified() {
        let check =
            |to: &str, expect| assert_eq!(classify_redirect(&Url::parse(to).unwrap()), expect, "{to}");
        check("https://www.tiktok.com/login?redirect_url=x", Some(SocialFailure::Login));
        check("https://www.tiktok.com/login/phone", Some(SocialFailure::Login));
        check("https://www.tiktok.com/captcha/x", Some(SocialFailure::BotCheck));
        check("https://www.tiktok.com/@loginfan/video/1", None);
    }
}
