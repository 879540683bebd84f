//! Compaction: moves stored bodies to cold storage one by one, for every database.
//!
//! A body is read, packed, unpacked and compared before it is replaced, and it is replaced only if it did not
//! change since. Packing uses the CPU and no caller waits for it: it runs on half of the cores, on blocking
//! threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::runtime::Handle;
use transcript_core::{Error, ErrorKind, Result, archive::CompactOutcome, body::segments, video::VideoId};

use super::{Dictionary, Packer, unpack};
use crate::body::{EncodedBody, damaged};

/// The rows of a database that can be compacted.
pub(crate) trait ColdRows: Send + Sync {
    /// Names a row, and the content it must still have when it is replaced.
    type Key: Send + Sync;

    /// The video of the row.
    fn video(key: &Self::Key) -> &VideoId;

    /// The body in the form that is sent. `None` if the row is gone.
    fn read(&self, key: &Self::Key) -> impl Future<Output = Result<Option<EncodedBody>>> + Send;

    /// Replaces this body by its cold form, in one transaction. Returns whether it was still there.
    fn replace(
        &self,
        key: Self::Key,
        body: &EncodedBody,
        compact: Vec<u8>,
    ) -> impl Future<Output = Result<bool>> + Send;
}

/// Result for one row.
enum ColdRow {
    Compacted {
        before: u64,
        after: u64,
    },
    /// The cold form is not smaller, or the row is gone.
    Left,
    Damaged(VideoId),
}

/// Compacts these rows.
///
/// # Errors
/// A database error; rows compacted before it stay compacted.
pub(crate) async fn compact<R: ColdRows>(
    rows: &R,
    keys: Vec<R::Key>,
    runtime: &Handle,
) -> Result<CompactOutcome> {
    let concurrency = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
    let packers = Arc::new(PackerCache::default());
    let one = |key: R::Key| {
        let packers = Arc::clone(&packers);
        async move {
            let Some(body) = rows.read(&key).await? else {
                return Ok(ColdRow::Left);
            };
            let video = R::video(&key).clone();
            let packing = runtime.spawn_blocking(move || (packers.pack(&video, &body), body)).await;
            let (packed, body) = packing
                .map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")))?;
            let compact = match packed {
                Ok(Some(compact)) => compact,
                Ok(None) => return Ok(ColdRow::Left),
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    return Ok(ColdRow::Damaged(R::video(&key).clone()));
                }
                Err(error) => return Err(error),
            };
            let (before, after) = (body.bytes(), compact.len() as u64);
            let is_replaced = rows.replace(key, &body, compact).await?;
            Ok(if is_replaced { ColdRow::Compacted { before, after } } else { ColdRow::Left })
        }
    };
    let mut compacted = CompactOutcome::default();
    let mut results = stream::iter(keys).map(one).buffer_unordered(concurrency);
    while let Some(row) = results.try_next().await? {
        compacted.scanned += 1;
        match row {
            ColdRow::Compacted { before, after } => {
                compacted.compacted += 1;
                compacted.bytes_before += before;
                compacted.bytes_after += after;
            }
            ColdRow::Left => {}
            ColdRow::Damaged(video) => compacted.damaged.push(video),
        }
    }
    Ok(compacted)
}

/// Idle packers, one for each parallel task: creating one takes longer than packing a short transcript.
#[derive(Debug, Default)]
struct PackerCache(Mutex<Vec<Packer>>);

impl PackerCache {
    fn free(&self) -> MutexGuard<'_, Vec<Packer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cold form of a body. `None` if it is not smaller, or does not rebuild the body exactly.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the body does not decode.
    fn pack(&self, video: &VideoId, body: &EncodedBody) -> Result<Option<Vec<u8>>> {
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
        // The digest covers all that a reader sees. The bytes that are sent must also be the same.
        let again = unpack(&compact, &body.content_sha256).and_then(|again| segments::write(&again.segments));
        if again.is_ok_and(|again| body.json().is_ok_and(|json| again == json)) {
            return Ok(Some(compact));
        }
        tracing::error!("cold form did not rebuild the transcript, row left unchanged");
        Ok(None)
    }
}
