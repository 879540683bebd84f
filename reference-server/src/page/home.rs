//! Front page with the link form.

use maud::{Markup, html};
use transcript_core::video::VideoLink;

use crate::config::PageIndex;

use super::{Frame, PageContext, PagePolicy, PageWidth, Section, query_parameter};

/// Content security policy of the front page.
pub(crate) const POLICY: PagePolicy = PagePolicy::Form;

/// Invalid link and its error message.
#[derive(Debug)]
pub(crate) struct LinkFormError<'a> {
    /// The submitted link.
    pub(crate) link: &'a str,
    /// Error message that says what to enter instead.
    pub(crate) why: &'a str,
}

/// Front page. `free_per_day`: new transcripts of a visitor a day, if visitors can request them.
pub(crate) fn home(
    context: &PageContext,
    free_per_day: Option<u64>,
    error: Option<&LinkFormError<'_>>,
) -> Markup {
    let body = html! {
        h1.display { (context.text("home.title")) }
        p.lead { (context.text("home.lead")) }
        (link_form(context, error))
        (expectations(context, free_per_day))
    };
    let frame = Frame::new(context, context.text("home.tab")).section(Section::Transcripts);
    let query = error.filter(|error| !error.link.is_empty()).map(|error| query_parameter("url", error.link));
    let frame = frame.width(PageWidth::Wide).indexed_with(PageIndex::Site);
    let frame = frame.described("", context.text("home.summary"));
    frame.query(&query.unwrap_or_default()).render(body)
}

fn link_form(context: &PageContext, error: Option<&LinkFormError<'_>>) -> Markup {
    html! {
        form.find action="./" method="get" {
            label for="url" { (context.text("home.link")) }
            div.row {
                input #url name="url" type="text" inputmode="url" autocomplete="off" autocapitalize="off"
                    spellcheck="false" required maxlength=(VideoLink::LENGTH_MAX) dir="ltr"
                    placeholder="https://www.youtube.com/watch?v=…"
                    value=[error.map(|error| error.link)]
                    aria-invalid=[error.map(|_| "true")] autofocus[error.is_some()]
                    aria-describedby=(if error.is_some() { "wrong hint" } else { "hint" });
                (context.language_field())
                button type="submit" { (context.text("home.submit")) }
            }
            @if let Some(error) = error {
                p.error #wrong role="alert" { (error.why) }
            }
            p.hint #hint { (context.text("home.platforms")) }
        }
    }
}

fn expectations(context: &PageContext, free_per_day: Option<u64>) -> Markup {
    let link = |path: &str, text: &str| html! { a href=(context.href(path)) { (text) } };
    html! {
        section.facts3 aria-label=(context.text("home.expectations")) {
            div {
                h2 { (context.text("home.words_title")) }
                p { (context.text("home.words")) }
            }
            div {
                h2 { (context.text("home.free_title")) }
                p {
                    (context.text("home.free"))
                    @if let Some(count) = free_per_day {
                        " " (context.fill("pricing.free_visitor", &[("count", &context.number(count))]))
                    }
                }
            }
            div {
                h2 { (context.text("home.api_title")) }
                p {
                    (context.markup("home.api", &[
                        ("call", html! { code dir="ltr" { "GET /api/transcript?url=…" } }),
                        ("docs", link("docs", context.text("home.api_docs"))),
                        ("openapi", html! { a href="openapi.json" { "openapi.json" } }),
                        ("llms", html! { a href="llms.txt" { "llms.txt" } }),
                    ]))
                }
            }
        }
    }
}
