//! What an index is asked for: a query as an expression over its terms.

use super::{
    SearchFilters, SearchQuery,
    months::month_prefixes,
    phrase::RUN_END,
    query::{PHRASE_WORDS_MAX, QueryTerm, ordered_terms},
    tokens::{
        any_term, is_alphabetic, is_short_ngram, is_single_ideograph, language_script_term, marked_stem,
        platform_term, stems_of,
    },
};
use crate::{
    chat::fold::nasal_endings,
    time::Timestamp,
    transcript::script::{Script, char_script},
};

/// Condition on the terms of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermCondition {
    /// The term occurs anywhere.
    Term(String),
    /// A term begins with this, wherever it is.
    Prefix(String),
    /// These ordered terms follow each other.
    Phrase(Vec<String>),
    /// These terms follow each other in the channel's name.
    Channel(Vec<String>),
    /// All conditions hold. Never empty.
    All(Vec<Self>),
    /// At least one condition holds. Never empty.
    Any(Vec<Self>),
}

impl TermCondition {
    /// What an index can check of the condition.
    ///
    /// A single Chinese character has no place in the order of its terms, and its n-grams are those of any runs.
    fn without_characters(&self) -> Self {
        let all =
            |conditions: &[Self]| -> Vec<Self> { conditions.iter().map(Self::without_characters).collect() };
        match self {
            Self::Phrase(words) => without_characters(words, phrase),
            Self::Channel(words) => without_characters(words, Self::Channel),
            Self::All(conditions) => Self::All(all(conditions)),
            Self::Any(conditions) => Self::Any(all(conditions)),
            other => other.clone(),
        }
    }
}

/// The parts of a phrase without single Chinese characters, and these characters anywhere.
fn without_characters(words: &[String], in_order: fn(Vec<String>) -> TermCondition) -> TermCondition {
    let words: Vec<String> = words.iter().filter(|word| *word != RUN_END).cloned().collect();
    if !words.iter().any(|word| is_single_ideograph(word)) {
        return in_order(words);
    }
    let is_same = |one: &String, other: &String| !is_single_ideograph(one) && !is_single_ideograph(other);
    let parts = words.chunk_by(is_same).map(|part| match part {
        [word] if is_single_ideograph(word) => TermCondition::Term(word.clone()),
        _ => in_order(part.to_vec()),
    });
    TermCondition::All(parts.collect())
}

/// A query of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexQuery {
    /// All of these must hold. Never empty.
    pub all: Vec<TermCondition>,
    /// None of these may hold.
    pub none: Vec<TermCondition>,
    /// Only videos of an earlier date; see [`IndexQuery::with_months`].
    pub before: Option<Timestamp>,
    /// Only videos of this or a later date.
    pub after: Option<Timestamp>,
    /// How many conditions at the start of `all` are words of the query. The others are filters.
    pub(super) word_groups: usize,
}

impl IndexQuery {
    /// A query without dates. `all` must not be empty.
    pub fn new(all: Vec<TermCondition>, none: Vec<TermCondition>) -> Self {
        Self { word_groups: all.len(), all, none, before: None, after: None }
    }

    /// The query with a condition that no document outside the months of its dates satisfies.
    ///
    /// An index that ranks a limited number of matches must not fill it with others.
    #[must_use]
    pub fn with_months(mut self) -> Self {
        if self.after.is_some() || self.before.is_some() {
            let prefixes = month_prefixes(self.after, self.before);
            self.all.extend(any(prefixes.into_iter().map(TermCondition::Prefix).collect()));
        }
        self
    }

    /// What an index can check of the query: every transcript that the query matches satisfies it.
    pub(super) fn for_index(&self) -> Self {
        let mut query = self.clone();
        query.all = self.all.iter().map(TermCondition::without_characters).collect();
        // What is excluded in part would be excluded too often.
        query.none.retain(|condition| condition.without_characters() == *condition);
        query
    }
}

/// How strictly a run of an unspaced script is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunMode {
    /// As one phrase, or as its parts where the script shows them.
    Strict,
    /// By any of its n-grams, where its words are unknown: see [`has_unknown_words`].
    Relaxed,
}

