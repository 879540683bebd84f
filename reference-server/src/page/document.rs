//! What downloads of a transcript for readers contain.

use transcript_core::{
    archive::StoredTranscript,
    transcript::{Chapter, chapter_paragraphs, format_timestamp},
};

use super::{
    PageContext,
    transcript::{author, heading, kind, known_language, published_date},
};

/// Times that are links; each takes memory. The other times are text.
const LINKS_MAX: usize = 5_000;

/// Head of a document: every text is one line of printable characters.
#[derive(Debug)]
pub(super) struct DocumentHead {
    pub(super) heading: String,
    /// Channel, if known.
    pub(super) author: Option<String>,
    /// Channel, date, language and kind of the captions, as far as they are known.
    pub(super) facts: String,
    /// Where the words are from: `From YouTube:`.
    pub(super) source: String,
    /// Address of the video.
    pub(super) address: String,
    /// Language of the words, if known, as a tag.
    pub(super) language: Option<String>,
    pub(super) is_right_to_left: bool,
}

impl DocumentHead {
    pub(super) fn new(context: &PageContext, stored: &StoredTranscript) -> Self {
        let (transcript, details) = (&*stored.transcript, &*stored.details);
        let (video, language) = (&transcript.video, known_language(transcript));
        let facts = [
            author(transcript).map(str::to_owned),
            published_date(&details.metadata),
            language.map(|language| language.english_name()),
            Some(context.text(kind(transcript)).to_owned()),
        ];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        Self {
            heading: printable(&heading(context, transcript)),
            author: author(transcript).map(printable),
            facts: printable(&facts),
            source: printable(&context.fill("transcript.source", &[("platform", video.platform().name())])),
            address: video.address(),
            language: language.map(ToString::to_string),
            is_right_to_left: language.is_some_and(|language| language.is_right_to_left()),
        }
    }
}

/// A part of a document after its head: every text is one line of printable characters.
#[derive(Debug)]
pub(super) enum DocumentPart {
    /// The title of a chapter.
    Chapter(String),
    /// Words, with the time of the first one and the address of this moment.
    Paragraph { time: String, address: Option<String>, text: String },
}

/// The words of a document with their times, below their chapters.
pub(super) fn parts(stored: &StoredTranscript) -> Vec<DocumentPart> {
    let video = &stored.transcript.video;
    let chapters = &stored.details.metadata.chapters;
    let paragraphs = chapter_paragraphs(&stored.transcript.segments, chapters);
    let title = |chapter: &Chapter| DocumentPart::Chapter(printable(&chapter.title));
    let mut chapters = chapters.iter().peekable();
    let mut parts = Vec::new();
    for (index, paragraph) in paragraphs.iter().enumerate() {
        while let Some(chapter) = chapters.next_if(|next| next.start_ms <= paragraph.start_ms) {
            parts.push(title(chapter));
        }
        let seconds = paragraph.start_ms / 1000;
        parts.push(DocumentPart::Paragraph {
            time: format_timestamp(seconds),
            address: (index < LINKS_MAX).then(|| video.address_at(seconds)),
            text: printable(&paragraph.text),
        });
    }
    if !parts.is_empty() {
        // Chapters that begin after the last words.
        parts.extend(chapters.map(title));
    }
    parts
}

/// The text in one line, without the characters that XML and PDF cannot contain.
fn printable(text: &str) -> String {
    let is_allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let allowed = text.chars().filter(|c| matches!(c, '\n' | '\t') || is_allowed(c));
    allowed.map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}
