//! Questions about the test talks: their kinds, their answers, their halves, and the rules that they follow.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};
use transcript_core::chat::{ChatRole, ChatTurn, Question};

use super::{
    rankings::windows,
    talks::{TestTalk, talks},
    word_overlap::shared_words,
};

/// A stretch of time of a talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
}

impl Span {
    /// Whether at least half of another span is in this one.
    pub(super) fn has_half_of(self, other: Self) -> bool {
        let from = self.start_ms.max(other.start_ms);
        let common_ms = self.end_ms.min(other.end_ms).saturating_sub(from);
        common_ms > 0 && common_ms * 2 >= other.end_ms - other.start_ms
    }
}

/// Letters and digits in lower case. Independent of the tested code on purpose.
pub(super) fn plain(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect()
}

/// A time as answers write it.
pub(super) fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// What a question needs to be answered.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub(super) enum QuestionKind {
    /// The answer shares words with the question.
    #[default]
    Direct,
    /// The answer is in a passage that shares no content word with the question, not even a stem.
    Paraphrase,
    /// Only the questions and answers before it make it intelligible.
    FollowUp,
    /// The talk is about another subject.
    OffTopic,
    /// The talk is about this subject, in these words, but does not answer.
    NearTopic,
    /// The answer is spread over the talk.
    WholeVideo,
}

impl QuestionKind {
    pub(super) const ALL: [Self; 6] =
        [Self::Direct, Self::Paraphrase, Self::FollowUp, Self::OffTopic, Self::NearTopic, Self::WholeVideo];

    /// Whether one place of the talk answers the question.
    pub(super) fn has_place(self) -> bool {
        matches!(self, Self::Direct | Self::Paraphrase | Self::FollowUp)
    }

    /// Least number of questions of this kind.
    fn count_min(self) -> usize {
        match self {
            Self::Direct => 130,
            Self::Paraphrase => 60,
            Self::FollowUp | Self::WholeVideo => 25,
            Self::OffTopic | Self::NearTopic => 30,
        }
    }
}

/// The half of the set that a question belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionHalf {
    /// For choosing weights and thresholds.
    Tuning,
    /// For the figures that are reported.
    HeldOut,
}

impl QuestionHalf {
    pub(super) const ALL: [Self; 2] = [Self::Tuning, Self::HeldOut];
}

/// A question before the current one, with words of the place that its answer cited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EarlierQuestion {
    #[serde(rename = "ask")]
    text: String,
    holds: String,
}

/// A question with words that only its answer contains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TalkQuestion {
    #[serde(rename = "ask")]
    pub(super) text: String,
    #[serde(default)]
    pub(super) kind: QuestionKind,
    /// Exact words of each place that answers the question; each is once in the talk.
    #[serde(default, deserialize_with = "one_or_many")]
    pub(super) holds: Vec<String>,
    /// Earlier questions of the conversation, oldest first.
    #[serde(default)]
    pub(super) after: Vec<EarlierQuestion>,
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

impl TalkQuestion {
    /// The half that it belongs to: the last bit of the SHA-256 digest of title, line break and question.
    pub(super) fn half(&self, talk: &TestTalk) -> QuestionHalf {
        let title = talk.transcript.title.as_deref().unwrap_or("");
        let digest = Sha256::digest(format!("{title}\n{}", self.text));
        let is_odd = digest.last().is_some_and(|byte| byte % 2 == 1);
        if is_odd { QuestionHalf::HeldOut } else { QuestionHalf::Tuning }
    }

    /// The places of the talk that answer it.
    pub(super) fn places(&self, talk: &TestTalk) -> Result<Vec<Span>> {
        self.holds.iter().map(|words| talk.place(words)).collect()
    }

