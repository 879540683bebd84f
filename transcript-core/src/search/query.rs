//! The query language: words, phrases, exclusions, alternatives, prefixes and filters.
//!
//! Parsing is total. What is malformed is searched as words: an unclosed quotation mark, an unknown filter, a date that
//! is none, an `OR` without alternatives.

use std::{slice, str::FromStr};

use jiff::civil;

use super::{
    phrase::phrase_forms,
    pieces::{QueryPiece, split},
    tokens::{cut, is_short_ngram},
};
use crate::{
    chat::{
        fold::fold,
        tokenizer::{Term, TokenKind, terms_with_ranges},
    },
    time::Timestamp,
    transcript::LanguageTag,
    video::Platform,
};

/// Longest query, in characters. The rest is ignored.
pub const QUERY_CHARS_MAX: usize = 1_000;
/// Most terms of a query: words, phrases and alternatives. Further ones are ignored.
pub const QUERY_TERMS_MAX: usize = 32;
/// Most words of a phrase. Further ones are ignored.
pub(super) const PHRASE_WORDS_MAX: usize = 64;
/// Fewest letters before the asterisk of a prefix.
const PREFIX_LETTERS_MIN: usize = 2;
/// What French, Italian and Catalan put before a word with an apostrophe. "I'm" and "it's" begin with none of them.
const ELISIONS: [&str; 13] = ["c", "ch", "d", "gl", "j", "l", "m", "n", "qu", "s", "t", "un", "v"];
/// Most filters of each kind. Further ones are ignored.
const FILTERS_MAX: usize = 8;

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Every group must occur: at least one of its alternatives.
    pub(super) groups: Vec<Vec<QueryTerm>>,
    /// None of these may occur.
    pub(super) excluded: Vec<QueryTerm>,
    /// What the transcript and its video must be.
    pub filters: SearchFilters,
    /// What they must not be. Without dates.
    pub(super) excluded_filters: SearchFilters,
    /// Languages of which words have stems; see [`super::ArchiveIndex::languages`].
    pub(super) indexed_languages: Option<Vec<String>>,
}

/// Filters of a query. Alternatives of one kind are joined with "or", the kinds with "and".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilters {
    /// Languages of the transcript; none: all.
    pub languages: Vec<LanguageTag>,
    /// Platforms of the video; none: all.
    pub platforms: Vec<Platform>,
    /// For each channel, the forms of its name, with their words as those of a phrase; none: all.
    pub(super) channels: Vec<Vec<Vec<String>>>,
    /// Only videos published before this time; without a date of publication, archived before it.
    pub before: Option<Timestamp>,
    /// Only videos published at this time or later.
    pub after: Option<Timestamp>,
}

/// A word or phrase to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryTerm {
    /// A word: folded, and in lower case with its accents, which stemmers read.
    Word { folded: String, lower: String },
    /// A run of an unspaced script or of Korean, as typed.
    Run(String),
    /// Words in this order, without other words between them. A single Chinese character is a word.
    Phrase(Vec<String>),
    /// A phrase without quotation marks: words that an apostrophe or a hyphen joins. They may have typing errors.
    Joined(Vec<String>),
    /// All of these, which were typed without a space.
    All(Vec<QueryTerm>),
    /// At least one of these.
    Any(Vec<QueryTerm>),
    /// The beginning of a word.
    Prefix(String),
}

