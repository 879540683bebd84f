//! Reads a transcript that exceeds the model's context: notes on each chunk, then an answer.

use std::{ops::Range, sync::Arc};

use tokio::task::JoinSet;

use super::{
    ChatModel, ModelReply, ModelRequest, ModelTask, Passage, TokenUsage, pipeline::AnswerTask,
    retrieve::select_within_budget,
};
use crate::error::{Error, Result};

impl AnswerTask<'_> {
    /// Has the model write notes on each chunk of the transcript.
    ///
    /// Returns the passages that the notes cite, and the share of the transcript that the model read.
    pub(super) async fn read_in_chunks(&mut self) -> Result<(Arc<[Passage]>, f64)> {
        let capacity = self.budget.saturating_mul(u64::from(self.chat.options.chunks_max));
        let read = self.passages_at(&select_within_budget(&self.passages, &[], capacity));
        let chunks = split_into_chunks(&read, self.budget);
        let total = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        let mut pending = (1..).zip(chunks);
        let mut running: JoinSet<Result<ChunkNotes>> = JoinSet::new();
        let (mut cited, mut share_read, mut failed) = (vec![0.0_f32; self.passages.len()], 0.0, None);
        loop {
            while running.len() < self.chat.options.chunk_concurrency.max(1) {
                let Some((part, passages_read)) = pending.next() else { break };
                let part = self.read_chunk(ModelTask::Notes { part, total }, passages_read);
                running.spawn(part);
            }
            match running.join_next().await {
                None => break,
                Some(Ok(Ok(part))) => {
                    share_read += self.word_share(&part.passages_read);
                    self.usage =
                        part.usage.map(|usage| self.usage.unwrap_or_default().plus(usage)).or(self.usage);
                    self.mark_cited(&part.cited, &mut cited);
                }
                Some(Ok(Err(error))) => failed = Some(error),
                Some(Err(_)) => {
                    failed = Some(Error::unexpected("the task that reads a transcript chunk panicked"))
                }
            }
        }
        match failed {
            Some(error) if share_read == 0.0 => return Err(error),
            Some(error) => tracing::warn!(%error, "chat model failed on part of the transcript chunks"),
            None => {}
        }
        let wanted: Vec<usize> = (0..cited.len()).filter(|index| cited.get(*index) > Some(&0.0)).collect();
        Ok((self.fit_to_budget(&wanted), f64::min(share_read, 1.0)))
    }

    /// Marks the passages that overlap these segments.
    fn mark_cited(&self, segments: &[Range<usize>], marks: &mut [f32]) {
        for (passage, mark) in self.passages.iter().zip(marks) {
            let has = |cited: &Range<usize>| {
                cited.start < passage.segments.end && passage.segments.start < cited.end
            };
            if segments.iter().any(has) {
                *mark = 1.0;
            }
        }
    }

    /// Returns these passages, or every n-th of them if they exceed the budget.
    fn fit_to_budget(&self, indices: &[usize]) -> Arc<[Passage]> {
        let wanted = self.passages_at(indices);
        let mut stride = 1;
        loop {
            let selected: Vec<Passage> = wanted.iter().step_by(stride).cloned().collect();
            let tokens = selected.iter().map(Passage::tokens).fold(0, u64::saturating_add);
            if tokens <= self.budget || selected.len() <= 1 {
                return selected.into();
            }
            stride += 1;
        }
    }

    /// Reads one chunk; independent of the other chunks.
    fn read_chunk(
        &self,
        task: ModelTask,
        passages_read: Arc<[Passage]>,
    ) -> impl Future<Output = Result<ChunkNotes>> + Send + 'static {
        let (chat, transcript, passages) =
            (self.chat.clone(), Arc::clone(&self.transcript), Arc::clone(&self.passages));
        let (question, history) = (self.question.clone(), self.history.clone());
        let request = self.request(task, &passages_read);
        let (bytes, tokens, budget, output_tokens_max) =
            (self.bytes, self.tokens, self.budget, self.output_tokens_max);
        async move {
            let mut task = AnswerTask {
                chat: &chat,
                transcript,
                passages,
                question,
                history,
                sink: None,
                bytes,
                tokens,
                budget,
                output_tokens_max,
                usage: None,
                has_sent: false,
            };
            let model = Arc::clone(&chat.model);
            let (segments, usage) = task.verified_notes(model.as_ref(), request).await?;
            Ok(ChunkNotes { passages_read, cited: segments, usage })
        }
    }

    async fn verified_notes(
        &mut self,
        model: &dyn ChatModel,
        request: ModelRequest,
    ) -> Result<(Vec<Range<usize>>, Option<TokenUsage>)> {
        let (mut verifier, request) = self.create_verifier(request).await?;
        let ModelReply { text, usage } = model.complete(request, None).await?;
        let check = move || {
            verifier.push(&text);
            verifier.finish();
            verifier.cited().to_vec()
        };
        Ok((self.work(check).await?, usage))
    }
}

/// Result of reading one chunk.
struct ChunkNotes {
    passages_read: Arc<[Passage]>,
    cited: Vec<Range<usize>>,
    usage: Option<TokenUsage>,
}

/// Splits passages into chunks of at most `budget` tokens each.
fn split_into_chunks(passages: &[Passage], budget: u64) -> Vec<Arc<[Passage]>> {
    let mut chunks: Vec<Vec<Passage>> = Vec::new();
    let mut left = 0;
    for passage in passages {
        let tokens = passage.tokens();
        match chunks.last_mut() {
            Some(part) if tokens <= left => part.push(passage.clone()),
            _ => {
                left = budget;
                chunks.push(vec![passage.clone()]);
            }
        }
        left = left.saturating_sub(tokens);
    }
    chunks.into_iter().map(Arc::from).collect()
}
