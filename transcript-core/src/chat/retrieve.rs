//! Selects the passages that a question is about.

use super::{
    ChatRole, Passage, Question,
    bm25::{Bm25Query, Bm25Scores, score_all, sort_by_score},
    intent::last_cited,
    required_content::Requirement,
    search_index::SearchIndex,
};

/// Weights of the two previous questions if the current one has few informative terms; newest first.
const EARLIER_WEIGHTS: [f32; 2] = [0.5, 0.25];
/// Factor on these weights if the current question has enough informative terms.
const EARLIER_FACTOR: f32 = 0.1;
/// A question with fewer informative terms also uses the earlier turns.
const INFORMATIVE_MIN: usize = 5;
/// A question needs no earlier turns if it has this many specific words and one place has this share of them.
const SPECIFIC_MIN: f32 = 2.0;
const COMPLETE_COVERAGE_MIN: f32 = 0.8;
/// Lowest coverage of a question that the transcript answers; measured on the tuning half of the test questions.
const COVERAGE_MIN: f32 = 0.28;
/// A later question of a conversation with at most this many unknown words continues the conversation.
const CONTINUED_UNKNOWN_MAX: f32 = 1.5;
/// Factors on the passage that the last answer cites and on those after it, for a question that uses the earlier turns.
const NEAR_FACTORS: [f32; 4] = [2.0, 2.0, 1.6, 1.3];
/// Number of passages before it, and the factor on them.
const NEAR_BEFORE: usize = 3;
const NEAR_BEFORE_FACTOR: f32 = 1.3;

/// Scores of the passages of a transcript for a question, by its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LexicalScores {
    /// Score of each passage, in passage order; 0 without a word of the question.
    pub(super) scores: Vec<f32>,
    /// Share of the words that are not generic that one place of the transcript has, from 0 to 1.
    pub(super) coverage: f32,
    /// Whether the words show that the transcript is about what the question asks.
    pub(super) is_covered: bool,
    /// Whether the question is intelligible only with those before it.
    pub(super) needs_context: bool,
}

impl LexicalScores {
    /// Whether one place has enough of the question's words, without those before it.
    pub(super) fn has_words(&self) -> bool {
        self.is_covered && self.coverage >= COVERAGE_MIN
    }
}

/// Scores each passage against a question and the questions before it.
pub(super) fn score_lexically(
    index: &SearchIndex,
    passages: &[Passage],
    question: &Question,
) -> LexicalScores {
    let mut query = Bm25Query::new(index.common_words(question.message()));
    query.add(question.message(), 1.0);
    let own = score_all(index, passages, &query);
    let coverage = own.coverage();
    let is_complete = own.specific >= SPECIFIC_MIN && coverage >= COMPLETE_COVERAGE_MIN;
    let has_history = !question.history().is_empty();
    let is_elsewhere = last_cited(question).is_some_and(|(_, last)| is_elsewhere(&own, passages, last));
    let needs_context = has_history && query.informative() < INFORMATIVE_MIN && !is_complete && !is_elsewhere;
    let questions = || question.history().iter().rev().filter(|turn| turn.role == ChatRole::User);
    for (turn, weight) in questions().zip(EARLIER_WEIGHTS) {
        query.add(&turn.content, if needs_context { weight } else { weight * EARLIER_FACTOR });
    }
    let is_continued = questions().next().is_some() && own.unknown <= CONTINUED_UNKNOWN_MAX;
    let has_subject = coverage >= COVERAGE_MIN || own.unknown == 0.0;
    let requirement = Requirement::of(question.message(), index, passages);
    let is_met =
        || requirement.as_ref().and_then(|requirement| requirement.is_met(has_subject, COVERAGE_MIN));
    let is_covered = is_continued || is_met().unwrap_or(has_subject);
    let mut scores = if !has_history { own.scores } else { score_all(index, passages, &query).scores };
    if let Some(requirement) = &requirement {
        requirement.raise(&mut scores);
    }
    if let Some((_, last)) = last_cited(question).filter(|_| needs_context) {
        raise_near(&mut scores, passages, last);
    }
    LexicalScores { scores, coverage, is_covered, needs_context }
}

/// Indices of the first passage around the one that a time is in, and of the latter.
fn near(passages: &[Passage], cited_ms: u64) -> (usize, usize) {
    // Markers have whole seconds.
    let after = passages.partition_point(|passage| passage.start_ms / 1_000 <= cited_ms / 1_000);
    (after.saturating_sub(1 + NEAR_BEFORE), after.saturating_sub(1))
}

