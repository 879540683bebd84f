//! Lists of videos by yt-dlp: the profiles of TikTok, and the lists of YouTube that its own lister does not read.
//!
//! Each page is a run of the program, which counts the videos of the list from the first one. Pages therefore double,
//! and a list of `n` videos takes less than three times the requests of a single run.

mod entry;
mod failure;
mod position;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::{sync::Mutex, time::timeout_at};
#[cfg(feature = "fuzzing")]
use transcript_core::video::Platform;
use transcript_core::{
    supplier::{
        ListOutcome, ListPosition, SupplyError, SupplyMonitor, SupplyReason, VideoListPage, VideoLister,
    },
    time::Timestamp,
    video::VideoList,
};

use self::{
    entry::{ListEntries, read_entries},
    failure::{Exit, list_error, read_exit},
    position::EntryPosition,
};
use super::{
    YtDlp, YtDlpFetch,
    classify::YtDlpFailure,
    command,
    fetch::{RunFolder, unreadable},
};
use crate::{http::ProgramEgress, process::ProgramError, youtube::YouTubeLists};

/// The lists of a platform, read by yt-dlp; for YouTube only where its own lister fails.
///
/// The program runs as for captions ([`YtDlp`]), one list at a time. Its videos are named by their ids: an address that
/// it prints is not used.
#[derive(Debug)]
pub struct YtDlpLists {
    ytdlp: Arc<YtDlp>,
    first: Option<Arc<YouTubeLists>>,
    /// Held during a run.
    turn: Mutex<()>,
}

/// Videos of a run.
struct ReadPage {
    entries: ListEntries,
    /// Whether the list has no more of them.
    is_end: bool,
    /// Why the run ended before the requested range was complete.
    failure: Option<YtDlpFailure>,
}

/// A waiter that does not leave: a page that is being read is read to its end.
#[derive(Debug)]
struct PageMonitor;

