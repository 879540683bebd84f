//! Asking: which passages the model is given, what becomes of its answer, and what is answered when nothing does.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};

use super::{
    Answer, ChatModel, ChatOptions, ChatReply, ChatRequest, Deltas, ExtractiveModel, NOT_COVERED_SENTENCE,
    Origin, Passage, Question, Sentence, Task, Turn, Usage,
    answer::NOT_COVERED_IN_PART,
    check::{Checker, Report, TEXT_BYTES_MAX, citation},
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
    model: Arc<dyn ChatModel>,
    options: Arc<ChatOptions>,
    /// Whether answers are the transcript's own passages, at once and without a network.
    is_extractive: bool,
}

impl Chat {
    /// A chat with a model. Work and timers run on `runtime`, so that any executor may wait for an answer.
    pub fn new(runtime: Handle, model: Arc<dyn ChatModel>, options: ChatOptions) -> Self {
        Self { runtime, model, options: Arc::new(options), is_extractive: false }
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
            let asking = Asking::new(&chat, transcript, question, listener);
            let late = || Error::unavailable("the chat model did not answer in time");
            tokio::time::timeout(limit, asking.answer()).await.unwrap_or_else(|_| Err(late()))
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
struct Asking<'a> {
    chat: &'a Chat,
    transcript: Arc<Transcript>,
    passages: Arc<[Passage]>,
    question: Question,
    history: Vec<Turn>,
    listener: Option<Arc<dyn Sentences>>,
    /// How many tokens of passages the model takes.
    budget: u64,
    usage: Option<Usage>,
    /// Whether a sentence was handed over.
    has_told: bool,
}

/// What a model wrote, and what is left of it.
struct Draft {
    text: String,
    report: Report,
    answer: Answer,
}

impl<'a> Asking<'a> {
    fn new(
        chat: &'a Chat,
        transcript: Arc<Transcript>,
        question: Question,
        listener: Option<Arc<dyn Sentences>>,
    ) -> Self {
        let passages: Arc<[Passage]> = passages(&transcript.segments).into();
        let context = u64::from(chat.model.context_tokens());
        let history = prompt::trimmed(question.history(), context / 4);
        let fixed = prompt::overhead(transcript.title.as_deref(), &history, question.message());
        let output = u64::from(chat.options.output_tokens_max).min(context / 4);
        let budget = context.saturating_sub(fixed).saturating_sub(output).max(PASSAGES_TOKENS_MIN);
        Self { chat, transcript, passages, question, history, listener, budget, usage: None, has_told: false }
    }

