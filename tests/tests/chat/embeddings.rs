//! Search by meaning: the embeddings service over HTTP, and the quality of answers with two real models.
//!
//! `VERBATIM_EMBEDDINGS_ALL=1 cargo test -p verbatim-tests --test all chat::embeddings -- --nocapture` prints the
//! figures of `docs/chat.md`. Without the variable, fewer talks are measured.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use embedder_model2vec::StaticEmbedder;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use transcript_core::{
    Error,
    chat::{Chat, EmbedPurpose, Embedder, Question, passages},
};
use upstream_reqwest::{EmbeddingsOptions, EmbeddingsService};

use super::{
    quality::{Figures, measure_talks},
    questions::QuestionKind,
    talk,
    talks::{TestTalk, talks},
};
use crate::{
    install::installed,
    service::fake::{FakeReply, FakeService, SeenRequest},
};

fn options(base_url: &str) -> EmbeddingsOptions {
    EmbeddingsOptions {
        base_url: base_url.to_owned(),
        model: "multilingual-e5-small".to_owned(),
        question_prefix: "query:".to_owned(),
        passage_prefix: "passage:".to_owned(),
        ..EmbeddingsOptions::default()
    }
}

pub(super) fn texts(request: &SeenRequest) -> Vec<String> {
    serde_json::from_value(request.json()["input"].clone()).unwrap_or_default()
}

/// Vectors of two numbers: close to the first axis if a text is about ice or frost.
pub(super) fn embeddings(request: &SeenRequest) -> FakeReply {
    let vector =
        |text: &String| if text.contains("ice") || text.contains("frost") { [1.0, 0.1] } else { [0.1, 1.0] };
    let items = texts(request)
        .iter()
        .map(vector)
        .enumerate()
        .map(|(n, vector)| json!({ "index": n, "embedding": vector }))
        .rev()
        .collect::<Vec<_>>();
    FakeReply::json(&json!({ "object": "list", "data": items }))
}

async fn answer(chat: &Chat, question: &str) -> Result<String> {
    let question = Question::new(question, Vec::new())?;
    Ok(chat.answer(talk()?, question).await?.response)
}

#[tokio::test]
async fn embeddings_service_finds_passages_and_embeds_them_once() -> Result<()> {
    let service = FakeService::start(|request, _| embeddings(request)).await?;
    let options = EmbeddingsOptions { api_key: Some("sk-secret".to_owned()), ..options(&service.base_url) };
    let chat = Chat::extractive(Handle::current()).with_embedder(Arc::new(EmbeddingsService::new(options)?));
    ensure!(!chat.is_extractive(), "a service is called");
    for _ in 0..2 {
        let found = answer(&chat, "Which harbour museum suffered from frost?").await?;
        ensure!(found.contains("In nineteen twelve the ice broke the old pier"), "{found}");
    }
    let requests = service.requests();
    let sent: Vec<_> = requests.iter().map(texts).collect();
    let question = ["query: Which harbour museum suffered from frost?".to_owned()];
    let [one, passages, two] = &sent[..] else { anyhow::bail!("{sent:?}") };
    ensure!(passages.len() == 3 && passages.iter().all(|text| text.starts_with("passage: ")), "{passages:?}");
    assert_eq!((&one[..], &two[..]), (&question[..], &question[..]));
    for request in &requests {
        ensure!(request.head.starts_with("post /v1/embeddings http/1.1"), "{}", request.head);
        ensure!(request.head.contains("authorization: bearer sk-secret"), "{}", request.head);
        let body = request.json();
        ensure!(!body.to_string().contains("sk-secret"), "{body}");
        assert_eq!(
            (&body["model"], &body["encoding_format"]),
            (&json!("multilingual-e5-small"), &json!("float"))
        );
    }
    // All words of this question are in one passage: no vector is needed.
    answer(&chat, "Which old pier broke in a single night?").await?;
    assert_eq!(service.requests().len(), 3);
    Ok(())
}

#[tokio::test]
async fn failing_embeddings_service_leaves_search_by_words() -> Result<()> {
    let invalid = [
        json!({ "data": [] }),
        json!({ "data": [{ "index": 0, "embedding": [1.0, 2.0] }, { "index": 1, "embedding": [1.0] }, { "index": 2, "embedding": [1.0] }] }),
        Value::Null,
    ];
    for (n, invalid) in invalid.into_iter().enumerate() {
        let service = FakeService::start(move |_, _| FakeReply::json(&invalid)).await?;
        let embedder = Arc::new(EmbeddingsService::new(options(&service.base_url))?);
        let chat = Chat::extractive(Handle::current()).with_embedder(embedder);
        for _ in 0..3 {
            let found = answer(&chat, "Which harbour museum closed its gates?").await?;
            ensure!(found.contains("Welcome to the harbour museum"), "{n}: {found}");
        }
        // After a failure the service is not called for half a minute.
        assert_eq!(service.requests().len(), 1, "{n}");
    }
    Ok(())
}

