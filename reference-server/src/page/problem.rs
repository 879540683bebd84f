//! Error page.

use http::StatusCode;
use maud::{Markup, html};

use super::{Frame, NextSteps, PageContext};

/// Page of an error response.
pub(crate) fn problem(context: &PageContext, status: StatusCode, detail: &str) -> Markup {
    let title = context.text(match status {
        StatusCode::NOT_FOUND => "problem.not_found",
        StatusCode::METHOD_NOT_ALLOWED => "problem.method",
        status if status.is_server_error() => "problem.fault",
        _ => "problem.other",
    });
    Frame::new(context, title).render(html! {
        p.kicker { (context.fill("problem.kicker", &[("status", status.as_str())])) }
        h1 { (title) }
        p { (detail) }
        (NextSteps::default().render(context))
    })
}
