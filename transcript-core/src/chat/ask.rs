//! Asking: which passages the model is given, what becomes of its answer, and what is answered when nothing does.

use std::{fmt, sync::Arc};

use tokio::{runtime::Handle, task::JoinSet};

use super::{
    Answer, ChatModel, ChatOptions, ChatReply, ChatRequest, ExtractiveModel, NOT_COVERED_SENTENCE, Origin,
    Passage, Question, Sentence, Task, Turn, Usage,
    answer::NOT_COVERED_IN_PART,
    check::{Checker, Report, citation},
    desk::Desk,
    feed::Feed,
    intent::{Intent, intent},
    passages, prompt,
    retrieve::{fitting, within},
};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    transcript::Transcript,
};

/// The least room that is left for passages, whatever a model's context is said to be, in tokens.
const PASSAGES_TOKENS_MIN: u64 = 256;

/// Whoever listens to an answer while it is made.
pub trait Sentences: fmt::Debug + Send + Sync + 'static {
    /// The next sentence, verified. False: nobody listens any more, and the answer is given up.
    fn push(&self, sentence: Sentence) -> bool;
}

/// Answers questions about videos, each from its transcript alone, with every quotation and citation verified.
///
/// A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub struct Chat {
    runtime: Handle,
    pub(super) desk: Desk,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) options: Arc<ChatOptions>,
    /// Whether answers are the transcript's own passages, at once and without a network.
    is_extractive: bool,
}

impl Chat {
    /// A chat with a model. Work and timers run on `runtime`, so that any executor may wait for an answer.
    pub fn new(runtime: Handle, model: Arc<dyn ChatModel>, options: ChatOptions) -> Self {
        let desk = Desk::new(runtime.clone());
        Self { runtime, desk, model, options: Arc::new(options), is_extractive: false }
    }

    /// A chat that answers with the transcript's own passages; see [`ExtractiveModel`].
    pub fn extractive(runtime: Handle) -> Self {
        Self { is_extractive: true, ..Self::new(runtime, Arc::new(ExtractiveModel), ChatOptions::default()) }
    }

    /// Whether answers are the transcript's own passages, made at once and without a network.
    pub fn is_extractive(&self) -> bool {
        self.is_extractive
    }

    /// Answers a question about a video.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when the model cannot be reached or took longer than `timeout`,
    /// [`ErrorKind::Corrupt`] when it answered nothing that can be read, and whatever else it fails with.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    pub async fn ask(&self, transcript: Arc<Transcript>, question: Question) -> Result<Answer> {
        self.run(transcript, question, None).await
    }

    /// As [`Chat::ask`], and hands over each sentence as soon as it is verified. Together they are the response.
    ///
    /// # Errors
    /// As [`Chat::ask`], also after sentences were handed over.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    pub async fn ask_aloud(
        &self,
        transcript: Arc<Transcript>,
        question: Question,
        listener: Arc<dyn Sentences>,
    ) -> Result<Answer> {
        self.run(transcript, question, Some(listener)).await
    }

    async fn run(
        &self,
        transcript: Arc<Transcript>,
        question: Question,
        listener: Option<Arc<dyn Sentences>>,
    ) -> Result<Answer> {
        let chat = self.clone();
        let work = async move {
            let limit = chat.options.timeout;
            let answering =
                async { Asking::new(&chat, transcript, question, listener).await?.answer().await };
            let late = || Error::unavailable("the chat model did not answer in time");
            tokio::time::timeout(limit, answering).await.unwrap_or_else(|_| Err(late()))
        };
        // Alone in a set, so that dropping this future ends the work.
        let mut alone = JoinSet::new();
        alone.spawn_on(work, &self.runtime);
        match alone.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) | None => Err(Error::unavailable("the service is stopping")),
        }
    }
}

/// One question that is being answered.
pub(super) struct Asking<'a> {
    pub(super) chat: &'a Chat,
    pub(super) transcript: Arc<Transcript>,
    pub(super) passages: Arc<[Passage]>,
    pub(super) question: Question,
    pub(super) history: Vec<Turn>,
    pub(super) listener: Option<Arc<dyn Sentences>>,
    /// How many bytes the transcript's words have, and about how many tokens its passages.
    pub(super) bytes: usize,
    pub(super) tokens: u64,
    /// How many tokens of passages the model takes.
    pub(super) budget: u64,
    /// How many tokens it may write.
    pub(super) output: u32,
    pub(super) usage: Option<Usage>,
    /// Whether a sentence was handed over.
    pub(super) has_told: bool,
}

/// What a model wrote, and what is left of it.
struct Draft {
    text: String,
    report: Report,
    answer: Answer,
}