impl SearchQuery {
    /// The expression of the query; `None` if nothing is searched.
    pub(super) fn compile(&self, mode: RunMode) -> Option<IndexQuery> {
        let condition = |term: &QueryTerm| self.condition(term, mode);
        let mut all: Vec<_> =
            self.groups.iter().filter_map(|group| any(group.iter().map(condition).collect())).collect();
        let word_groups = all.len();
        all.extend(filter_conditions(&self.filters));
        if all.is_empty() && self.has_filters() {
            all.push(TermCondition::Term(any_term()));
        }
        let none = self.excluded.iter().map(condition);
        let none = none.chain(filter_conditions(&self.excluded_filters)).collect();
        let (before, after) = (self.filters.before, self.filters.after);
        (!all.is_empty()).then_some(IndexQuery { all, none, before, after, word_groups })
    }

    /// Whether the relaxed mode can find more.
    pub(super) fn has_runs(&self) -> bool {
        let is_run = |term: &QueryTerm| match term {
            QueryTerm::Run(run) => has_unknown_words(run),
            QueryTerm::All(terms) => {
                terms.iter().any(|term| matches!(term, QueryTerm::Run(run) if has_unknown_words(run)))
            }
            _ => false,
        };
        self.groups.iter().flatten().any(is_run)
    }

    fn condition(&self, term: &QueryTerm, mode: RunMode) -> TermCondition {
        match term {
            QueryTerm::Word { folded, lower } => self.word_condition(folded, lower),
            QueryTerm::Run(run) => match mode {
                RunMode::Strict => run_condition(run),
                RunMode::Relaxed => any_pair(run),
            },
            QueryTerm::Phrase(words) | QueryTerm::Joined(words) => phrase(words.clone()),
            QueryTerm::All(terms) => {
                TermCondition::All(terms.iter().map(|term| self.condition(term, mode)).collect())
            }
            QueryTerm::Any(terms) => {
                TermCondition::Any(terms.iter().map(|term| self.condition(term, mode)).collect())
            }
            QueryTerm::Prefix(prefix) => prefix_condition(prefix),
        }
    }

    /// A word or, in each language with a stemmer, a word of the same stem.
    fn word_condition(&self, folded: &str, lower: &str) -> TermCondition {
        let stems = stems_of(folded, lower, &self.filters.languages, self.indexed_languages.as_deref());
        let stems =
            stems.into_iter().map(|(stem, language)| TermCondition::Term(marked_stem(&stem, language)));
        let mut forms = vec![TermCondition::Term(folded.to_owned())];
        forms.extend(stems);
        if forms.len() == 1 { forms.remove(0) } else { TermCondition::Any(forms) }
    }
}

/// A condition for each kind of filters but dates.
fn filter_conditions(filters: &SearchFilters) -> impl Iterator<Item = TermCondition> {
    let languages: Vec<_> = filters
        .languages
        .iter()
        .flat_map(|tag| tag.primaries().map(move |primary| language_script_term(tag, primary)))
        .map(TermCondition::Term)
        .collect();
    let platforms = filters.platforms.iter().map(|name| TermCondition::Term(platform_term(*name)));
    let channels = filters.channels.iter().flatten().cloned().map(TermCondition::Channel);
    [languages, platforms.collect(), channels.collect()].into_iter().filter_map(any)
}

fn any(mut conditions: Vec<TermCondition>) -> Option<TermCondition> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(TermCondition::Any(conditions)),
    }
}

/// Words in order, or the first of them: an index has longer phrases only within its rows.
fn phrase(mut words: Vec<String>) -> TermCondition {
    words.truncate(PHRASE_WORDS_MAX);
    match words.len() {
        1 => TermCondition::Term(words.pop().unwrap_or_default()),
        _ => TermCondition::Phrase(words),
    }
}

/// The beginning of a word, in Hindi with a nasal consonant at its end also in the form that has a sign for it.
fn prefix_condition(prefix: &str) -> TermCondition {
    let mut letters = prefix.chars();
    let nasal = letters.next_back();
    let before = letters.as_str();
    let mut forms = vec![TermCondition::Prefix(prefix.to_owned())];
    let endings = nasal.into_iter().flat_map(nasal_endings);
    forms.extend(endings.map(|[sign, next]| TermCondition::Prefix(format!("{before}{sign}{next}"))));
    if forms.len() == 1 { forms.remove(0) } else { TermCondition::Any(forms) }
}

