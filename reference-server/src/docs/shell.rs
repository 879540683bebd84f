//! What all pages of the documentation have around them.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{list, operations, string};

/// The style of the pages. It lies in each of them: one request shows the whole.
pub(super) const SHEET: &str = include_str!("style.css");

/// What a page may do: show this style sheet, and nothing else.
pub(crate) fn content_security_policy() -> HeaderValue {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
        let digest = BASE64_STANDARD.encode(Sha256::digest(SHEET));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // Base64 is always a valid header; the fallback lets not even the style sheet in.
        HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    });
    POLICY.clone()
}

/// A page with the list of all operations beside it. `here` is the operation that it is about; `root` leads from it to
/// the folder that the documentation lies in.
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

/// All operations by their tags. On a small screen it is folded.
fn contents(document: &Value, here: Option<&str>, root: &str) -> Markup {
    let all = operations(document);
    let lists = html! {
        @for tag in list(&document["tags"]) {
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