#[tokio::test]
async fn embeddings_batches_are_bounded_ordered_and_retried() -> Result<()> {
    let service = FakeService::start(|request, before| {
        if before < 2 {
            return FakeReply::new(429, "retry-after: 0\r\n", "");
        }
        let number = |text: &String| text.rsplit(' ').next().and_then(|number| number.parse::<f32>().ok());
        let items = texts(request).into_iter().map(|text| number(&text).unwrap_or(-1.0)).enumerate();
        let items =
            items.map(|(n, number)| json!({ "index": n, "embedding": [number, 1.0] })).collect::<Vec<_>>();
        FakeReply::json(&json!({ "data": items }))
    })
    .await?;
    let embedder = EmbeddingsService::new(options(&service.base_url))?;
    let texts_sent: Vec<String> = (0..100).map(|n| format!("text {n}")).collect();
    let vectors = embedder.embed(texts_sent, EmbedPurpose::Passage).await?;
    let numbers: Vec<f32> = vectors.iter().filter_map(|vector| vector.first().copied()).collect();
    assert_eq!(numbers, (0..100_u8).map(f32::from).collect::<Vec<_>>());
    let requests = service.requests();
    ensure!(requests.len() == 6 && requests.iter().all(|request| texts(request).len() <= 32));

    let error = |status, body: &'static str| async move {
        let service = FakeService::start(move |_, _| FakeReply::new(status, "", body)).await?;
        let short =
            EmbeddingsOptions { timeout: Duration::from_secs(5), retries: 0, ..options(&service.base_url) };
        let embedder = EmbeddingsService::new(short)?;
        let result = embedder.embed(vec!["x".to_owned()], EmbedPurpose::Question).await;
        anyhow::Ok(result.map_err(|error: Error| error.message().to_owned()).expect_err("an error"))
    };
    ensure!(error(401, "sk-secret").await?.contains("chat.embeddings_api_key"));
    ensure!(error(404, "").await?.contains("check chat.embeddings_model and chat.embeddings_url"));
    ensure!(error(500, "").await?.contains("HTTP 500"));
    ensure!(error(200, "{\"data\":[{\"index\":0,\"embedding\":[]}]}").await?.contains("no list of vectors"));
    Ok(())
}

/// A service with a real model; drop ends it.
struct EmbeddingsServer {
    base_url: String,
    process: Child,
}

impl EmbeddingsServer {
    fn start() -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/embeddings/server.py");
        let mut command = Command::new(installed("embeddings")?.join("venv/bin/python"));
        let mut process = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut base_url = String::new();
        BufReader::new(process.stdout.take().context("output")?).read_line(&mut base_url)?;
        Ok(Self { base_url: base_url.trim().to_owned(), process })
    }
}

impl Drop for EmbeddingsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The talks to measure: all, or short ones of several languages.
fn measured_talks() -> Result<Vec<TestTalk>> {
    let mut measured = talks()?;
    if std::env::var_os("VERBATIM_EMBEDDINGS_ALL").is_none() {
        measured.retain(|talk| passages(&talk.transcript.segments).len() <= PASSAGES_MAX);
    }
    Ok(measured)
}

/// Most passages of a talk that is measured in every run of the tests.
const PASSAGES_MAX: usize = 60;

/// Checks that a chat with embeddings is at least as good as one without for every kind of question.
fn check_not_worse(with: &[Figures], without: &[Figures]) -> Result<()> {
    for (kind, (with, without)) in QuestionKind::ALL.into_iter().zip(with.iter().zip(without)) {
        let is_better = match kind {
            QuestionKind::OffTopic => with.abstains >= without.abstains.min(90),
            // Among five, one question of a kind may be lost for another.
            _ => {
                with.first >= without.first
                    && with.fifth + 4 >= without.fifth
                    && with.cited + 4 >= without.cited
            }
        };
        ensure!(is_better, "{kind:?}: {with:?} with embeddings, {without:?} without");
    }
    Ok(())
}

#[tokio::test]
async fn embeddings_improve_answers_of_every_kind() -> Result<()> {
    let measured = measured_talks()?;
    ensure!(measured.len() >= 8, "{} talks", measured.len());
    println!("by words");
    let words = measure_talks(&measured, &Chat::extractive(Handle::current()), None).await?;
    println!("with a static model of English");
    let model: Arc<dyn Embedder> = Arc::new(StaticEmbedder::open(&installed("embeddings")?.join("static"))?);
    let chat = Chat::extractive(Handle::current()).with_embedder(Arc::clone(&model));
    ensure!(chat.is_extractive(), "a static model is no network call");
    check_not_worse(&measure_talks(&measured, &chat, Some(model)).await?, &words)?;
    println!("with multilingual-e5-small behind a service");
    let server = EmbeddingsServer::start()?;
    let timeout = Duration::from_secs(300);
    let service = EmbeddingsService::new(EmbeddingsOptions { timeout, ..options(&server.base_url) })?;
    let service: Arc<dyn Embedder> = Arc::new(service);
    let chat = Chat::extractive(Handle::current()).with_embedder(Arc::clone(&service));
    let service = measure_talks(&measured, &chat, Some(service)).await?;
    check_not_worse(&service, &words)
}
