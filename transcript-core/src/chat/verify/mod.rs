//! Verifier: limits an answer to transcript text and to sentences that cited passages support.
//!
//! The verifier receives the model's text in pieces of any size and returns sentences:
//!
//! - A citation becomes the start time of its segments; a number that the model was not given is dropped.
//! - A quotation is looked up in the passages that the sentence cites, then in the whole transcript, where the citation
//!   is replaced. The response contains the transcript's text. A near match becomes that text. Without a match, the
//!   sentence is removed.
//! - A sentence with a quotation that leaves out a negation directly outside of it is removed.
//! - A sentence without a citation is kept only if a later sentence of the same line has one.
//! - A sentence with a number that its citations and the question do not have, or that denies what they state or states
//!   what they deny or except, is removed.
//! - Times and links come from the service; those of the model are removed. A time that is spoken or asked stays.

mod amount_tokens;
mod amounts;
mod checked;
mod chinese_aspect;
mod citation;
mod claims;
mod clauses;
mod exceptions;
mod negation;
mod negation_words;
mod normalize;
mod number_words;
mod numbers;
mod opposite_words;
mod opposites;
mod passage_names;
mod quotation_marks;
mod quote_ends;
mod quote_repair;
mod quoted_negation;
mod quotes;
mod sanitize;
mod sentence_parser;
mod sentence_splitter;
mod sentence_support;
mod support;
mod times;
mod transcript_index;
mod units;
mod writer;

pub(super) use amounts::{Amounts, WrittenNumber};
pub(super) use number_words::{NumberWords, is_rarely_number};

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod opposite_tests;
#[cfg(test)]
mod quoted_negation_tests;
#[cfg(test)]
mod reversal_tests;
#[cfg(test)]
mod statement_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unit_tests;

use std::{cell::OnceCell, ops::Range, sync::Arc};

use checked::{CheckedSentence, PendingSentence};
use citation::is_only_markers;
use claims::ClaimChecker;
use passage_names::PassageNames;
use sentence_parser::{SentencePart, parse_sentence};
use sentence_splitter::{AnswerPiece, SentenceSplitter};
use support::ExtraContext;
use transcript_index::{SpokenContext, TranscriptIndex};
use writer::{AnswerWriter, QuotedSpan, place_times};

pub(super) use checked::VerifyReport;
pub(super) use citation::citation;

use super::{ChatTurn, Passage, Sentence, fold::fold, prompt::NOT_COVERED};
use crate::{
    text::head,
    transcript::{Transcript, is_unspaced},
};

/// Maximum of bytes of a model's text that are read; an answer is far shorter.
pub(super) const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Maximum of informative words around a quotation that may be absent from the transcript.
const UNSUPPORTED_MAX: usize = 4;
/// A sentence of at most this many words that the cited passage has verbatim is shown as a quotation.
const WORDS_QUOTED_MAX: usize = 3;
/// Maximum of passages that one sentence cites; [`QUOTES_MAX`] is the maximum of its quotations.
const CITED_MAX: usize = 12;
const QUOTES_MAX: usize = 16;
/// Maximum of lines without a citation that lead to a line with one.
const LEADS_MAX: usize = 2;

/// Verifies a model's text piece by piece and returns the verified sentences.
#[derive(Debug)]
pub(super) struct AnswerVerifier {
    transcript: Arc<Transcript>,
    source: TranscriptIndex,
    /// Whether the model received each passage, by index.
    given: Vec<bool>,
    question: String,
    extra: ExtraContext,
    claims: ClaimChecker,
    names: PassageNames,
    splitter: Option<SentenceSplitter>,
    received: usize,
    pending: Vec<PendingSentence>,
    /// Whether the line before ended without a citation.
    ///
    /// A citation alone on the next line then belongs to it.
    is_line_pending: bool,
    /// Whether the question continues a conversation.
    is_follow_up: bool,
    cited: Vec<Range<usize>>,
    /// Whether the start of a line was removed, so that the next sentence starts the line.
    starts_line: bool,
    report: VerifyReport,
    text: String,
}