    async fn answer(mut self) -> Result<Answer> {
        let all: u64 = self.passages.iter().map(Passage::tokens).fold(0, u64::saturating_add);
        let (given, coverage) = if all <= self.budget {
            (Arc::clone(&self.passages), 1.0)
        } else if intent(&self.question, &self.passages) == Intent::Whole {
            self.by_parts().await?
        } else {
            let scores = fitting(&self.passages, &self.question);
            let given = self.chosen(&within(&self.passages, &scores, self.budget));
            let coverage = self.share(&given);
            (given, coverage)
        };
        if given.is_empty() {
            // Nothing of it fits, or nothing in it matters: its own passages say at least what is there.
            return self.own_passages().await;
        }
        let mut answer = self.checked_answer(&given, coverage).await?;
        answer.usage = self.usage;
        Ok(answer)
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

    /// The transcript's own best passages.
    async fn own_passages(&mut self) -> Result<Answer> {
        let mut request = self.request(Task::Answer, &self.passages);
        request.history = self.question.history().to_vec();
        let draft = self.draft_of(&ExtractiveModel, request, 1.0).await?;
        let mut answer = match self.accept(draft)? {
            Ok(answer) => answer,
            Err(_) => self.not_covered(Answer::empty(1.0))?,
        };
        answer.origin = Origin::Passages;
        answer.usage = self.usage;
        Ok(answer)
    }

    fn request(&self, task: Task, given: &Arc<[Passage]>) -> ChatRequest {
        ChatRequest {
            task,
            title: self.transcript.title.clone(),
            author: self.transcript.author.clone(),
            passages: Arc::clone(given),
            history: self.history.clone(),
            question: self.question.message().to_owned(),
            rejected: None,
            output_tokens_max: self.chat.options.output_tokens_max,
        }
    }

    async fn draft(&mut self, request: ChatRequest, coverage: f64) -> Result<Draft> {
        let model = Arc::clone(&self.chat.model);
        self.draft_of(model.as_ref(), request, coverage).await
    }

    /// Has a model write, and checks it as it comes.
    async fn draft_of(
        &mut self,
        model: &dyn ChatModel,
        request: ChatRequest,
        coverage: f64,
    ) -> Result<Draft> {
        let transcript = Arc::clone(&self.transcript);
        let passages = Arc::clone(&self.passages);
        let mut checker = Checker::new(&transcript, &passages, &request.passages, &request.question);
        let (feed, mut pieces) = Feed::new();
        let mut call = model.complete(request, Some(Arc::new(feed)));
        let mut text = String::new();
        let reply = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => {
                    self.tell(checker.push(&piece))?;
                    text.push_str(&piece);
                }
                reply = &mut call => break reply?,
            }
        };
        drop(call);
        while let Ok(piece) = pieces.try_recv() {
            self.tell(checker.push(&piece))?;
            text.push_str(&piece);
        }
        let ChatReply { text: whole, usage } = reply;
        if text.is_empty() {
            // A model that cannot write by pieces.
            self.tell(checker.push(&whole))?;
            text = whole;
        }
        self.tell(checker.finish())?;
        if let Some(usage) = usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        let citations =
            checker.cited().iter().filter_map(|segments| citation(&transcript, segments)).collect();
        let answer = Answer { response: checker.response().to_owned(), citations, ..Answer::empty(coverage) };
        Ok(Draft { text, report: checker.report(), answer })
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

    fn chosen(&self, places: &[usize]) -> Arc<[Passage]> {
        places.iter().filter_map(|place| self.passages.get(*place)).cloned().collect()
    }

    /// The share of the transcript's words that some of its passages have.
    fn share(&self, given: &[Passage]) -> f64 {
        let words =
            |passages: &[Passage]| passages.iter().map(|passage| passage.text.len()).sum::<usize>() as f64;
        words(given) / words(&self.passages).max(1.0)
    }

    /// For a question about the whole of a transcript that is too long to be given at once: the passages that
    /// notes on each of its parts cite, and the share of it that the model read for them.
    async fn by_parts(&mut self) -> Result<(Arc<[Passage]>, f64)> {
        let room = self.budget.saturating_mul(u64::from(self.chat.options.parts_max));
        let read = self.chosen(&within(&self.passages, &[], room));
        let parts = cut(&read, self.budget);
        let of = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let mut waiting = (1..).zip(parts);
        let mut running: JoinSet<Result<Part>> = JoinSet::new();
        let (mut cited, mut seen, mut failed) = (vec![0.0_f32; self.passages.len()], 0.0, None);
        loop {
            while running.len() < self.chat.options.parts_at_once.max(1) {
                let Some((part, given)) = waiting.next() else { break };
                let part = self.part(Task::Notes { part, of }, given);
                running.spawn(part);
            }
            match running.join_next().await {
                None => break,
                Some(Ok(Ok(part))) => {
                    seen += self.share(&part.given);
                    self.usage =
                        part.usage.map(|usage| self.usage.unwrap_or_default().plus(usage)).or(self.usage);
                    self.mark(&part.cited, &mut cited);
                }
                Some(Ok(Err(error))) => failed = Some(error),
                Some(Err(_)) => failed = Some(Error::unexpected("reading a part of a transcript failed")),
            }
        }
        match failed {
            Some(error) if seen == 0.0 => return Err(error),
            Some(error) => tracing::warn!(%error, "a chat model did not read all parts of a transcript"),
            None => {}
        }
        let wanted: Vec<usize> = (0..cited.len()).filter(|place| cited.get(*place) > Some(&0.0)).collect();
        Ok((self.thinned(&wanted), f64::min(seen, 1.0)))
    }

