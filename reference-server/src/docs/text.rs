//! The document's prose as HTML: paragraphs, and what stands between backticks as code.

use maud::{Markup, html};

/// A text of one or several paragraphs.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            p { (inline(paragraph)) }
        }
    }
}

/// A text within a line.
pub(super) fn inline(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            // Every other part stood between two marks.
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
