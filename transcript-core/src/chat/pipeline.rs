//! Answer pipeline: selects passages, calls the model, verifies its answer and falls back to passages.

use std::{fmt, sync::Arc};

use tokio::runtime::Handle;

use super::{
    AnswerOrigin, ChatModel, ChatOptions, ChatTurn, Embedder, ExtractiveModel, ModelReply, ModelRequest,
    ModelTask, NOT_COVERED_SENTENCE, Passage, Question, Sentence, TokenUsage, VerifiedAnswer,
    answer::NOT_COVERED_IN_PART,
    bm25::sort_by_score,
    cpu_pool::{ANSWERS_MAX, CpuPool, SEARCHES_MAX},
    delta_buffer::DeltaBuffer,
    extractive::Retrieval,
    intent::nothing_beyond,
    meaning::MeaningSearch,
    passages, prompt,
    retrieve::select_within_budget,
    task::run_in_task,
    verify::{AnswerVerifier, VerifyReport, citation},
};
use crate::{
    archive::Archive,
    error::{Error, ErrorKind, Result, Retry},
    transcript::Transcript,
};

/// Least budget for passages, whatever the model's context is, in tokens.
const PASSAGES_TOKENS_MIN: u64 = 256;

/// Receives the sentences of an answer as they are verified.
pub trait SentenceSink: fmt::Debug + Send + Sync + 'static {
    /// Receives the next verified sentence.
    ///
    /// Returns false if the client disconnected; the answer is then abandoned.
    fn push(&self, sentence: Sentence) -> bool;
}

/// Answers questions about videos from their transcripts, with verified quotations and citations.
///
/// A clone shares the same state.
#[derive(Clone, Debug)]
pub struct Chat {
    runtime: Handle,
    /// Work of answers, which are paid.
    pub(super) cpu_pool: CpuPool,
    /// Work of searches, which are free and open to callers without a key. An answer never waits for it.
    pub(super) search_pool: CpuPool,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) options: Arc<ChatOptions>,
    /// Search by meaning beside the search by words, if there is an embedding model.
    meaning: Option<MeaningSearch>,
    /// Whether answers are the transcript's own passages, without a language model.
    is_extractive: bool,
}

impl Chat {
    /// Creates a chat with a model. Work and timers run on `runtime`, so any executor can await an answer.
    pub fn new(runtime: Handle, model: Arc<dyn ChatModel>, options: ChatOptions) -> Self {
        let cpu_pool = CpuPool::new(runtime.clone(), ANSWERS_MAX);
        let search_pool = CpuPool::new(runtime.clone(), SEARCHES_MAX);
        let options = Arc::new(options);
        Self { runtime, cpu_pool, search_pool, model, options, meaning: None, is_extractive: false }
    }

    /// Creates a chat that answers with the transcript's own passages; see [`ExtractiveModel`].
    pub fn extractive(runtime: Handle) -> Self {
        Self { is_extractive: true, ..Self::new(runtime, Arc::new(ExtractiveModel), ChatOptions::default()) }
    }

