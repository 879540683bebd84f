//! Tests of whole answers, with scripted models.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::*;
use crate::{
    error::{Error, ErrorKind, Result},
    transcript::{Segment, Transcript, test_transcript},
};

/// Replies with the result of a function and records the requests.
struct ScriptedModel<F> {
    context: u32,
    script: F,
    requests: Mutex<Vec<ModelRequest>>,
}

impl<F> std::fmt::Debug for ScriptedModel<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScriptedModel")
    }
}

#[async_trait]
impl<F> ChatModel for ScriptedModel<F>
where
    F: Fn(&ModelRequest, usize) -> Result<String> + Send + Sync + 'static,
{
    fn context_tokens(&self) -> u32 {
        self.context
    }

    async fn complete(
        &self,
        request: ModelRequest,
        deltas: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply> {
        let count = self.requests.lock().unwrap().len();
        let text = (self.script)(&request, count);
        self.requests.lock().unwrap().push(request);
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
            return Err(Error::unavailable("the model disconnected"));
        }
        Ok(ModelReply { text, usage: Some(TokenUsage { prompt_tokens: 10, completion_tokens: 1 }) })
    }
}

/// A transcript in English with these segments.
pub(super) fn transcript_of(segments: Vec<Segment>) -> Arc<Transcript> {
    Arc::new(test_transcript(segments))
}

fn ship_transcript(count: u64) -> Arc<Transcript> {
    let text = |n| format!("The ship of part {n} is number {n} and carries {} tons of coal.", n * 3);
    Arc::new(Transcript {
        title: Some("Ships".to_owned()),
        ..test_transcript((0..count).map(|n| Segment::new(text(n), n * 60_000, 5_000)).collect())
    })
}

async fn run_chat<F>(
    context: u32,
    count: u64,
    question: &str,
    script: F,
) -> (Result<VerifiedAnswer>, Vec<ModelRequest>)
where
    F: Fn(&ModelRequest, usize) -> Result<String> + Send + Sync + 'static,
{
    let model = Arc::new(ScriptedModel { context, script, requests: Mutex::default() });
    let chat = Chat::new(Handle::current(), Arc::clone(&model) as _, ChatOptions::default());
    let answer = chat.answer(ship_transcript(count), Question::new(question, Vec::new()).unwrap()).await;
    let requests = std::mem::take(&mut *model.requests.lock().unwrap());
    (answer, requests)
}

