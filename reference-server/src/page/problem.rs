//! What went wrong, for whoever reads it in a browser.

use http::StatusCode;
use maud::{Markup, html};

use super::{Page, document};

/// The page of an error.
pub(crate) fn problem(status: StatusCode, detail: &str, root: &str) -> Markup {
    let title = match status {
        StatusCode::NOT_FOUND => "Nothing here",
        StatusCode::METHOD_NOT_ALLOWED => "Not this way",
        status if status.is_server_error() => "Something went wrong",
        _ => "That did not work",
    };
    document(
        Page::plain(title, root),
        html! {
            p.kicker { "Error " (status.as_u16()) }
            h1 { (title) }
            p { (detail) }
            p { a href=(if root.is_empty() { "./" } else { root }) { "To the front page" } }
        },
    )
}
