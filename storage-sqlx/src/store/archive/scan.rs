//! Scans over all transcripts, in pages of keys.

use std::fmt;

use transcript_core::{PageRequest, ids::Cursor, video::VideoId};

use crate::{codec, error::DbResult, sql::Row};

/// Names a stored transcript. The revision differs if another transcript has reused the id.
#[derive(Clone, Debug)]
pub(super) struct TranscriptKey {
    pub(super) video: VideoId,
    pub(super) transcript: i64,
    pub(super) revision: i64,
}

impl TranscriptKey {
    /// Decodes the first three columns of a row.
    pub(super) fn decode(row: &mut Row) -> DbResult<Self> {
        let video = codec::video(row.get(0)?)?;
        Ok(Self { video, transcript: row.take(1)?, revision: row.take(2)? })
    }
}

/// The cursor after a page whose last video and transcript these are. A full page: there may be more.
pub(super) fn next_cursor<V: fmt::Display>(
    last: Option<(V, i64)>,
    scanned: usize,
    page: &PageRequest,
) -> Option<Cursor> {
    let last = last.filter(|_| scanned == page.size());
    last.map(|(video, transcript)| Cursor::new(format!("{video}/{transcript}")))
}

/// How many transcripts are decoded at a time: on half of the cores, because no caller waits for it.
pub(super) fn concurrency() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}