impl SearchQuery {
    /// Parses a query.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::parse_parts(text);
        query.search_excluded();
        query
    }

    /// Parses a query to which filters may be added; [`SearchQuery::search_excluded`] follows.
    pub(super) fn parse_parts(text: &str) -> Self {
        let mut query = Self::default();
        let mut terms = 0;
        let mut is_alternative = false;
        for piece in split(text) {
            if piece.is_or {
                is_alternative = !query.groups.is_empty();
                continue;
            }
            if !piece.is_quoted && query.add_filter(&piece) {
                is_alternative = false;
                continue;
            }
            let Some(term) = term_of(&piece).filter(|_| terms < QUERY_TERMS_MAX) else { continue };
            terms += 1;
            match query.groups.last_mut() {
                _ if piece.is_excluded => query.excluded.push(term),
                Some(group) if is_alternative => group.push(term),
                _ => query.groups.push(vec![term]),
            }
            is_alternative = false;
        }
        // A repeated word would be looked up again.
        query.groups.iter_mut().for_each(remove_repeated);
        remove_repeated(&mut query.groups);
        remove_repeated(&mut query.excluded);
        query
    }

    /// Searches the exclusions of a query that has nothing else: there is nothing to exclude them from.
    pub(super) fn search_excluded(&mut self) {
        if self.is_empty() {
            self.groups = self.excluded.drain(..).map(|term| vec![term]).collect();
        }
    }

    /// Whether nothing is searched: no word and no filter.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && !self.has_filters()
    }

    /// Whether it has a filter.
    pub(super) fn has_filters(&self) -> bool {
        let none = SearchFilters::default();
        self.filters != none || self.excluded_filters != none
    }

    /// The words of the query that may have a typing error, in order.
    pub(super) fn plain_words(&self) -> impl Iterator<Item = &str> {
        let words = self.groups.iter().flatten().flat_map(|term| match term {
            QueryTerm::Word { folded, .. } => slice::from_ref(folded),
            QueryTerm::Joined(words) => words.as_slice(),
            _ => <&[String]>::default(),
        });
        words.map(String::as_str)
    }

    /// Adds a piece `name:value` as a filter; false if it is none.
    fn add_filter(&mut self, piece: &QueryPiece) -> bool {
        let Some((name, value)) = piece.text.split_once(':') else { return false };
        let filters = if piece.is_excluded { &mut self.excluded_filters } else { &mut self.filters };
        match name.to_ascii_lowercase().as_str() {
            "lang" | "language" => {
                LanguageTag::parse(value).ok().map(|language| push_bounded(&mut filters.languages, language))
            }
            "platform" => {
                Platform::parse(value).map(|platform| push_bounded(&mut filters.platforms, platform))
            }
            "channel" => {
                let forms = phrase_forms(value);
                (!forms.is_empty()).then(|| push_bounded(&mut filters.channels, forms))
            }
            "before" | "after" if piece.is_excluded => None,
            "before" => parse_day(value).map(|day| filters.before = Some(day)),
            "after" => parse_day(value).map(|day| filters.after = Some(day)),
            _ => None,
        }
        .is_some()
    }
}

/// The text of a query without its filters.
pub(super) fn text_without_filters(text: &str) -> String {
    let mut query = SearchQuery::default();
    let mut kept: Vec<QueryPiece> = Vec::new();
    for piece in split(text) {
        if piece.is_quoted || !query.add_filter(&piece) {
            kept.push(piece);
            continue;
        }
        // A filter ends the alternatives before it: an `OR` before it would join what is behind it.
        while kept.pop_if(|last| last.is_or || term_of(last).is_none()).is_some() {}
    }
    kept.into_iter().map(|piece| piece.source).collect::<Vec<_>>().join(" ")
}

impl FromStr for SearchQuery {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::parse(text))
    }
}

/// Removes the items that are equal to an earlier one.
fn remove_repeated<T: PartialEq>(items: &mut Vec<T>) {
    for item in std::mem::take(items) {
        if !items.contains(&item) {
            items.push(item);
        }
    }
}

fn push_bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() < FILTERS_MAX {
        list.push(item);
    }
}

