//! The form that tries a lookup without a key. Without the script it opens the response itself.

use maud::{Markup, html};
use transcript_core::video::VideoLink;

use crate::{api::ResponseFormat, page::PageContext};

/// Link that the form begins with.
const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";

/// Renders the form. The script shows the response as text below it.
pub(super) fn console(context: &PageContext) -> Markup {
    html! {
        form.console action={ (context.root()) "api/transcript" } method="get" {
            label for="console-url" { "Link of a video" }
            input #console-url name="url" type="text" inputmode="url" autocomplete="off" spellcheck="false" required
                maxlength=(VideoLink::LENGTH_MAX) value=(LINK);
            // One box, so that a line never ends between them.
            label {
                "Format "
                select name="format" { @for format in ResponseFormat::names() { option value=(format) { (format) } } }
            }
            button type="submit" { "Send without a key" }
            div #console-response hidden {
                p.about role="status" {}
                pre tabindex="0" role="group" aria-label="Response" { code {} }
            }
        }
    }
}
