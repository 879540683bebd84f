//! Prose of the `OpenAPI` document as HTML: paragraphs, and code between backticks.

use maud::{Markup, html};

/// Renders paragraphs.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            p { (inline(paragraph)) }
        }
    }
}

/// Renders text within a line.
pub(super) fn inline(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            // Every second part was between backticks.
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