/// The term of a piece; `None` if it has no letter or digit.
fn term_of(piece: &QueryPiece) -> Option<QueryTerm> {
    if piece.is_quoted {
        let forms = phrase_forms(&piece.text);
        // Too few characters of an unspaced script for an n-gram.
        if let [words] = forms.as_slice()
            && let [word] = words.as_slice()
            && is_short_ngram(word)
            && has_unordered_run(&piece.text)
        {
            return term_of(&QueryPiece { text: piece.text.clone(), ..QueryPiece::default() });
        }
        let mut phrases: Vec<_> = forms.into_iter().map(QueryTerm::Phrase).collect();
        return if phrases.len() > 1 { Some(QueryTerm::Any(phrases)) } else { phrases.pop() };
    }
    if let Some(beginning) = piece.text.strip_suffix('*')
        && let [QueryTerm::Word { folded, .. }] = unquoted_terms(beginning).as_slice()
        && folded.chars().count() >= PREFIX_LETTERS_MIN
    {
        return Some(QueryTerm::Prefix(folded.clone()));
    }
    if let Some(digits) = joined_number(&piece.text) {
        let folded = cut(&digits).to_owned();
        return Some(QueryTerm::Word { lower: folded.clone(), folded });
    }
    let mut terms = unquoted_terms(&piece.text);
    if terms.len() <= 1 {
        return terms.pop();
    }
    drop_elision(&piece.text, &mut terms);
    let words: Vec<String> = terms
        .iter()
        .filter_map(|term| match term {
            QueryTerm::Word { folded, .. } => Some(folded.clone()),
            _ => None,
        })
        .collect();
    match terms.len() {
        1 => terms.pop(),
        count if count == words.len() => Some(QueryTerm::Joined(words)),
        _ => Some(QueryTerm::All(terms)),
    }
}

/// Drops the article of `l'école`, which is part of no other form of the word.
fn drop_elision(text: &str, terms: &mut Vec<QueryTerm>) {
    let Some((before, after)) = text.split_once(['\'', '’']) else { return };
    // One letter is no word to search: `c't`, `d'y`.
    if after.chars().filter(|letter| letter.is_alphanumeric()).nth(1).is_none() {
        return;
    }
    let before = fold(before);
    let is_first = matches!(terms.first(), Some(QueryTerm::Word { folded, .. }) if *folded == before);
    if is_first && terms.len() > 1 && ELISIONS.contains(&before.as_str()) {
        terms.remove(0);
    }
}

/// The digits of a text that is one number with separators, such as `12,000`.
fn joined_number(text: &str) -> Option<String> {
    let (mut words, mut joined) = (String::new(), None);
    terms_with_ranges([text], |term, _, kind| match (term, kind) {
        (Term::Word(digits, _), TokenKind::Extra) => joined = Some(digits.to_owned()),
        (term, TokenKind::Ordered) => words.push_str(term.text()),
        _ => {}
    });
    joined.filter(|digits| *digits == words)
}

/// The words and runs of a text, in order.
fn unquoted_terms(text: &str) -> Vec<QueryTerm> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut run_end = 0;
    let mut run_start: Option<usize> = None;
    let run = |start: usize, end: usize| {
        QueryTerm::Run(letters.get(start..end).unwrap_or_default().iter().collect())
    };
    terms_with_ranges([text], |term, range, kind| match term {
        _ if kind == TokenKind::Extra => {}
        Term::Word(folded, lower) => {
            if let Some(start) = run_start.take() {
                found.push(run(start, run_end));
            }
            if found.len() < PHRASE_WORDS_MAX {
                let folded = cut(folded).to_owned();
                found.push(QueryTerm::Word { folded, lower: lower.to_owned() });
            }
        }
        Term::Ngram(_) => {
            // A gap of one character or more ends a run.
            if let Some(start) = run_start.take_if(|_| range.start > run_end) {
                found.push(run(start, run_end));
            }
            run_start.get_or_insert(range.start);
            run_end = run_end.max(range.end);
        }
        Term::Stem(_) => {}
    });
    if let Some(start) = run_start {
        found.push(run(start, run_end));
    }
    found
}

/// The ordered terms of a text: words, and the n-grams of unspaced scripts.
pub(super) fn ordered_terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    terms_with_ranges([text], |term, _, kind| {
        if kind == TokenKind::Ordered {
            terms.push(cut(term.text()).to_owned());
        }
    });
    terms
}

/// Whether a text of one ordered term is a run that is shorter than the pairs of an index.
fn has_unordered_run(text: &str) -> bool {
    matches!(unquoted_terms(text).as_slice(), [QueryTerm::Run(_)])
}

