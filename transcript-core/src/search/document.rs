//! What an index stores of a transcript: its terms, in rows of bounded size.

use foldhash::HashSet;
use sha2::{Digest, Sha256};

use super::{
    moments::spoken_texts,
    months::month_term,
    query::PHRASE_WORDS_MAX,
    tokens::{IndexTokenizer, IndexTokenizers, TokenKind, any_term, language_script_term, platform_term},
};
use crate::{
    archive::StoredTranscript,
    hex,
    time::Timestamp,
    transcript::{LanguageTag, TrackSelector},
    video::VideoId,
};

/// Version of the terms. A change makes every index build itself again.
pub const INDEX_FORMAT: u32 = 12;
/// Bytes of text after which a row ends.
const ROW_BYTES: usize = 64 * 1024;
/// Ordered terms of a row that begin the next one, too: every phrase of a query is in one row.
const SHARED_TERMS: usize = PHRASE_WORDS_MAX - 1;
/// Most rows of a transcript: text beyond them is found by its words, but not by its phrases.
pub const ROWS_MAX: usize = 64;
/// Most terms of the other rows that each row repeats, so that words in different rows are found together; and their
/// bytes. The rest of a longer vocabulary is found in its own row only.
const OTHER_TERMS_MAX: usize = 16_000;
const OTHER_BYTES_MAX: usize = 256 * 1024;

/// A transcript in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchDocument {
    /// Selector by which the archive returns the transcript.
    pub selector: TrackSelector,
    /// Its language.
    pub language: LanguageTag,
    /// When the video was published; if that is unknown, when the transcript was archived.
    pub date: Timestamp,
    /// Digest of what the terms are made from.
    pub digest: String,
    /// Its terms. At least one row.
    pub rows: Vec<TermRow>,
}

/// Terms of a part of a transcript, separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermRow {
    /// Ordered terms of the title.
    pub title: String,
    /// Ordered terms of the channel's name.
    pub channel: String,
    /// Ordered terms of the text.
    pub words: String,
    /// Stems, single characters and numbers of title, channel and text, in no order. None is a term of a phrase.
    pub extras: String,
    /// Terms of the transcript's other rows, in no order.
    pub others: String,
    /// Terms of language and platform.
    pub facets: String,
}

/// A video in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedVideo {
    /// The video.
    pub video: VideoId,
    /// Number of its newest change that the documents include; 0 when the index is built from the whole archive.
    pub change: u64,
    /// Its transcripts. None if it was deleted or withdrawn.
    pub documents: Vec<SearchDocument>,
}

/// Terms that were added once.
#[derive(Debug, Default)]
struct TermSet {
    known: HashSet<String>,
    text: String,
}

impl TermSet {
    fn add(&mut self, term: &str) {
        if !self.known.contains(term) {
            self.known.insert(term.to_owned());
            push(&mut self.text, term);
        }
    }
}

fn push(text: &mut String, term: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(term);
}

/// The last terms of a row, with which the next one begins.
fn shared_words(words: &str) -> &str {
    let start = words.rmatch_indices(' ').nth(SHARED_TERMS - 1).map_or(0, |(space, _)| space + 1);
    words.get(start..).unwrap_or_default()
}

