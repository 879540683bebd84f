//! Questions for numbers, prices and times that a talk answers in other forms than digits: most must get an answer.
//!
//! An answer without a model states that a talk does not cover such a question if neither numbers nor money are spoken
//! of beside its words. The talks of `tests/chat/quantities` were written to find where that is wrong: half, a dozen, a
//! tenner, for free, on the house, in the sixties, at dawn. Each has other such questions without an answer.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, ensure};
use tokio::runtime::Handle;
use transcript_core::chat::{Chat, ChatOptions, ExtractiveModel};

use super::{questions::QuestionKind, talks::talks_of};

/// Most questions with an answer that get none. Without the rule they are 42: their words are not those of the talk.
const UNANSWERED_MAX: usize = 47;
/// Least number of questions without an answer that get none. Without the rule they are 37.
const ABSTAINED_MIN: usize = 51;

#[tokio::test]
async fn quantities_in_any_form_are_answers() -> Result<()> {
    let talks = talks_of("quantities")?;
    let chat = Chat::new(Handle::current(), Arc::new(ExtractiveModel), ChatOptions::default());
    let (mut answerable, mut unanswered, mut abstained) = (0, 0, 0);
    let mut by_language: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for talk in &talks {
        for question in &talk.questions {
            let answer = chat.answer(Arc::clone(&talk.transcript), question.question(talk)?).await?;
            if question.kind == QuestionKind::NearTopic {
                abstained += usize::from(!answer.is_covered);
                continue;
            }
            ensure!(question.places(talk)?.len() == 1, "{}", question.text);
            answerable += 1;
            if !answer.is_covered {
                unanswered += 1;
                by_language.entry(talk.language().to_owned()).or_default().push(&question.text);
            }
        }
    }
    for (language, questions) in &by_language {
        println!("{language}: {} without an answer: {}", questions.len(), questions.join(" | "));
    }
    let others: usize = talks.iter().map(|talk| talk.questions.len()).sum::<usize>() - answerable;
    println!("{unanswered} of {answerable} with an answer get none, and {abstained} of {others} without one");
    ensure!(talks.len() >= 20 && answerable >= 400, "{} talks, {answerable} questions", talks.len());
    ensure!(unanswered <= UNANSWERED_MAX, "{unanswered} of {answerable} get no answer: {by_language:?}");
    ensure!(abstained >= ABSTAINED_MIN, "{abstained} of {others}");
    Ok(())
}