/// Whether a place has enough of a question's words, and those around the last answer have none: it is about another
/// subject.
fn is_elsewhere(own: &Bm25Scores, passages: &[Passage], cited_ms: u64) -> bool {
    let (first, cited) = near(passages, cited_ms);
    let mut around = own.coverages.iter().skip(first).take(cited - first + NEAR_FACTORS.len());
    own.coverage() >= COVERAGE_MIN && around.all(|coverage| *coverage == 0.0)
}

/// Raises the scores of the passage that a time is in and of those around it.
fn raise_near(scores: &mut [f32], passages: &[Passage], cited_ms: u64) {
    let (first, cited) = near(passages, cited_ms);
    let before = cited - first;
    let factors = std::iter::repeat_n(NEAR_BEFORE_FACTOR, before).chain(NEAR_FACTORS);
    scores.iter_mut().skip(first).zip(factors).for_each(|(score, factor)| *score *= factor);
}

/// Selects passages of at most `budget` tokens in total; returns their indices in order.
///
/// The first passage comes first, because it introduces the subject, then the best ones, each with the one before it
/// and the two after it.
pub(super) fn select_within_budget(passages: &[Passage], scores: &[f32], budget: u64) -> Vec<usize> {
    let mut picked = vec![false; passages.len()];
    let mut left = budget;
    let mut pick = |index: usize| {
        let (Some(passage), Some(is_picked)) = (passages.get(index), picked.get_mut(index)) else { return };
        if *is_picked {
            return;
        }
        if let Some(rest) = left.checked_sub(passage.tokens()) {
            left = rest;
            *is_picked = true;
        }
    };
    // The best passage comes first, even if only one fits.
    let indices = sort_by_score(scores);
    for index in indices.iter().take(1).copied().chain([0]).chain(indices.iter().copied()) {
        pick(index);
        for neighbour in [index.checked_sub(1), Some(index + 1), Some(index + 2)].into_iter().flatten() {
            pick(neighbour);
        }
    }
    // The remaining budget goes to passages spread over the whole transcript, if few of them match.
    for index in spread_indices(passages.len()) {
        pick(index);
    }
    picked.iter().enumerate().filter(|(_, is_picked)| **is_picked).map(|(index, _)| index).collect()
}

