//! Conversions between values and columns, the same for every database.

use serde::Serialize;
use transcript_core::{Error, FailureLog, PageRequest, Result, ids::Cursor, video::VideoId};

use crate::error::corrupt;

/// A value as the JSON text of a statement's parameter.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::unexpected(format!("cannot write a value as JSON: {error}")))
}

/// Decodes a column that is never negative.
pub(crate) fn number(column: i64) -> Result<u64> {
    u64::try_from(column).map_err(|_| corrupt("a stored number is negative"))
}

/// Encodes a number for a column.
pub(crate) fn column(number: u64) -> Result<i64> {
    i64::try_from(number)
        .map_err(|_| Error::invalid("a number is too large for the database: at most 2^63 - 1"))
}

/// Decodes the video name of a column.
pub(crate) fn video(name: &str) -> Result<VideoId> {
    VideoId::from_name(name).ok_or_else(|| corrupt("a stored video name is malformed"))
}

/// Decodes the video name in a row of a list. `None` for a malformed one, which a later version may know: the list
/// leaves it out.
pub(crate) fn listed_video(name: &str) -> Option<VideoId> {
    /// Some lists are read every second.
    static LEFT_OUT: FailureLog = FailureLog::new();
    let video = VideoId::from_name(name);
    if video.is_none()
        && let Some(rows) = LEFT_OUT.failed()
    {
        tracing::warn!(%name, rows, "stored video name is malformed, left out of the list");
    }
    video
}

/// The limit of a page query: one more row than the page holds shows whether there is a next page.
pub(crate) fn one_more(page: &PageRequest) -> i64 {
    i64::try_from(page.size()).unwrap_or(i64::MAX).saturating_add(1)
}

/// The number in the cursor of an append-only list, for a column; 0 for the first page.
pub(crate) fn numbered(after: Option<&Cursor>) -> Result<i64> {
    column(Cursor::number(after)?)
}

/// As [`numbered`], of a list that begins with the newest row.
pub(crate) fn numbered_before(before: Option<&Cursor>) -> Result<i64> {
    if before.is_some() { numbered(before) } else { Ok(i64::MAX) }
}
