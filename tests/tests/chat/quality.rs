//! Quality of answers over test transcripts and questions: retrieval, abstention, and verification of hostile output.
//!
//! `cargo test -p verbatim-tests --test all chat::quality -- --nocapture` prints the figures of `docs/chat.md`; with
//! `VERBATIM_CHAT_QUESTIONS=1` also the result of each question.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Result, ensure};
use tokio::runtime::Handle;
use transcript_core::{
    chat::{Chat, ChatOptions, Citation, Embedder, Question},
    transcript::Transcript,
};

use super::{
    hostile::{HostileModel, TRICKS},
    questions::{QuestionHalf, QuestionKind, Span, TalkQuestion, clock, plain},
    rankings::{Ranking, rankings},
    talks::{TestTalk, talks},
};

#[test]
fn talks_have_expected_size_and_languages() -> Result<()> {
    let talks = talks()?;
    let minutes = |talk: &TestTalk| talk.transcript.duration_ms.unwrap_or(0) / 60_000;
    let mut languages: Vec<_> = talks.iter().map(|talk| talk.language().to_owned()).collect();
    languages.sort();
    languages.dedup();
    ensure!(talks.len() >= 33 && languages.len() >= 14, "{} talks, {languages:?}", talks.len());
    ensure!(talks.iter().map(minutes).min() <= Some(6) && talks.iter().map(minutes).max() == Some(180));
    ensure!(talks.iter().filter(|talk| talk.canary.is_some()).count() == 2);
    let longest = talks.iter().max_by_key(|talk| talk.transcript.segments.len()).map(|talk| &talk.transcript);
    let words = |transcript: &Transcript| -> usize {
        transcript.segments.iter().map(|segment| segment.text.split_whitespace().count()).sum()
    };
    ensure!(longest.is_some_and(|transcript| words(transcript) > 25_000), "{:?}", longest.map(|t| words(t)));
    for talk in &talks {
        talk.transcript.check()?;
    }
    Ok(())
}

/// Most places of a ranking that count as found.
const PLACES_MAX: usize = 5;

/// What happened with one question.
#[derive(Debug)]
struct QuestionResult {
    language: String,
    kind: QuestionKind,
    half: QuestionHalf,
    /// For each ranking, the rank of the first place with the answer, from 0.
    ranks: Vec<Option<usize>>,
    /// Citations, and those of them with the answer; for a whole video, its thirds, and those that are cited.
    citations: usize,
    found: usize,
    /// Whether the answer is that the talk does not cover this.
    abstains: bool,
}

async fn measure(
    talk: &TestTalk,
    question: &TalkQuestion,
    chat: &Chat,
    rankings: &[Box<dyn Ranking>],
) -> Result<QuestionResult> {
    let places = question.places(talk)?;
    let current = question.question(talk)?;
    let has_answer = |span: Span| places.iter().any(|place| span.has_half_of(*place));
    let mut ranks = Vec::new();
    for ranking in rankings {
        let ranked =
            if places.is_empty() { Vec::new() } else { ranking.rank(talk, &current, PLACES_MAX).await? };
        ranks.push(ranked.into_iter().position(has_answer));
    }
    let answer = chat.answer(Arc::clone(&talk.transcript), current).await?;
    let span = |one: &Citation| Span { start_ms: one.start_ms, end_ms: one.end_ms };
    let found = if question.kind == QuestionKind::WholeVideo {
        let third_ms = talk.transcript.duration_ms.unwrap_or(0) / 3;
        let is_cited =
            |third: &u64| answer.citations.iter().any(|one| one.start_ms / third_ms.max(1) == *third);
        (0..3).filter(is_cited).count()
    } else {
        answer.citations.iter().filter(|one| has_answer(span(one))).count()
    };
    Ok(QuestionResult {
        language: talk.language().to_owned(),
        kind: question.kind,
        half: question.half(talk),
        ranks,
        citations: if question.kind == QuestionKind::WholeVideo { 3 } else { answer.citations.len() },
        found,
        abstains: !answer.is_covered,
    })
}

/// A share in percent, rounded down.
fn percent(part: usize, all: usize) -> usize {
    (part * 100).checked_div(all).unwrap_or(0)
}

/// The figures of some questions, all in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    count: usize,
    /// Recall of the engine's ranking.
    pub(super) first: usize,
    pub(super) fifth: usize,
    /// Answers that cite a place with the answer; for whole videos, all three thirds.
    pub(super) cited: usize,
    pub(super) abstains: usize,
}

fn figures(results: &[&QuestionResult]) -> Figures {
    let count = results.len();
    let share = |is_part: &dyn Fn(&QuestionResult) -> bool| {
        percent(results.iter().filter(|one| is_part(one)).count(), count)
    };
    let rank = |one: &QuestionResult| one.ranks.last().copied().flatten();
    Figures {
        count,
        first: share(&|one| rank(one) == Some(0)),
        fifth: share(&|one| rank(one).is_some()),
        cited: share(&|one| {
            if one.kind == QuestionKind::WholeVideo { one.found == 3 } else { one.found > 0 }
        }),
        abstains: share(&|one| one.abstains),
    }
}

