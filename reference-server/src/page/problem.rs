//! Error page.

use http::StatusCode;
use maud::{Markup, html};

use super::{HtmlPage, document};

/// Page of an error response.
pub(crate) fn problem(status: StatusCode, detail: &str, root: &str) -> Markup {
    let title = match status {
        StatusCode::NOT_FOUND => "Page not found",
        StatusCode::METHOD_NOT_ALLOWED => "Method not allowed",
        status if status.is_server_error() => "Something went wrong",
        _ => "That did not work",
    };
    document(
        HtmlPage::plain(title, root),
        html! {
            p.kicker { "Error " (status.as_u16()) }
            h1 { (title) }
            p { (detail) }
            p { a href=(if root.is_empty() { "./" } else { root }) { "To the front page" } }
        },
    )
}