/// A run without spaces.
fn run_condition(run: &str) -> TermCondition {
    let whole = whole_run(run);
    let letters: Vec<char> = run.chars().collect();
    let is_korean = letters.iter().all(|letter| char_script(*letter) == Script::Hangul);
    let mut forms = vec![whole];
    if is_korean {
        // Particles of one or two syllables follow a word.
        for particle in 1..=2 {
            if letters.len() >= particle + 2 {
                let word: String = letters.iter().take(letters.len() - particle).collect();
                forms.push(whole_run(&word));
            }
        }
    } else {
        forms.extend(parts_condition(&letters));
    }
    if forms.len() == 1 { forms.remove(0) } else { TermCondition::Any(forms) }
}

/// A run as one phrase. A run shorter than an n-gram is the beginning of one.
fn whole_run(run: &str) -> TermCondition {
    let ngrams = ordered_terms(run);
    match ngrams.as_slice() {
        [only] if is_short_ngram(only) && !is_single_ideograph(only) => TermCondition::Prefix(only.clone()),
        _ => phrase(ngrams),
    }
}

/// The parts of a Japanese run: its scripts show most words. Particles are short and in Hiragana.
fn parts_condition(letters: &[char]) -> Option<TermCondition> {
    let mut parts: Vec<(Script, String)> = Vec::new();
    for letter in letters {
        let script = char_script(*letter);
        // `ー` and voicing marks are of the script of the letter before them.
        let continues = |last: Script| last == script || matches!(script, Script::Common | Script::Inherited);
        match parts.last_mut() {
            Some((last, part)) if continues(*last) => part.push(*letter),
            _ => parts.push((script, (*letter).into())),
        }
    }
    let is_word = |(script, part): &(Script, String)| {
        matches!(*script, Script::Han | Script::Katakana) || part.chars().count() > 3
    };
    let words: Vec<_> = parts.iter().filter(|part| is_word(part)).map(|(_, part)| whole_run(part)).collect();
    (parts.len() > 1 && !words.is_empty()).then_some(TermCondition::All(words))
}

/// Whether nothing shows the words of a text: it has Chinese characters, or a script such as Thai.
///
/// A pair of kana or of Korean syllables is in too many other words.
fn has_unknown_words(text: &str) -> bool {
    text.chars().any(|letter| char_script(letter) == Script::Han || is_alphabetic(letter))
}