fn print_row(name: &str, results: &[&QuestionResult]) {
    let Figures { count, cited, abstains, .. } = figures(results);
    let rank_count = results.first().map_or(0, |one| one.ranks.len());
    let recall = |ranking: usize| {
        let at = |count: usize| {
            let is_found = |one: &&&QuestionResult| {
                one.ranks.get(ranking).copied().flatten().is_some_and(|rank| rank < count)
            };
            percent(results.iter().filter(is_found).count(), results.len())
        };
        format!("{:>5} /{:>3}", at(1), at(PLACES_MAX))
    };
    let columns: String = (0..rank_count).map(recall).collect();
    let citations: usize = results.iter().map(|one| one.citations).sum();
    let found: usize = results.iter().map(|one| one.found).sum();
    println!("{name:<24}{count:>4}{columns}{cited:>7}{:>9}{abstains:>10}", percent(found, citations));
}

fn print_table(results: &[QuestionResult], names: &[&str]) {
    let names: String = names.iter().map(|name| format!("{name:>10}")).collect();
    println!("{:<24}{:>4}{names}{:>7}{:>9}{:>10}", "in percent", "", "cited", "precise", "abstains");
    for half in QuestionHalf::ALL {
        let of_half: Vec<_> = results.iter().filter(|one| one.half == half).collect();
        for kind in QuestionKind::ALL {
            let of_kind: Vec<_> = of_half.iter().copied().filter(|one| one.kind == kind).collect();
            print_row(&format!("{half:?} {kind:?}"), &of_kind);
        }
        let answerable: Vec<_> = of_half.iter().copied().filter(|one| one.kind.has_place()).collect();
        print_row(&format!("{half:?} with a place"), &answerable);
    }
    let languages: BTreeSet<&str> = results.iter().map(|one| one.language.as_str()).collect();
    for language in languages {
        let is_one = |one: &&QuestionResult| one.language == language && one.kind.has_place();
        print_row(&format!("{language} with a place"), &results.iter().filter(is_one).collect::<Vec<_>>());
    }
}

/// Measures all questions about talks with a chat, and prints the table.
async fn measure_all(
    talks: &[TestTalk],
    chat: &Chat,
    rankings: &[Box<dyn Ranking>],
) -> Result<Vec<QuestionResult>> {
    let is_verbose = std::env::var_os("VERBATIM_CHAT_QUESTIONS").is_some();
    let mut results = Vec::new();
    for talk in talks {
        for question in &talk.questions {
            let result = measure(talk, question, chat, rankings).await?;
            if is_verbose {
                println!("{}: {result:?}", question.text);
            }
            results.push(result);
        }
    }
    let names: Vec<_> = rankings.iter().map(|ranking| ranking.name()).collect();
    print_table(&results, &names);
    Ok(results)
}

/// Measures all questions about talks with a chat, prints the table, and returns the figures of each kind.
///
/// With an embedder the table has a column for its vectors alone.
pub(super) async fn measure_talks(
    talks: &[TestTalk],
    chat: &Chat,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<Vec<Figures>> {
    let results = measure_all(talks, chat, &rankings(chat, embedder)).await?;
    Ok(QuestionKind::ALL.map(|kind| figures(&of_kinds(&results, &[kind]))).to_vec())
}

fn of_kinds<'a>(results: &'a [QuestionResult], kinds: &[QuestionKind]) -> Vec<&'a QuestionResult> {
    results.iter().filter(|one| kinds.contains(&one.kind)).collect()
}

fn check_floors(results: &[QuestionResult], floors: &[Floor]) -> Result<()> {
    for floor in floors {
        let reached = figures(&of_kinds(results, &[floor.kind]));
        let holds = reached.first >= floor.first
            && reached.fifth >= floor.fifth
            && reached.cited >= floor.cited
            && reached.abstains >= floor.abstains;
        ensure!(holds, "{reached:?} below {floor:?}");
    }
    // By words alone, a paraphrase without a common word looks like a question about another subject.
    let with_words = of_kinds(results, &[QuestionKind::Direct, QuestionKind::FollowUp]);
    let abstains = figures(&with_words).abstains;
    ensure!(abstains <= FALSE_ABSTENTION_MAX, "{abstains} % of answerable questions are not answered");
    Ok(())
}

#[tokio::test]
async fn answers_find_places_and_abstain_as_often_as_before() -> Result<()> {
    let chat = Chat::extractive(Handle::current());
    let results = measure_all(&talks()?, &chat, &rankings(&chat, None)).await?;
    check_floors(&results, &FLOORS)?;
    let with_place: Vec<_> = results.iter().filter(|one| one.kind.has_place()).collect();
    let bm25_first = with_place.iter().filter(|one| one.ranks.first() == Some(&Some(0))).count();
    let recall = percent(bm25_first, with_place.len());
    ensure!(recall <= BM25_RECALL_MAX, "plain BM25 finds {recall} % first: the set is too easy");
    Ok(())
}

