//! Reading what is sent as it is stored: those who ask at the same time share one statement.
//!
//! A statement costs a hop to its connection's thread and back, several times what SQLite itself takes for
//! a body; and each further row wakes the reader once more. So the bodies of a statement come as the
//! columns of a single row. The first caller starts a task, which reads for all who have gathered meanwhile,
//! until nobody waits. A second task reads beside it only for as many as fill a statement: so a fast disk is
//! asked for many at once, and a slow one keeps few waiting.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use sqlx::{AssertSqlSafe, Row, sqlite::SqliteRow};
use tokio::{runtime::Handle, sync::oneshot};
use transcript_core::{
    Result,
    archive::{StoredBody, Wish},
    video::VideoId,
};

use crate::{
    body::{checksum, damaged},
    error::Work,
    sqlite::{closed, readers::Readers},
};

/// How many statements run at the same time at most: the other readers are left to other reads.
const STATEMENTS_MAX: usize = 2;
/// How many bodies a statement reads at most: they are in memory at the same time.
const BATCH_MAX: usize = 16;

/// How many bodies each of the statements reads. Parameters that nothing is bound to find nothing.
const SIZES: [usize; 4] = [1, 4, 8, BATCH_MAX];
/// How many columns a body has in a statement's row: its segments, and before them all the rest in one value.
/// Each value is copied for the reader, in memory of its own.
const COLUMNS: usize = 2;
/// The length of a content's digest.
pub(super) const DIGEST_BYTES: usize = 32;

/// The statement for this many bodies, each with two parameters of its own: a video and a wish. What is not
/// found, or withdrawn, has no values; what is stored in another form has an empty one.
fn statement(bodies: usize) -> String {
    let numbers = || 1..=bodies;
    let columns = numbers().map(|n| {
        let rest = format!("b{n}.checksum || ' ' || b{n}.length || ' ' || b{n}.source");
        let elsewhere = format!("CASE WHEN w{n}.video IS NOT NULL THEN x'' END");
        format!("coalesce(CAST(b{n}.content_sha256 || {rest} AS BLOB), {elsewhere}), b{n}.segments")
    });
    let joins = numbers().map(|n| {
        let (video, wish) = (2 * n - 1, 2 * n);
        format!(
            " LEFT JOIN withdrawals d{n} ON d{n}.video = ?{video}
            LEFT JOIN wishes w{n} ON w{n}.video = ?{video} AND w{n}.wish = ?{wish} AND d{n}.video IS NULL
            LEFT JOIN bodies b{n} ON b{n}.transcript = w{n}.transcript"
        )
    });
    let columns: Vec<_> = columns.collect();
    format!("SELECT {} FROM (SELECT 1){}", columns.join(", "), joins.collect::<String>())
}

/// What must not grow with the archive, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) fn hot() -> Vec<String> {
    SIZES.map(statement).into()
}

/// What is known of a body.
pub(super) enum Read {
    /// Here it is, and its checksum is right.
    Body(StoredBody),
    /// It is in another form.
    Elsewhere,
    /// There is none.
    Nothing,
}

/// Reads bodies. Nothing runs while nobody asks.
#[derive(Debug)]
pub(in crate::sqlite) struct Bodies {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    readers: Arc<Readers>,
    file: PathBuf,
    runtime: Handle,
    /// With how many bodies each reads, fewest first.
    statements: [(usize, Arc<str>); SIZES.len()],
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Asked>,
    /// How many tasks read.
    reading: usize,
}

#[derive(Debug)]
struct Asked {
    video: Arc<str>,
    wish: Arc<str>,
    answer: oneshot::Sender<Result<Place>>,
}

/// Where a body is: in a row that it shares with others.
#[derive(Debug)]
struct Place {
    row: Arc<SqliteRow>,
    first: usize,
}

impl Bodies {
    pub(in crate::sqlite) fn new(readers: Arc<Readers>, file: PathBuf, runtime: Handle) -> Self {
        let statements = SIZES.map(|bodies| (bodies, statement(bodies).into()));
        Self { shared: Arc::new(Shared { readers, file, runtime, statements, waiting: Mutex::default() }) }
    }

