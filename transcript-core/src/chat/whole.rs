//! Questions about the whole of a transcript that a model cannot be given at once: notes on each of its parts.

use std::{ops::Range, sync::Arc};

use tokio::task::JoinSet;

use super::{ChatModel, ChatReply, ChatRequest, Passage, Task, Usage, ask::Asking, retrieve::within};
use crate::error::{Error, Result};

impl Asking<'_> {
    /// For a question about the whole of a transcript that is too long to be given at once: the passages that
    /// notes on each of its parts cite, and the share of it that the model read for them.
    pub(super) async fn by_parts(&mut self) -> Result<(Arc<[Passage]>, f64)> {
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
    fn mark(&self, segments: &[Range<usize>], marks: &mut [f32]) {
        for (passage, mark) in self.passages.iter().zip(marks) {
            let has = |cited: &Range<usize>| {
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
        let (bytes, tokens, budget, output) = (self.bytes, self.tokens, self.budget, self.output);
        async move {
            let mut asking = Asking {
                chat: &chat,
                transcript,
                passages,
                question,
                history,
                listener: None,
                bytes,
                tokens,
                budget,
                output,
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
    ) -> Result<(Vec<Range<usize>>, Option<Usage>)> {
        let (mut checker, request) = self.checker(request).await?;
        let ChatReply { text, usage } = model.complete(request, None).await?;
        let check = move || {
            checker.push(&text);
            checker.finish();
            checker.cited().to_vec()
        };
        Ok((self.work(check).await?, usage))
    }
}

/// What reading a part gave.
struct Part {
    given: Arc<[Passage]>,
    cited: Vec<Range<usize>>,
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