/// Parses a year, a month or a day, also with single digits: its first moment.
///
/// [`Timestamp::parse_time_or_date`] has another grammar: with times, and without parts of dates.
fn parse_day(text: &str) -> Option<Timestamp> {
    let mut parts = text.split('-');
    let year: i16 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut number = || match parts.next() {
        None => Some(1_i8),
        Some(part) if (1..=2).contains(&part.len()) => part.parse().ok(),
        Some(_) => None,
    };
    let (month, day) = (number()?, number()?);
    let date = parts.next().is_none().then(|| civil::Date::new(year, month, day).ok())??;
    Some(Timestamp::from_civil(date.at(0, 0, 0, 0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn show(term: &QueryTerm) -> String {
        match term {
            QueryTerm::Word { folded, .. } => folded.clone(),
            QueryTerm::Run(run) => format!("<{run}>"),
            QueryTerm::Phrase(words) | QueryTerm::Joined(words) => format!("\"{}\"", words.join(" ")),
            QueryTerm::All(terms) => terms.iter().map(show).collect::<Vec<_>>().join("&"),
            QueryTerm::Any(terms) => terms.iter().map(show).collect::<Vec<_>>().join("|"),
            QueryTerm::Prefix(prefix) => format!("{prefix}*"),
        }
    }

    fn check(text: &str, expect: &str) {
        let query = SearchQuery::parse(text);
        let groups = query.groups.iter().map(|group| group.iter().map(show).collect::<Vec<_>>().join("|"));
        let excluded = query.excluded.iter().map(|term| format!("-{}", show(term)));
        let found: Vec<String> = groups.chain(excluded).collect();
        assert_eq!(found.join(" "), expect, "{text}");
    }

    #[test]
    fn query_operators_are_parsed() {
        check("Tide  TABLES", "tide tables");
        check("\"tide tables\" -harbour", "\"tide tables\" -harbour");
        check("tide −sea －port ﹣quay –ebb", "tide ebb -sea -port -quay");
        check("tea OR coffee OR milk cup", "tea|coffee|milk cup");
        check("invest* a*", "invest* a");
        check("state-of-the-art don't l'école", "\"state of the art\" \"don t\" ecole");
        check("“tide tables” «quai»", "\"tide tables\" \"quai\"");
        check("火山爆发 AI革命", "<火山爆发> ai&<革命>");
        check("-\"two words\" one", "one -\"two words\"");
        check("서울에서 \"서울\" \"섬\" \"酒を\"", "<서울에서> \"서울\" <섬> \"酒を\"");
        check("\u{1109}\u{1165}\u{110b}\u{116e}\u{11af}", "<서울>");
        check("it's I’m we'd o'clock c't d'y", "\"it s\" \"i m\" \"we d\" \"o clock\" \"c t\" \"d y\"");
        check("d’eau qu'il (l'amic", "eau il amic");
        check("12,000 $1.450.000 \"12,000\" 1,234.56", "12000 1450000 \"12 000\" \"1 234 56\"");
        check("\"3月\" -\"第3章\" \"月\"", "\"3 月\" <月> -\"第 3 章\"");
        check("\"火山3月\" 5人", "\"火山 3 月\" 5&<人>");
        check("\" … \" tea", "tea");
        check("ד\"ר \"צה\"ל\" ב\"הארץ\" תל־אביב", "דר \"צהל\" ב \"הארץ\" \"תל אביב\"");
        check("the THE sea the OR wave OR wave -a -A \"a b\" \"A b\"", "the sea the|wave \"a b\" -a");
        check("-the -the", "the");
    }

    #[test]
    fn query_malformed_parts_are_words() {
        check("OR tea OR", "tea");
        check("\"open quote", "open quote");
        check("lang:!! before:soon colour:red", "lang \"before soon\" \"colour red\"");
        check("* - \" ** --", "");
        check("-only -these", "only these");
        check("a\u{0}b\u{202e}c", "a \"b c\"");
    }

    #[test]
    fn query_filters_are_parsed() {
        let query = SearchQuery::parse(
            "sea lang:de lang:pt-br platform:youtube channel:\"BBC News\" before:2024 after:2023-02-28",
        );
        assert_eq!(query.groups.len(), 1);
        let filters = query.filters;
        let languages: Vec<_> = filters.languages.iter().map(LanguageTag::as_str).collect();
        assert_eq!((languages, filters.platforms), (vec!["de", "pt-BR"], vec![Platform::YouTube]));
        assert_eq!(filters.channels, [[["bbc", "news"]]]);
        assert_eq!(SearchQuery::parse("channel:B站").filters.channels, [[["b", "站"]]]);
        assert_eq!(SearchQuery::parse("channel:王").filters.channels, [[["王"]]]);
        let channels = SearchQuery::parse("channel:\"東京 大学 病院 前\" channel:BBC").filters.channels;
        assert_eq!(channels.iter().map(Vec::len).collect::<Vec<_>>(), [8, 1]);
        assert_eq!(filters.before.unwrap().to_string(), "2024-01-01T00:00:00Z");
        assert_eq!(filters.after.unwrap().to_string(), "2023-02-28T00:00:00Z");
        assert!(!SearchQuery::parse("lang:de").is_empty());
        let excluded = SearchQuery::parse("sea -lang:de -channel:\"BBC News\" -platform:x -before:2024");
        assert_eq!((excluded.groups.len(), excluded.excluded.len()), (1, 1));
        let filters = excluded.excluded_filters;
        assert_eq!((filters.languages.len(), filters.platforms), (1, vec![Platform::X]));
        assert_eq!((excluded.filters, filters.channels.len()), (SearchFilters::default(), 1));
        assert!(SearchQuery::parse(" … ").is_empty());
        assert_eq!(SearchQuery::parse("before:2024-02-31").filters.before, None);
    }

    #[test]
    fn query_without_filters_has_its_other_pieces() {
        for (text, expect) in [
            (
                "sea  lang:de \"lang:de\" -channel:x channel:\"BBC News\" before:soon",
                "sea \"lang:de\" before:soon",
            ),
            ("tea OR lang:de coffee", "tea coffee"),
            ("tea OR OR … lang:de coffee", "tea coffee"),
            ("tea OR lang:de OR coffee", "tea OR coffee"),
            ("tea lang:de OR coffee", "tea OR coffee"),
        ] {
            assert_eq!(text_without_filters(text), expect, "{text}");
        }
    }

    #[test]
    fn query_words_with_errors_may_be_joined() {
        let query = SearchQuery::parse("o'conor lighthuose-warden \"exact wrds\" -nto");
        assert_eq!(query.plain_words().collect::<Vec<_>>(), ["o", "conor", "lighthuose", "warden"]);
    }

    #[test]
    fn query_size_is_bounded() {
        let terms =
            |query: &SearchQuery| query.groups.iter().map(Vec::len).sum::<usize>() + query.excluded.len();
        for text in ["a ".repeat(10_000), "a OR ".repeat(5_000), "-a ".repeat(5_000), "\"".repeat(9_999)] {
            assert!(terms(&SearchQuery::parse(&text)) <= QUERY_TERMS_MAX);
        }
    }

    proptest! {
        #[test]
        fn query_any_text_is_parsed(text in "[\\PC\"*: \u{0}-\u{1f}-]{0,60}") {
            let query = SearchQuery::parse(&text);
            prop_assert!(query.groups.iter().all(|group| !group.is_empty()));
        }

        #[test]
        fn query_without_filters_has_the_same_words(
            text in "((tea|coffee|OR|-milk|\"a b\"|…|lang:de|-lang:en|channel:\"x y\"|before:soon) ){0,9}",
        ) {
            let words = text_without_filters(&text);
            let mut query = SearchQuery::parse_parts(&text);
            query.filters = SearchFilters::default();
            query.excluded_filters = SearchFilters::default();
            prop_assert_eq!(SearchQuery::parse_parts(&words), query, "{}", words);
        }
    }
}