    /// The question with the conversation before it, whose answers quote the talk as extractive ones do.
    pub(super) fn question(&self, talk: &TestTalk) -> Result<Question> {
        let mut history = Vec::new();
        for earlier in &self.after {
            let place = talk.place(&earlier.holds)?;
            let spoken = talk
                .transcript
                .segments
                .iter()
                .filter(|segment| segment.start_ms >= place.start_ms && segment.start_ms < place.end_ms);
            let text = spoken.map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
            let answer = format!("“{text}” [{}]", clock(place.start_ms / 1_000));
            history.push(ChatTurn { role: ChatRole::User, content: earlier.text.clone() });
            history.push(ChatTurn { role: ChatRole::Assistant, content: answer });
        }
        Question::new(&self.text, history).with_context(|| self.text.clone())
    }
}

/// Collects the rules that a question breaks.
fn broken_rules(talk: &TestTalk, question: &TalkQuestion, broken: &mut Vec<String>) {
    let mut check = |holds: bool, rule: &str| {
        if !holds {
            broken.push(format!("{}: {rule}", question.text));
        }
    };
    check(question.kind.has_place() != question.holds.is_empty(), "only answerable questions have places");
    check(
        (question.kind == QuestionKind::FollowUp) != question.after.is_empty(),
        "only follow-ups have history",
    );
    if let Err(error) = question.question(talk) {
        check(false, &error.to_string());
    }
    match question.places(talk) {
        Err(error) => check(false, &error.to_string()),
        Ok(places) if question.kind == QuestionKind::Paraphrase => {
            let passages = windows(&talk.transcript.segments);
            for passage in passages.iter().filter(|passage| {
                places
                    .iter()
                    .any(|place| passage.span.start_ms < place.end_ms && place.start_ms < passage.span.end_ms)
            }) {
                match shared_words(talk.language(), &question.text, &passage.text) {
                    Err(error) => check(false, &error.to_string()),
                    Ok(shared) => check(shared.is_empty(), &format!("its passage has {shared:?}")),
                }
            }
        }
        Ok(_) => {}
    }
}

#[test]
fn questions_follow_rules_of_their_kinds() -> Result<()> {
    let mut broken = Vec::new();
    for talk in &talks()? {
        for (n, question) in talk.questions.iter().enumerate() {
            broken_rules(talk, question, &mut broken);
            if talk.questions.iter().take(n).any(|other| other.text == question.text) {
                broken.push(format!("{}: it is repeated", question.text));
            }
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

#[test]
fn questions_are_many_and_spread_over_kinds_and_halves() -> Result<()> {
    let talks = talks()?;
    let all: Vec<_> = talks
        .iter()
        .flat_map(|talk| talk.questions.iter().map(move |one| (one.kind, one.half(talk))))
        .collect();
    ensure!(all.len() >= 300, "{} questions", all.len());
    for kind in QuestionKind::ALL {
        let of_kind: Vec<_> = all.iter().filter(|(one, _)| *one == kind).collect();
        ensure!(of_kind.len() >= kind.count_min(), "{kind:?}: {}", of_kind.len());
        for half in QuestionHalf::ALL {
            let count = of_kind.iter().filter(|(_, one)| *one == half).count();
            ensure!(count * 3 >= of_kind.len(), "{kind:?}, {half:?}: {count} of {}", of_kind.len());
        }
    }
    for talk in talks.iter().filter(|talk| talk.lines.is_empty()) {
        let title = talk.transcript.title.as_deref().unwrap_or("");
        let kinds = |kinds: &[QuestionKind]| talk.questions.iter().any(|one| kinds.contains(&one.kind));
        ensure!(kinds(&[QuestionKind::Paraphrase]) && kinds(&[QuestionKind::WholeVideo]), "{title}");
        ensure!(kinds(&[QuestionKind::OffTopic]) && kinds(&[QuestionKind::NearTopic]), "{title}");
        ensure!(
            talk.transcript.duration_ms >= Some(5 * 60_000),
            "{title}: {:?}",
            talk.transcript.duration_ms
        );
    }
    Ok(())
}
