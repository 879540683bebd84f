//! Bringing stored bodies into the compact form, one by one, whatever the database is.
//!
//! A body is read, packed, unpacked again and compared before it is replaced, and it is replaced only while it is
//! still what was read. Packing is work for a processor, at which nobody waits: it is done on half of them, and
//! beside what serves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::runtime::Handle;
use transcript_core::{Error, ErrorKind, Result, archive::Compacted, video::VideoId, wire::segments};

use super::{Dictionary, Packer, unpack};
use crate::body::{Body, damaged};

/// The rows of a database that may be compacted.
pub(crate) trait Rows: Send + Sync {
    /// Names a row, and what it must still be when it is replaced.
    type Key: Send + Sync;

    /// Its video.
    fn video(key: &Self::Key) -> &VideoId;

    /// Its body in the form that is sent; none where it has gone meanwhile.
    fn read(&self, key: &Self::Key) -> impl Future<Output = Result<Option<Body>>> + Send;

    /// Replaces this body by its compact form, in one transaction. Returns whether it was still there.
    fn replace(
        &self,
        key: Self::Key,
        body: &Body,
        compact: Vec<u8>,
    ) -> impl Future<Output = Result<bool>> + Send;
}

/// What became of one row.
enum Row {
    Compacted {
        before: u64,
        after: u64,
    },
    /// Its compact form is no smaller, or it has gone.
    Left,
    Damaged(VideoId),
}

/// Compacts these rows.
///
/// # Errors
/// The database's faults; what is done by then stays done.
pub(crate) async fn compact<R: Rows>(rows: &R, keys: Vec<R::Key>, runtime: &Handle) -> Result<Compacted> {
    let at_once = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let packers = Arc::new(Packers::default());
    let one = |key: R::Key| {
        let packers = Arc::clone(&packers);
        async move {
            let Some(body) = rows.read(&key).await? else {
                return Ok(Row::Left);
            };
            let video = R::video(&key).clone();
            let packing = runtime.spawn_blocking(move || (packers.packed(&video, &body), body)).await;
            let (packed, body) = packing
                .map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")))?;
            let compact = match packed {
                Ok(Some(compact)) => compact,
                Ok(None) => return Ok(Row::Left),
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    return Ok(Row::Damaged(R::video(&key).clone()));
                }
                Err(error) => return Err(error),
            };
            let (before, after) = (body.bytes(), compact.len() as u64);
            let is_replaced = rows.replace(key, &body, compact).await?;
            Ok(if is_replaced { Row::Compacted { before, after } } else { Row::Left })
        }
    };
    let mut compacted = Compacted::default();
    let mut done = stream::iter(keys).map(one).buffer_unordered(at_once);
    while let Some(row) = done.try_next().await? {
        compacted.looked_at += 1;
        match row {
            Row::Compacted { before, after } => {
                compacted.compacted += 1;
                compacted.bytes_before += before;
                compacted.bytes_after += after;
            }
            Row::Left => {}
            Row::Damaged(video) => compacted.damaged.push(video),
        }
    }
    Ok(compacted)
}

/// What packs: as many as pack at the same time, since to make one takes longer than to pack a short transcript.
#[derive(Debug, Default)]
struct Packers(Mutex<Vec<Packer>>);

impl Packers {
    fn free(&self) -> MutexGuard<'_, Vec<Packer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The compact form of a video's body, from which all of the body can be made again; none where it is no smaller,
    /// or does not give the body back.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the body does not read back as it is.
    fn packed(&self, video: &VideoId, body: &Body) -> Result<Option<Vec<u8>>> {
        let transcript = body.unpack()?;
        if transcript.video != *video {
            return Err(damaged());
        }
        let free = self.free().pop();
        let mut packer = free.map_or_else(|| Packer::new(Dictionary::NEWEST), Ok)?;
        let compact = packer.pack(&transcript)?;
        self.free().push(packer);
        if body.bytes() <= compact.len() as u64 {
            return Ok(None);
        }
        // The digest covers all that a reader can see. What is sent is made of it, and must be the same bytes.
        let again = unpack(&compact, &body.content_sha256).and_then(|again| segments::write(&again.segments));
        if again.is_ok_and(|again| body.json().is_ok_and(|json| again == json)) {
            return Ok(Some(compact));
        }
        tracing::error!("a transcript does not come back out of its compact form: it is left as it is");
        Ok(None)
    }
}
