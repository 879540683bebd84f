//! Frame of all documentation pages.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{operations, string, tags};

/// Style sheet, inline in each page, so that one request loads the page.
pub(super) const SHEET: &str = include_str!("style.css");

/// The content security policy: this style sheet and nothing else.
pub(crate) fn content_security_policy() -> HeaderValue {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
        let digest = BASE64_STANDARD.encode(Sha256::digest(SHEET));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // Base64 is always a valid header value; the fallback blocks the style sheet.
        HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    });
    POLICY.clone()
}

/// Renders a page with the list of all operations.
///
/// `here` is the current operation; `root` is the relative path to the folder of the documentation.
pub(super) fn page(document: &Value, title: &str, here: Option<&str>, root: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(SHEET)) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                div.frame {
                    nav aria-label="Operations" { (contents(document, here, root)) }
                    main id="content" { (body) }
                }
            }
        }
    }
}

/// Lists all operations by tag; folded on small screens.
fn contents(document: &Value, here: Option<&str>, root: &str) -> Markup {
    let all = operations(document);
    let lists = html! {
        @for tag in tags(document) {
            @let name = string(&tag["name"]);
            p.tag { (name) }
            ul {
                @for operation in all.iter().filter(|operation| operation.tag == name) {
                    li {
                        a href={ (root) "docs/" (operation.id) } aria-current=[(here == Some(operation.id)).then_some("page")] {
                            (operation.summary)
                        }
                    }
                }
            }
        }
    };
    html! {
        p.home { a href={ (root) "docs" } aria-current=[here.is_none().then_some("page")] { "Verbatim API" } }
        details.folded { summary { "All operations" } (lists) }
        div.unfolded { (lists) }
    }
}
