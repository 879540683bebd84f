//! Many transcripts: calls that wait for paused sources.

use std::{sync::Arc, time::Duration};

/// Calls that belong together: each waits while the sources of its platform are paused.
///
/// A platform that throttles refuses calls at once. An app with many links would lose all of them within a second.
#[derive(Debug, uniffi::Object)]
pub struct Batch {
    pub(crate) waits: verbatim::Batch,
}

#[uniffi::export]
impl Batch {
    /// A batch that waits at most `max_wait` for a platform without a success in between, by default 300 seconds; with
    /// zero it never waits.
    #[uniffi::constructor(default(max_wait = None))]
    pub fn new(max_wait: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { waits: max_wait.map_or_else(verbatim::Batch::default, verbatim::Batch::new) })
    }
}
