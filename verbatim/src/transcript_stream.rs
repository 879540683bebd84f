//! Many transcripts as a stream.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::task::{self, JoinSet};
use transcript_core::{Error, ErrorCause, Result, transcript::Transcript};

use crate::{Batch, GetOutcome, GetRequest, Verbatim};

/// Number of concurrent requests of a stream.
const CONCURRENCY: usize = 32;
/// How many results, as a multiple of the concurrency, wait at most for a slow predecessor.
const EARLY_FACTOR: usize = 4;

/// Result of one request of a [`TranscriptStream`].
#[derive(Clone, Debug)]
pub struct StreamedOutcome {
    /// Position of the request, from 0.
    pub index: usize,
    /// The request.
    pub request: GetRequest,
    /// What [`Batch::get`] returns for it.
    pub result: Result<GetOutcome>,
}

impl StreamedOutcome {
    /// The transcript.
    ///
    /// # Errors
    /// As [`Verbatim::get`] and [`GetOutcome::into_transcript`].
    pub fn into_transcript(self) -> Result<Arc<Transcript>> {
        self.result?.into_transcript()
    }
}

/// Progress of a [`TranscriptStream`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Number of requests.
    pub total: usize,
    /// Transcripts that were found.
    pub found: usize,
    /// Videos without transcript.
    pub missing: usize,
    /// Requests that failed with an error.
    pub failed: usize,
    /// Requests that run now.
    pub running: usize,
}

impl StreamProgress {
    /// Number of finished requests.
    pub fn done(&self) -> usize {
        self.found + self.missing + self.failed
    }
}

/// The results of [`Verbatim::get_many`]: a [`Stream`], also without a library of streams through
/// [`TranscriptStream::next`].
///
/// A request waits while the sources of its platform are paused, as long as [`Batch`] does.
///
/// Requests start when it is polled first, and run on the runtime on which the [`Verbatim`] was opened, so the stream
/// can be polled by any executor.
///
/// # Cancellation
/// After a drop no further request starts. Fetches that run continue and are archived, unless
/// [`Options::detach_unpaid`](crate::Options::detach_unpaid) is `false`.
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct TranscriptStream {
    verbatim: Verbatim,
    batch: Batch,
    waiting: VecDeque<(usize, GetRequest)>,
    tasks: JoinSet<Result<GetOutcome>>,
    running: HashMap<task::Id, (usize, GetRequest)>,
    concurrency: usize,
    progress: StreamProgress,
    /// Finished requests whose predecessors are not finished, if the results are in order.
    early: Option<BTreeMap<usize, StreamedOutcome>>,
    /// Number of returned results.
    returned: usize,
}

impl Verbatim {
    /// Gets the transcripts of many videos as a stream of results, up to 32 at a time.
    ///
    /// Each request yields one [`StreamedOutcome`], in the order of completion unless
    /// [`TranscriptStream::in_order`] is called. A request waits while the sources of its platform are paused
    /// ([`Batch`]). [`TranscriptStream`] says what a drop ends.
    ///
    /// ```no_run
    /// # async fn example(verbatim: verbatim::Verbatim) {
    /// let mut stream = verbatim.get_many(["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/L1ghth0use1"]);
    /// while let Some(item) = stream.next().await {
    ///     let progress = stream.progress();
    ///     eprintln!("{} of {}: {}", progress.done(), progress.total, item.request.link);
    ///     match item.into_transcript() {
    ///         Ok(transcript) => println!("{transcript}"),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn get_many<R: Into<GetRequest>>(&self, requests: impl IntoIterator<Item = R>) -> TranscriptStream {
        TranscriptStream::new(self.clone(), requests.into_iter().map(Into::into).collect())
    }
}

impl TranscriptStream {
    fn new(verbatim: Verbatim, requests: Vec<GetRequest>) -> Self {
        Self {
            verbatim,
            batch: Batch::default(),
            progress: StreamProgress { total: requests.len(), ..StreamProgress::default() },
            waiting: requests.into_iter().enumerate().collect(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            concurrency: CONCURRENCY,
            early: None,
            returned: 0,
        }
    }

    /// Sets how many requests run concurrently; at least 1.
    pub fn with_concurrency(self, requests: usize) -> Self {
        Self { concurrency: requests.max(1), ..self }
    }

    /// Sets the batch, and so how long requests wait for paused sources: `Batch::new(Duration::ZERO)` never waits.
    pub fn with_batch(self, batch: Batch) -> Self {
        Self { batch, ..self }
    }

    /// Returns the results in the order of the requests. Finished ones are kept until their turn.
    pub fn in_order(self) -> Self {
        Self { early: Some(BTreeMap::new()), ..self }
    }

    /// Adds a request, also after all others have finished, and returns its index.
    ///
    /// A stream that has returned `None` continues with it.
    pub fn push(&mut self, request: impl Into<GetRequest>) -> usize {
        let index = self.progress.total;
        self.waiting.push_back((index, request.into()));
        self.progress.total += 1;
        index
    }

    /// The progress so far, including finished results that wait for their turn.
    pub fn progress(&self) -> StreamProgress {
        StreamProgress { running: self.running.len(), ..self.progress }
    }

    /// The next result; `None` after the last one.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<StreamedOutcome> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<StreamedOutcome>> {
        loop {
            self.start_waiting();
            let ready = self.early.as_mut().and_then(|early| early.remove(&self.returned));
            if let Some(outcome) = ready {
                self.returned += 1;
                return Poll::Ready(Some(outcome));
            }
            let (task, result) = match self.tasks.poll_join_next_with_id(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Ok((task, result)))) => (task, result),
                Poll::Ready(Some(Err(error))) => {
                    let task = error.id();
                    let cause = Some(ErrorCause::new(error));
                    (task, Err(Error::unexpected("the request was interrupted").with_cause(cause)))
                }
            };
            let Some((index, request)) = self.running.remove(&task) else { continue };
            let outcome = StreamedOutcome { index, request, result };
            self.count(&outcome);
            match &mut self.early {
                None => {
                    self.returned += 1;
                    return Poll::Ready(Some(outcome));
                }
                Some(early) => early.insert(outcome.index, outcome),
            };
        }
    }

    /// Starts requests as far as the concurrency permits.
    fn start_waiting(&mut self) {
        let early = self.early.as_ref().map_or(0, BTreeMap::len);
        let room = self.concurrency.saturating_mul(EARLY_FACTOR).saturating_sub(early).min(self.concurrency);
        while self.running.len() < room
            && let Some((index, request)) = self.waiting.pop_front()
        {
            let (batch, verbatim, get) = (self.batch.clone(), self.verbatim.clone(), request.clone());
            let get = async move { batch.get(&verbatim, get).await };
            let task = self.tasks.spawn_on(get, &self.verbatim.runtime);
            self.running.insert(task.id(), (index, request));
        }
    }

    fn count(&mut self, outcome: &StreamedOutcome) {
        let StreamProgress { found, missing, failed, .. } = &mut self.progress;
        *match &outcome.result {
            Ok(GetOutcome::Found(_)) => found,
            Ok(GetOutcome::Missing(_)) => missing,
            Err(_) => failed,
        } += 1;
    }
}

impl Stream for TranscriptStream {
    type Item = StreamedOutcome;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamedOutcome>> {
        self.get_mut().poll(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.progress.total - self.returned;
        (rest, Some(rest))
    }
}

#[cfg(test)]
mod tests;
