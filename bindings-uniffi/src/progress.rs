//! Delivery of progress to listeners of the app.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::mpsc, task::JoinHandle};
use transcript_core::{
    engine,
    video::{Platform, VideoId},
};

use crate::{
    error::{VerbatimError, count},
    transcripts::BatchResult,
};

/// Maximum of queued events per listener.
///
/// Further stages are dropped, because work does not wait for listeners.
const QUEUED_MAX: usize = 256;
/// How long a finished call waits for its listener to receive queued events.
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
/// Errors are ignored. A listener that never returns receives no further events.
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

/// A listener and its video; `None`: all videos.
struct ListenerEntry {
    id: u64,
    video: Option<VideoId>,
    events: mpsc::Sender<ListenerEvent>,
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
        let is_for = |entry: &&ListenerEntry| entry.video.as_ref().is_none_or(|video| *video == stage.video);
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
            let _dropped = entry.events.try_send(ListenerEvent::Stage(event));
        }
    }
}

impl Progress {
    /// Subscribes a listener to one video or to all, until the guard is finished or dropped.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        listener: Arc<dyn ProgressListener>,
        video: Option<VideoId>,
    ) -> ListeningGuard {
        let (events, mut queue) = mpsc::channel(QUEUED_MAX);
        let task = tokio::spawn(async move {
            while let Some(event) = queue.recv().await {
                // Errors of the listener do not affect the call.
                let _ignored = match event {
                    ListenerEvent::Stage(stage) => listener.on_stage(stage).await,
                    ListenerEvent::Result(result) => listener.on_result(*result).await,
                };
            }
        });
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last_id += 1;
        let id = table.last_id;
        table.entries.push(ListenerEntry { id, video, events: events.clone() });
        ListeningGuard { id, progress: Arc::clone(self), events: Some(events), task }
    }
}

/// Subscription of a listener; drop ends it.
pub(crate) struct ListeningGuard {
    id: u64,
    progress: Arc<Progress>,
    events: Option<mpsc::Sender<ListenerEvent>>,
    task: JoinHandle<()>,
}

impl ListeningGuard {
    /// Queues the result of a link.
    pub(crate) async fn send_result(&self, result: BatchResult) {
        if let Some(events) = &self.events {
            let sent = events.send(ListenerEvent::Result(Box::new(result)));
            let _slow = tokio::time::timeout(FLUSH_TIMEOUT, sent).await;
        }
    }

    /// Ends the subscription after the queued events are delivered, or after [`FLUSH_TIMEOUT`].
    pub(crate) async fn finish(mut self) {
        self.unsubscribe();
        let _slow = tokio::time::timeout(FLUSH_TIMEOUT, &mut self.task).await;
    }

    fn unsubscribe(&mut self) {
        self.events = None;
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
