//! Withdrawal and deletion of videos.

use transcript_core::{
    Error, Result,
    archive::{FindOutcome, TrackSelector},
    video::VideoId,
};

use super::{Completed, Operation, Operations};

/// A video before it was withdrawn or restored.
#[derive(Debug)]
pub(crate) struct Withdrawal {
    pub(crate) video: VideoId,
    /// Whether it was withdrawn before.
    pub(crate) was_withdrawn: bool,
    /// Why it is not in the audit log; `None` if it is.
    pub(crate) unrecorded: Option<Error>,
}

impl Operations {
    /// Withdraws a video, or restores it.
    pub(crate) async fn withdraw(&self, link: &str, withdrawn: bool) -> Result<Withdrawal> {
        let tools = self.verbatim.tools().clone();
        let video = tools.known_video(link).await?;
        // A takedown does not depend on what is stored: it may be damaged.
        let found = self.verbatim.archive().find(&video, &TrackSelector::Default, self.verbatim.now()).await;
        let was_withdrawn = match found {
            Err(error) if error.is_unreadable() => false,
            found => found? == FindOutcome::Withdrawn,
        };
        let name = if withdrawn { "archive.withdraw" } else { "archive.restore" };
        let operation = Operation::takedown(name).on(video.to_string());
        let subject = video.clone();
        let work = async move { Ok(Completed::done(tools.withdraw(&subject, withdrawn).await?)) };
        let (_, unrecorded) = self.record_if_possible(operation, work).await?;
        Ok(Withdrawal { video, was_withdrawn, unrecorded })
    }

    /// Deletes all archived data of a video, except a withdrawal. Returns why it is not in the audit log, if so.
    pub(crate) async fn delete_video(&self, video: VideoId) -> Result<Option<Error>> {
        let tools = self.verbatim.tools().clone();
        let operation = Operation::takedown("archive.delete").on(video.to_string());
        let work = async move { Ok(Completed::done(tools.delete(&video).await?)) };
        Ok(self.record_if_possible(operation, work).await?.1)
    }
}
