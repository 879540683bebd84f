//! A transcript as a PDF file.
//!
//! parley shapes the text and breaks its lines, krilla writes the file with the letters of the fonts that it uses, and
//! the structure that screen readers read. The same transcript and fonts give the same bytes.

mod fonts;
mod system;
mod writer;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, num::NonZeroU16, ops::Range};

use derive_more::{Display, Error};
use krilla::{
    error::KrillaError,
    metadata::{Metadata, TextDirection},
    tagging::{Tag, TagKind},
};
use transcript_core::archive::StoredTranscript;

use self::{fonts::FontSet, writer::PdfWriter};
use super::{
    PageContext,
    document::{self, DocumentHead, DocumentPart},
};

/// Media type of the file.
pub(crate) const PDF: &str = "application/pdf";

/// Text that is shaped at once, in bytes; a longer paragraph continues on a new line.
const SHAPED_BYTES: usize = 4 * 1024;

/// Why there is no PDF of a transcript.
#[derive(Debug, Display, Error)]
pub(crate) enum PdfError {
    /// No font of the server has these letters.
    #[display("no font for {letters}")]
    NoFont {
        #[error(not(source))]
        letters: String,
    },
    /// The file would have more than [`PAGES_MAX`](PdfError::PAGES_MAX) pages.
    #[display("more than {} pages", Self::PAGES_MAX)]
    TooLong,
    /// The writer failed.
    #[display("PDF not written: {_0}")]
    Writer(#[error(not(source))] KrillaError),
}

impl PdfError {
    /// Pages of a file at most: a hundred hours of speech. They take five seconds and 60 MB.
    pub(crate) const PAGES_MAX: usize = 2_000;
}

/// What a paragraph of the file is.
#[derive(Clone, Copy, Debug)]
enum BlockKind {
    Title,
    Chapter,
    Facts,
    Words,
}

impl BlockKind {
    /// Size of the letters, and the space above, in points.
    const fn measures(self) -> (f32, f32) {
        match self {
            Self::Title => (20.0, 0.0),
            Self::Chapter => (14.0, 14.0),
            Self::Facts => (9.0, 4.0),
            Self::Words => (10.5, 6.0),
        }
    }

    /// Its place in the structure by which screen readers read the file.
    fn tag(self) -> TagKind {
        const CHAPTER_LEVEL: NonZeroU16 = NonZeroU16::MIN.saturating_add(1);
        match self {
            Self::Title => Tag::Hn(NonZeroU16::MIN, None).into(),
            Self::Chapter => Tag::Hn(CHAPTER_LEVEL, None).into(),
            Self::Facts | Self::Words => Tag::P.into(),
        }
    }
}

/// A paragraph of the file.
#[derive(Debug)]
struct Block {
    kind: BlockKind,
    text: String,
    /// The space above, in points.
    space: f32,
    /// The part of the text that is a link, and its target.
    link: Option<(Range<usize>, String)>,
}

impl Block {
    fn new(kind: BlockKind, text: String) -> Self {
        Self { kind, text, space: kind.measures().1, link: None }
    }
}

/// Writes the file: title, channel, link, language, source, date, and the words with their times and chapters.
///
/// The time it takes grows with the transcript, up to the largest number of pages.
///
/// # Errors
/// No font has the letters, the transcript is too long, or the writer failed.
pub(crate) fn pdf_document(context: &PageContext, stored: &StoredTranscript) -> Result<Vec<u8>, PdfError> {
    let head = DocumentHead::new(context, stored);
    let mut blocks = blocks(&head, stored);
    let mut letters: BTreeSet<char> = blocks.iter().flat_map(|block| block.text.chars()).collect();
    letters.extend('0'..='9');
    let mut fonts = FontSet::select(&letters, head.language.as_deref())?;
    let mut writer = PdfWriter::new(&mut fonts, head.is_right_to_left, PdfError::PAGES_MAX);
    for block in &mut blocks {
        for part in parts(block) {
            writer.write(part)?;
        }
    }
    writer.finish(metadata(&head))
}

/// The paragraphs of the file in order.
fn blocks(head: &DocumentHead, stored: &StoredTranscript) -> Vec<Block> {
    let mut source = Block::new(BlockKind::Facts, format!("{} {}", head.source, head.address));
    source.link = Some((head.source.len() + 1..source.text.len(), head.address.clone()));
    let mut blocks = vec![
        Block::new(BlockKind::Title, head.heading.clone()),
        Block::new(BlockKind::Facts, head.facts.clone()),
        source,
    ];
    blocks.extend(document::parts(stored).into_iter().map(|part| match part {
        DocumentPart::Chapter(title) => Block::new(BlockKind::Chapter, title),
        DocumentPart::Paragraph { time, address, text } => {
            let link = address.map(|address| (0..time.len(), address));
            // No line ends after the time, also before a long word.
            Block { link, ..Block::new(BlockKind::Words, format!("{time}\u{a0}\u{a0}{text}")) }
        }
    }));
    blocks
}

/// The block in parts of bounded length, cut between two words where there are any.
fn parts(block: &mut Block) -> Vec<Block> {
    let mut parts = Vec::new();
    let mut rest = std::mem::take(&mut block.text);
    let mut link = block.link.take();
    let mut space = block.space;
    while !rest.is_empty() {
        let end = match rest.len() > SHAPED_BYTES {
            true => {
                let most = rest.floor_char_boundary(SHAPED_BYTES);
                rest[..most].rfind(' ').filter(|end| *end > most / 2).unwrap_or(most)
            }
            false => rest.len(),
        };
        let after = rest.split_off(end);
        let link = link.take().filter(|(range, _)| range.end <= rest.len());
        parts.push(Block { kind: block.kind, text: rest, space, link });
        (rest, space) = (after, 0.0);
    }
    parts
}

fn metadata(head: &DocumentHead) -> Metadata {
    let metadata = Metadata::new().title(head.heading.clone()).authors(head.author.iter().cloned().collect());
    let direction =
        if head.is_right_to_left { TextDirection::RightToLeft } else { TextDirection::LeftToRight };
    let metadata = metadata.text_direction(direction);
    match &head.language {
        Some(language) => metadata.language(language.clone()),
        None => metadata,
    }
}
