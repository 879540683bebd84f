//! The front page: what this is, and a field for a link.

use maud::{Markup, html};

use super::{May, Page, document};

/// What the front page may do.
pub(crate) const MAY: May = May::Send;
/// The longest link that the field takes; longer ones name no video.
const LINK_LENGTH_MAX: u32 = 2_048;

/// A link that names no video, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct Wrong<'a> {
    /// What was given.
    pub(crate) link: &'a str,
    /// What to give instead.
    pub(crate) why: &'a str,
}

/// The front page.
pub(crate) fn home(wrong: Option<&Wrong<'_>>) -> Markup {
    let summary = "Paste the link of a video and read what is said in it, with the time of every passage.";
    let page = Page {
        head: html! {
            meta name="description" content=(summary);
            meta property="og:title" content="Verbatim";
            meta property="og:description" content=(summary);
            meta property="og:type" content="website";
        },
        class: "wide",
        ..Page::plain("Verbatim – the words of a video", "")
    };
    document(
        page,
        html! {
            h1.display { "Read what is said in a video" }
            p.lead {
                "Paste a link. You get the words that were spoken, each passage with its time: to read, to search, to \
                 quote, to keep."
            }
            form.find action="./" method="get" {
                label for="url" { "Link of a video" }
                div.row {
                    input #url name="url" type="text" inputmode="url" autocomplete="off" autocapitalize="off"
                        spellcheck="false" required maxlength=(LINK_LENGTH_MAX)
                        placeholder="https://www.youtube.com/watch?v=…"
                        value=[wrong.map(|wrong| wrong.link)]
                        aria-invalid=[wrong.map(|_| "true")]
                        aria-describedby=(if wrong.is_some() { "wrong hint" } else { "hint" });
                    button type="submit" { "Get the transcript" }
                }
                @if let Some(wrong) = wrong {
                    p.error #wrong role="alert" { (wrong.why) }
                }
                p.hint #hint { "YouTube, TikTok, Instagram and X. Short links work, too." }
            }
            section.facts3 aria-label="What to expect" {
                div {
                    h2 { "Word for word" }
                    p { "The words are those of the video's captions or of speech recognition. Nothing is summarised, \
                         translated or made up." }
                }
                div {
                    h2 { "Kept for good" }
                    p { "A video that was transcribed once is here for everyone, free, and at once." }
                }
                div {
                    h2 { "For programs, too" }
                    p {
                        "One request, no key needed for what is there: "
                        code { "GET /api/transcript?url=…" } ". "
                        a href="docs" { "The whole interface" } ", with calls in curl, Python and JavaScript; for programs "
                        a href="openapi.json" { "openapi.json" } ", for language models " a href="llms.txt" { "llms.txt" } "."
                    }
                }
            }
        },
    )
}
