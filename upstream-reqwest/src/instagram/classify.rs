//! Classifies Instagram's pages without a post, and its redirects. No I/O.

use url::Url;

use crate::social::SocialFailure;

/// Number of bytes of a page that are searched.
const SEARCHED_BYTES_MAX: usize = 2 << 20;

/// Classifies a page without the post's data.
pub(super) fn page(page: &str) -> SocialFailure {
    let head = transcript_core::text::head(page, SEARCHED_BYTES_MAX);
    let has = |sign: &str| head.contains(sign);
    if has("PolarisErrorRoute") {
        SocialFailure::Removed
    } else if has("LoginHomepageRoute") || has("id=\"loginForm\"") || has("\"require_login\":true") {
        SocialFailure::LoginWall
    } else if has("Please wait a few minutes") || has("LoggedOutDesktopWWWPostRoute") {
        SocialFailure::PostMissing
    } else if page.trim().is_empty() {
        SocialFailure::Unreadable("it is empty".to_owned())
    } else {
        SocialFailure::EmptyPage
    }
}

/// Classifies a redirect.
pub(super) fn classify_redirect(location: &Url) -> Option<SocialFailure> {
    let path = location.path();
    if path.starts_with("/accounts/login") || path == "/" {
        Some(SocialFailure::LoginWall)
    } else if path.starts_with("/challenge") {
        Some(SocialFailure::BotCheck)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_without_post_is_classified() {
        for (text, expect) in [
            ("{\"canonicalRouteName\":\"comet.igweb.PolarisErrorRoute\"}", SocialFailure::Removed),
            (
                "{\"canonicalRouteName\":\"comet.igweb.PolarisCAAIGLoginHomepageRoute\"}",
                SocialFailure::LoginWall,
            ),
            ("<form id=\"loginForm\">", SocialFailure::LoginWall),
            ("{\"message\":\"Please wait a few minutes before you try again.\"}", SocialFailure::PostMissing),
            ("{\"message\":\"Please wait a few minutes\",\"require_login\":true}", SocialFailure::LoginWall),
            ("comet.igweb.PolarisLoggedOutDesktopWWWPostRoute", SocialFailure::PostMissing),
            ("<html></html>", SocialFailure::EmptyPage),
        ] {
            assert_eq!(page(text), expect, "{text}");
        }
        assert!(matches!(page(" \n"), SocialFailure::Unreadable(_)));
    }

    #[test]
    fn redirect_target_is_classified() {
        let check =
            |to: &str, expect| assert_eq!(classify_redirect(&Url::parse(to).unwrap()), expect, "{to}");
        check("https://www.instagram.com/accounts/login/?next=/reel/a/", Some(SocialFailure::LoginWall));
        check("https://www.instagram.com/", Some(SocialFailure::LoginWall));
        check("https://www.instagram.com/challenge/?next=a", Some(SocialFailure::BotCheck));
        check("https://www.instagram.com/natgeo/reel/a/", None);
    }
}
