//! Withdrawal and deletion of videos.

use transcript_core::{Result, video::VideoId};

use super::{Completed, Operation, Operations};

/// A video before it was withdrawn or restored.
#[derive(Debug)]
pub(crate) struct Withdrawal {
    pub(crate) video: VideoId,
    /// Whether it was withdrawn before.
    pub(crate) was_withdrawn: bool,
}

impl Operations {
    /// Withdraws a video, or restores it.
    pub(crate) async fn withdraw(&self, link: &str, withdrawn: bool) -> Result<Withdrawal> {
        let tools = self.verbatim.tools().clone();
        let report = tools.show(link).await?;
        let name = if withdrawn { "archive.withdraw" } else { "archive.restore" };
        let operation = Operation::new(name).on(report.video.to_string());
        let work = async move {
            tools.withdraw(&report.video, withdrawn).await?;
            Ok(Completed::done(Withdrawal { video: report.video, was_withdrawn: report.withdrawn }))
        };
        self.record(operation, work).await
    }

    /// Deletes all archived data of a video, except a withdrawal.
    pub(crate) async fn delete_video(&self, video: VideoId) -> Result<()> {
        let tools = self.verbatim.tools().clone();
        let operation = Operation::new("archive.delete").on(video.to_string());
        self.record(operation, async move { Ok(Completed::done(tools.delete(&video).await?)) }).await
    }
}
