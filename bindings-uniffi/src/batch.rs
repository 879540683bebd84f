//! Many transcripts: calls that wait for paused sources, or for a server.

use std::{sync::Arc, time::Duration};

/// Calls that belong together: each waits while the sources of its platform are paused, or its server refuses calls.
///
/// A platform that throttles refuses calls at once. An app with many links would lose all of them within a second.
#[derive(Debug, uniffi::Object)]
pub struct Batch {
    pub(crate) waits: verbatim::Batch,
}

#[uniffi::export]
impl Batch {
    /// A batch that waits at most `max_wait` for a platform or server without a success in between, by default 300
    /// seconds; with zero it never waits.
    #[uniffi::constructor(default(max_wait = None))]
    pub fn new(max_wait: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { waits: max_wait.map_or_else(verbatim::Batch::default, verbatim::Batch::new) })
    }
}

#[cfg(any(feature = "local-service", feature = "service"))]
impl Batch {
    /// The waits of a batch; without one a call does not wait.
    pub(crate) fn waits_of(batch: Option<Arc<Self>>) -> verbatim::Batch {
        batch.map_or_else(|| verbatim::Batch::new(Duration::ZERO), |batch| batch.waits.clone())
    }
}
