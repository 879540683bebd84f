//! How TikTok says no: from a status and its message to the [`Refusal`] they mean. Pure.

use serde_json::Value;
use url::Url;

use crate::social::{
    Refusal,
    json::{field, number},
};

/// What a page's status means, where it says that there is no post for us.
pub(super) fn status(detail: &Value) -> Option<Refusal> {
    // A missing status is a good one; so is one that is no number, as long as there is a post.
    let code = number(field(detail, "statusCode")).unwrap_or(0);
    let message = field(detail, "statusMsg").as_str().unwrap_or("");
    match code {
        0 => None,
        10_216 => Some(Refusal::Private),
        10_222 => Some(Refusal::PrivateAccount),
        10_217 => Some(Refusal::Gone),
        10_221 => Some(Refusal::AccountGone),
        10_231 => Some(Refusal::Region),
        code => Some(by_message(message).unwrap_or(Refusal::Withheld(Some(code)))),
    }
}

/// What the message beside a status means. Several are joined by `&`, the more telling one first here.
fn by_message(message: &str) -> Option<Refusal> {
    let known: [(&[&str], Refusal); 7] = [
        (&["status_deleted", "doesn't exist", "not exist"], Refusal::Gone),
        (&["status_self_see", "status_friend_see", "private"], Refusal::Private),
        (&["status_reviewing"], Refusal::InReview),
        (&["status_audit_not_pass"], Refusal::Gone),
        (&["cross_border_violation", "geo_fencing", "geo_filter"], Refusal::Region),
        (&["content_classification"], Refusal::Age),
        (&["user_banned", "author_status"], Refusal::AccountGone),
    ];
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    known.into_iter().find(|(words, _)| says(words)).map(|(_, refusal)| refusal)
}

/// What is known of a post without captions or even a video from the post itself.
pub(super) fn post(item: &Value) -> Option<Refusal> {
    let is = |name: &str| field(item, name).as_bool() == Some(true);
    let has_video = field(item, "video").as_object().is_some_and(|video| !video.is_empty());
    if is("isContentClassified") && !has_video {
        Some(Refusal::Age)
    } else if number(field(item, "takeDown")).is_some_and(|code| code > 0) {
        Some(Refusal::Gone)
    } else if is("privateItem") || is("secret") {
        Some(Refusal::Private)
    } else if is("isReviewing") {
        Some(Refusal::InReview)
    } else {
        None
    }
}

/// What it means when TikTok sends us elsewhere instead of answering.
pub(super) fn detour(location: &Url) -> Option<Refusal> {
    let path = location.path();
    if path == "/login" || path.starts_with("/login/") {
        Some(Refusal::Login)
    } else if path.starts_with("/captcha") || path.starts_with("/verify") {
        Some(Refusal::BotCheck)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(code: Value, message: &str, expect: Option<Refusal>) {
        let detail = json!({"statusCode": code, "statusMsg": message});
        assert_eq!(status(&detail), expect, "{detail}");
    }

    #[test]
    fn statuses_are_understood() {
        check(json!(0), "", None);
        check(json!("0"), "", None);
        check(json!(null), "", None);
        check(json!(10_216), "", Some(Refusal::Private));
        check(json!("10222"), "", Some(Refusal::PrivateAccount));
        check(json!(10_217), "", Some(Refusal::Gone));
        check(json!(10_221), "", Some(Refusal::AccountGone));
        check(json!(10_231), "", Some(Refusal::Region));
        for (message, expect) in [
            ("item doesn't exist", Refusal::Gone),
            ("item_privacy_authorization&status_deleted", Refusal::Gone),
            ("status_deleted", Refusal::Gone),
            ("status_self_see", Refusal::Private),
            ("status_reviewing", Refusal::InReview),
            ("status_audit_not_pass", Refusal::Gone),
            ("cross_border_violation_ur", Refusal::Region),
            ("person_geo_fencing", Refusal::Region),
            ("copyright_geo_filter", Refusal::Region),
            ("content_classification", Refusal::Age),
            ("", Refusal::Withheld(Some(10_204))),
            ("something new", Refusal::Withheld(Some(10_204))),
        ] {
            check(json!(10_204), message, Some(expect));
        }
        check(json!(100_004), "", Some(Refusal::Withheld(Some(100_004))));
    }

    #[test]
    fn a_post_tells_why_it_has_no_video() {
        for (item, expect) in [
            (json!({"isContentClassified": true}), Some(Refusal::Age)),
            (json!({"isContentClassified": true, "video": {"duration": 3}}), None),
            (json!({"takeDown": 1, "video": {}}), Some(Refusal::Gone)),
            (json!({"takeDown": 0, "privateItem": true}), Some(Refusal::Private)),
            (json!({"isReviewing": true}), Some(Refusal::InReview)),
            (json!({"privateItem": false, "secret": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(post(&item), expect, "{item}");
        }
    }

    #[test]
    fn detours_are_understood() {
        let check = |to: &str, expect| assert_eq!(detour(&Url::parse(to).unwrap()), expect, "{to}");
        check("https://www.tiktok.com/login?redirect_url=x", Some(Refusal::Login));
        check("https://www.tiktok.com/login/phone", Some(Refusal::Login));
        check("https://www.tiktok.com/captcha/x", Some(Refusal::BotCheck));
        check("https://www.tiktok.com/@loginfan/video/1", None);
    }
}
