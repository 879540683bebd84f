//! Decides whether the passages that a sentence cites support each of its parts.

use std::cell::OnceCell;

use super::{
    AnswerVerifier, UNSUPPORTED_MAX, claims, sanitize,
    sentence_parser::SentencePart,
    support::{ContentTerms, separate_parts},
    times,
    transcript_index::SpokenContext,
    writer::{LOOKUPS_MAX, QuotedSpan, overlap},
};

impl AnswerVerifier {
    /// Returns the cited passages that support the sentence's own words.
    ///
    /// A single quoted word supports nothing else.
    pub(super) fn supporting_passages(
        &self,
        parts: &[SentencePart],
        quotes: &[Option<QuotedSpan>],
        numbers: Vec<u32>,
    ) -> Vec<u32> {
        let own_text = own_text(parts, quotes);
        let content = self.content_of(&own_text);
        let has_fragment = || quotes.iter().flatten().any(|quote| matches!(quote, QuotedSpan::Fragment(_)));
        if content.is_empty() && own_text.contains(char::is_alphabetic) && !has_fragment() {
            let shown = shown_text(parts, quotes);
            let may_answer =
                |number: &u32| self.may_answer(&content, &shown, &self.source.context_around(*number));
            return numbers.into_iter().filter(may_answer).collect();
        }
        let is_supported =
            |number: &u32| self.is_supported(&content, &self.source.context_around(*number), 0);
        if !numbers.iter().any(is_supported) {
            return Vec::new();
        }
        // Besides a passage that supports it, a sentence may cite the neighbours of that passage.
        let is_next = |number: &u32| {
            let SpokenContext { own, neighbours } = self.source.context_around(*number);
            self.is_supported(
                &content,
                &SpokenContext { own: own + " " + &neighbours, neighbours: String::new() },
                0,
            )
        };
        numbers.into_iter().filter(is_next).collect()
    }

    /// The informative terms of a text of the answer.
    pub(super) fn content_of(&self, text: &str) -> ContentTerms {
        self.extra.content_of(text, &self.transcript.track.language)
    }

    /// Whether passages may answer the question in a sentence without an informative word.
    ///
    /// A question that continues a conversation has its subject in an earlier turn. A spoken time is informative.
    pub(super) fn may_answer(&self, content: &ContentTerms, sentence: &str, spoken: &SpokenContext) -> bool {
        self.is_follow_up
            || self.extra.is_foreign_answer(content)
            || (self.source.take_budget(spoken.len())
                && (self.extra.is_answered_in(spoken) || self.has_spoken_time(sentence, spoken)))
    }

    /// Whether passages have a time of a sentence.
    fn has_spoken_time(&self, sentence: &str, spoken: &SpokenContext) -> bool {
        let (amounts, mut lookups, mut is_spoken) = (OnceCell::new(), 0, false);
        sanitize::replace_times(sentence, &mut |time, _| {
            lookups += 1;
            is_spoken |= lookups <= LOOKUPS_MAX && self.claims.has_spoken_time(time, spoken, &amounts);
            false
        });
        is_spoken
    }

    /// Returns the cited passages that contain a quotation or support the words around it.
    pub(super) fn quoted_or_supporting_passages(
        &self,
        parts: &[SentencePart],
        quotes: &[Option<QuotedSpan>],
        numbers: Vec<u32>,
    ) -> Vec<u32> {
        let content = self.content_of(&own_text(parts, quotes));
        let supports = |number: u32| {
            !content.is_empty() && self.is_supported(&content, &self.source.context_around(number), 0)
        };
        let is_kept = |number: &u32| self.is_quoted(*number, quotes, true) || supports(*number);
        numbers.into_iter().filter(is_kept).collect()
    }

    /// Whether a passage contains a verified quotation, or a fragment if these count too.
    fn is_quoted(&self, number: u32, quotes: &[Option<QuotedSpan>], with_fragments: bool) -> bool {
        let Some(passage) = self.source.passage(number) else { return false };
        quotes.iter().flatten().any(|quote| match quote {
            QuotedSpan::Verified(spoken) => overlap(&spoken.segments, &passage.segments),
            QuotedSpan::Fragment(spoken) => with_fragments && overlap(&spoken.segments, &passage.segments),
            QuotedSpan::Unquoted(_) | QuotedSpan::NotFound => false,
        })
    }

    /// Whether a sentence has a citation with whose passages its claims agree.
    pub(super) fn agree(
        &self,
        parts: &[SentencePart],
        quotes: &[Option<QuotedSpan>],
        numbers: &[u32],
        starts_line: bool,
    ) -> bool {
        let mut spoken = SpokenContext::default();
        numbers.iter().for_each(|number| spoken.add(&self.source.context_around(*number)));
        !numbers.is_empty()
            && self.agrees(&shown_text(parts, quotes), starts_line, &spoken, &self.markers(numbers))
    }

    /// The markers of these passages as one text.
    fn markers(&self, numbers: &[u32]) -> String {
        let passages = numbers.iter().filter_map(|number| self.source.passage(*number));
        passages.filter_map(|passage| self.source.marker(&passage.segments)).collect()
    }