impl SupplyMonitor for PageMonitor {
    fn report_progress(&self, _: &str, _: u64, _: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

impl YtDlpLists {
    /// Reads lists by yt-dlp alone.
    pub fn new(ytdlp: Arc<YtDlp>) -> Self {
        Self { ytdlp, first: None, turn: Mutex::default() }
    }

    /// Reads lists of YouTube by its lister, and by yt-dlp if that is refused or cannot read the response.
    pub fn after(first: Arc<YouTubeLists>, ytdlp: Arc<YtDlp>) -> Self {
        Self { first: Some(first), ..Self::new(ytdlp) }
    }

    /// Reads a page by yt-dlp.
    async fn read(
        &self,
        list: &VideoList,
        position: &EntryPosition,
        deadline: Timestamp,
    ) -> Result<ListOutcome, SupplyError> {
        let deadline = self.ytdlp.list_deadline(deadline);
        let Ok(_turn) = timeout_at(deadline, self.turn.lock()).await else {
            let message = "Other lists are read first, which took too long. Try again in a moment.";
            return Err(SupplyError::before_request(SupplyReason::Timeout, message));
        };
        let YtDlp { program, http, .. } = &*self.ytdlp;
        let fetch = YtDlpFetch { program, http, monitor: &PageMonitor, deadline };
        let platform = list.platform();
        let fetch = &fetch;
        let attempt = |egress: Arc<ProgramEgress>| async move {
            let exit = run(fetch, &egress, list, position, self.ytdlp.clock.now()).await?;
            match &exit {
                // The next page reports it, unless it is over by then.
                Exit::Page(ReadPage { failure: Some(failure), .. }) => {
                    fetch.pause_route(platform, &egress, failure);
                }
                _ => fetch.resume_route(platform, &egress),
            }
            Ok(exit)
        };
        match fetch.over_routes(platform, attempt, |failure| list_error(failure, platform)).await? {
            Exit::Absent(absence) => Ok(ListOutcome::Absent(absence)),
            Exit::Page(page) => position.page(list, page).map(ListOutcome::Page),
        }
    }
}

#[async_trait]
impl VideoLister for YtDlpLists {
    async fn list_page(
        &self,
        list: &VideoList,
        position: Option<&ListPosition>,
        deadline: Timestamp,
    ) -> Result<ListOutcome, SupplyError> {
        let own_position = position.map(EntryPosition::read);
        let first = match (&self.first, own_position) {
            (_, Some(Some(position))) => return self.read(list, &position, deadline).await,
            (None, None) => return self.read(list, &EntryPosition::default(), deadline).await,
            (None, Some(None)) => {
                let message =
                    "The position of this page is not one of yt-dlp. Read the list from its beginning.";
                return Err(SupplyError::before_request(SupplyReason::Unreadable, message));
            }
            (Some(first), _) => first,
        };
        let error = match first.list_page(list, position, deadline).await {
            Err(error) if has_alternative(error.reason()) => error,
            outcome => return outcome,
        };
        let position = match position.map(YouTubeLists::listed_before) {
            None => EntryPosition::default(),
            // yt-dlp may leave out unavailable videos: some videos come twice then, but none is missed.
            Some(Some((listed, stated))) => EntryPosition { listed, stated, ..EntryPosition::default() },
            Some(None) => return Err(error),
        };
        self.read(list, &position, deadline).await.map_err(|other| {
            tracing::debug!(%list, error = %other, "yt-dlp did not read the list either");
            error
        })
    }
}

/// Whether yt-dlp may read a list for which YouTube's lister has this failure.
fn has_alternative(reason: &SupplyReason) -> bool {
    matches!(
        reason,
        SupplyReason::Unreadable
            | SupplyReason::PlatformFault
            | SupplyReason::Throttled(_)
            | SupplyReason::BotCheck
            | SupplyReason::Stale
    )
}

/// Runs the program for the page at a position.
async fn run(
    fetch: &YtDlpFetch<'_>,
    egress: &ProgramEgress,
    list: &VideoList,
    position: &EntryPosition,
    now: Timestamp,
) -> Result<Exit, YtDlpFailure> {
    let folder = RunFolder::create().await?;
    let range = position.range(list);
    let command = command::list_command(fetch.program, egress, &folder.path, list, &range, fetch.deadline);
    let mut output = Vec::new();
    let ended = command.run_into(&mut output, fetch.monitor).await;
    // What was printed before the deadline is valid.
    let ended = match ended {
        Err(ProgramError::Timeout) => None,
        ended => Some(ended.map_err(YtDlpFailure::Program)?),
    };
    let is_whole = matches!(ended, Some((Some(0), _)));
    let (platform, wanted) = (list.platform(), range.end() - range.start() + 1);
    let entries = read_entries(&output, platform, wanted, is_whole, now)
        .ok_or_else(|| unreadable("a line of it describes no video of the platform"))?;
    let listed = entries.videos.len() as u64;
    let page = |entries, is_end, failure| Ok(Exit::Page(ReadPage { entries, is_end, failure }));
    match ended {
        // An empty list is an error of yt-dlp, in words; without them, the response was not understood.
        Some((Some(0), _)) if listed == 0 && !position.is_after_run() => {
            Err(unreadable("it names no video, and no reason"))
        }
        Some((Some(0), _)) => page(entries, listed < wanted, None),
        Some((status, errors)) => match read_exit(status, &errors, platform) {
            Err(failure) if listed > 0 => page(entries, false, Some(failure)),
            // What it says of the list at its beginning is not about the middle.
            Ok(_) if listed > 0 || position.listed > 0 => {
                Err(unreadable("it ended in the middle of the list"))
            }
            outcome => outcome,
        },
        None if listed > 0 => page(entries, false, Some(YtDlpFailure::Program(ProgramError::Timeout))),
        None => Err(YtDlpFailure::Program(ProgramError::Timeout)),
    }
}

impl EntryPosition {
    /// The page at this position.
    fn page(&self, list: &VideoList, read: ReadPage) -> Result<VideoListPage, SupplyError> {
        let ReadPage { entries, is_end, .. } = read;
        let first = entries.videos.first().map(|listed| listed.video.id().to_owned()).unwrap_or_default();
        if !first.is_empty() && self.first == first {
            let message = "yt-dlp lists the same videos again. Try again later.";
            return Err(SupplyError::new(SupplyReason::Unreadable, message));
        }
        let listed = self.listed.saturating_add(entries.videos.len() as u64);
        let stated = self.stated.or(entries.stated_count);
        let next = Self { listed, first, stated };
        let is_end = is_end || next.is_exhausted(list);
        Ok(VideoListPage {
            title: entries.title,
            stated_count: stated,
            videos: entries.videos,
            next: if is_end { None } else { next.write() },
            hidden_count: if is_end { stated.unwrap_or_default().saturating_sub(listed) } else { 0 },
        })
    }
}

/// Reads entries as those of a whole and of a cut output.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz_entries(printed: &[u8], platform: Platform) {
    for is_whole in [true, false] {
        let now = Timestamp::from_millis(1_790_000_000_000);
        let Some(entries) = read_entries(printed, platform, 100, is_whole, now) else { continue };
        assert!(entries.videos.len() <= 100);
        for listed in &entries.videos {
            assert_eq!(listed.video.platform(), platform);
            assert!(listed.published.is_none_or(|at| at.earliest <= at.latest), "{listed:?}");
        }
    }
}

/// Classifies the errors of a run.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz_errors(status: Option<i32>, errors: &str, platform: Platform) {
    if let Err(failure) = read_exit(status, errors, platform) {
        assert!(!list_error(&failure, platform).message().is_empty());
    }
}