    /// Finds passages by their meaning too, with an embedding model.
    ///
    /// It is called for questions whose words leave open which passages answer them. If it fails, or takes longer than
    /// half of [`ChatOptions::timeout`], passages are found by words. The vectors of recent transcripts stay in memory
    /// of bounded size, and with [`Chat::with_archive`] in the archive.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        // Half of the time is left for the answer after a model that never returns.
        let meaning = MeaningSearch::new(embedder, self.runtime.clone(), self.options.timeout / 2);
        Self { meaning: Some(meaning), ..self }
    }

    /// Keeps the vectors of the embedding model in the archive of the transcripts, if they are computed elsewhere.
    ///
    /// They are computed once for each transcript and model, and another process or a restart reads them.
    #[must_use]
    pub fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        let meaning = self.meaning.map(|meaning| meaning.with_archive(archive));
        Self { meaning, ..self }
    }

    /// The same chat for questions that are free: they take turns with searches, so no paid answer waits for them.
    #[must_use]
    pub fn for_visitors(&self) -> Self {
        Self { cpu_pool: self.search_pool.clone(), ..self.clone() }
    }

    /// The same chat without a model and without network calls: answers are the transcript's own passages.
    #[must_use]
    pub fn without_model(&self) -> Self {
        let meaning = self.meaning.clone().filter(MeaningSearch::is_local);
        Self { model: Arc::new(ExtractiveModel), meaning, is_extractive: true, ..self.clone() }
    }

    /// Indices of the passages that match a question, best first.
    ///
    /// They are ranked as for an answer that does not contain the whole transcript.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the service is stopping.
    pub async fn rank(&self, passages: Arc<[Passage]>, question: Question) -> Result<Vec<usize>> {
        let bytes = passages.iter().map(|passage| passage.text.len()).sum();
        let found = self.retrieve(bytes, None, &passages, &question).await?;
        Ok(sort_by_score(found.scores()))
    }

    /// Finds passages by words and, if these leave it open, by meaning.
    async fn retrieve(
        &self,
        bytes: usize,
        transcript: Option<&Arc<Transcript>>,
        passages: &Arc<[Passage]>,
        question: &Question,
    ) -> Result<Retrieval> {
        let (spoken, current) = (Arc::clone(passages), question.clone());
        let mut found = self.cpu_pool.work(bytes, move || Retrieval::new(&spoken, &current)).await?;
        if let Some(meaning) = self.meaning.as_ref().filter(|_| found.needs_meaning())
            && let Some(similarities) = meaning.similarities(transcript, passages, question).await
        {
            found.add_meaning(&similarities);
        }
        Ok(found)
    }

    /// Whether answers are the transcript's own passages, without a model or a network call.
    pub fn is_extractive(&self) -> bool {
        self.is_extractive && self.meaning.as_ref().is_none_or(MeaningSearch::is_local)
    }

    /// Answers a question about a video.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the model cannot be reached or exceeds `timeout`, [`ErrorKind::Corrupt`] if it
    /// returns no readable answer, and every other error of the model.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    pub async fn answer(&self, transcript: Arc<Transcript>, question: Question) -> Result<VerifiedAnswer> {
        self.run(transcript, question, None).await
    }

    /// As [`Chat::answer`], and pushes each verified sentence at once; together they are the response.
    ///
    /// # Errors
    /// As [`Chat::answer`], also after sentences were pushed.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    pub async fn answer_streaming(
        &self,
        transcript: Arc<Transcript>,
        question: Question,
        sink: Arc<dyn SentenceSink>,
    ) -> Result<VerifiedAnswer> {
        self.run(transcript, question, Some(sink)).await
    }

    async fn run(
        &self,
        transcript: Arc<Transcript>,
        question: Question,
        sink: Option<Arc<dyn SentenceSink>>,
    ) -> Result<VerifiedAnswer> {
        let chat = self.clone();
        let work = async move {
            let limit = chat.options.timeout;
            let answering =
                async { AnswerTask::new(&chat, transcript, question, sink).await?.answer().await };
            let timed_out = || Error::unavailable("the chat model did not answer within the timeout");
            tokio::time::timeout(limit, answering).await.unwrap_or_else(|_| Err(timed_out()))
        };
        run_in_task(&self.runtime, work, "the task that answers a question panicked").await
    }
}

/// One question in progress.
pub(super) struct AnswerTask<'a> {
    pub(super) chat: &'a Chat,
    pub(super) transcript: Arc<Transcript>,
    pub(super) passages: Arc<[Passage]>,
    pub(super) question: Question,
    pub(super) history: Vec<ChatTurn>,
    pub(super) sink: Option<Arc<dyn SentenceSink>>,
    /// Bytes of the transcript's text, and estimated tokens of its passages.
    pub(super) bytes: usize,
    pub(super) tokens: u64,
    /// Budget for passages, in tokens.
    pub(super) budget: u64,
    /// Maximum of output tokens.
    pub(super) output_tokens_max: u32,
    pub(super) usage: Option<TokenUsage>,
    /// Whether a sentence was pushed.
    pub(super) has_sent: bool,
}

/// Output of a model with the verified answer made from it.
struct ModelDraft {
    text: String,
    report: VerifyReport,
    answer: VerifiedAnswer,
}

impl<'a> AnswerTask<'a> {
    async fn new(
        chat: &'a Chat,
        transcript: Arc<Transcript>,
        question: Question,
        sink: Option<Arc<dyn SentenceSink>>,
    ) -> Result<Self> {
        let bytes = transcript.text_bytes();
        let spoken = Arc::clone(&transcript);
        let split_into_passages = move || {
            let passages: Arc<[Passage]> = passages(&spoken.segments).into();
            let tokens = passages.iter().map(Passage::tokens).fold(0, u64::saturating_add);
            (passages, tokens)
        };
        let (passages, tokens) = chat.cpu_pool.work(bytes, split_into_passages).await?;
        let context = u64::from(chat.model.context_tokens());
        let history = prompt::trim_history(question.history(), context / 4);
        let overhead = prompt::overhead_tokens(transcript.title.as_deref(), &history, question.message());
        let output = chat.options.output_tokens_max.min(chat.model.context_tokens() / 4);
        let budget =
            context.saturating_sub(overhead).saturating_sub(u64::from(output)).max(PASSAGES_TOKENS_MIN);
        let (usage, has_sent) = (None, false);
        Ok(Self {
            chat,
            transcript,
            passages,
            question,
            history,
            sink,
            bytes,
            tokens,
            budget,
            output_tokens_max: output,
            usage,
            has_sent,
        })
    }