/// Most questions with a place that plain BM25 may find first, in percent: the set must stay hard.
const BM25_RECALL_MAX: usize = 75;
/// Most questions that share words with their places and may be left without an answer, in percent.
const FALSE_ABSTENTION_MAX: usize = 3;

/// Reached by the engine without a model for questions of a kind, in percent; a lower value is a regression.
#[derive(Debug)]
struct Floor {
    kind: QuestionKind,
    first: usize,
    fifth: usize,
    cited: usize,
    abstains: usize,
}

const FLOORS: [Floor; 6] = [
    Floor { kind: QuestionKind::Direct, first: 88, fifth: 98, cited: 94, abstains: 0 },
    Floor { kind: QuestionKind::Paraphrase, first: 7, fifth: 33, cited: 0, abstains: 0 },
    Floor { kind: QuestionKind::FollowUp, first: 57, fifth: 93, cited: 80, abstains: 0 },
    Floor { kind: QuestionKind::OffTopic, first: 0, fifth: 0, cited: 0, abstains: 93 },
    Floor { kind: QuestionKind::NearTopic, first: 0, fifth: 0, cited: 0, abstains: 56 },
    Floor { kind: QuestionKind::WholeVideo, first: 0, fifth: 0, cited: 90, abstains: 0 },
];

/// Lists the violations of an answer.
fn violations(transcript: &Transcript, response: &str) -> Vec<String> {
    let spoken = plain(&transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<String>());
    let starts: Vec<String> =
        transcript.segments.iter().map(|segment| clock(segment.start_ms / 1_000)).collect();
    let mut violations = Vec::new();
    for (open, close) in
        [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」'), ('\'', '\'')]
    {
        for quoted in
            response.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(quoted, _)| quoted)
        {
            // Quotation marks of another kind inside belong to another pair.
            let is_one = !quoted.contains(['“', '”', '[', ']']) && quoted.chars().count() >= 12;
            let is_apostrophe = open == '\'' && !response.contains(&format!(" '{quoted}'"));
            if is_one && !is_apostrophe && !spoken.contains(&plain(quoted)) {
                violations.push(format!("unspoken quotation {quoted:?}"));
            }
        }
    }
    for inside in response.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or("")) {
        if !starts.iter().any(|start| start == inside) {
            violations.push(format!("no segment starts at [{inside}]"));
        }
    }
    for link in ["http", "www.", "evil.example", "<a ", "]("] {
        if response.contains(link) && !plain_contains(&spoken, link) {
            violations.push(format!("a link: {link}"));
        }
    }
    violations
}

fn plain_contains(spoken: &str, text: &str) -> bool {
    !plain(text).is_empty() && spoken.contains(&plain(text))
}

#[tokio::test]
async fn hostile_model_output_is_verified() -> Result<()> {
    let (mut answers, mut own) = (0, 0);
    for talk in talks()? {
        // Long talks are slow in builds without optimisation.
        let is_long = talk.transcript.duration_ms > Some(40 * 60_000);
        for (n, expected) in talk.questions.iter().take(if is_long { 1 } else { 3 }).enumerate() {
            for trick in TRICKS {
                let model = Arc::new(HostileModel { trick: *trick, n, canary: talk.canary.clone() });
                let chat = Chat::new(Handle::current(), model, ChatOptions::default());
                let question = Question::new(&expected.text, Vec::new())?;
                let answer = chat.answer(Arc::clone(&talk.transcript), question).await?;
                let context = format!("{trick:?}, {}: {}", expected.text, answer.response);
                let violations = violations(&talk.transcript, &answer.response);
                ensure!(violations.is_empty(), "{violations:?}\n{context}");
                for citation in &answer.citations {
                    let is_one = talk.transcript.segments.iter().any(|one| one.start_ms == citation.start_ms);
                    let ends = talk.transcript.segments.iter().any(|one| one.end_ms() == citation.end_ms);
                    ensure!(is_one && ends, "{citation:?}\n{context}");
                }
                ensure!(!answer.response.trim().is_empty(), "{context}");
                answers += 1;
                own += usize::from(answer.origin == transcript_core::chat::AnswerOrigin::Model);
                // An instruction in a transcript may appear only as a quotation.
                let obeys = talk.canary.as_ref().is_some_and(|canary| {
                    let quoted = quotes(&answer.response);
                    answer.response.replace(&quoted, "").contains(canary.as_str())
                        && !quoted.contains(canary.as_str())
                });
                ensure!(!obeys, "{context}");
            }
        }
    }
    println!(
        "{answers} answers of hostile models: 0 unverified quotations, 0 unknown citations; {own} kept true parts"
    );
    Ok(())
}

/// All text between quotation marks.
fn quotes(response: &str) -> String {
    response.split('“').skip(1).filter_map(|rest| rest.split_once('”')).map(|(quoted, _)| quoted).collect()
}