    /// Marks the passages that have some segments.
    fn mark(&self, segments: &[std::ops::Range<usize>], marks: &mut [f32]) {
        for (passage, mark) in self.passages.iter().zip(marks) {
            let has = |cited: &std::ops::Range<usize>| {
                cited.start < passage.segments.end && passage.segments.start < cited.end
            };
            if segments.iter().any(has) {
                *mark = 1.0;
            }
        }
    }

    /// These passages, or so many of them, evenly, as the model takes.
    fn thinned(&self, places: &[usize]) -> Arc<[Passage]> {
        let wanted = self.chosen(places);
        let mut step = 1;
        loop {
            let kept: Vec<Passage> = wanted.iter().step_by(step).cloned().collect();
            let tokens = kept.iter().map(Passage::tokens).fold(0, u64::saturating_add);
            if tokens <= self.budget || kept.len() <= 1 {
                return kept.into();
            }
            step += 1;
        }
    }

    /// Reads one part, apart from the others.
    fn part(&self, task: Task, given: Arc<[Passage]>) -> impl Future<Output = Result<Part>> + Send + 'static {
        let (chat, transcript, passages) =
            (self.chat.clone(), Arc::clone(&self.transcript), Arc::clone(&self.passages));
        let (question, history) = (self.question.clone(), self.history.clone());
        let request = self.request(task, &given);
        let budget = self.budget;
        async move {
            let mut asking = Asking {
                chat: &chat,
                transcript,
                passages,
                question,
                history,
                listener: None,
                budget,
                usage: None,
                has_told: false,
            };
            let model = Arc::clone(&chat.model);
            let (segments, usage) = asking.notes(model.as_ref(), request).await?;
            Ok(Part { given, cited: segments, usage })
        }
    }

    async fn notes(
        &mut self,
        model: &dyn ChatModel,
        request: ChatRequest,
    ) -> Result<(Vec<std::ops::Range<usize>>, Option<Usage>)> {
        let given = Arc::clone(&request.passages);
        let question = request.question.clone();
        let reply = model.complete(request, None).await?;
        let mut checker = Checker::new(&self.transcript, &self.passages, &given, &question);
        checker.push(&reply.text);
        checker.finish();
        Ok((checker.cited().to_vec(), reply.usage))
    }
}

/// What reading a part gave.
struct Part {
    given: Arc<[Passage]>,
    cited: Vec<std::ops::Range<usize>>,
    usage: Option<Usage>,
}

/// Passages in parts of at most `budget` tokens each.
fn cut(passages: &[Passage], budget: u64) -> Vec<Arc<[Passage]>> {
    let mut parts: Vec<Vec<Passage>> = Vec::new();
    let mut left = 0;
    for passage in passages {
        let tokens = passage.tokens();
        match parts.last_mut() {
            Some(part) if tokens <= left => part.push(passage.clone()),
            _ => {
                left = budget;
                parts.push(vec![passage.clone()]);
            }
        }
        left = left.saturating_sub(tokens);
    }
    parts.into_iter().map(Arc::from).collect()
}

/// Takes pieces from a model, up to what is looked at.
#[derive(Debug)]
struct Feed {
    pieces: mpsc::UnboundedSender<String>,
    taken: AtomicUsize,
}

impl Feed {
    fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (pieces, taken) = mpsc::unbounded_channel();
        (Self { pieces, taken: AtomicUsize::new(0) }, taken)
    }
}

impl Deltas for Feed {
    fn push(&self, text: &str) -> bool {
        let before = self.taken.fetch_add(text.len(), Ordering::Relaxed);
        let mut end = text.len().min(TEXT_BYTES_MAX.saturating_sub(before));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let piece = text.get(..end).unwrap_or_default();
        let is_heard = piece.is_empty() || self.pieces.send(piece.to_owned()).is_ok();
        is_heard && before.saturating_add(text.len()) < TEXT_BYTES_MAX
    }
}
