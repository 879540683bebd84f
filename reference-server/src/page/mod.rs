//! The pages that people see: HTML that is whole without scripts, one style sheet, one script.
//!
//! Everything that comes from outside is escaped by the template; texts of a transcript carry their
//! language, and their direction is found from themselves. Addresses within the service are relative to the page, so
//! that they are right wherever the service lies.

pub(crate) mod assets;
pub(crate) mod checkout;
pub(crate) mod home;
mod language;
pub(crate) mod problem;
pub(crate) mod transcript;
pub(crate) mod unwritten;
pub(crate) mod verify;

use http::HeaderValue;
use maud::{DOCTYPE, Markup, html};

use assets::{ICON, SCRIPT, STYLE};

/// What a page is, around its content.
#[derive(Debug)]
struct Page<'a> {
    /// What the browser's tab says.
    title: &'a str,
    /// The way up from the page to where the service lies: `../../` for `/watch/reels/7`.
    root: &'a str,
    /// Whether it has the script.
    has_script: bool,
    /// What else is in its head.
    head: Markup,
    /// Its class: how wide it is.
    class: &'static str,
}

impl<'a> Page<'a> {
    /// A page without a script.
    fn plain(title: &'a str, root: &'a str) -> Self {
        Self { title, root, has_script: false, head: Markup::default(), class: "narrow" }
    }
}

fn document(page: Page<'_>, body: Markup) -> Markup {
    let Page { title, root, has_script, head, class } = page;
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
                    // From the front page itself this is where one is.
                    a.brand href=(if root.is_empty() { "./" } else { root }) { "Verbatim" }
                }
                main #content tabindex="-1" { (body) }
            }
        }
    }
}

/// What a page may do: load our own style sheet and icon, and what it says. Nothing from elsewhere, and nothing inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Show itself.
    Show,
    /// Send its own form back here.
    Send,
    /// Run our script, which asks nobody but us, and send a form.
    Run,
}

/// The policy that lets a page do this and no more.
pub(crate) fn content_security_policy(may: May) -> HeaderValue {
    HeaderValue::from_static(match may {
        May::Show => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        }
        May::Send => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
             frame-ancestors 'none'"
        }
        May::Run => {
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; worker-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        }
    })
}

/// The way from a path up to where the service lies: a step for each slash but the first.
pub(crate) fn root_of(path: &str) -> String {
    "../".repeat(path.matches('/').count().saturating_sub(1))
}

#[cfg(test)]
mod tests;