impl<'a> Asking<'a> {
    async fn new(
        chat: &'a Chat,
        transcript: Arc<Transcript>,
        question: Question,
        listener: Option<Arc<dyn Sentences>>,
    ) -> Result<Self> {
        let bytes = transcript.segments.iter().map(|segment| segment.text.len()).sum();
        let spoken = Arc::clone(&transcript);
        let cut = move || {
            let passages: Arc<[Passage]> = passages(&spoken.segments).into();
            let tokens = passages.iter().map(Passage::tokens).fold(0, u64::saturating_add);
            (passages, tokens)
        };
        let (passages, tokens) = chat.desk.work(bytes, cut).await?;
        let context = u64::from(chat.model.context_tokens());
        let history = prompt::trimmed(question.history(), context / 4);
        let fixed = prompt::overhead(transcript.title.as_deref(), &history, question.message());
        let output = chat.options.output_tokens_max.min(chat.model.context_tokens() / 4);
        let budget = context.saturating_sub(fixed).saturating_sub(u64::from(output)).max(PASSAGES_TOKENS_MIN);
        let (usage, has_told) = (None, false);
        Ok(Self {
            chat,
            transcript,
            passages,
            question,
            history,
            listener,
            bytes,
            tokens,
            budget,
            output,
            usage,
            has_told,
        })
    }

