//! The yt-dlp program as a supplier, for videos that the platform suppliers of this crate cannot fetch.

mod audio;
mod classify;
mod command;
mod fetch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod info;
mod lists;
mod media;
mod metadata;
#[cfg(test)]
mod tests;
mod tracks;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;
use transcript_core::{
    Error, Result,
    supplier::{Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyRequest},
    time::{Clock, Timestamp},
    video::Platform,
};

use crate::{
    deadline::{call_end, lookup_end},
    http::HttpTransport,
    process,
};
use fetch::{YtDlpFetch, remove_stale_folders};
pub use info::ytdlp_metadata;
pub use lists::YtDlpLists;
pub use media::YtDlpMedia;

/// How long the folder of a run is unchanged until it counts as left behind. No run takes an hour.
const STALE_FOLDER_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The supplier's name.
const NAME: &str = "yt-dlp";

/// Captions that yt-dlp finds, as a supplier named `yt-dlp` for all four platforms.
///
/// The program runs without a shell, without the user's configuration, plugins and cookies, in an empty folder, with
/// limits on time, memory and output. It is stopped with all processes that it started. It may only open videos of the
/// requested platform. Its output is checked like a platform's response: the video must be the requested one, and
/// captions of unknown origin count as generated.
///
/// It makes its own requests, through the next proxy in rotation. The URL rules of [`HttpTransport`] apply to the
/// caption URLs that it reports, before it fetches them, but not to its other requests. Playlists of X's captions are
/// requested by this crate first: they must be whole.
///
/// It does not limit concurrent runs, each of which is a Python interpreter: the engine does
/// (`EngineBuilder::concurrency`).
#[derive(Debug)]
pub struct YtDlp {
    program: PathBuf,
    http: Arc<HttpTransport>,
    clock: Arc<dyn Clock>,
}

impl YtDlp {
    /// Creates the supplier with the program at this path or of this name. Deadlines refer to `clock`.
    ///
    /// Folders of runs that a killed process has left in the folder for temporary files for a day are deleted.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the program is not found.
    pub fn new(program: &Path, http: Arc<HttpTransport>, clock: Arc<dyn Clock>) -> Result<Self> {
        let Some(program) = process::find_program(program) else {
            let shown = program.display();
            return Err(Error::invalid(format!(
                "ytdlp.program: program {shown} not found; install it with `pipx install yt-dlp`, or set its path"
            )));
        };
        remove_stale_folders(&std::env::temp_dir(), STALE_FOLDER_AGE);
        Ok(Self { program, http, clock })
    }

    /// Deadline of a lookup.
    fn deadline_for(&self, request: &SupplyRequest) -> Instant {
        lookup_end(self.clock.as_ref(), request.deadline)
    }

    /// Deadline of a page of a list. It takes longer than a lookup: videos are counted from the first one.
    fn list_deadline(&self, deadline: Timestamp) -> Instant {
        call_end(self.clock.as_ref(), deadline)
    }
}

#[async_trait]
impl Supplier for YtDlp {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(NAME, &Platform::ALL)
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let deadline = self.deadline_for(&request);
        let fetch =
            YtDlpFetch { program: &self.program, http: &self.http, monitor: monitor.as_ref(), deadline };
        let supplied = fetch.supply(&request).await;
        supplied.inspect_err(
            |error| tracing::debug!(video = %request.video, %error, "yt-dlp returned no captions"),
        )
    }
}