/// Yields all indices below `count`, far apart from each other first.
fn spread_indices(count: usize) -> impl Iterator<Item = usize> {
    let top = count.next_power_of_two();
    let bits = top.trailing_zeros();
    // Bit reversal of a counter: each index falls into the middle of the largest gap.
    (0..top)
        .map(move |n| if bits == 0 { n } else { n.reverse_bits() >> (usize::BITS - bits) })
        .filter(move |index| *index < count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{ChatTurn, passages},
        transcript::Segment,
    };

    /// Passages with these texts, each a minute after the one before it.
    fn test_passages(spoken: &[&str]) -> Vec<Passage> {
        let segments: Vec<_> = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        passages(&segments)
    }

    #[test]
    fn retrieve_vague_question_uses_earlier_turns() {
        let passages = test_passages(&[
            "The harbour cost much.",
            "Nothing here.",
            "Bread needs flour.",
            "More.",
            "It cost more.",
        ]);
        let turns = [
            (ChatRole::User, "How much flour for bread?"),
            (ChatRole::Assistant, "“Bread needs flour.” [2:00]"),
        ]
        .map(|(role, content)| ChatTurn { role, content: content.to_owned() });
        let first = |question: &str, turns: &[ChatTurn]| {
            let question = Question::new(question, turns.to_vec()).unwrap();
            sort_by_score(&score_lexically(&SearchIndex::new(&passages), &passages, &question).scores)
                .first()
                .copied()
        };
        assert_eq!(first("Why?", &turns), Some(2));
        assert_eq!(first("And the harbour, its cost?", &turns), Some(0));
        assert_eq!(first("Why?", &[]), None);
    }

    #[test]
    fn retrieve_question_about_other_subject_is_not_covered() {
        let passages = test_passages(&[
            "The harbour of Port Ellen cost two million.",
            "Its bridge was opened in spring, and the ferry stopped.",
            "Der Winterdeich war höher als der alte.",
        ]);
        let index = SearchIndex::new(&passages);
        let is_covered = |text: &str, turns: &[ChatTurn]| {
            let question = Question::new(text, turns.to_vec()).unwrap();
            score_lexically(&index, &passages, &question).is_covered
        };
        for question in
            ["What did the harbour cost?", "When was the bridge opened?", "Which ferries stopped?"]
        {
            assert!(is_covered(question, &[]), "{question}");
        }
        for question in
            ["What does she say about tea?", "How does a heat pump work?", "Wie stimmt man eine Gitarre?"]
        {
            assert!(!is_covered(question, &[]), "{question}");
        }
        let turn = ChatTurn { role: ChatRole::User, content: "What did the harbour cost?".to_owned() };
        assert!(is_covered("Was it expensive?", &[turn]));
    }

    #[test]
    fn retrieve_verb_of_saying_is_no_subject() {
        let english = ["I speak of the sea as we were there with it.", "The waves are not what they were."];
        let portuguese = ["Ela fala do mar e das ondas.", "O médico falou que não é para entrar na água."];
        let french = ["On raconte que le canal est dans la ville.", "Il conseille de ne pas y aller en été."];
        let german = ["Sie hält nicht viel von der Geige.", "Und der Bogen ist das, was man hier erzählt."];
        let russian = ["Она рассказывает о том, как это было.", "Станция была не такой, как она думает."];
        for (spoken, message, expect) in [
            (english, "Did she speak about volcanoes?", false),
            (english, "Does she speak of the sea?", true),
            (portuguese, "Ele fala de tubarões?", false),
            (portuguese, "O que ela fala das ondas?", true),
            (french, "Que raconte-t-il sur les volcans ?", false),
            (french, "Que raconte-t-il sur le canal ?", true),
            (french, "Qu'est-ce qu'il conseille ?", true),
            (german, "Was hält sie von Elektroautos?", false),
            (german, "Was hält sie von der Geige?", true),
            (russian, "Рассказывает ли она о вулканах?", false),
            (russian, "Что она рассказывает о станции?", true),
            (german, "Was passierte mit dem Boot?", false),
            (german, "Was ist mit der Geige passiert?", true),
            (french, "Que s'est-il passé dans le pont ?", false),
            (french, "Qu'est-il arrivé au canal ?", true),
        ] {
            let passages = test_passages(&spoken);
            let question = Question::new(message, Vec::new()).unwrap();
            let scores = score_lexically(&SearchIndex::new(&passages), &passages, &question);
            assert_eq!(scores.is_covered, expect, "{message}: {}", scores.coverage);
        }
    }

    #[test]
    fn retrieve_japanese_price_is_covered_by_its_subject() {
        let passages =
            test_passages(&["夫は模型の棚を作りました。", "材料費は一万二千円でした。", "次は本の話です。"]);
        let index = SearchIndex::new(&passages);
        for (message, expect) in
            [("棚の費用はいくら", true), ("棚の費用はいくらですか", true), ("車の費用はいくら", false)]
        {
            let question = Question::new(message, Vec::new()).unwrap();
            assert_eq!(score_lexically(&index, &passages, &question).is_covered, expect, "{message}");
        }
    }

    /// A talk in several languages.
    const KOREAN: [&str; 3] = [
        "저희 빵집은 부산역에서 걸어서 오 분 거리에 있습니다.",
        "아버지가 천구백팔십 년에 가게를 여셨어요.",
        "빵 하나에 삼천 원이고 직원은 열두 명이 일해요.",
    ];
    const JAPANESE: [&str; 3] = [
        "うちの店は京都駅から歩いて五分のところにあります。",
        "父が一九八〇年に店を開きました。",
        "パンは一つ三百円で、十二人が働いています。",
    ];
    const ARABIC: [&str; 3] = [
        "يقع مخبزنا على بعد خمس دقائق من المحطة في وسط المدينة.",
        "افتتح والدي المخبز في عام ألف وتسعمئة وثمانين ثم كبر.",
        "سعر الرغيف ثلاثة دنانير ويعمل عندنا اثنا عشر عاملا.",
    ];
    const CHINESE: [&str; 3] = [
        "我们的店在火车站旁边，走路五分钟。",
        "父亲一九八零年开了这家店。",
        "面包三块钱一个，有十二个工人。",
    ];

    #[test]
    fn retrieve_questions_with_particles_and_endings_are_covered() {
        for (spoken, message, expect) in [
            (KOREAN, "빵집은 어디에 있나요?", true),
            (KOREAN, "부산역에서 몇 분 걸리나요?", true),
            (KOREAN, "가게는 언제 열었나요?", true),
            (KOREAN, "직원이 몇 명이에요?", true),
            (KOREAN, "빵 가격이 얼마예요?", true),
            (KOREAN, "김치찌개는 어떻게 끓이나요?", false),
            (KOREAN, "고양이는 몇 마리인가요?", false),
            (KOREAN, "냉장고는 어디에 있습니까?", false),
            (JAPANESE, "店はどこにありますか？", true),
            (JAPANESE, "駅から何分かかりますか？", true),
            (JAPANESE, "店を開いたのはいつですか？", true),
            (JAPANESE, "何人働いていますか？", true),
            (JAPANESE, "パンはいくらしますか？", true),
            (JAPANESE, "自転車のパンクはどう直しますか？", false),
            (JAPANESE, "りんごはどこで買えますか？", false),
            (JAPANESE, "ねずみはどこで働いていますか？", false),
            (ARABIC, "أين يقع المخبز؟", true),
            (ARABIC, "كم دقيقة من المحطة؟", true),
            (ARABIC, "متى افتتح المخبز؟", true),
            (ARABIC, "كم سعر الرغيف؟", true),
            (ARABIC, "كيف أصلح ثلاجة لا تبرد؟", false),
            (ARABIC, "هل عندهم خراف؟", false),
            (ARABIC, "هل عندهم مخبز؟", true),
            (CHINESE, "店在哪里？", true),
            (CHINESE, "店在哪儿", true),
            (CHINESE, "有几个工人？", true),
            (CHINESE, "怎么学游泳？", false),
            (CHINESE, "父亲叫什么名字？", true),
            (CHINESE, "骆驼叫什么名字？", false),
            (CHINESE, "一九八零年发生了什么？", true),
            (CHINESE, "父亲开店的时候发生了什么事？", true),
            (CHINESE, "骆驼发生了什么？", false),
        ] {
            let passages = test_passages(&spoken);
            let question = Question::new(message, Vec::new()).unwrap();
            let scores = score_lexically(&SearchIndex::new(&passages), &passages, &question);
            assert_eq!(scores.is_covered, expect, "{message}: {}", scores.coverage);
        }
    }

    #[test]
    fn retrieve_price_ranks_before_repeated_names() {
        let passages = test_passages(&[
            "The ferry, our ferry, is the ferry of the town, and the ferry was built in spring.",
            "We painted the ferry white because the old ferry was white.",
            "Nothing else happened at the harbour.",
            "For the ferry they take four pounds at the pier.",
            "Bread was two pounds then.",
        ]);
        let index = SearchIndex::new(&passages);
        for (message, expect) in [
            ("How much does the ferry cost?", &[3][..]),
            ("Who painted the ferry?", &[1]),
            ("What are the prices?", &[3, 4]),
        ] {
            let question = Question::new(message, Vec::new()).unwrap();
            let scores = score_lexically(&index, &passages, &question);
            assert!(scores.is_covered, "{message}");
            assert_eq!(sort_by_score(&scores.scores)[..expect.len()], *expect, "{message}");
        }
    }

    #[test]
    fn retrieve_unrelated_follow_up_ignores_last_answer() {
        let mut spoken = ["The harbour was quiet."; 12];
        (spoken[1], spoken[10]) = ("Bread needs flour and salt.", "The ferry left in the morning.");
        let passages = test_passages(&spoken);
        let turns = [
            (ChatRole::User, "What does bread need?"),
            (ChatRole::Assistant, "“Bread needs flour and salt.” [1:00]"),
        ]
        .map(|(role, content)| ChatTurn { role, content: content.to_owned() });
        for (message, expect) in
            [("When did the ferry leave?", (false, 10)), ("And how much salt?", (true, 1))]
        {
            let question = Question::new(message, turns.to_vec()).unwrap();
            let scores = score_lexically(&SearchIndex::new(&passages), &passages, &question);
            assert_eq!((scores.needs_context, sort_by_score(&scores.scores)[0]), expect, "{message}");
        }
    }

    #[test]
    fn retrieve_selection_fits_budget_and_keeps_best() {
        let passages = test_passages(&["aaa", "bbb", "ccc", "ddd", "eee", "fff"]);
        let scores = [0.0, 0.0, 0.0, 0.0, 5.0, 0.0];
        let each = passages[0].tokens();
        assert_eq!(select_within_budget(&passages, &scores, each), [4]);
        assert_eq!(select_within_budget(&passages, &scores, 4 * each), [0, 3, 4, 5]);
        assert_eq!(select_within_budget(&passages, &scores, 99 * each), [0, 1, 2, 3, 4, 5]);
        assert!(select_within_budget(&passages, &scores, each - 1).is_empty());
        assert_eq!(spread_indices(5).collect::<Vec<_>>(), [0, 4, 2, 1, 3]);
        assert_eq!(spread_indices(0).count(), 0);
        assert_eq!(spread_indices(1).collect::<Vec<_>>(), [0]);
    }
}
