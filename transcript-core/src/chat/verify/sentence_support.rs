//! Decides whether the passages that a sentence cites support each of its parts.

use super::{
    AnswerVerifier, UNSUPPORTED_MAX, claims, sanitize,
    sentence_parser::SentencePart,
    support::{ContentTerms, separate_parts},
    transcript_index::SpokenContext,
    writer::QuotedSpan,
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
        let own_text = parts.iter().zip(quotes).map(|(part, quote)| match (part, quote) {
            (SentencePart::Unclosed | SentencePart::Cites(_), _) | (_, Some(QuotedSpan::Fragment(_))) => {
                " ".to_owned()
            }
            (SentencePart::Text(text) | SentencePart::Quote(text), _) => {
                sanitize::remove_links_and_times(text, &|_| false)
            }
        });
        let content = ContentTerms::new(&own_text.collect::<String>(), &self.transcript.track.language);
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
        !numbers.is_empty() && self.agrees(&shown_text(parts, quotes), starts_line, &spoken)
    }

    /// Whether the cited passages support each part that Markdown sets apart and that may be a statement.
    pub(super) fn supports_separate_parts(&self, sentence: &str, numbers: &[u32]) -> bool {
        let parts = separate_parts(sentence);
        if parts.is_empty() {
            return true;
        }
        let mut spoken = SpokenContext::default();
        numbers.iter().for_each(|number| spoken.add(&self.source.context_around(*number)));
        parts.into_iter().all(|part| {
            let content = ContentTerms::new(part, &self.transcript.track.language);
            !content.is_statement() || self.is_supported(&content, &spoken, 0)
        })
    }

    pub(super) fn agrees(&self, sentence: &str, starts_line: bool, spoken: &SpokenContext) -> bool {
        let sentence = if starts_line { claims::without_list_number(sentence) } else { sentence };
        self.source.take_budget(spoken.own.len()) && self.claims.agrees(sentence, &spoken.own, &self.extra)
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
                (SentencePart::Text(text) | SentencePart::Quote(text), _) => {
                    own_text.push_str(&sanitize::remove_links_and_times(text, &|_| false))
                }
                _ => own_text.push(' '),
            }
        }
        let content = ContentTerms::new(&own_text, &self.transcript.track.language);
        let is_supported = self.is_supported(&content, &spoken, UNSUPPORTED_MAX);
        if is_supported && self.agrees(&shown_text(&parts, quotes), starts_line, &spoken) {
            return parts;
        }
        let is_own = |quote: &Option<QuotedSpan>| !matches!(quote, Some(QuotedSpan::Verified(_)));
        let bare = parts.into_iter().zip(quotes).map(|(part, quote)| match part {
            SentencePart::Text(_) | SentencePart::Quote(_) if is_own(quote) => {
                SentencePart::Text(" ".to_owned())
            }
            part => part,
        });
        bare.collect()
    }
}

/// Text of a sentence as it is shown, without markers, links and times.
fn shown_text(parts: &[SentencePart], quotes: &[Option<QuotedSpan>]) -> String {
    let text = parts.iter().zip(quotes).map(|(part, quote)| match (part, quote) {
        (_, Some(QuotedSpan::Verified(spoken) | QuotedSpan::Fragment(spoken))) => spoken.words.as_str(),
        (_, Some(QuotedSpan::Unquoted(words))) => words,
        (SentencePart::Text(text), _) => text,
        _ => " ",
    });
    sanitize::remove_links_and_times(&text.collect::<String>(), &|_| false)
}
