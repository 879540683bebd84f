//! HTML pages for people: complete without scripts, one style sheet, one script.
//!
//! The templates escape all outside text. Transcript text carries its language, and its direction is detected. Links
//! within the service are relative, so that they work under any base path.

pub(crate) mod assets;
pub(crate) mod checkout;
pub(crate) mod home;
pub(crate) mod moment;
pub(crate) mod no_transcript;
pub(crate) mod problem;
pub(crate) mod transcript;
pub(crate) mod verify;

use http::HeaderValue;
use maud::{DOCTYPE, Markup, html};

use assets::{ICON, SCRIPT, STYLE};

/// Frame of a page around its content.
#[derive(Debug)]
struct HtmlPage<'a> {
    /// Title of the browser tab.
    title: &'a str,
    /// Relative path to the root of the service: `../../` for `/watch/reels/7`.
    root: &'a str,
    /// Whether the page loads the script.
    has_script: bool,
    /// Further elements of the head.
    head: Markup,
    /// CSS class of the body: the width of the page.
    class: &'static str,
}

impl<'a> HtmlPage<'a> {
    /// Page without a script.
    fn plain(title: &'a str, root: &'a str) -> Self {
        Self { title, root, has_script: false, head: Markup::default(), class: "narrow" }
    }
}

fn document(page: HtmlPage<'_>, body: Markup) -> Markup {
    let HtmlPage { title, root, has_script, head, class } = page;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                (head)
                link rel="icon" type="image/svg+xml" href={ (root) "assets/" (ICON.name) };
                link rel="stylesheet" href={ (root) "assets/" (STYLE.name) };
                @if has_script { script type="module" src={ (root) "assets/" (SCRIPT.name) } {} }
            }
            body class=(class) {
                a.skip href="#content" { "Skip to the content" }
                header.masthead {
                    // On the front page itself the root is the page.
                    a.brand href=(if root.is_empty() { "./" } else { root }) { "Verbatim" }
                }
                main #content tabindex="-1" { (body) }
            }
        }
    }
}

/// What a page may do besides loading its own style sheet and icon.
/// Nothing external and nothing inline is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PagePolicy {
    /// Nothing else.
    Static,
    /// Submit its own form to this service.
    Form,
    /// Run the script, which only calls this service, and submit a form.
    Script,
}

/// Content security policy of a page.
pub(crate) fn content_security_policy(policy: PagePolicy) -> HeaderValue {
    HeaderValue::from_static(match policy {
        PagePolicy::Static => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        }
        PagePolicy::Form => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
             frame-ancestors 'none'"
        }
        PagePolicy::Script => {
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; worker-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        }
    })
}

/// Relative path from a path to the root of the service: one step per slash, except the first.
pub(crate) fn root_of(path: &str) -> String {
    "../".repeat(path.matches('/').count().saturating_sub(1))
}

#[cfg(test)]
mod tests;
