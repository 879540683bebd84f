//! Extracts the state of a post from its page. No I/O, and total.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{json, social::SocialFailure};

/// Id of the script element with the page's state.
const STATE: &str = "__UNIVERSAL_DATA_FOR_REHYDRATION__";
/// Maximum length of a post's data in bytes.
///
/// JSON in memory may take a hundred times its length. Posts have 15 to 40 KB.
const DETAIL_MAX: usize = 512 << 10;
/// Number of bytes of a page without state that are searched. A challenge page has a few KB.
const SEARCHED_BYTES_MAX: usize = 64 << 10;

/// The relevant parts of the state; the remainder, which is most of it, is skipped.
#[derive(Deserialize)]
struct TikTokPageState<'a> {
    #[serde(borrow, rename = "__DEFAULT_SCOPE__")]
    scope: Option<TikTokScope<'a>>,
}

#[derive(Deserialize)]
struct TikTokScope<'a> {
    #[serde(borrow, rename = "webapp.video-detail")]
    desktop: Option<&'a RawValue>,
    /// The same on mobile pages.
    #[serde(borrow, rename = "webapp.reflow.video.detail")]
    mobile: Option<&'a RawValue>,
}

/// The post's data in a page: the value with `statusCode` and `itemInfo`.
pub(super) fn detail(body: &[u8]) -> Result<Value, SocialFailure> {
    let text = String::from_utf8_lossy(body);
    let Some(state) = state(&text) else { return Err(classify_without_state(&text)) };
    let state: TikTokPageState<'_> = serde_json::from_str(state)
        .map_err(|_| SocialFailure::Unreadable("the page's state is damaged".to_owned()))?;
    let Some(scope) = state.scope else { return Err(SocialFailure::EmptyPage) };
    let detail = scope.desktop.or(scope.mobile).ok_or(SocialFailure::EmptyPage)?;
    let detail = json::part(detail, DETAIL_MAX);
    let detail =
        detail.ok_or_else(|| SocialFailure::Unreadable("the page's state is too large".to_owned()))?;
    if detail.is_object() { Ok(detail) } else { Err(SocialFailure::EmptyPage) }
}

/// The text of the script element with the state.
fn state(page: &str) -> Option<&str> {
    page.match_indices(STATE).find_map(|(offset, _)| {
        // The attributes have any order, so the element begins somewhere before its id.
        let tag = page.get(..offset)?.rfind('<')?;
        let is_script = page.get(tag..)?.starts_with("<script");
        let (attributes, rest) = page.get(tag..).filter(|_| is_script)?.split_once('>')?;
        // The page's own scripts contain the id too.
        let content = rest.split_once("</script").map(|(content, _)| content);
        content.filter(|_| attributes.contains("id="))
    })
}

/// Classifies a page without state.
fn classify_without_state(page: &str) -> SocialFailure {
    let head = transcript_core::text::head(page, SEARCHED_BYTES_MAX);
    let has = |sign: &str| head.contains(sign);
    // The plain word "captcha" occurs on normal pages, too.
    let captcha = ["captcha-init", "oec-ttweb-captcha", "secsdk-captcha", "captcha_container"];
    let puzzle = ["id=\"wci\"", "id=\"rci\"", "id=\"cs\"", "id=\"rs\""];
    if captcha.iter().any(|sign| has(sign))
        || puzzle.iter().filter(|sign| has(sign)).count() >= 2
        || has("Please wait...")
    {
        SocialFailure::BotCheck
    } else if page.trim().is_empty() {
        SocialFailure::Unreadable("it is empty".to_owned())
    } else {
        SocialFailure::EmptyPage
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(attributes: &str, state: &str) -> String {
        format!("<html><script>var a = \"{STATE}\";</script><script {attributes}>{state}</script></html>")
    }

    #[test]
    fn page_state_is_found_for_any_attribute_order() {
        let id = format!("id=\"{STATE}\"");
        for attributes in [
            format!("{id} type=\"application/json\""),
            format!("type=\"application/json\" {id}"),
            format!("data-x='1' {id}"),
        ] {
            for key in ["webapp.video-detail", "webapp.reflow.video.detail"] {
                let state = format!("{{\"x\":[1],\"__DEFAULT_SCOPE__\":{{\"{key}\":{{\"statusCode\":7}}}}}}");
                let found = detail(page(&attributes, &state).as_bytes()).unwrap();
                assert_eq!(found["statusCode"], 7, "{attributes} {key}");
            }
        }
    }

    #[test]
    fn page_without_post_is_classified() {
        let id = format!("id=\"{STATE}\"");
        let of = |state: &str| detail(page(&id, state).as_bytes());
        assert_eq!(of("{\"__DEFAULT_SCOPE__\":{\"webapp.app-context\":{}}}"), Err(SocialFailure::EmptyPage));
        assert_eq!(of("{}"), Err(SocialFailure::EmptyPage));
        assert_eq!(
            of("{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":null}}"),
            Err(SocialFailure::EmptyPage)
        );
        assert_eq!(of("{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":[]}}"), Err(SocialFailure::EmptyPage));
        assert!(matches!(of("{\"__DEFAULT"), Err(SocialFailure::Unreadable(_))));
        let deep =
            format!("{{\"__DEFAULT_SCOPE__\":{{\"webapp.video-detail\":{{\"a\":{}}}}}}}", "[".repeat(90_000));
        assert!(matches!(of(&deep), Err(SocialFailure::Unreadable(_))));
        let long = format!(
            "{{\"__DEFAULT_SCOPE__\":{{\"webapp.video-detail\":{{\"a\":\"{}\"}}}}}}",
            "x".repeat(DETAIL_MAX)
        );
        assert!(matches!(of(&long), Err(SocialFailure::Unreadable(_))));
        let bare = |page: &str| detail(page.as_bytes());
        assert_eq!(bare("<p id=\"cs\"></p><p id=\"wci\"></p>"), Err(SocialFailure::BotCheck));
        assert_eq!(bare("<title>Please wait...</title>"), Err(SocialFailure::BotCheck));
        assert_eq!(bare("<div class=\"captcha_container\">"), Err(SocialFailure::BotCheck));
        assert_eq!(bare("<p>what a captcha is</p>"), Err(SocialFailure::EmptyPage));
        assert!(matches!(bare(" "), Err(SocialFailure::Unreadable(_))));
    }

    proptest! {
        #[test]
        fn page_any_bytes_do_not_panic(body in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..200) {
            let _ = detail(&body);
            let page = page(&format!("id=\"{STATE}\""), "{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":{}}}");
            let _ = detail(page.get(..cut).unwrap_or("").as_bytes());
        }
    }
}