    async fn retrieve(&self) -> Result<Retrieval> {
        self.chat.retrieve(self.bytes, Some(&self.transcript), &self.passages, &self.question).await
    }

    /// Runs work whose cost grows with the transcript.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.chat.cpu_pool.work(self.bytes, work).await
    }

    async fn answer(mut self) -> Result<VerifiedAnswer> {
        if let Some(sentence) = nothing_beyond(&self.question, &self.passages) {
            return self.answer_with_sentence(sentence, VerifiedAnswer::empty(1.0));
        }
        if self.chat.is_extractive {
            return self.answer_with_passages(false).await;
        }
        let (selected, coverage) = if self.tokens <= self.budget {
            (Arc::clone(&self.passages), 1.0)
        } else if let Some(indices) = self.select_passages().await? {
            let selected = self.passages_at(&indices);
            let coverage = self.word_share(&selected);
            (selected, coverage)
        } else {
            self.read_in_chunks().await?
        };
        if selected.is_empty() {
            // No passage fits or matters: the fallback still returns passages of the transcript.
            return self.fall_back_to_passages().await;
        }
        let mut answer = self.answer_with_model(&selected, coverage).await?;
        answer.usage = self.usage;
        Ok(answer)
    }

    /// Indices of the passages that fit the question; `None` if the question is about the whole video.
    async fn select_passages(&self) -> Result<Option<Vec<usize>>> {
        let found = self.retrieve().await?;
        if found.is_whole() {
            return Ok(None);
        }
        let (passages, budget) = (Arc::clone(&self.passages), self.budget);
        self.work(move || Some(select_within_budget(&passages, found.scores(), budget))).await
    }

    /// Calls the model, up to twice, then falls back to the transcript's own passages.
    ///
    /// The second call follows if nothing of the first answer could be verified.
    async fn answer_with_model(
        &mut self,
        selected: &Arc<[Passage]>,
        coverage: f64,
    ) -> Result<VerifiedAnswer> {
        let request = self.request(ModelTask::Answer, selected);
        let first = self.draft(request.clone(), coverage).await?;
        if !first.report.is_readable {
            let message = "the chat model returned no readable answer";
            return Err(Error::new(ErrorKind::Corrupt, Retry::Backoff, message));
        }
        let rejected = match self.accept(first)? {
            Ok(answer) => return Ok(answer),
            Err(rejected) => rejected,
        };
        // At most one retry, however hostile the transcript is.
        let retry_request = ModelRequest { rejected: Some(rejected), ..request };
        let second = match self.draft(retry_request, coverage).await {
            Ok(second) => second,
            // Pushed sentences cannot be retracted, so no other answer may follow them.
            Err(error) if self.has_sent => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "second chat model call failed");
                return self.fall_back_to_passages().await;
            }
        };
        match self.accept(second)? {
            Ok(answer) => Ok(answer),
            Err(_) => self.fall_back_to_passages().await,
        }
    }

    /// Returns the answer, or the text of a draft without one.
    fn accept(&mut self, draft: ModelDraft) -> Result<Result<VerifiedAnswer, String>> {
        let ModelDraft { text, report, answer } = draft;
        if report.verified > 0 {
            return Ok(Ok(answer));
        }
        if report.says_not_covered {
            return self.answer_not_covered(answer).map(Ok);
        }
        Ok(Err(text))
    }

    fn answer_not_covered(&mut self, answer: VerifiedAnswer) -> Result<VerifiedAnswer> {
        let sentence = if answer.coverage < 1.0 { NOT_COVERED_IN_PART } else { NOT_COVERED_SENTENCE };
        self.answer_with_sentence(sentence, answer)
    }

    fn answer_with_sentence(&mut self, sentence: &str, answer: VerifiedAnswer) -> Result<VerifiedAnswer> {
        self.send([Sentence { text: sentence.to_owned(), citations: Vec::new() }])?;
        Ok(VerifiedAnswer { response: sentence.to_owned(), is_covered: false, ..answer })
    }

    /// Falls back to the best passages of the transcript, because the model's answer could not be verified.
    async fn fall_back_to_passages(&mut self) -> Result<VerifiedAnswer> {
        tracing::debug!("chat answer fell back to passages");
        let mut answer = self.answer_with_passages(true).await?;
        answer.origin = AnswerOrigin::Passages;
        answer.usage = self.usage;
        Ok(answer)
    }

    /// Answers with the best passages of the transcript.
    async fn answer_with_passages(&mut self, is_fallback: bool) -> Result<VerifiedAnswer> {
        let mut request = self.request(ModelTask::Answer, &self.passages);
        request.history = self.question.history().to_vec();
        let (verifier, request) = self.create_verifier(request).await?;
        let found = self.retrieve().await?;
        let write = move || {
            let text = ExtractiveModel::write_answer(&request, &found, is_fallback);
            let mut verifier = verifier;
            let mut sentences = verifier.push(&text);
            sentences.extend(verifier.finish());
            (text, verifier, sentences)
        };
        let (text, verifier, sentences) = self.work(write).await?;
        self.send(sentences)?;
        match self.accept(self.build_draft(text, &verifier, 1.0))? {
            Ok(answer) => Ok(answer),
            Err(_) => self.answer_not_covered(VerifiedAnswer::empty(1.0)),
        }
    }

    /// Creates the verifier of the answer to a request.
    pub(super) async fn create_verifier(
        &self,
        request: ModelRequest,
    ) -> Result<(AnswerVerifier, ModelRequest)> {
        let (transcript, passages) = (Arc::clone(&self.transcript), Arc::clone(&self.passages));
        let create = move || {
            let (selected, question) = (&request.passages, &request.question);
            (AnswerVerifier::new(&transcript, &passages, selected, question, &request.history), request)
        };
        self.work(create).await
    }

    fn build_draft(&self, text: String, verifier: &AnswerVerifier, coverage: f64) -> ModelDraft {
        let cited = verifier.cited().iter();
        let report = verifier.report();
        let citations = cited.filter_map(|segments| citation(&self.transcript, segments)).collect();
        let answer = VerifiedAnswer {
            response: verifier.response().to_owned(),
            citations,
            ..VerifiedAnswer::empty(coverage)
        };
        ModelDraft { text, report, answer }
    }

    pub(super) fn request(&self, task: ModelTask, selected: &Arc<[Passage]>) -> ModelRequest {
        ModelRequest {
            task,
            title: self.transcript.title.clone(),
            author: self.transcript.author.clone(),
            passages: Arc::clone(selected),
            history: self.history.clone(),
            question: self.question.message().to_owned(),
            rejected: None,
            output_tokens_max: self.output_tokens_max,
        }
    }

    /// Calls the model and verifies its output as it arrives.
    async fn draft(&mut self, request: ModelRequest, coverage: f64) -> Result<ModelDraft> {
        let model = Arc::clone(&self.chat.model);
        let (mut verifier, request) = self.create_verifier(request).await?;
        let (buffer, mut pieces) = DeltaBuffer::new();
        let mut call = model.complete(request, Some(Arc::new(buffer)));
        let mut text = String::new();
        let reply = loop {
            tokio::select! {
                biased;
                Some(mut piece) = pieces.recv() => {
                    while let Ok(more) = pieces.try_recv() {
                        piece.push_str(&more);
                    }
                    text.push_str(&piece);
                    verifier = self.verify_piece(verifier, piece).await?;
                }
                reply = &mut call => break reply?,
            }
        };
        drop(call);
        let mut rest = String::new();
        while let Ok(piece) = pieces.try_recv() {
            rest.push_str(&piece);
        }
        let ModelReply { text: full_text, usage } = reply;
        if text.is_empty() && rest.is_empty() {
            // The model does not stream.
            rest = full_text;
        }
        text.push_str(&rest);
        verifier = self.verify_piece(verifier, rest).await?;
        let end = move || (verifier.finish(), verifier);
        let (sentences, verifier) = self.work(end).await?;
        self.send(sentences)?;
        if let Some(usage) = usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        let VerifyReport { verified, removed, .. } = verifier.report();
        tracing::debug!(verified, removed, "chat model answer verified");
        Ok(self.build_draft(text, &verifier, coverage))
    }

    /// Verifies a delta and pushes the sentences that are complete.
    async fn verify_piece(&mut self, mut verifier: AnswerVerifier, piece: String) -> Result<AnswerVerifier> {
        let (sentences, verifier) = self.work(move || (verifier.push(&piece), verifier)).await?;
        self.send(sentences)?;
        Ok(verifier)
    }

    fn send(&mut self, sentences: impl IntoIterator<Item = Sentence>) -> Result<()> {
        let Some(sink) = &self.sink else { return Ok(()) };
        let has_sent = &mut self.has_sent;
        let mut push = |sentence| {
            *has_sent = true;
            sink.push(sentence)
        };
        match sentences.into_iter().all(&mut push) {
            true => Ok(()),
            false => Err(Error::unavailable("the client disconnected before the answer was complete")),
        }
    }

    pub(super) fn passages_at(&self, indices: &[usize]) -> Arc<[Passage]> {
        indices.iter().filter_map(|index| self.passages.get(*index)).cloned().collect()
    }

    /// Share of the transcript's words in these passages.
    pub(super) fn word_share(&self, selected: &[Passage]) -> f64 {
        let words =
            |passages: &[Passage]| passages.iter().map(|passage| passage.text.len()).sum::<usize>() as f64;
        words(selected) / words(&self.passages).max(1.0)
    }
}
