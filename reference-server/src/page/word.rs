//! A transcript as a document for word processors (DOCX).

use std::io::{self, Cursor};

use docx_rs::{Docx, Hyperlink, HyperlinkType, Paragraph, Run, Style, StyleType};
use transcript_core::archive::StoredTranscript;

use super::{
    PageContext,
    document::{DocumentHead, DocumentPart, parts},
};

/// Sizes of the title, of chapters and of facts, in half points.
const SIZES: [usize; 3] = [36, 26, 20];

/// Media type of the document.
pub(crate) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Writes the document: title, channel, link, language, source, date, and the words with their times and chapters.
///
/// The time it takes grows with the transcript.
///
/// # Errors
/// The writer failed.
pub(crate) fn word_document(context: &PageContext, stored: &StoredTranscript) -> io::Result<Vec<u8>> {
    let head = DocumentHead::new(context, stored);
    let is_rtl = head.is_right_to_left;
    let [title, chapter, fact] = SIZES;
    let style =
        |id: &str, name: &str, size| Style::new(id, StyleType::Paragraph).name(name).size(size).bold();
    let mut docx = Docx::new()
        .add_style(style("Heading1", "heading 1", title))
        .add_style(style("Heading2", "heading 2", chapter))
        .add_paragraph(directed(words(&head.heading).style("Heading1"), is_rtl));
    let source = Paragraph::new()
        .add_run(Run::new().add_text(format!("{} ", head.source)).size(fact))
        .add_hyperlink(link(&head.address, &head.address, fact));
    docx = docx.add_paragraph(directed(words(&head.facts).size(fact), is_rtl)).add_paragraph(source);
    for part in parts(stored) {
        let paragraph = match part {
            DocumentPart::Chapter(title) => words(&title).style("Heading2"),
            DocumentPart::Paragraph { time, address, text } => spoken(&time, address.as_deref(), &text),
        };
        docx = docx.add_paragraph(directed(paragraph, is_rtl));
    }
    let mut bytes = Cursor::new(Vec::new());
    docx.build().pack(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.into_inner())
}

/// A paragraph of the transcript: its time, and the words.
fn spoken(time: &str, address: Option<&str>, text: &str) -> Paragraph {
    let size = 18;
    let start = match address {
        Some(address) => Paragraph::new().add_hyperlink(link(address, time, size)),
        None => Paragraph::new().add_run(Run::new().add_text(time).size(size)),
    };
    start.add_run(Run::new().add_text(format!("  {text}")))
}

fn words(text: &str) -> Paragraph {
    Paragraph::new().add_run(Run::new().add_text(text))
}

fn link(address: &str, text: &str, size: usize) -> Hyperlink {
    let run = Run::new().add_text(text).color("1F5C57").underline("single").size(size);
    Hyperlink::new(address, HyperlinkType::External).add_run(run)
}

/// The paragraph in the direction of the transcript.
fn directed(mut paragraph: Paragraph, is_right_to_left: bool) -> Paragraph {
    if is_right_to_left {
        paragraph.property = paragraph.property.bidi(true);
    }
    paragraph
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        transcript::{Segment, VideoDetails},
        video::{Platform, VideoId},
    };

    use super::*;

    #[test]
    fn document_has_facts_and_escaped_words() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let mut transcript = crate::testing::transcript(&video);
        transcript.title = Some("A <b> & \u{0}\u{b}talk".to_owned());
        transcript.segments = vec![Segment::new("שלום <w:p> 日本語", 61_000, 1_000)];
        let stored = crate::testing::stored(transcript, VideoDetails::default());
        let bytes = word_document(&PageContext::for_test("/watch/video_site/x"), &stored).unwrap();
        assert!(bytes.starts_with(b"PK"));
        // The library stores the parts without compression.
        let text = String::from_utf8_lossy(&bytes);
        for part in [
            "A &lt;b&gt; &amp; talk",
            "Ann · English",
            "&lt;w:p&gt; 日本語",
            "1:01",
            "v=dQw4w9WgXcQ&amp;t=61s",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