    /// The body that answers a wish.
    pub(super) async fn read(&self, video: &VideoId, wish: &Wish) -> Result<Read> {
        let (answer, place) = oneshot::channel();
        let asked = Asked { video: video.to_string().into(), wish: wish.to_string().into(), answer };
        if self.shared.waiting().ask(asked) {
            let reading = Reading { shared: Arc::clone(&self.shared), has_ended: false };
            self.shared.runtime.spawn(reading.run());
        }
        let place = place.await.map_err(|_| closed())??;
        place.body(video).map_err(|fault| fault.into_error(&self.shared.file))
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads some bodies, and tells each caller where theirs is.
    async fn answer(&self, batch: Vec<Asked>) {
        let large_enough = self.statements.iter().find(|(bodies, _)| batch.len() <= *bodies);
        let statement =
            large_enough.map_or_else(|| statement(batch.len()).into(), |(_, text)| Arc::clone(text));
        let ask = || {
            // It is put together from numbers only.
            let query = sqlx::query(AssertSqlSafe(Arc::clone(&statement)));
            let parameters = batch.iter().flat_map(|asked| [&asked.video, &asked.wish]);
            parameters.fold(query, |query, text| query.bind(Arc::clone(text)))
        };
        let found = self.readers.row(ask).await.map_err(|fault| fault.into_error(&self.file));
        let row = found.map(|row| row.map(Arc::new));
        for (asked, number) in batch.into_iter().zip(0..) {
            let place = match &row {
                Ok(Some(row)) => Ok(Place { row: Arc::clone(row), first: number * COLUMNS }),
                Ok(None) => Err(damaged()),
                Err(error) => Err(error.clone()),
            };
            // Whoever left needs no answer.
            asked.answer.send(place).ok();
        }
    }
}

impl Waiting {
    /// Adds a caller; returns whether one more task must read.
    fn ask(&mut self, asked: Asked) -> bool {
        self.queue.push_back(asked);
        let is_one_more = match self.reading {
            0 => true,
            reading => reading < STATEMENTS_MAX && BATCH_MAX <= self.queue.len(),
        };
        self.reading += usize::from(is_one_more);
        is_one_more
    }

    /// Whom one statement answers; nobody when the task that asks has ended with that.
    fn next(&mut self) -> Vec<Asked> {
        self.queue.retain(|asked| !asked.answer.is_closed());
        let count = self.queue.len();
        if count == 0 || 1 < self.reading && count < BATCH_MAX {
            self.reading -= 1;
            return Vec::new();
        }
        self.queue.drain(..count.min(BATCH_MAX)).collect()
    }
}

/// A task that reads.
struct Reading {
    shared: Arc<Shared>,
    has_ended: bool,
}

impl Reading {
    async fn run(mut self) {
        loop {
            // Whoever is ready to ask does so first, and shares the statement.
            tokio::task::yield_now().await;
            let batch = self.shared.waiting().next();
            if batch.is_empty() {
                self.has_ended = true;
                return;
            }
            self.shared.answer(batch).await;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // Its runtime stops, or it panicked: nobody must wait for it.
        let mut waiting = self.shared.waiting();
        waiting.reading -= 1;
        if waiting.reading == 0 {
            waiting.queue.clear();
        }
    }
}

impl Place {
    fn body(self, video: &VideoId) -> Work<Read> {
        let (row, first) = (&self.row, self.first);
        let head = match row.try_get::<Option<&[u8]>, _>(first)? {
            None => return Ok(Read::Nothing),
            Some([]) => return Ok(Read::Elsewhere),
            Some(head) => head,
        };
        let Head { content_sha256, checksum: stored, length, source } =
            Head::read(head).ok_or_else(damaged)?;
        let checksum = checksum(video, source, content_sha256, length, row.try_get(first + 1)?);
        if checksum != stored {
            return Err(damaged().into());
        }
        let (content_sha256, source) = (content_sha256.to_vec(), source.to_owned());
        let segments = Bytes::from_owner(Segments { row: self.row, column: first + 1 });
        Ok(Read::Body(StoredBody { content_sha256, source, segments, length, checksum }))
    }
}

/// What a row says of a body, beside its segments.
struct Head<'a> {
    content_sha256: &'a [u8],
    checksum: u32,
    length: u64,
    source: &'a str,
}

impl<'a> Head<'a> {
    /// Reads what [`statement`] has put together; none where that cannot be.
    fn read(head: &'a [u8]) -> Option<Self> {
        let (content_sha256, rest) = head.split_at_checked(DIGEST_BYTES)?;
        let mut fields = std::str::from_utf8(rest).ok()?.splitn(3, ' ');
        let (checksum, length) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { content_sha256, checksum, length, source: fields.next()? })
    }
}

/// The segments in a row, without a copy.
struct Segments {
    row: Arc<SqliteRow>,
    column: usize,
}

impl AsRef<[u8]> for Segments {
    fn as_ref(&self) -> &[u8] {
        // They were read before.
        self.row.try_get(self.column).unwrap_or_default()
    }
}