/// Any of the n-grams of a run with unknown words. The ranking prefers transcripts with many of them.
fn any_pair(run: &str) -> TermCondition {
    let pairs = ordered_terms(run).into_iter().filter(|ngram| has_unknown_words(ngram));
    any(pairs.map(TermCondition::Term).collect()).unwrap_or_else(|| run_condition(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(condition: &TermCondition) -> String {
        let join = |all: &[TermCondition], with: &str| all.iter().map(show).collect::<Vec<_>>().join(with);
        match condition {
            TermCondition::Term(term) => term.clone(),
            TermCondition::Prefix(prefix) => format!("{prefix}*"),
            TermCondition::Phrase(words) => format!("'{}'", words.join(" ")),
            TermCondition::Channel(words) => format!("channel '{}'", words.join(" ")),
            TermCondition::All(all) => format!("({})", join(all, " & ")),
            TermCondition::Any(all) => format!("({})", join(all, " | ")),
        }
    }

    fn check(text: &str, expect: &str) {
        let query = SearchQuery::parse(text).compile(RunMode::Strict);
        let shown = query.map(|query| query.all.iter().map(show).collect::<Vec<_>>().join(" "));
        assert_eq!(shown.unwrap_or_default(), expect, "{text}");
    }

    #[test]
    fn expression_word_has_stems_of_its_language() {
        check("cats lang:en", "(cats | ·encat) ··en·latn");
        check("stole lang:en", "(stole | ·enstole | ·ensteal) ··en·latn");
        check("havnen lang:nb", "(havnen | ·nbhavn | ·nohavn) (··nb·latn | ··no·latn)");
        check("havnen lang:no", "(havnen | ·nbhavn | ·nohavn) (··no·latn | ··nb·latn)");
        check("\"the cats\" inv*", "'the cats' inv*");
        check("", "");
        check("before:2024", "··all");
        check("platform:tiktok channel:Sea", "··short·video channel 'sea'");
        check("-lang:en", "··all");
    }

    #[test]
    fn expression_excludes_filters() {
        let query = SearchQuery::parse("tide -moon -lang:en -channel:Sea -channel:News -platform:tiktok");
        let query = query.compile(RunMode::Strict).unwrap();
        let none = query.none.iter().map(show).collect::<Vec<_>>();
        let expect = ["··en·latn", "··short·video", "(channel 'sea' | channel 'news')"];
        assert_eq!((none.len(), &none[1..]), (4, expect.map(str::to_owned).as_slice()));
    }

    #[test]
    fn expression_has_stems_of_the_languages_of_an_index() {
        let shown = |languages: &[&str]| {
            let mut query = SearchQuery::parse("cats OR \"the cats\"");
            query.indexed_languages = Some(languages.iter().map(|language| (*language).to_owned()).collect());
            let query = query.compile(RunMode::Strict).unwrap();
            show(query.all.first().expect("it has a group"))
        };
        assert_eq!(shown(&["en", "vi"]), "((cats | ·encat) | 'the cats')");
        assert_eq!(shown(&[]), "(cats | 'the cats')");
    }

    #[test]
    fn expression_runs_are_phrases_and_parts() {
        check("火山爆发", "'火山 山爆 爆发'");
        check("火", "火");
        check("東京タワーは完成", "('東京 京た たわ わー ーは は完 完成' | (東京 & 'たわ わー' & 完成))");
        check("らーめん", "'らー ーめ めん'");
        check("バザー", "'ばざ ざー'");
        check("서울에서", "('서울 울에 에서' | '서울 울에' | 서울)");
        check("물", "물*");
        check("ไฟ", "ไฟ*");
        check("\"東京 大学\"", "('東京 大学' | '東京 京大 大学')");
    }

    #[test]
    fn expression_prefix_has_forms_of_nasal() {
        check("हिन्दी lang:mr", "हिंदी ··mr·deva");
        check("हिन्द*", "हिंद*");
        check("हिन्*", "(हिन* | हिंत* | हिंथ* | हिंद* | हिंध*)");
        check("ben*", "ben*");
    }

    #[test]
    fn expression_of_index_has_single_characters_anywhere() {
        let text = "\"3月\" \"火山爆3月 rain\" channel:B站 channel:王 -\"3月\" -\"火山\" -rain";
        let query = SearchQuery::parse(text).compile(RunMode::Strict).unwrap();
        let shown = |conditions: &[TermCondition]| conditions.iter().map(show).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(&query.all), "'3 月' '火山 山爆 3 月 rain' (channel 'b 站' | channel '王')");
        let query = query.for_index();
        assert_eq!(shown(&query.all), "(3 & 月) ('火山 山爆 3' & 月 & rain) ((channel 'b' & 站) | (王))");
        assert_eq!((query.none.len(), show(&query.none[0])), (2, "火山".to_owned()));
        let query = SearchQuery::parse("\"東京 京都\" -\"東京 京都\"").compile(RunMode::Strict).unwrap();
        let query = query.for_index();
        assert_eq!((shown(&query.all).as_str(), query.none.len()), ("('東京 京都' | '東京 京京 京都')", 0));
    }

    #[test]
    fn expression_relaxed_run_is_any_pair() {
        for (text, has_runs, expect) in [
            ("火山时间", true, "(火山 | 山时 | 时间)"),
            ("東京タワー", true, "(東京 | 京た)"),
            ("メンバー", false, "'めん んば ばー'"),
            ("자동차", false, "('자동 동차' | 자동)"),
        ] {
            let query = SearchQuery::parse(text);
            assert_eq!(query.has_runs(), has_runs, "{text}");
            let query = query.compile(RunMode::Relaxed).unwrap();
            assert_eq!(query.all.iter().map(show).collect::<Vec<_>>(), [expect], "{text}");
        }
    }
}
