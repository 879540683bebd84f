//! From a post's page to the part of its state that is about the post. Pure and total.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::social::{Refusal, json};

/// The script element that holds a page's state.
const STATE: &str = "__UNIVERSAL_DATA_FOR_REHYDRATION__";
/// The longest part about a post that is read, in bytes. JSON that is built up in memory may take a hundred
/// times its length there. Posts have 15 to 40 KB.
const DETAIL_MAX: usize = 512 << 10;
/// How far into a page without state its kind is looked for, in bytes. A page with a puzzle has some KB.
const SIGNS_MAX: usize = 64 << 10;

/// The parts of the state that matter; the rest, which is most of it, is skipped.
#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow, rename = "__DEFAULT_SCOPE__")]
    scope: Option<Scope<'a>>,
}

#[derive(Deserialize)]
struct Scope<'a> {
    #[serde(borrow, rename = "webapp.video-detail")]
    desktop: Option<&'a RawValue>,
    /// The same on pages for telephones.
    #[serde(borrow, rename = "webapp.reflow.video.detail")]
    mobile: Option<&'a RawValue>,
}

/// What a page says of its post: the value with `statusCode` and `itemInfo`.
pub(super) fn detail(body: &[u8]) -> Result<Value, Refusal> {
    let text = String::from_utf8_lossy(body);
    let Some(state) = state(&text) else { return Err(without_state(&text)) };
    let state: State<'_> = serde_json::from_str(state)
        .map_err(|_| Refusal::Unreadable("the page's state is damaged".to_owned()))?;
    let Some(scope) = state.scope else { return Err(Refusal::Shell) };
    let detail = scope.desktop.or(scope.mobile).ok_or(Refusal::Shell)?;
    let detail = json::part(detail, DETAIL_MAX);
    let detail =
        detail.ok_or_else(|| Refusal::Unreadable("the page's state is too large to be read".to_owned()))?;
    if detail.is_object() { Ok(detail) } else { Err(Refusal::Shell) }
}

/// The text of the script element with the state.
fn state(page: &str) -> Option<&str> {
    page.match_indices(STATE).find_map(|(place, _)| {
        // The attributes come in any order, so the element begins somewhere before the name.
        let tag = page.get(..place)?.rfind('<')?;
        let is_script = page.get(tag..)?.starts_with("<script");
        let (attributes, rest) = page.get(tag..).filter(|_| is_script)?.split_once('>')?;
        // The page's own scripts name the element too.
        let content = rest.split_once("</script").map(|(content, _)| content);
        content.filter(|_| attributes.contains("id="))
    })
}

/// What a page without state is.
fn without_state(page: &str) -> Refusal {
    let end = (0..=SIGNS_MAX.min(page.len())).rev().find(|&end| page.is_char_boundary(end)).unwrap_or(0);
    let head = page.get(..end).unwrap_or(page);
    let has = |sign: &str| head.contains(sign);
    // The bare word "captcha" stands on good pages, too.
    let captcha = ["captcha-init", "oec-ttweb-captcha", "secsdk-captcha", "captcha_container"];
    let puzzle = ["id=\"wci\"", "id=\"rci\"", "id=\"cs\"", "id=\"rs\""];
    if captcha.iter().any(|sign| has(sign))
        || puzzle.iter().filter(|sign| has(sign)).count() >= 2
        || has("Please wait...")
    {
        Refusal::BotCheck
    } else if page.trim().is_empty() {
        Refusal::Unreadable("it is empty".to_owned())
    } else {
        Refusal::Shell
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
    fn the_state_is_found_in_any_page() {
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
    fn pages_without_a_post_are_told_apart() {
        let id = format!("id=\"{STATE}\"");
        let of = |state: &str| detail(page(&id, state).as_bytes());
        assert_eq!(of("{\"__DEFAULT_SCOPE__\":{\"webapp.app-context\":{}}}"), Err(Refusal::Shell));
        assert_eq!(of("{}"), Err(Refusal::Shell));
        assert_eq!(of("{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":null}}"), Err(Refusal::Shell));
        assert_eq!(of("{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":[]}}"), Err(Refusal::Shell));
        assert!(matches!(of("{\"__DEFAULT"), Err(Refusal::Unreadable(_))));
        let deep =
            format!("{{\"__DEFAULT_SCOPE__\":{{\"webapp.video-detail\":{{\"a\":{}}}}}}}", "[".repeat(90_000));
        assert!(matches!(of(&deep), Err(Refusal::Unreadable(_))));
        let long = format!(
            "{{\"__DEFAULT_SCOPE__\":{{\"webapp.video-detail\":{{\"a\":\"{}\"}}}}}}",
            "x".repeat(DETAIL_MAX)
        );
        assert!(matches!(of(&long), Err(Refusal::Unreadable(_))));
        let bare = |page: &str| detail(page.as_bytes());
        assert_eq!(bare("<p id=\"cs\"></p><p id=\"wci\"></p>"), Err(Refusal::BotCheck));
        assert_eq!(bare("<title>Please wait...</title>"), Err(Refusal::BotCheck));
        assert_eq!(bare("<div class=\"captcha_container\">"), Err(Refusal::BotCheck));
        assert_eq!(bare("<p>what a captcha is</p>"), Err(Refusal::Shell));
        assert!(matches!(bare(" "), Err(Refusal::Unreadable(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_meaning(body in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..200) {
            let _ = detail(&body);
            let page = page(&format!("id=\"{STATE}\""), "{\"__DEFAULT_SCOPE__\":{\"webapp.video-detail\":{}}}");
            let _ = detail(page.get(..cut).unwrap_or("").as_bytes());
        }
    }
}
