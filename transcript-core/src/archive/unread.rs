//! A transcript that was found, and is read when somebody looks at it.

use std::fmt;

use super::StoredTranscript;
use crate::error::Result;

/// An archived transcript that was found and not read yet.
///
/// To find one costs a fraction of what it takes to read it, and unread it takes a fraction of the room. It is in memory
/// as a whole: what becomes of the store afterwards does not matter to it.
pub trait Unread: fmt::Debug + Send + Sync + 'static {
    /// As [`StoredTranscript::revision`].
    fn revision(&self) -> u32;

    /// What [`super::Archive::changes`] was at the moment at which it was found.
    fn changes(&self) -> u64;

    /// How many bytes of memory it takes, about.
    fn bytes(&self) -> u64;

    /// Reads it: what [`super::Archive::find`] returned at that moment. It takes a fraction of a millisecond for an hour
    /// of speech.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when what was stored cannot be read back, or does not have its digest.
    fn read(&self) -> Result<StoredTranscript>;
}