/// Digest of what the terms of a transcript are made from.
pub(super) fn document_digest(stored: &StoredTranscript) -> String {
    let transcript = &stored.transcript;
    let mut hash = Sha256::new();
    hash.update(INDEX_FORMAT.to_be_bytes());
    hash.update(&stored.content_sha256);
    for text in
        [transcript.title.as_deref(), transcript.author.as_deref(), Some(transcript.track.language.as_str())]
    {
        let text = text.unwrap_or_default();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.update(document_date(stored).as_millis().to_be_bytes());
    hex::encode(hash.finalize().get(..8).unwrap_or_default())
}

pub(super) fn document_date(stored: &StoredTranscript) -> Timestamp {
    stored.details.metadata.published_at.unwrap_or(stored.stored_at)
}

/// The terms that every row of a transcript has, and by which filters find it.
pub(super) fn facets(stored: &StoredTranscript) -> [String; 3] {
    let (video, language) = (&stored.transcript.video, &stored.transcript.track.language);
    [any_term(), language_script_term(language, language.primary()), platform_term(video.platform())]
}

impl SearchDocument {
    /// The terms of a transcript, in rows of at most `row_terms` ordered terms and some that rows share.
    pub fn new(selector: TrackSelector, stored: &StoredTranscript, row_terms: usize) -> Self {
        Self::with_tokenizers(selector, stored, row_terms, &IndexTokenizers::default())
    }

    /// As [`SearchDocument::new`], with the stems that were found before.
    pub(super) fn with_tokenizers(
        selector: TrackSelector,
        stored: &StoredTranscript,
        row_terms: usize,
        tokenizers: &IndexTokenizers,
    ) -> Self {
        Self {
            selector,
            language: stored.transcript.track.language.clone(),
            date: document_date(stored),
            digest: document_digest(stored),
            rows: tokenizers
                .with(&stored.transcript.track.language, |tokenizer| rows(stored, row_terms, tokenizer)),
        }
    }
}

/// Rows of a transcript, of which each finds the words of all.
fn rows(stored: &StoredTranscript, row_terms: usize, tokenizer: &mut IndexTokenizer) -> Vec<TermRow> {
    let transcript = &stored.transcript;
    let mut head = TermRow { facets: facets(stored).join(" "), ..TermRow::default() };
    push(&mut head.facets, &month_term(document_date(stored)));
    let mut extras = TermSet::default();
    for (text, ordered) in [(&transcript.title, &mut head.title), (&transcript.author, &mut head.channel)] {
        tokenizer.tokens(text.as_deref(), |term, _, kind| match kind {
            TokenKind::Ordered => push(ordered, term),
            TokenKind::Extra => extras.add(term),
        });
    }
    head.extras = std::mem::take(&mut extras.text);
    let mut builder = RowBuilder { head, row_terms, extras, ..RowBuilder::default() };
    tokenizer.tokens(spoken_texts(&transcript.segments), |term, _, kind| builder.add(term, kind));
    builder.finish()
}

/// Collects the terms of a text into rows.
#[derive(Debug, Default)]
struct RowBuilder {
    /// What every row begins with.
    head: TermRow,
    row_terms: usize,
    rows: Vec<TermRow>,
    words: String,
    terms: usize,
    extras: TermSet,
    /// The first terms of the whole transcript, collected from its second row on: most transcripts have one row.
    all: TermSet,
}

impl RowBuilder {
    fn add(&mut self, term: &str, kind: TokenKind) {
        if kind == TokenKind::Ordered && (self.terms >= self.row_terms || self.words.len() >= ROW_BYTES) {
            self.end_row();
        }
        if !self.rows.is_empty() {
            self.add_to_all(term);
        }
        match kind {
            _ if self.rows.len() >= ROWS_MAX => {}
            TokenKind::Extra => self.extras.add(term),
            TokenKind::Ordered => {
                push(&mut self.words, term);
                self.terms += 1;
            }
        }
    }

    fn end_row(&mut self) {
        if self.rows.len() < ROWS_MAX {
            let row = self.row();
            self.terms = 0;
            if self.rows.is_empty() {
                let terms = row.words.split(' ').chain(row.extras.split(' '));
                terms.filter(|term| !term.is_empty()).for_each(|term| self.add_to_all(term));
            }
            self.words = shared_words(&row.words).to_owned();
            self.rows.push(row);
        }
    }

    /// The terms since the last row.
    fn row(&mut self) -> TermRow {
        let extras = std::mem::take(&mut self.extras);
        let mut row = TermRow { words: std::mem::take(&mut self.words), ..self.head.clone() };
        push(&mut row.extras, &extras.text);
        row
    }

    fn add_to_all(&mut self, term: &str) {
        if self.all.known.len() < OTHER_TERMS_MAX && self.all.text.len() < OTHER_BYTES_MAX {
            self.all.add(term);
        }
    }

    /// Ends the last row, and adds to each row the terms of the others.
    fn finish(mut self) -> Vec<TermRow> {
        if self.rows.is_empty() {
            return vec![self.row()];
        }
        if self.terms > 0 {
            self.end_row();
        }
        if self.rows.len() > 1 {
            for row in &mut self.rows {
                let own: HashSet<&str> = row.words.split(' ').chain(row.extras.split(' ')).collect();
                let others: Vec<&str> = self.all.text.split(' ').filter(|term| !own.contains(term)).collect();
                row.others = others.join(" ");
            }
        }
        self.rows
    }
}
