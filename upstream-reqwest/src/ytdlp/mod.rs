//! The yt-dlp program as a supplier: for what the platform's own supplier of this crate cannot get.

mod call;
mod command;
mod info;
mod signals;
mod sound;
mod source;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;
use transcript_core::{
    Error, Result,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, Watcher},
    time::Clock,
    video::Platform,
};

use crate::{http::Http, program};
use call::Call;
pub use source::YtDlpSound;

/// The supplier's name.
const NAME: &str = "yt-dlp";
/// The longest that one look-up takes, and how long before the caller's deadline it gives up.
const PATIENCE: Duration = Duration::from_secs(60);
const MARGIN: Duration = Duration::from_millis(250);

/// The captions that yt-dlp finds, as a supplier named `yt-dlp` for all four platforms.
///
/// The program runs without a shell, without the user's configuration, plugins and cookies, in an empty folder of
/// its own, with limits on time, memory and output, and ends with all that it started. It may only open videos of
/// the platform that was asked for. What it says is held to the same rules as a platform's answers: the video must
/// be the one that was asked for, and captions whose origin it does not tell are no human's.
///
/// It makes its requests itself, through the proxy whose turn it is. [`Http`]'s rules about addresses hold for the
/// captions that it names, before it fetches them, but not for its own requests.
///
/// As many run at once as are asked for, each a Python interpreter of its own: the engine bounds them
/// (`Builder::at_once`).
#[derive(Debug)]
pub struct YtDlp {
    program: PathBuf,
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
}

impl YtDlp {
    /// The supplier, with the program at this path or of this name. The clock is the one that deadlines are given by.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when there is no such program.
    pub fn new(program: &Path, http: Arc<Http>, clock: Arc<dyn Clock>) -> Result<Self> {
        let Some(program) = program::find_program(program) else {
            let shown = program.display();
            return Err(Error::invalid(format!(
                "ytdlp.program: there is no program {shown}; install it with `pipx install yt-dlp`, or name its path"
            )));
        };
        Ok(Self { program, http, clock })
    }

    /// Until when a look-up may take.
    fn until(&self, ask: &Ask) -> Instant {
        let left = ask.deadline.since(self.clock.now());
        Instant::now() + left.saturating_sub(MARGIN).min(PATIENCE)
    }
}

#[async_trait]
impl Supplier for YtDlp {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: Platform::ALL.to_vec(),
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        let deadline = self.until(&ask);
        let call = Call { program: &self.program, http: &self.http, watcher: watcher.as_ref(), deadline };
        let supplied = call.supply(&ask).await;
        supplied.inspect_err(|error| tracing::debug!(video = %ask.video, %error, "no captions from yt-dlp"))
    }
}
