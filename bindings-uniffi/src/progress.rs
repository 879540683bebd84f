//! Who hears how far a call is.

use std::{
    fmt,
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
    transcripts::Answer,
};

/// How many stages may wait for a listener; more are left out, for the work waits for nobody.
const WAITING_MAX: usize = 256;
/// How long a call that is done waits for its listener to hear the rest.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How far a fetch is.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Stage {
    /// Where the video is.
    pub platform: Platform,
    /// Its id there.
    pub video_id: String,
    /// The supplier that is at work.
    pub supplier: String,
    /// The stage, as the supplier names it: `tracks`, `captions`, `audio`, `transcribing`, …
    pub name: String,
    /// How much of it is done.
    pub done: i64,
    /// How much there is to do; 0 when nobody knows.
    pub of: i64,
}

/// Hears how far a call is. What it throws changes nothing, and one that never returns hears no more.
#[uniffi::export(foreign)]
#[async_trait]
pub trait ProgressListener: Send + Sync {
    /// The fetch of a video has come so far.
    async fn on_stage(&self, stage: Stage) -> Result<(), VerbatimError>;

    /// One of several links has its answer.
    async fn on_answer(&self, answer: Answer) -> Result<(), VerbatimError>;
}

/// What a listener hears.
enum Event {
    Stage(Stage),
    Answer(Box<Answer>),
}

/// One who listens, and to which video; none: to all.
struct Ear {
    id: u64,
    video: Option<VideoId>,
    tell: mpsc::Sender<Event>,
}

#[derive(Default)]
struct Ears {
    next: u64,
    list: Vec<Ear>,
}

/// Hands what the engine tells to those who listen.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Ears>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl engine::Observer for Progress {
    fn stage(&self, stage: engine::Stage) {
        let ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hear = |ear: &&Ear| ear.video.as_ref().is_none_or(|video| *video == stage.video);
        for ear in ears.list.iter().filter(hear) {
            let told = Stage {
                platform: stage.video.platform(),
                video_id: stage.video.id().to_owned(),
                supplier: stage.supplier.clone(),
                name: stage.name.clone(),
                done: count(stage.done),
                of: count(stage.of),
            };
            // A listener that is slow misses stages; the answer itself comes from the call.
            let _left_out = ear.tell.try_send(Event::Stage(told));
        }
    }
}

impl Progress {
    /// Lets a listener hear of a video, or of all, until what is returned is ended or dropped.
    pub(crate) fn listen(
        self: &Arc<Self>,
        listener: Arc<dyn ProgressListener>,
        video: Option<VideoId>,
    ) -> Listening {
        let (tell, mut told) = mpsc::channel(WAITING_MAX);
        let task = tokio::spawn(async move {
            while let Some(event) = told.recv().await {
                // What the app's code throws is its own affair.
                let _thrown = match event {
                    Event::Stage(stage) => listener.on_stage(stage).await,
                    Event::Answer(answer) => listener.on_answer(*answer).await,
                };
            }
        });
        let mut ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.next += 1;
        let id = ears.next;
        ears.list.push(Ear { id, video, tell: tell.clone() });
        Listening { id, progress: Arc::clone(self), tell: Some(tell), task }
    }
}

/// Somebody listens as long as this lives.
pub(crate) struct Listening {
    id: u64,
    progress: Arc<Progress>,
    tell: Option<mpsc::Sender<Event>>,
    task: JoinHandle<()>,
}

impl Listening {
    /// Tells of an answer, in its turn.
    pub(crate) async fn answered(&self, answer: Answer) {
        if let Some(tell) = &self.tell {
            let told = tell.send(Event::Answer(Box::new(answer)));
            let _slow = tokio::time::timeout(LAST_WORDS, told).await;
        }
    }

    /// Lets the listener hear what is left, for a moment.
    pub(crate) async fn end(mut self) {
        self.leave();
        let _late = tokio::time::timeout(LAST_WORDS, &mut self.task).await;
    }

    fn leave(&mut self) {
        self.tell = None;
        let mut ears = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.list.retain(|ear| ear.id != self.id);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.leave();
        self.task.abort();
    }
}
