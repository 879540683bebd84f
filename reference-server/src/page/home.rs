//! Front page with the link form.

use maud::{Markup, html};

use super::{HtmlPage, PagePolicy, document};

/// Content security policy of the front page.
pub(crate) const POLICY: PagePolicy = PagePolicy::Form;
/// Longest link that the form accepts; longer ones name no video.
const LINK_LENGTH_MAX: u32 = 2_048;

/// Invalid link and its error message.
#[derive(Debug)]
pub(crate) struct LinkFormError<'a> {
    /// The submitted link.
    pub(crate) link: &'a str,
    /// Error message that says what to enter instead.
    pub(crate) why: &'a str,
}

/// Front page.
pub(crate) fn home(error: Option<&LinkFormError<'_>>) -> Markup {
    let summary = "Paste the link of a video and get its transcript, with a timestamp for every passage.";
    let page = HtmlPage {
        head: html! {
            meta name="description" content=(summary);
            meta property="og:title" content="Verbatim";
            meta property="og:description" content=(summary);
            meta property="og:type" content="website";
        },
        class: "wide",
        ..HtmlPage::plain("Verbatim – video transcripts", "")
    };
    document(
        page,
        html! {
            h1.display { "Get the transcript of a video" }
            p.lead {
                "Paste a link. You get the spoken words, each passage with its time: to read, search, quote and \
                 download."
            }
            form.find action="./" method="get" {
                label for="url" { "Link of a video" }
                div.row {
                    input #url name="url" type="text" inputmode="url" autocomplete="off" autocapitalize="off"
                        spellcheck="false" required maxlength=(LINK_LENGTH_MAX)
                        placeholder="https://www.youtube.com/watch?v=…"
                        value=[error.map(|error| error.link)]
                        aria-invalid=[error.map(|_| "true")]
                        aria-describedby=(if error.is_some() { "wrong hint" } else { "hint" });
                    button type="submit" { "Get the transcript" }
                }
                @if let Some(error) = error {
                    p.error #wrong role="alert" { (error.why) }
                }
                p.hint #hint { "YouTube, TikTok, Instagram and X. Short links work, too." }
            }
            section.facts3 aria-label="What to expect" {
                div {
                    h2 { "Word for word" }
                    p { "The text comes from the video's captions or from speech recognition. It is not summarised, \
                         translated or invented." }
                }
                div {
                    h2 { "Free once transcribed" }
                    p { "After the first request the transcript is archived, free for everyone and available at once." }
                }
                div {
                    h2 { "API" }
                    p {
                        "One request, without an API key for archived transcripts: "
                        code { "GET /api/transcript?url=…" } ". "
                        a href="docs" { "API documentation" } ", with samples in curl, Python and JavaScript. "
                        "For programs: "
                        a href="openapi.json" { "openapi.json" } ". For language models: "
                        a href="llms.txt" { "llms.txt" } "."
                    }
                }
            }
        },
    )
}