impl AnswerVerifier {
    /// Creates the verifier of an answer to `question` after `history`; the model received `given`.
    pub(super) fn new(
        transcript: &Arc<Transcript>,
        passages: &Arc<[Passage]>,
        given: &[Passage],
        question: &str,
        history: &[ChatTurn],
    ) -> Self {
        let mut is_given = vec![false; passages.len()];
        for passage in given {
            let index = (passage.number as usize).checked_sub(1);
            if let Some(is_given) = index.and_then(|index| is_given.get_mut(index)) {
                *is_given = true;
            }
        }
        let titles = [transcript.title.as_deref(), transcript.author.as_deref()].into_iter().flatten();
        let background = titles.chain(history.iter().map(|turn| turn.content.as_str()));
        Self {
            extra: ExtraContext::new(question, background, &transcript.track.language),
            claims: ClaimChecker::new(question, &transcript.track.language),
            names: PassageNames::new(transcript, question),
            transcript: Arc::clone(transcript),
            source: TranscriptIndex::new(Arc::clone(transcript), Arc::clone(passages)),
            given: is_given,
            question: fold(question),
            splitter: Some(SentenceSplitter::new()),
            received: 0,
            pending: Vec::new(),
            is_line_pending: false,
            is_follow_up: !history.is_empty(),
            cited: Vec::new(),
            starts_line: false,
            report: VerifyReport::default(),
            text: String::new(),
        }
    }

    /// Verifies more text and returns the sentences that are complete.
    ///
    /// Ignores text beyond [`TEXT_BYTES_MAX`].
    pub(super) fn push(&mut self, text: &str) -> Vec<Sentence> {
        let read = head(text, TEXT_BYTES_MAX.saturating_sub(self.received));
        self.received += text.len();
        let mut pieces = Vec::new();
        if let Some(splitter) = &mut self.splitter {
            splitter.push(read, |piece| pieces.push(piece));
        }
        pieces.into_iter().filter_map(|piece| self.verify_piece(&piece)).collect()
    }

    /// Returns the remaining verified sentences.
    pub(super) fn finish(&mut self) -> Vec<Sentence> {
        let mut pieces = Vec::new();
        if let Some(splitter) = self.splitter.take() {
            splitter.finish(|piece| pieces.push(piece));
        }
        let remaining = pieces.into_iter().filter_map(|piece| self.verify_piece(&piece)).collect();
        self.report.removed += std::mem::take(&mut self.pending).len();
        remaining
    }

    /// Returns the counts so far.
    pub(super) fn report(&self) -> VerifyReport {
        self.report
    }

    /// Returns the verified text so far.
    pub(super) fn response(&self) -> &str {
        self.text.trim()
    }

    /// Returns the cited ranges of segments so far.
    pub(super) fn cited(&self) -> &[Range<usize>] {
        &self.cited
    }

    fn verify_piece(&mut self, piece: &AnswerPiece) -> Option<Sentence> {
        let without_report = remove_not_covered(&piece.text, !self.report.is_readable);
        self.report.says_not_covered |= without_report.is_some() && !self.report.is_readable;
        self.report.is_readable |= piece.text.chars().any(char::is_alphanumeric);
        let checked = self.check(without_report.as_deref().unwrap_or(&piece.text), piece.starts_line);
        let sentence = self.decide(piece, checked);
        if piece.ends_line {
            self.end_line();
        }
        sentence
    }

    /// Returns a sentence, holds it until a citation follows, or drops it.
    fn decide(&mut self, piece: &AnswerPiece, checked: CheckedSentence) -> Option<Sentence> {
        let has_words = checked.text.chars().any(char::is_alphanumeric);
        let is_bare = !checked.text.chars().any(|c| c.is_alphanumeric()) || is_only_markers(&checked.text);
        self.starts_line |= piece.starts_line;
        if checked.is_rejected {
            self.report.removed += 1;
            return None;
        }
        if self.is_line_pending && (has_words || !checked.cited.is_empty()) {
            self.is_line_pending = false;
            // A line with only citations belongs to the line above it.
            if !is_bare || checked.cited.is_empty() {
                self.drop_all_but_leads();
            }
        }
        if !has_words {
            return None;
        }
        let starts_line = std::mem::take(&mut self.starts_line);
        if is_bare && self.pending.is_empty() {
            // No words are left that it could cite.
            self.starts_line = starts_line;
            return None;
        }
        self.pending.push(PendingSentence {
            text: checked.text,
            separate: checked.separate,
            starts_line: starts_line && (!is_bare || self.pending.is_empty()),
        });
        if checked.cited.is_empty() {
            return None;
        }
        self.drop_unsupported(&checked.cited);
        if is_bare && self.pending.len() == 1 {
            // None of the sentences that it could cite is left.
            self.starts_line |= self.pending.pop().is_some_and(|pending| pending.starts_line);
            return None;
        }
        Some(self.emit(checked.cited))
    }

    fn end_line(&mut self) {
        self.is_line_pending |= !self.pending.is_empty();
        self.starts_line = true;
    }

    /// Drops pending sentences except lines that lead to the next one.
    ///
    /// These are headings, and lines that end with a colon.
    fn drop_all_but_leads(&mut self) {
        let leads = self
            .pending
            .iter()
            .rev()
            .take(LEADS_MAX)
            .take_while(|pending| pending.is_lead() && pending.starts_line)
            .count();
        let from = self.pending.len() - leads;
        self.report.removed += from;
        self.pending.drain(..from);
    }

