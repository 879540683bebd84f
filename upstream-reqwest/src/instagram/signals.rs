//! How Instagram says no: what a page without the post is, and where it sends us instead. Pure.

use url::Url;

use crate::social::Refusal;

/// How far into a page its kind is looked for, in bytes.
const SIGNS_MAX: usize = 2 << 20;

/// What a page without the post's data means.
pub(super) fn page(page: &str) -> Refusal {
    let end = (0..=SIGNS_MAX.min(page.len())).rev().find(|&end| page.is_char_boundary(end)).unwrap_or(0);
    let head = page.get(..end).unwrap_or(page);
    let has = |sign: &str| head.contains(sign);
    if has("PolarisErrorRoute") {
        Refusal::Gone
    } else if has("LoginHomepageRoute") || has("id=\"loginForm\"") || has("\"require_login\":true") {
        Refusal::LoginWall
    } else if has("Please wait a few minutes") || has("LoggedOutDesktopWWWPostRoute") {
        Refusal::HeldBack
    } else if page.trim().is_empty() {
        Refusal::Unreadable("it is empty".to_owned())
    } else {
        Refusal::Shell
    }
}

/// What it means when Instagram sends us elsewhere instead of answering.
pub(super) fn detour(location: &Url) -> Option<Refusal> {
    let path = location.path();
    if path.starts_with("/accounts/login") || path == "/" {
        Some(Refusal::LoginWall)
    } else if path.starts_with("/challenge") {
        Some(Refusal::BotCheck)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_a_post_are_told_apart() {
        for (text, expect) in [
            ("{\"canonicalRouteName\":\"comet.igweb.PolarisErrorRoute\"}", Refusal::Gone),
            ("{\"canonicalRouteName\":\"comet.igweb.PolarisCAAIGLoginHomepageRoute\"}", Refusal::LoginWall),
            ("<form id=\"loginForm\">", Refusal::LoginWall),
            ("{\"message\":\"Please wait a few minutes before you try again.\"}", Refusal::HeldBack),
            ("{\"message\":\"Please wait a few minutes\",\"require_login\":true}", Refusal::LoginWall),
            ("comet.igweb.PolarisLoggedOutDesktopWWWPostRoute", Refusal::HeldBack),
            ("<html></html>", Refusal::Shell),
        ] {
            assert_eq!(page(text), expect, "{text}");
        }
        assert!(matches!(page(" \n"), Refusal::Unreadable(_)));
    }

    #[test]
    fn detours_are_understood() {
        let check = |to: &str, expect| assert_eq!(detour(&Url::parse(to).unwrap()), expect, "{to}");
        check("https://www.instagram.com/accounts/login/?next=/reel/a/", Some(Refusal::LoginWall));
        check("https://www.instagram.com/", Some(Refusal::LoginWall));
        check("https://www.instagram.com/challenge/?next=a", Some(Refusal::BotCheck));
        check("https://www.instagram.com/natgeo/reel/a/", None);
    }
}
