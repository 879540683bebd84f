//! The queue before the hot path: what waits at the same time is found with one statement.
//!
//! A statement costs a hop to its connection's thread and back, several times what SQLite itself takes for
//! the row. Two tasks take what has gathered while they were busy; a call that is alone waits for nobody.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sqlx::{Row, sqlite::SqliteRow};
use tokio::sync::{Mutex, mpsc, oneshot};
use transcript_core::{Error, Result, Timestamp, archive::Wish, video::VideoId};

use super::{FIND_MANY, PLACE};
use crate::{
    codec,
    sqlite::{closed, readers::Readers},
};

/// How many tasks find: the other readers are left to other reads.
const TASKS: usize = 2;
/// How many are found with one statement at most: their bodies are in memory at the same time.
const BATCH_MAX: usize = 32;
/// How many may wait. Whoever comes later waits for room first.
const QUEUE_MAX: usize = 1_024;

/// One find.
#[derive(Debug)]
struct Waiting {
    video: String,
    wish: String,
    now: i64,
    answer: oneshot::Sender<Result<SqliteRow>>,
}

/// The queue. Its tasks end when it is dropped.
#[derive(Debug)]
pub(in crate::sqlite) struct Finder {
    sender: mpsc::Sender<Waiting>,
}

impl Finder {
    /// Starts the tasks that find.
    pub(in crate::sqlite) fn start(readers: &Arc<Readers>, file: PathBuf) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(receiver));
        for _ in 0..TASKS {
            tokio::spawn(run(Arc::clone(&queue), Arc::clone(readers), file.clone()));
        }
        Self { sender }
    }

    /// The row of [`FIND_MANY`] for one wish.
    pub(super) async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<SqliteRow> {
        let (answer, found) = oneshot::channel();
        let (video, wish) = (video.to_string(), wish.to_string());
        let waiting = Waiting { video, wish, now: now.as_millis(), answer };
        self.sender.send(waiting).await.map_err(|_| closed())?;
        found.await.map_err(|_| closed())?
    }
}

async fn run(queue: Arc<Mutex<mpsc::Receiver<Waiting>>>, readers: Arc<Readers>, file: PathBuf) {
    loop {
        let mut batch = Vec::new();
        if queue.lock().await.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        // Nobody may be waiting any more.
        batch.retain(|waiting| !waiting.answer.is_closed());
        if !batch.is_empty() {
            answer(batch, &readers, &file).await;
        }
    }
}

async fn answer(batch: Vec<Waiting>, readers: &Readers, file: &Path) {
    let asked: Vec<_> = batch.iter().map(|waiting| (&waiting.video, &waiting.wish, waiting.now)).collect();
    let found = match codec::json(&asked) {
        Ok(asked) => {
            let rows = readers.rows(|| sqlx::query(FIND_MANY).bind(asked.clone())).await;
            rows.map_err(|fault| fault.into_error(file))
        }
        Err(error) => Err(error),
    };
    let mut answers: Vec<_> = batch.into_iter().map(|waiting| Some(waiting.answer)).collect();
    let rest = match found {
        Ok(rows) => {
            for row in rows {
                let place = row.try_get::<i64, _>(PLACE).ok().and_then(|place| usize::try_from(place).ok());
                if let Some(answer) = place.and_then(|place| answers.get_mut(place)?.take()) {
                    // Whoever left needs no answer.
                    answer.send(Ok(row)).ok();
                }
            }
            Error::unexpected("a wish was asked for and no row came")
        }
        Err(error) => error,
    };
    for answer in answers.into_iter().flatten() {
        answer.send(Err(rest.clone())).ok();
    }
}