    /// Drops the pending sentences that cannot rest on the citations of the last one.
    fn drop_unsupported(&mut self, cited: &[Range<usize>]) {
        let Some(last) = self.pending.pop() else { return };
        if self.pending.is_empty() {
            self.pending.push(last);
            return;
        }
        let mut spoken = SpokenContext::default();
        cited.iter().for_each(|segments| spoken.add(&self.source.words_of_segments(segments)));
        let before = self.pending.len();
        let pending = std::mem::take(&mut self.pending);
        let marker = cited.first().and_then(|segments| self.source.marker(segments)).unwrap_or_default();
        let place = |pending| self.place_pending(pending, &spoken, &marker);
        let pending = pending.into_iter().filter_map(place).collect();
        self.pending = pending;
        self.report.removed += before - self.pending.len();
        let starts_line = last.starts_line || (before > 0 && self.pending.is_empty());
        self.pending.push(PendingSentence { starts_line, ..last });
    }

    /// Returns a pending sentence with its times if it can rest on these passages, which `marker` cites.
    fn place_pending(
        &self,
        pending: PendingSentence,
        spoken: &SpokenContext,
        marker: &str,
    ) -> Option<PendingSentence> {
        let bare = sanitize::replace_times(&pending.text, &mut |_, _| false);
        let content = self.content_of(&bare);
        let is_answer = content.is_empty() && bare.contains(char::is_alphabetic) && !pending.is_lead();
        let is_kept = bare.contains(char::is_alphanumeric)
            && (!is_answer || self.may_answer(&content, &pending.text, spoken))
            && self.is_supported(&content, spoken, 0)
            && pending.separate.iter().all(|part| self.is_supported(part, spoken, 0))
            && self.agrees(&pending.text, pending.starts_line, spoken, marker);
        let amounts = OnceCell::new();
        let is_spoken = |time: &str| self.claims.has_time(time, spoken, &amounts);
        is_kept.then(|| PendingSentence { text: place_times(&pending.text, marker, &is_spoken), ..pending })
    }

    fn emit(&mut self, cited: Vec<Range<usize>>) -> Sentence {
        let before = self.text.len();
        for pending in std::mem::take(&mut self.pending) {
            let text = pending.text.trim_end();
            let is_first = self.text.is_empty();
            if pending.starts_line && !is_first {
                self.text.push('\n');
            }
            let text = if pending.starts_line || is_first { text.trim_start() } else { text };
            // Keeps Markdown from reading a link or an image across two sentences.
            let is_joined = (self.text.ends_with(']') && text.starts_with(['(', ':']))
                || (self.text.ends_with('!') && text.starts_with('['));
            if is_joined {
                self.text.push(' ');
            }
            self.text.push_str(text);
            self.report.verified += 1;
        }
        let mut citations = Vec::new();
        for segments in cited {
            if !self.cited.contains(&segments) {
                citations.extend(citation(&self.transcript, &segments));
                self.cited.push(segments);
            }
        }
        Sentence { text: self.text.get(before..).unwrap_or_default().to_owned(), citations }
    }

    /// Checks a sentence: its citations, and whether its quotations are in the transcript.
    fn check(&mut self, sentence: &str, starts_line: bool) -> CheckedSentence {
        let parts = parse_sentence(sentence, &self.names);
        let is_crowded =
            parts.iter().filter(|part| matches!(part, SentencePart::Quote(_))).count() > QUOTES_MAX;
        if is_crowded || parts.contains(&SentencePart::Unclosed) {
            return CheckedSentence { is_rejected: true, ..CheckedSentence::default() };
        }
        let numbers = self.received_passages(&parts);
        // Words that the model did not mark as a quotation are a statement.
        let has_quotation = parts.iter().any(|part| matches!(part, SentencePart::Quote(_)));
        let parts = self.quote_verbatim_words(parts, &numbers);
        let mut quotes: Vec<Option<QuotedSpan>> = Vec::with_capacity(parts.len());
        for part in &parts {
            let quote = if let SentencePart::Quote(quoted) = part {
                Some(self.classify_quote(quoted, &numbers))
            } else {
                None
            };
            quotes.push(quote);
        }
        if quotes.iter().flatten().any(|quote| *quote == QuotedSpan::NotFound)
            || (has_quotation && !self.affirm_quotes(&parts, &mut quotes))
        {
            return CheckedSentence { is_rejected: true, ..CheckedSentence::default() };
        }
        let has_verified_quote =
            quotes.iter().flatten().any(|quote| matches!(quote, QuotedSpan::Verified(_)));
        let numbers = if has_verified_quote {
            self.quoted_or_supporting_passages(&parts, &quotes, numbers)
        } else {
            self.supporting_passages(&parts, &quotes, numbers)
        };
        let parts = if has_verified_quote {
            self.drop_unsupported_text(parts, &quotes, &numbers, starts_line)
        } else {
            parts
        };
        // The words around a quotation, which may deny it, may be dropped.
        if has_quotation && !self.affirm_quotes(&parts, &mut quotes) {
            return CheckedSentence { is_rejected: true, ..CheckedSentence::default() };
        }
        let cites = parts.iter().any(|part| matches!(part, SentencePart::Cites(_)));
        let separate = self.separate_statements(sentence);
        if cites && !self.supports_separate_parts(&separate, &numbers) {
            return CheckedSentence { is_rejected: true, ..CheckedSentence::default() };
        }
        if cites && !has_verified_quote && !self.agree(&parts, &quotes, &numbers, starts_line) {
            // Its citations do not support it, so a citation of another sentence cannot either.
            return CheckedSentence { is_rejected: true, ..CheckedSentence::default() };
        }
        let writer = AnswerWriter::new(&self.source, numbers);
        CheckedSentence { separate, ..writer.write(&parts, &quotes, &self.claims) }
    }