#[tokio::test]
async fn chat_answer_keeps_only_verified_sentences() {
    let (answer, requests) = run_chat(32_000, 3, "Which ship?", |_, _| {
        Ok("It is \"the ship of part 1\" [s2]. Made up [s9].".to_owned())
    })
    .await;
    let answer = answer.unwrap();
    assert_eq!(answer.response, "It is “The ship of part 1” [1:00].");
    assert_eq!(answer.citations.len(), 1);
    assert_eq!((answer.citations[0].start_ms, answer.citations[0].end_ms), (60_000, 65_000));
    assert_eq!(answer.citations[0].text, "The ship of part 1 is number 1 and carries 3 tons of coal.");
    assert_eq!((answer.coverage, answer.is_covered, answer.origin), (1.0, true, AnswerOrigin::Model));
    assert_eq!(answer.usage, Some(TokenUsage { prompt_tokens: 10, completion_tokens: 1 }));
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn chat_unverified_answer_is_retried_once() {
    let corrected = |request: &ModelRequest, _: usize| {
        Ok(if request.rejected.is_some() { "Coal [s1]." } else { "I invent." }.to_owned())
    };
    let (answer, both_requests) = run_chat(32_000, 3, "What cargo?", corrected).await;
    assert_eq!(answer.unwrap().response, "Coal [0:00].");
    assert_eq!(both_requests.len(), 2);
    assert!(both_requests[1].messages().iter().any(|message| message.content.contains("I invent.")));

    let (answer, requests) =
        run_chat(32_000, 3, "Which is number 2?", |_, _| Ok("\"we burned the fleet\" [s1]".to_owned())).await;
    let answer = answer.unwrap();
    assert_eq!((answer.origin, requests.len()), (AnswerOrigin::Passages, 2));
    assert!(answer.response.starts_with("“The ship of part 2 is number 2"), "{}", answer.response);
}

#[tokio::test]
async fn chat_extractive_quotations_are_whole_passages() {
    for spoken in [
        "-40 degrees was the night at the harbour, he wrote.",
        ".5 percent was what they paid for the harbour, or $5 million",
        "$5 million for the harbour was a loss of 12%",
        "The first program of the harbour was in C++",
        "(sighs) One woman refused the harbour (applause)",
        "¿Quién dijo eso? The harbour master",
        "Who built the harbour?",
        "He called the harbour «a wicked sum»",
    ] {
        let transcript = transcript_of(vec![Segment::new(spoken, 0, 5_000)]);
        let question = Question::new("harbour", Vec::new()).unwrap();
        let answer = Chat::extractive(Handle::current()).answer(transcript, question).await.unwrap();
        assert_eq!(answer.response, format!("“{spoken}” [0:00]"));
    }
}

#[tokio::test]
async fn chat_uncovered_question_returns_not_covered() {
    let (answer, _) = run_chat(32_000, 3, "Who won?", |_, _| Ok("NOT_COVERED".to_owned())).await;
    let answer = answer.unwrap();
    assert_eq!((answer.response.as_str(), answer.is_covered), (NOT_COVERED_SENTENCE, false));
    // Also escaped, in another case or with an explanation, without a second call.
    for text in
        ["NOT\\_COVERED", "not_covered", "**NOT_COVERED**\n", "NOT_COVERED. It does not mention prices."]
    {
        let (answer, requests) = run_chat(32_000, 3, "Who won?", move |_, _| Ok(text.to_owned())).await;
        let answer = answer.unwrap();
        assert_eq!((answer.response.as_str(), answer.is_covered), (NOT_COVERED_SENTENCE, false), "{text}");
        assert_eq!(requests.len(), 1, "{text}");
    }
    let chat = Chat::extractive(Handle::current());
    let answer =
        chat.answer(ship_transcript(2), Question::new("Xylophone?", Vec::new()).unwrap()).await.unwrap();
    assert_eq!((answer.response.as_str(), answer.is_covered), (NOT_COVERED_SENTENCE, false));
}

#[tokio::test]
async fn chat_nothing_follows_end_or_precedes_beginning() {
    let turn = |content: &str| ChatTurn { role: ChatRole::Assistant, content: content.to_owned() };
    for (cited, message, expect) in [
        ("2:00", "and then?", Some("Nothing follows: this is the end of the transcript.")),
        ("2:00", "然后呢？", Some("Nothing follows: this is the end of the transcript.")),
        ("0:00", "And before that?", Some("Nothing comes before: this is the beginning of the transcript.")),
        ("1:00", "and then?", None),
        ("2:00", "And before that?", None),
    ] {
        let cited = turn(&format!("“The ship.” [{cited}]"));
        // The same question again has the same answer.
        let repeated = expect.map(|expect| vec![cited.clone(), turn(expect)]);
        for history in [Some(vec![cited]), repeated].into_iter().flatten() {
            let question = Question::new(message, history).unwrap();
            let model = |_: &ModelRequest, _: usize| Ok("“The ship of part 1” [s2].".to_owned());
            let model = ScriptedModel { context: 32_000, script: model, requests: Mutex::default() };
            let with_model = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
            for chat in [Chat::extractive(Handle::current()), with_model] {
                let answer = chat.answer(ship_transcript(3), question.clone()).await.unwrap();
                assert_eq!(answer.is_covered, expect.is_none(), "{message}");
                assert!(expect.is_none_or(|expect| answer.response == expect), "{}", answer.response);
            }
        }
    }
}

#[tokio::test]
async fn chat_transcript_without_speech_supports_no_statement() {
    let script =
        |_: &ModelRequest, _| Ok("This video reviews the new iPhone camera and its battery [s1].".to_owned());
    let model = Arc::new(ScriptedModel { context: 32_000, script, requests: Mutex::default() });
    let chat = Chat::new(Handle::current(), model, ChatOptions::default());
    let question = Question::new("What is it about?", Vec::new()).unwrap();
    let answer = chat.answer(transcript_of(vec![Segment::new("you", 0, 5_000)]), question).await.unwrap();
    assert!(!answer.response.contains("iPhone"), "{}", answer.response);
}

#[tokio::test(start_paused = true)]
async fn chat_model_failure_returns_error() {
    let kind =
        |answer: Result<VerifiedAnswer>| answer.map(|answer| answer.response).map_err(|error| error.kind());
    for silence in ["", " \n\t", "…[]"] {
        let (answer, requests) = run_chat(32_000, 3, "Who?", move |_, _| Ok(silence.to_owned())).await;
        assert_eq!((kind(answer), requests.len()), (Err(ErrorKind::Corrupt), 1), "{silence:?}");
    }
    let (answer, _) = run_chat(32_000, 3, "Who?", |_, _| Err(Error::unavailable("away"))).await;
    assert_eq!(kind(answer), Err(ErrorKind::Unavailable));
    let (answer, _) = run_chat(32_000, 3, "Who?", |_, _| panic!("a defect")).await;
    assert_eq!(kind(answer), Err(ErrorKind::Unexpected));
    // The default timeout is 60 seconds.
    let pending_call = run_chat(32_000, 3, "Who?", |_, _| Ok("never".to_owned()));
    let (answer, _) = tokio::time::timeout(Duration::from_secs(61), pending_call).await.unwrap();
    assert_eq!(kind(answer), Err(ErrorKind::Unavailable));
    // A failed second call is no error: the first answer was readable.
    let script = |_: &ModelRequest, count| {
        if count == 0 { Ok("Coal.".to_owned()) } else { Err(Error::unavailable("away")) }
    };
    let (answer, _) = run_chat(32_000, 3, "Which is number 2?", script).await;
    assert_eq!(answer.unwrap().origin, AnswerOrigin::Passages);
}

/// Panics, or never returns.
#[derive(Debug)]
struct BrokenEmbedder {
    calls: AtomicUsize,
    panics: bool,
}

#[async_trait]
impl Embedder for BrokenEmbedder {
    fn model(&self) -> &str {
        "broken"
    }

    async fn embed(&self, _: Vec<String>, _: EmbedPurpose) -> Result<Vec<Vec<f32>>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a defect");
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn chat_broken_embedder_leaves_answer_by_words_and_pauses() {
    // The transcript has the ship and its number, but not the other words.
    let question = || Question::new("Which ship number sailed from Bergen?", Vec::new()).unwrap();
    let by_words = Chat::extractive(Handle::current()).answer(ship_transcript(3), question()).await.unwrap();
    for panics in [true, false] {
        let embedder = Arc::new(BrokenEmbedder { calls: AtomicUsize::new(0), panics });
        let chat = Chat::extractive(Handle::current()).with_embedder(Arc::clone(&embedder) as _);
        for _ in 0..2 {
            let answer = chat.answer(ship_transcript(3), question()).await.unwrap();
            assert_eq!(answer.response, by_words.response, "{panics}");
        }
        assert_eq!(embedder.calls.load(Ordering::Relaxed), 1, "{panics}");
    }
}

#[tokio::test]
async fn chat_sent_sentences_are_not_followed_by_fallback() {
    let model = ScriptedModel {
        context: 32_000,
        script: |request: &ModelRequest, _| {
            Ok(if request.rejected.is_some() { "Coal [s1]. More coal [s2]. break" } else { "Made up." }
                .to_owned())
        },
        requests: Mutex::default(),
    };
    let chat = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let sink = Arc::new(RecordingSink::default());
    let question = Question::new("Which is number 2?", Vec::new()).unwrap();
    let answer = chat.answer_streaming(ship_transcript(3), question, Arc::clone(&sink) as _).await;
    assert_eq!(answer.map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
    let sentences: String =
        sink.sentences.lock().unwrap().iter().map(|sentence| sentence.text.clone()).collect();
    assert_eq!(sentences, "Coal [0:00]. More coal [1:00].");
}

#[tokio::test]
async fn chat_endless_output_is_truncated_and_answered() {
    let (answer, _) = run_chat(32_000, 3, "Cargo?", |_, _| Ok("Coal [s1]. ".repeat(10_000))).await;
    let answer = answer.unwrap();
    assert!(answer.response.starts_with("Coal [0:00].") && answer.response.len() < 100_000);
    assert_eq!(answer.citations.len(), 1);
}

#[tokio::test]
async fn chat_long_transcript_sends_matching_passages() {
    let cited = |request: &ModelRequest, _: usize| {
        let hit = request.passages.iter().find(|passage| passage.text.contains("part 321 "));
        Ok(hit.map_or("NOT_COVERED".to_owned(), |passage| format!("This one [s{}].", passage.number)))
    };
    let (answer, requests) = run_chat(3_000, 600, "Which ship is number 321?", cited).await;
    let answer = answer.unwrap();
    assert_eq!(answer.response, "This one [5:21:00].");
    assert!(answer.coverage > 0.0 && answer.coverage < 0.3, "{}", answer.coverage);
    let tokens: u64 = requests[0].messages().iter().map(|message| tokens::estimate(&message.content)).sum();
    assert!(tokens + 750 <= 3_000, "{tokens}");
}

#[tokio::test]
async fn chat_time_in_question_sends_passage_at_that_time() {
    let (_, requests) =
        run_chat(3_000, 600, "What is at 5:21:10?", |_, _| Ok("NOT_COVERED".to_owned())).await;
    assert!(requests[0].passages.iter().any(|passage| passage.text.contains("part 321 ")));
}

#[tokio::test]
async fn chat_summary_of_long_transcript_reads_all_chunks() {
    let script = |request: &ModelRequest, _: usize| {
        Ok(match request.task {
            ModelTask::Notes { .. } => format!("Ships [s{}].", request.passages[1].number),
            ModelTask::Answer => {
                request.passages.iter().map(|passage| format!("Coal [s{}]. ", passage.number)).collect()
            }
        })
    };
    let (answer, requests) = run_chat(6_000, 600, "Summarise the video", script).await;
    let answer = answer.unwrap();
    let parts = requests.iter().filter(|request| request.task != ModelTask::Answer).count();
    assert_eq!((requests.len(), answer.citations.len()), (parts + 1, parts));
    assert!(parts > 3 && answer.coverage > 0.99, "{parts} {}", answer.coverage);
    assert_eq!(answer.usage.unwrap().completion_tokens, parts as u64 + 1);
}

/// Records the sentences it receives.
#[derive(Debug, Default)]
struct RecordingSink {
    sentences: Mutex<Vec<Sentence>>,
    disconnects_after: usize,
}

impl SentenceSink for RecordingSink {
    fn push(&self, sentence: Sentence) -> bool {
        let mut sentences = self.sentences.lock().unwrap();
        sentences.push(sentence);
        self.disconnects_after == 0 || sentences.len() < self.disconnects_after
    }
}

#[tokio::test]
async fn chat_streaming_pushes_only_verified_sentences() {
    let model = ScriptedModel {
        context: 32_000,
        script: |_: &ModelRequest, _| {
            Ok("Coal [s1]. \"we burned it\" [s1]. More [s2]. None.\n- Last [s3]".to_owned())
        },
        requests: Mutex::default(),
    };
    let chat = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let question = Question::new("What?", Vec::new()).unwrap();
    let sink = Arc::new(RecordingSink::default());
    let answer =
        chat.answer_streaming(ship_transcript(3), question.clone(), Arc::clone(&sink) as _).await.unwrap();
    let sentences: Vec<String> =
        sink.sentences.lock().unwrap().iter().map(|sentence| sentence.text.clone()).collect();
    assert_eq!(sentences, ["Coal [0:00].", " More [1:00].", "\n- Last [2:00]"]);
    assert_eq!(answer.response, sentences.concat());

    let disconnecting = Arc::new(RecordingSink { disconnects_after: 1, ..RecordingSink::default() });
    let result = chat.answer_streaming(ship_transcript(3), question, Arc::clone(&disconnecting) as _).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(disconnecting.sentences.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn chat_twelve_hour_transcript_does_not_block_runtime() {
    let text = |n: u64| {
        format!(
            "The ship of part {n} is number {n} and carries {} tons of coal to harbour {}.",
            n * 3,
            n % 97
        )
    };
    let mut transcript = (*ship_transcript(1)).clone();
    transcript.segments = (0..10_800).map(|n| Segment::new(text(n), n * 4_000, 4_000)).collect();
    let transcript = Arc::new(transcript);
    let words: usize = transcript.segments.iter().map(|one| one.text.split(' ').count()).sum();
    assert!(words > 120_000 && transcript.segments.last().unwrap().end_ms() == 12 * 3_600_000, "{words}");

    // Other work on this runtime. It has one thread, so other work stops while anything else runs on it.
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let steps_so_far = || steps.load(Ordering::Relaxed);
    let question = || Question::new("Which harbour gets the coal of ship number 10123?", Vec::new()).unwrap();
    let extractive = Chat::extractive(Handle::current());
    let answer = extractive.answer(Arc::clone(&transcript), question()).await.unwrap();
    assert!(
        answer.response.contains("number 10123") && answer.response.ends_with("[11:14:52]"),
        "{}",
        answer.response
    );
    let without_model = steps_so_far();
    assert!(without_model > 100, "{without_model}");

    let script = |request: &ModelRequest, _: usize| {
        let hit = request.passages.iter().find(|passage| passage.text.contains("part 10123 "));
        let cite = hit.map_or("NOT_COVERED".to_owned(), |passage| format!("[s{}]", passage.number));
        Ok(format!(
            "It goes to \"harbour 35 and no other text says this of it\" {cite}. \"10123 and carries 30369 tons\"."
        ))
    };
    let model = Arc::new(ScriptedModel { context: 8_000, script, requests: Mutex::default() });
    let chat = Chat::new(Handle::current(), model, ChatOptions::default());
    let answer = chat.answer(transcript, question()).await.unwrap();
    assert_eq!(answer.response, "“10123 and carries 30369 tons” [11:14:52].");
    let with_model = steps_so_far() - without_model;
    assert!(with_model > 100, "{with_model}");
    other.abort();
}
