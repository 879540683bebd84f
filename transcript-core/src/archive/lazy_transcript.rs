//! Archived transcript that is sent as it is stored, or decoded on first access.

use std::fmt;

use super::{StoredBody, StoredTranscript};
use crate::{error::Result, transcript::TrackKind};

/// Archived transcript that was found but is not decoded yet.
///
/// Finding it costs a fraction of decoding it, and the encoded form takes a fraction of the memory. All of it is
/// in memory: later changes of the store do not affect it.
pub trait LazyTranscript: fmt::Debug + Send + Sync + 'static {
    /// Same as [`StoredTranscript::revision`].
    fn revision(&self) -> u32;

    /// Value of [`super::Archive::change_counter`] when the transcript was found.
    fn change_counter(&self) -> u64;

    /// Approximate size in memory, in bytes.
    fn memory_bytes(&self) -> u64;

    /// Returns the kind of the transcript's track, without decoding the segments where that is possible.
    ///
    /// # Errors
    /// As [`LazyTranscript::load`].
    fn track_kind(&self) -> Result<TrackKind>;

    /// Returns the stored body, to be sent without decoding.
    ///
    /// # Errors
    /// Only if a store that keeps decoded transcripts cannot encode this one.
    fn body(&self) -> Result<StoredBody>;

    /// Decodes the transcript: what [`super::Archive::find`] returned when it was found.
    ///
    /// Decoding an hour of speech takes a fraction of a millisecond.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if the stored data cannot be decoded or does not match its digest.
    fn load(&self) -> Result<StoredTranscript>;
}