    /// The cited passages that the model received, each once, at most [`CITED_MAX`].
    fn received_passages(&self, parts: &[SentencePart]) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        let cited = parts
            .iter()
            .flat_map(|part| if let SentencePart::Cites(numbers) = part { numbers.as_slice() } else { &[] });
        for number in cited {
            let index = (*number as usize).checked_sub(1);
            let is_given = index.and_then(|index| self.given.get(index)) == Some(&true);
            if is_given && numbers.len() < CITED_MAX && !numbers.contains(number) {
                numbers.push(*number);
            }
        }
        numbers
    }

    /// Turns a sentence that consists of a few words of a cited passage into a quotation.
    ///
    /// If an instruction in the transcript made the model write them, the reader sees that they come from the
    /// transcript.
    fn quote_verbatim_words(&mut self, mut parts: Vec<SentencePart>, numbers: &[u32]) -> Vec<SentencePart> {
        let has_words = |part: &SentencePart| match part {
            SentencePart::Text(text) => text.chars().any(char::is_alphanumeric),
            SentencePart::Quote(_) | SentencePart::Unclosed => true,
            SentencePart::Cites(_) => false,
        };
        let mut with_words = parts.iter().enumerate().filter(|(_, part)| has_words(part));
        let (Some((index, SentencePart::Text(text))), None) = (with_words.next(), with_words.next()) else {
            return parts;
        };
        let text = text.clone();
        let words = text.trim_matches(|c: char| !c.is_alphanumeric());
        let count = words.split_whitespace().count() + words.chars().filter(|c| is_unspaced(*c)).count() / 2;
        if count > WORDS_QUOTED_MAX {
            return parts;
        }
        let wanted = fold(words);
        // Case must match too: "Coal." is an answer, "PWNED" is transcript text.
        let spoken = numbers.iter().find_map(|number| {
            self.source.find_exact(*number, &wanted).filter(|spoken| spoken.words.contains(words))
        });
        let Some(spoken) = spoken else { return parts };
        // The quotation has the signs of the transcript, which must not stand beside it a second time.
        let (signs_before, signs_after) = spoken.words.split_once(words).unwrap_or_default();
        let (before, after) = text.split_once(words).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| signs_before.contains(c));
        let after = match after.trim_start().trim_start_matches(|c: char| signs_after.contains(c)) {
            unsigned if unsigned.len() < after.trim_start().len() => unsigned,
            _ => after,
        };
        parts.splice(
            index..=index,
            [
                SentencePart::Text(before.to_owned()),
                SentencePart::Quote(words.to_owned()),
                SentencePart::Text(after.to_owned()),
            ],
        );
        parts
    }
}

/// Removes the word for an uncovered question, with or without escapes; `None` if a text does not have it.
///
/// At the start of the first piece of an answer it is removed in any case.
fn remove_not_covered(text: &str, is_first: bool) -> Option<String> {
    let mut plain = text.replace("\\_", "_");
    let start = plain.len() - plain.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let word = start..start + NOT_COVERED.len();
    if is_first && plain.get(word.clone()).is_some_and(|word| word.eq_ignore_ascii_case(NOT_COVERED)) {
        plain.replace_range(word, NOT_COVERED);
    }
    plain.contains(NOT_COVERED).then(|| plain.replace(NOT_COVERED, ""))
}
