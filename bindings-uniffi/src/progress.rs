//! Delivery of progress to listeners of the app.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use transcript_core::{
    engine,
    video::{Platform, VideoId},
};

use crate::{
    error::{VerbatimError, count},
    transcripts::BatchResult,
};

/// Maximum of queued stages per listener.
///
/// Further stages are dropped, because work does not wait for listeners.
const STAGES_MAX: usize = 256;
/// How long a finished call waits for its listener: for all queued stages, and for each queued result.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Progress of a fetch.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Stage {
    /// Platform of the video.
    pub platform: Platform,
    /// The video's id on its platform.
    pub video_id: String,
    /// The active supplier.
    pub supplier: String,
    /// Name of the stage, set by the supplier: `tracks`, `captions`, `audio`, `transcribing`, …
    pub name: String,
    /// Completed units.
    pub done: i64,
    /// All units; 0 if unknown.
    pub total: i64,
}

/// Receives the progress of a call.
///
/// Errors are ignored. A slow listener misses stages, but no result of a batch. One that takes longer than a second for
/// an event of a call that has ended receives no further events.
#[uniffi::export(foreign)]
#[async_trait]
pub trait ProgressListener: Send + Sync {
    /// The fetch of a video reached a stage.
    async fn on_stage(&self, stage: Stage) -> Result<(), VerbatimError>;

    /// One link of a batch is finished.
    async fn on_result(&self, result: BatchResult) -> Result<(), VerbatimError>;
}

/// Event for a listener.
enum ListenerEvent {
    Stage(Stage),
    Result(Box<BatchResult>),
}

/// Videos whose stages a listener receives; `None`: all.
pub(crate) type VideoFilter = Option<HashSet<VideoId>>;

/// What a listener has not received yet.
#[derive(Default)]
struct Backlog {
    stages: AtomicUsize,
    results: watch::Sender<usize>,
    /// Whether queued stages are left out: the call has ended, and only results matter.
    is_without_stages: AtomicBool,
}

/// Queue of one listener. The call returns its results anyway, so a queue of any length costs little.
#[derive(Clone)]
struct ListenerQueue {
    events: mpsc::UnboundedSender<ListenerEvent>,
    backlog: Arc<Backlog>,
}

impl ListenerQueue {
    fn send(&self, event: ListenerEvent) {
        match event {
            ListenerEvent::Stage(_) => {
                if self.backlog.stages.load(Ordering::Relaxed) >= STAGES_MAX {
                    return;
                }
                self.backlog.stages.fetch_add(1, Ordering::Relaxed);
            }
            ListenerEvent::Result(_) => self.backlog.results.send_modify(|count| *count += 1),
        }
        // The listener's task ends only if the listener panics.
        let _ended = self.events.send(event);
    }
}

/// A listener and its videos.
struct ListenerEntry {
    id: u64,
    videos: VideoFilter,
    queue: ListenerQueue,
}

#[derive(Default)]
struct ListenerTable {
    last_id: u64,
    entries: Vec<ListenerEntry>,
}

/// Passes events of the engine to listeners.
#[derive(Default, derive_more::Debug)]
#[debug("Progress")]
pub(crate) struct Progress(Mutex<ListenerTable>);

impl engine::EngineObserver for Progress {
    fn on_stage(&self, stage: engine::FetchStage) {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for =
            |entry: &&ListenerEntry| entry.videos.as_ref().is_none_or(|videos| videos.contains(&stage.video));
        for entry in table.entries.iter().filter(is_for) {
            let event = Stage {
                platform: stage.video.platform(),
                video_id: stage.video.id().to_owned(),
                supplier: stage.supplier.clone(),
                name: stage.name.clone(),
                done: count(stage.done),
                total: count(stage.total),
            };
            // A slow listener misses stages; the call itself returns the result.
            entry.queue.send(ListenerEvent::Stage(event));
        }
    }
}

impl Progress {
    /// Subscribes a listener to the stages of videos, until the guard is finished or dropped.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        listener: Arc<dyn ProgressListener>,
        videos: VideoFilter,
    ) -> ListeningGuard {
        let (events, received) = mpsc::unbounded_channel();
        let queue = ListenerQueue { events, backlog: Arc::default() };
        let task = tokio::spawn(deliver(listener, received, Arc::clone(&queue.backlog)));
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last_id += 1;
        let id = table.last_id;
        table.entries.push(ListenerEntry { id, videos, queue: queue.clone() });
        ListeningGuard { id, progress: Arc::clone(self), queue: Some(queue), task }
    }
}

/// Passes events to a listener, one after another, until their senders are dropped.
async fn deliver(
    listener: Arc<dyn ProgressListener>,
    mut events: mpsc::UnboundedReceiver<ListenerEvent>,
    backlog: Arc<Backlog>,
) {
    while let Some(event) = events.recv().await {
        // Errors of the listener do not affect the call.
        match event {
            ListenerEvent::Stage(stage) => {
                backlog.stages.fetch_sub(1, Ordering::Relaxed);
                if !backlog.is_without_stages.load(Ordering::Relaxed) {
                    let _ignored = listener.on_stage(stage).await;
                }
            }
            ListenerEvent::Result(result) => {
                let _ignored = listener.on_result(*result).await;
                backlog.results.send_modify(|count| *count = count.saturating_sub(1));
            }
        }
    }
}

/// Subscription of a listener; drop ends it.
pub(crate) struct ListeningGuard {
    id: u64,
    progress: Arc<Progress>,
    queue: Option<ListenerQueue>,
    task: JoinHandle<()>,
}

impl ListeningGuard {
    /// Queues the result of a link.
    pub(crate) fn send_result(&self, result: BatchResult) {
        if let Some(queue) = &self.queue {
            queue.send(ListenerEvent::Result(Box::new(result)));
        }
    }

    /// Ends the subscription after the queued events are delivered.
    ///
    /// After [`FLUSH_TIMEOUT`] the queued stages are left out, and results are delivered as long as none takes longer.
    pub(crate) async fn finish(mut self) {
        let backlog = self.queue.as_ref().map(|queue| Arc::clone(&queue.backlog));
        self.unsubscribe();
        if timeout(FLUSH_TIMEOUT, &mut self.task).await.is_ok() {
            return;
        }
        let Some(backlog) = backlog else { return };
        backlog.is_without_stages.store(true, Ordering::Relaxed);
        let mut results = backlog.results.subscribe();
        while *results.borrow_and_update() > 0 {
            if timeout(FLUSH_TIMEOUT, results.changed()).await.is_err() {
                return;
            }
        }
    }

    fn unsubscribe(&mut self) {
        self.queue = None;
        let mut table = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.entries.retain(|entry| entry.id != self.id);
    }
}

impl Drop for ListeningGuard {
    fn drop(&mut self) {
        self.unsubscribe();
        self.task.abort();
    }
}