    /// The parts of a sentence that Markdown sets apart and that may be statements.
    pub(super) fn separate_statements(&self, sentence: &str) -> Vec<ContentTerms> {
        let parts = separate_parts(sentence);
        if parts.is_empty() {
            return Vec::new();
        }
        let (whole, language) = (self.content_of(sentence), &self.transcript.track.language);
        let content = parts.into_iter().map(|part| whole.of_part(part, language));
        content.filter(ContentTerms::is_statement).collect()
    }

    /// Whether the cited passages support each of these parts.
    pub(super) fn supports_separate_parts(&self, separate: &[ContentTerms], numbers: &[u32]) -> bool {
        let mut spoken = SpokenContext::default();
        if !separate.is_empty() {
            numbers.iter().for_each(|number| spoken.add(&self.source.context_around(*number)));
        }
        separate.iter().all(|content| self.is_supported(content, &spoken, 0))
    }

    /// Whether the times and the other claims of a sentence agree with passages.
    ///
    /// A time that they do not have must be where a timestamp may be, or that of one of their `markers`; it is replaced
    /// there.
    pub(super) fn agrees(
        &self,
        sentence: &str,
        starts_line: bool,
        spoken: &SpokenContext,
        markers: &str,
    ) -> bool {
        let sentence = if starts_line { claims::without_list_number(sentence) } else { sentence };
        let (amounts, mut lookups, mut are_spoken) = (OnceCell::new(), 0, true);
        let bare = sanitize::replace_times(sentence, &mut |time, before| {
            lookups += 1;
            are_spoken = are_spoken
                && lookups <= LOOKUPS_MAX
                && (times::may_be_timestamp(time, before)
                    || markers.contains(&format!("[{time}]"))
                    || self.claims.has_time(time, spoken, &amounts));
            false
        });
        are_spoken
            && (lookups == 0 || self.claims.has_halves_of_day(sentence, spoken, &amounts))
            && self.source.take_budget(spoken.own.len())
            && self.claims.agrees(&bare, &spoken.own, &self.extra)
    }

    pub(super) fn is_supported(
        &self,
        content: &ContentTerms,
        spoken: &SpokenContext,
        unsupported_max: usize,
    ) -> bool {
        self.source.take_budget(spoken.len())
            && content.is_supported_by(spoken, &self.extra, unsupported_max, |content| {
                self.source.any_passage(|text| content.occurs_in(text))
            })
    }

    /// Reduces a sentence with a verified quotation to the quotation if its other words are unsupported.
    pub(super) fn drop_unsupported_text(
        &self,
        parts: Vec<SentencePart>,
        quotes: &[Option<QuotedSpan>],
        numbers: &[u32],
        starts_line: bool,
    ) -> Vec<SentencePart> {
        let mut spoken = SpokenContext::default();
        numbers.iter().for_each(|number| spoken.add(&self.source.context_around(*number)));
        let mut own_text = String::new();
        for (part, quote) in parts.iter().zip(quotes) {
            match (part, quote) {
                (_, Some(QuotedSpan::Verified(one))) => {
                    spoken.add(&self.source.words_of_segments(&one.segments))
                }
                // A fragment supports nothing else.
                (_, Some(QuotedSpan::Fragment(_))) => own_text.push(' '),
                (SentencePart::Text(text) | SentencePart::Quote(text), _) => {
                    own_text.push_str(&sanitize::remove_links_and_times(text, &|_| false))
                }
                _ => own_text.push(' '),
            }
        }
        let content = self.content_of(&own_text);
        let is_supported = self.is_supported(&content, &spoken, UNSUPPORTED_MAX);
        let markers = self.markers(numbers);
        if is_supported && self.agrees(&shown_text(&parts, quotes), starts_line, &spoken, &markers) {
            return parts;
        }
        let is_own = |quote: &Option<QuotedSpan>| !matches!(quote, Some(QuotedSpan::Verified(_)));
        let bare = parts.into_iter().zip(quotes).map(|(part, quote)| match part {
            SentencePart::Text(_) | SentencePart::Quote(_) if is_own(quote) => {
                SentencePart::Text(" ".to_owned())
            }
            SentencePart::Cites(mut numbers) => {
                numbers.retain(|number| self.is_quoted(*number, quotes, false));
                SentencePart::Cites(numbers)
            }
            part => part,
        });
        bare.collect()
    }
}

/// The sentence's own words, without the quotations of the transcript.
fn own_text(parts: &[SentencePart], quotes: &[Option<QuotedSpan>]) -> String {
    let text = parts.iter().zip(quotes).map(|(part, quote)| match (part, quote) {
        (SentencePart::Unclosed | SentencePart::Cites(_), _)
        | (_, Some(QuotedSpan::Fragment(_) | QuotedSpan::Verified(_))) => " ".to_owned(),
        (SentencePart::Text(text) | SentencePart::Quote(text), _) => {
            sanitize::remove_links_and_times(text, &|_| false)
        }
    });
    text.collect()
}

/// Text of a sentence as it is shown, without markers and links.
fn shown_text(parts: &[SentencePart], quotes: &[Option<QuotedSpan>]) -> String {
    let text = parts.iter().zip(quotes).map(|(part, quote)| match (part, quote) {
        (_, Some(QuotedSpan::Verified(spoken) | QuotedSpan::Fragment(spoken))) => spoken.words.as_str(),
        (_, Some(QuotedSpan::Unquoted(words))) => words,
        (SentencePart::Text(text), _) => text,
        _ => " ",
    });
    sanitize::remove_links(&text.collect::<String>(), &|_| false)
}
