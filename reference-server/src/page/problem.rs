//! Error page.

use http::StatusCode;
use maud::{Markup, html};

use super::{Frame, NextSteps, PageContext};

/// Page of an error response.
///
/// Errors of the server itself are in the words of the pages: their `detail` is for programs. Those of a page already
/// have a sentence of the pages. `links` are relative addresses, each with the message of its text.
pub(crate) fn problem(
    context: &PageContext,
    status: StatusCode,
    detail: &str,
    links: &[(String, &str)],
) -> Markup {
    let (title, why) = match status {
        StatusCode::NOT_FOUND | StatusCode::MISDIRECTED_REQUEST => {
            ("problem.not_found", Some("problem.not_found_why"))
        }
        StatusCode::METHOD_NOT_ALLOWED => ("problem.method", Some("problem.method_why")),
        StatusCode::SERVICE_UNAVAILABLE => ("problem.fault", Some("problem.busy_why")),
        status if status.is_server_error() => ("problem.fault", Some("problem.fault_why")),
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => ("problem.other", Some("problem.incomplete")),
        _ => ("problem.other", None),
    };
    let (title, detail) = (context.text(title), why.map_or(detail, |why| context.text(why)));
    Frame::new(context, title).render(html! {
        h1 { (title) }
        p { (detail) }
        @for (address, text) in links { p { a href=(address) { (context.text(text)) } } }
        (NextSteps::default().render(context))
        // For a report to the operator: a reader knows no status.
        p.hint { (context.fill("problem.kicker", &[("status", status.as_str())])) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_page_begins_with_reason_and_ends_with_status() {
        let context = PageContext::for_test("/watch/video_site/dQw4w9WgXcQ/pdf");
        let page = problem(&context, StatusCode::UNPROCESSABLE_ENTITY, "No font.", &[]).into_string();
        let content = page.split("<main").nth(1).unwrap();
        assert!(content.contains("><h1>That did not work</h1><p>No font.</p>"), "{content}");
        assert!(content.contains("</nav><p class=\"hint\">Error 422</p></main>"), "{content}");
    }
}