    /// Does work that grows with the transcript.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.chat.desk.work(self.bytes, work).await
    }

    async fn answer(mut self) -> Result<Answer> {
        if self.chat.is_extractive {
            return self.best_passages().await;
        }
        let (given, coverage) = if self.tokens <= self.budget {
            (Arc::clone(&self.passages), 1.0)
        } else if let Some(places) = self.places().await? {
            let given = self.chosen(&places);
            let coverage = self.share(&given);
            (given, coverage)
        } else {
            self.by_parts().await?
        };
        if given.is_empty() {
            // Nothing of it fits, or nothing in it matters: its own passages say at least what is there.
            return self.own_passages().await;
        }
        let mut answer = self.checked_answer(&given, coverage).await?;
        answer.usage = self.usage;
        Ok(answer)
    }

    /// The places of the passages that fit the question; none where it is about everything.
    async fn places(&self) -> Result<Option<Vec<usize>>> {
        let (passages, question, budget) = (Arc::clone(&self.passages), self.question.clone(), self.budget);
        let find = move || {
            let is_whole = intent(&question, &passages) == Intent::Whole;
            (!is_whole).then(|| within(&passages, &fitting(&passages, &question), budget))
        };
        self.work(find).await
    }

    /// Asks the model, once more if nothing of its answer could be verified, and answers with the transcript's
    /// own passages if nothing can be after that either.
    async fn checked_answer(&mut self, given: &Arc<[Passage]>, coverage: f64) -> Result<Answer> {
        let request = self.request(Task::Answer, given);
        let first = self.draft(request.clone(), coverage).await?;
        if !first.report.is_readable {
            let message = "the chat model answered nothing that can be read";
            return Err(Error::new(ErrorKind::Corrupt, Retry::Backoff, message));
        }
        let rejected = match self.accept(first)? {
            Ok(answer) => return Ok(answer),
            Err(rejected) => rejected,
        };
        // Once, however hostile the transcript is.
        let again = ChatRequest { rejected: Some(rejected), ..request };
        let second = match self.draft(again, coverage).await {
            Ok(second) => second,
            // What was handed over cannot be taken back, and another answer behind it would be none.
            Err(error) if self.has_told => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "a chat model failed to mend its answer");
                return self.own_passages().await;
            }
        };
        match self.accept(second)? {
            Ok(answer) => Ok(answer),
            Err(_) => self.own_passages().await,
        }
    }

    /// The answer, or the text of a draft in which there is none.
    fn accept(&mut self, draft: Draft) -> Result<Result<Answer, String>> {
        let Draft { text, report, answer } = draft;
        if report.verified > 0 {
            return Ok(Ok(answer));
        }
        if report.says_not_covered && report.removed == 0 {
            return self.not_covered(answer).map(Ok);
        }
        Ok(Err(text))
    }

    fn not_covered(&mut self, answer: Answer) -> Result<Answer> {
        let sentence = if answer.coverage < 1.0 { NOT_COVERED_IN_PART } else { NOT_COVERED_SENTENCE };
        self.tell([Sentence { text: sentence.to_owned(), citations: Vec::new() }])?;
        Ok(Answer { response: sentence.to_owned(), is_covered: false, ..answer })
    }

    /// The transcript's own best passages, where the model's answer is none.
    async fn own_passages(&mut self) -> Result<Answer> {
        tracing::debug!("nothing of a chat model's answer could be verified");
        let mut answer = self.best_passages().await?;
        answer.origin = Origin::Passages;
        answer.usage = self.usage;
        Ok(answer)
    }

    /// The transcript's own best passages.
    async fn best_passages(&mut self) -> Result<Answer> {
        let mut request = self.request(Task::Answer, &self.passages);
        request.history = self.question.history().to_vec();
        let (checker, request) = self.checker(request).await?;
        let write = move || {
            let text = ExtractiveModel::written(request)?;
            let mut checker = checker;
            let mut sentences = checker.push(&text);
            sentences.extend(checker.finish());
            Ok::<_, Error>((text, checker, sentences))
        };
        let (text, checker, sentences) = self.work(write).await??;
        self.tell(sentences)?;
        match self.accept(self.drafted(text, &checker, 1.0))? {
            Ok(answer) => Ok(answer),
            Err(_) => self.not_covered(Answer::empty(1.0)),
        }
    }

    /// A check of what is answered to a request.
    pub(super) async fn checker(&self, request: ChatRequest) -> Result<(Checker, ChatRequest)> {
        let (transcript, passages) = (Arc::clone(&self.transcript), Arc::clone(&self.passages));
        let begin = move || {
            let (given, asked) = (&request.passages, &request.question);
            (Checker::new(&transcript, &passages, given, asked, &request.history), request)
        };
        self.work(begin).await
    }

    /// What a checker made of a text.
    fn drafted(&self, text: String, checker: &Checker, coverage: f64) -> Draft {
        let cited = checker.cited().iter();
        let report = checker.report();
        let citations = cited.filter_map(|segments| citation(&self.transcript, segments)).collect();
        let answer = Answer { response: checker.response().to_owned(), citations, ..Answer::empty(coverage) };
        Draft { text, report, answer }
    }

    pub(super) fn request(&self, task: Task, given: &Arc<[Passage]>) -> ChatRequest {
        ChatRequest {
            task,
            title: self.transcript.title.clone(),
            author: self.transcript.author.clone(),
            passages: Arc::clone(given),
            history: self.history.clone(),
            question: self.question.message().to_owned(),
            rejected: None,
            output_tokens_max: self.output,
        }
    }

    /// Has the model write, and checks it as it comes.
    async fn draft(&mut self, request: ChatRequest, coverage: f64) -> Result<Draft> {
        let model = Arc::clone(&self.chat.model);
        let (mut checker, request) = self.checker(request).await?;
        let (feed, mut pieces) = Feed::new();
        let mut call = model.complete(request, Some(Arc::new(feed)));
        let mut text = String::new();
        let reply = loop {
            tokio::select! {
                biased;
                Some(mut piece) = pieces.recv() => {
                    while let Ok(more) = pieces.try_recv() {
                        piece.push_str(&more);
                    }
                    text.push_str(&piece);
                    checker = self.look(checker, piece).await?;
                }
                reply = &mut call => break reply?,
            }
        };
        drop(call);
        let mut rest = String::new();
        while let Ok(piece) = pieces.try_recv() {
            rest.push_str(&piece);
        }
        let ChatReply { text: whole, usage } = reply;
        if text.is_empty() && rest.is_empty() {
            // A model that cannot write by pieces.
            rest = whole;
        }
        text.push_str(&rest);
        checker = self.look(checker, rest).await?;
        let end = move || (checker.finish(), checker);
        let (sentences, checker) = self.work(end).await?;
        self.tell(sentences)?;
        if let Some(usage) = usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        let Report { verified, removed, .. } = checker.report();
        tracing::debug!(verified, removed, "a chat model's answer was checked");
        Ok(self.drafted(text, &checker, coverage))
    }

    /// Checks a piece, and tells what may leave.
    async fn look(&mut self, mut checker: Checker, piece: String) -> Result<Checker> {
        let (sentences, checker) = self.work(move || (checker.push(&piece), checker)).await?;
        self.tell(sentences)?;
        Ok(checker)
    }

    fn tell(&mut self, sentences: impl IntoIterator<Item = Sentence>) -> Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let has_told = &mut self.has_told;
        let mut push = |sentence| {
            *has_told = true;
            listener.push(sentence)
        };
        match sentences.into_iter().all(&mut push) {
            true => Ok(()),
            false => Err(Error::unavailable("nobody listens to the answer any more")),
        }
    }

    pub(super) fn chosen(&self, places: &[usize]) -> Arc<[Passage]> {
        places.iter().filter_map(|place| self.passages.get(*place)).cloned().collect()
    }

    /// The share of the transcript's words that some of its passages have.
    pub(super) fn share(&self, given: &[Passage]) -> f64 {
        let words =
            |passages: &[Passage]| passages.iter().map(|passage| passage.text.len()).sum::<usize>() as f64;
        words(given) / words(&self.passages).max(1.0)
    }
}
