//! Whole answers, with models that do as a test says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::*;
use crate::{
    error::{Error, ErrorKind, Result},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// Answers with what a function makes of each request, and remembers the requests.
struct Scripted<F> {
    context: u32,
    script: F,
    asked: Mutex<Vec<ChatRequest>>,
}

impl<F> std::fmt::Debug for Scripted<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

#[async_trait]
impl<F> ChatModel for Scripted<F>
where
    F: Fn(&ChatRequest, usize) -> Result<String> + Send + Sync + 'static,
{
    fn context_tokens(&self) -> u32 {
        self.context
    }

    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply> {
        let count = self.asked.lock().unwrap().len();
        let text = (self.script)(&ask, count);
        self.asked.lock().unwrap().push(ask);
        let text = text?;
        if text == "never" {
            std::future::pending::<()>().await;
        }
        for letter in text.chars() {
            let wants_more =
                deltas.as_ref().is_none_or(|deltas| deltas.push(letter.encode_utf8(&mut [0; 4])));
            if !wants_more {
                break;
            }
            tokio::task::yield_now().await;
        }
        if text.ends_with("break") {
            return Err(Error::unavailable("the model broke off"));
        }
        Ok(ChatReply { text, usage: Some(Usage { prompt_tokens: 10, completion_tokens: 1 }) })
    }
}

fn talk(count: u64) -> Arc<Transcript> {
    let text = |n| format!("The ship of part {n} is number {n} and carries {} tons of coal.", n * 3);
    Arc::new(Transcript {
        video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap(),
        title: Some("Ships".to_owned()),
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "test".to_owned(),
        segments: (0..count).map(|n| Segment::new(text(n), n * 60_000, 5_000)).collect(),
    })
}

async fn asked<F>(context: u32, count: u64, question: &str, script: F) -> (Result<Answer>, Vec<ChatRequest>)
where
    F: Fn(&ChatRequest, usize) -> Result<String> + Send + Sync + 'static,
{
    let model = Arc::new(Scripted { context, script, asked: Mutex::default() });
    let chat = Chat::new(Handle::current(), Arc::clone(&model) as _, ChatOptions::default());
    let answer = chat.ask(talk(count), Question::new(question, Vec::new()).unwrap()).await;
    let asked = std::mem::take(&mut *model.asked.lock().unwrap());
    (answer, asked)
}

#[tokio::test]
async fn an_answer_is_what_could_be_verified() {
    let (answer, asked) = asked(32_000, 3, "Which ship?", |_, _| {
        Ok("It is \"the ship of part 1\" [s2]. Made up [s9].".to_owned())
    })
    .await;
    let answer = answer.unwrap();
    assert_eq!(answer.response, "It is “The ship of part 1” [1:00].");
    assert_eq!(answer.citations.len(), 1);
    assert_eq!((answer.citations[0].start_ms, answer.citations[0].end_ms), (60_000, 65_000));
    assert_eq!(answer.citations[0].text, "The ship of part 1 is number 1 and carries 3 tons of coal.");
    assert_eq!((answer.coverage, answer.is_covered, answer.origin), (1.0, true, Origin::Model));
    assert_eq!(answer.usage, Some(Usage { prompt_tokens: 10, completion_tokens: 1 }));
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn a_model_is_asked_once_more_and_no_more() {
    let mended = |ask: &ChatRequest, _: usize| {
        Ok(if ask.rejected.is_some() { "Coal [s1]." } else { "I invent." }.to_owned())
    };
    let (answer, asked_twice) = asked(32_000, 3, "What cargo?", mended).await;
    assert_eq!(answer.unwrap().response, "Coal [0:00].");
    assert_eq!(asked_twice.len(), 2);
    assert!(asked_twice[1].messages().iter().any(|message| message.content.contains("I invent.")));

    let (answer, asked) =
        asked(32_000, 3, "Which is number 2?", |_, _| Ok("\"we burned the fleet\" [s1]".to_owned())).await;
    let answer = answer.unwrap();
    assert_eq!((answer.origin, asked.len()), (Origin::Passages, 2));
    assert!(answer.response.starts_with("“The ship of part 2 is number 2"), "{}", answer.response);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let (answer, _) = asked(32_000, 3, "Who won?", |_, _| Ok("NOT_COVERED".to_owned())).await;
    let answer = answer.unwrap();
    assert_eq!((answer.response.as_str(), answer.is_covered), (NOT_COVERED_SENTENCE, false));
    let chat = Chat::extractive(Handle::current());
    let answer = chat.ask(talk(2), Question::new("Xylophone?", Vec::new()).unwrap()).await.unwrap();
    assert_eq!((answer.response.as_str(), answer.is_covered), (NOT_COVERED_SENTENCE, false));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_no_answer() {
    let kind = |answer: Result<Answer>| answer.map(|answer| answer.response).map_err(|error| error.kind());
    for silence in ["", " \n\t", "…[]"] {
        let (answer, asked) = asked(32_000, 3, "Who?", move |_, _| Ok(silence.to_owned())).await;
        assert_eq!((kind(answer), asked.len()), (Err(ErrorKind::Corrupt), 1), "{silence:?}");
    }
    let (answer, _) = asked(32_000, 3, "Who?", |_, _| Err(Error::unavailable("away"))).await;
    assert_eq!(kind(answer), Err(ErrorKind::Unavailable));
    // Sixty seconds are the default.
    let endless = asked(32_000, 3, "Who?", |_, _| Ok("never".to_owned()));
    let (answer, _) = tokio::time::timeout(Duration::from_secs(61), endless).await.unwrap();
    assert_eq!(kind(answer), Err(ErrorKind::Unavailable));
    // Failing to mend is no failure: the first answer could be read.
    let script = |_: &ChatRequest, count| {
        if count == 0 { Ok("Coal.".to_owned()) } else { Err(Error::unavailable("away")) }
    };
    let (answer, _) = asked(32_000, 3, "Which is number 2?", script).await;
    assert_eq!(answer.unwrap().origin, Origin::Passages);
}

#[tokio::test]
async fn what_was_heard_is_not_followed_by_another_answer() {
    let model = Scripted {
        context: 32_000,
        script: |ask: &ChatRequest, _| {
            Ok(if ask.rejected.is_some() { "Coal [s1]. More coal [s2]. break" } else { "Made up." }
                .to_owned())
        },
        asked: Mutex::default(),
    };
    let chat = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let ear = Arc::new(Ear::default());
    let question = Question::new("Which is number 2?", Vec::new()).unwrap();
    let answer = chat.ask_aloud(talk(3), question, Arc::clone(&ear) as _).await;
    assert_eq!(answer.map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
    let heard: String = ear.heard.lock().unwrap().iter().map(|sentence| sentence.text.clone()).collect();
    assert_eq!(heard, "Coal [0:00]. More coal [1:00].");
}

#[tokio::test]
async fn endless_text_is_cut_off_and_still_an_answer() {
    let (answer, _) = asked(32_000, 3, "Cargo?", |_, _| Ok("Coal [s1]. ".repeat(10_000))).await;
    let answer = answer.unwrap();
    assert!(answer.response.starts_with("Coal [0:00].") && answer.response.len() < 100_000);
    assert_eq!(answer.citations.len(), 1);
}

#[tokio::test]
async fn of_a_long_transcript_the_passages_of_the_question_are_given() {
    let cited = |ask: &ChatRequest, _: usize| {
        let hit = ask.passages.iter().find(|passage| passage.text.contains("part 321 "));
        Ok(hit.map_or("NOT_COVERED".to_owned(), |passage| format!("This one [s{}].", passage.number)))
    };
    let (answer, asked) = asked(3_000, 600, "Which ship is number 321?", cited).await;
    let answer = answer.unwrap();
    assert_eq!(answer.response, "This one [5:21:00].");
    assert!(answer.coverage > 0.0 && answer.coverage < 0.3, "{}", answer.coverage);
    let tokens: u64 = asked[0].messages().iter().map(|message| tokens::of(&message.content)).sum();
    assert!(tokens + 750 <= 3_000, "{tokens}");
}

#[tokio::test]
async fn a_whole_transcript_is_read_by_parts() {
    let script = |ask: &ChatRequest, _: usize| {
        Ok(match ask.task {
            Task::Notes { .. } => format!("Ships [s{}].", ask.passages[1].number),
            Task::Answer => {
                ask.passages.iter().map(|passage| format!("Coal [s{}]. ", passage.number)).collect()
            }
        })
    };
    let (answer, asked) = asked(6_000, 600, "Summarise the video", script).await;
    let answer = answer.unwrap();
    let parts = asked.iter().filter(|ask| ask.task != Task::Answer).count();
    assert_eq!((asked.len(), answer.citations.len()), (parts + 1, parts));
    assert!(parts > 3 && answer.coverage > 0.99, "{parts} {}", answer.coverage);
    assert_eq!(answer.usage.unwrap().completion_tokens, parts as u64 + 1);
}

/// Remembers what it heard.
#[derive(Debug, Default)]
struct Ear {
    heard: Mutex<Vec<Sentence>>,
    leaves_after: usize,
}

impl Sentences for Ear {
    fn push(&self, sentence: Sentence) -> bool {
        let mut heard = self.heard.lock().unwrap();
        heard.push(sentence);
        self.leaves_after == 0 || heard.len() < self.leaves_after
    }
}

#[tokio::test]
async fn sentences_are_heard_one_by_one_and_only_verified() {
    let model = Scripted {
        context: 32_000,
        script: |_: &ChatRequest, _| {
            Ok("Coal [s1]. \"we burned it\" [s1]. More [s2]. None.\n- Last [s3]".to_owned())
        },
        asked: Mutex::default(),
    };
    let chat = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let question = Question::new("What?", Vec::new()).unwrap();
    let ear = Arc::new(Ear::default());
    let answer = chat.ask_aloud(talk(3), question.clone(), Arc::clone(&ear) as _).await.unwrap();
    let heard: Vec<String> = ear.heard.lock().unwrap().iter().map(|sentence| sentence.text.clone()).collect();
    assert_eq!(heard, ["Coal [0:00].", " More [1:00].", "\n- Last [2:00]"]);
    assert_eq!(answer.response, heard.concat());

    let gone = Arc::new(Ear { leaves_after: 1, ..Ear::default() });
    let left = chat.ask_aloud(talk(3), question, Arc::clone(&gone) as _).await;
    assert_eq!(left.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(gone.heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn twelve_hours_of_speech_stop_nobody_else() {
    let text = |n: u64| {
        format!(
            "The ship of part {n} is number {n} and carries {} tons of coal to harbour {}.",
            n * 3,
            n % 97
        )
    };
    let mut transcript = (*talk(1)).clone();
    transcript.segments = (0..10_800).map(|n| Segment::new(text(n), n * 4_000, 4_000)).collect();
    let transcript = Arc::new(transcript);
    let words: usize = transcript.segments.iter().map(|one| one.text.split(' ').count()).sum();
    assert!(words > 120_000 && transcript.segments.last().unwrap().end_ms() == 12 * 3_600_000, "{words}");

    // Everything else on this runtime: it has one thread, so that it stands still while anything runs there.
    let steps = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let so_far = || steps.load(std::sync::atomic::Ordering::Relaxed);
    let question = || Question::new("Which harbour gets the coal of ship number 10123?", Vec::new()).unwrap();
    let extractive = Chat::extractive(Handle::current());
    let answer = extractive.ask(Arc::clone(&transcript), question()).await.unwrap();
    assert!(
        answer.response.contains("number 10123") && answer.response.ends_with("[11:14:52]"),
        "{}",
        answer.response
    );
    let without_model = so_far();
    assert!(without_model > 100, "{without_model}");

    let script = |ask: &ChatRequest, _: usize| {
        let hit = ask.passages.iter().find(|passage| passage.text.contains("part 10123 "));
        let cite = hit.map_or("NOT_COVERED".to_owned(), |passage| format!("[s{}]", passage.number));
        Ok(format!(
            "It goes to \"harbour 35 and nobody else says this of it\" {cite}. \"10123 and carries 30369 tons\"."
        ))
    };
    let model = Arc::new(Scripted { context: 8_000, script, asked: Mutex::default() });
    let chat = Chat::new(Handle::current(), model, ChatOptions::default());
    let answer = chat.ask(transcript, question()).await.unwrap();
    assert_eq!(answer.response, "“10123 and carries 30369 tons” [11:14:52].");
    let with_model = so_far() - without_model;
    assert!(with_model > 100, "{with_model}");
    other.abort();
}
