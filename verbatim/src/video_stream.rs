//! The videos of a playlist, channel, search or profile, as a stream.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use serde::Serialize;
use tokio::task::JoinSet;
use transcript_core::{
    Error, ErrorCause, ErrorKind, Result, Retry, Timestamp,
    supplier::{
        ListAbsence, ListAbsenceReason, ListOutcome, ListPosition, ListedVideo, SupplyError, SupplyReason,
        VideoListPage,
    },
    video::VideoList,
};

use crate::{Batch, Verbatim};

/// The videos of a list: a [`Stream`], also without a library of streams through [`VideoStream::next`].
///
/// A page is read when its first video is polled, about a second after the page before, and never ahead of the caller.
/// After an error the stream ends; the videos before it are valid. A video that a list has twice is returned twice.
///
/// Requests run on the runtime on which the [`Verbatim`] was opened, so any executor can poll the stream.
#[must_use = "a stream does nothing unless it is polled"]
pub struct VideoStream {
    verbatim: Verbatim,
    list: VideoList,
    limit: usize,
    since: Option<Timestamp>,
    batch: Batch,
    info: ListInfo,
    ready: VecDeque<ListedVideo>,
    next: NextPage,
}

/// What is known of a list.
///
/// The JSON has its fields in `camelCase`, and lacks what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListInfo {
    /// The title of a playlist, or the name of a channel; a search has none. `None` before the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The number of videos that a playlist states, hidden ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_count: Option<u64>,
    /// After the last page: how many stated videos the list has not shown, such as private ones.
    pub hidden_count: u64,
}

/// The next page of a stream.
enum NextPage {
    /// It is read from this position; `None` is the beginning.
    At(Option<ListPosition>),
    /// It is being read.
    Reading(JoinSet<Result<VideoListPage>>),
    /// There is none.
    End,
}

transcript_core::debug_fields!(VideoStream { list, info });

/// A missing list, and the reason: the cause of an [`Error`] of [`ErrorKind::NotFound`], which has the message.
///
/// The JSON has `reason` and `message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnavailableList(pub ListAbsence);

/// The reason, such as `private`.
impl fmt::Display for UnavailableList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.reason.as_str())
    }
}

impl std::error::Error for UnavailableList {}

impl UnavailableList {
    /// The reason.
    pub fn reason(&self) -> ListAbsenceReason {
        self.0.reason
    }
}

impl Verbatim {
    /// The videos of a playlist, channel or search of YouTube, or of a profile of TikTok, in the order of the list,
    /// read page by page.
    ///
    /// The link is that of a playlist, or of a channel, also with the tab `/videos` (the default), `/shorts` or
    /// `/streams`; an id of a playlist or channel; a handle such as `@name`; the link of a search, which ends after
    /// 1,000 videos; or the link of a profile, which only yt-dlp lists. Of a link to a video in a playlist, the
    /// playlist counts. It is parsed now, and requested when the stream is polled.
    ///
    /// An item fails with [`ErrorKind::NotFound`] if the list is private, was removed or never existed, or if the
    /// channel lacks the tab ([`UnavailableList`] is the [cause](Error::cause)); [`ErrorKind::Unavailable`] if the
    /// platform throttles, requires a bot check, cannot be reached, or answers in an unknown format (a [`SupplyError`]
    /// with the reason is the cause); [`ErrorKind::Unsupported`] if no supplier requests YouTube itself, or for TikTok
    /// without yt-dlp.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the text names no list, a list of the logged-in viewer, a mix, which never ends, or a
    /// list of Instagram or X, which yt-dlp does not read.
    ///
    /// ```no_run
    /// # async fn example(verbatim: verbatim::Verbatim) -> Result<(), verbatim::Error> {
    /// let mut videos = verbatim.videos("https://www.youtube.com/@name/streams")?.with_limit(100);
    /// while let Some(listed) = videos.next().await {
    ///     let listed = listed?;
    ///     println!("{}: {}", listed.video.address(), listed.title.unwrap_or_default());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn videos(&self, link: &str) -> Result<VideoStream> {
        Ok(self.videos_of(VideoList::parse(link)?))
    }

    /// A page of a list: the first one, or that at a position of the page before, also from another process.
    ///
    /// `since` is that of [`VideoStream::since`]. [`Verbatim::videos`] reads the pages one after another.
    ///
    /// # Errors
    /// As the items of [`Verbatim::videos`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait, not a request that has started.
    pub async fn video_page(
        &self,
        list: &VideoList,
        position: Option<&ListPosition>,
        since: Option<Timestamp>,
    ) -> Result<VideoListPage> {
        match self.transcripts().list_page(list, position).await.map_err(supply_error)? {
            ListOutcome::Page(page) => Ok(match since {
                Some(since) => page.published_since(since, list.is_newest_first()),
                None => page,
            }),
            ListOutcome::Absent(absence) => {
                let cause = Some(ErrorCause::new(UnavailableList(absence.clone())));
                Err(Error::new(ErrorKind::NotFound, Retry::Never, absence.message).with_cause(cause))
            }
        }
    }

    /// As [`Verbatim::videos`], of a parsed list, or of a search ([`VideoList::search`]).
    pub fn videos_of(&self, list: VideoList) -> VideoStream {
        VideoStream {
            verbatim: self.clone(),
            list,
            limit: usize::MAX,
            since: None,
            batch: Batch::new(Duration::ZERO),
            info: ListInfo::default(),
            ready: VecDeque::new(),
            next: NextPage::At(None),
        }
    }
}

impl VideoStream {
    /// Ends the stream after this number of videos. No page is read after them.
    pub fn with_limit(self, videos: usize) -> Self {
        Self { limit: videos, ..self }
    }

    /// Leaves out videos that were surely published before a time.
    ///
    /// YouTube names most dates relatively, such as "2 weeks ago", so some older videos may remain. A channel's tab and
    /// a profile are newest first: their streams end at the first page that ends with an older video. Shorts have no
    /// dates.
    pub fn since(self, time: Timestamp) -> Self {
        Self { since: Some(time), ..self }
    }

    /// Waits as a batch does while the platform throttles. Otherwise the stream ends with an error then.
    pub fn with_batch(self, batch: Batch) -> Self {
        Self { batch, ..self }
    }

    /// What is known of the list so far.
    pub fn info(&self) -> &ListInfo {
        &self.info
    }

    /// The list.
    pub fn list(&self) -> &VideoList {
        &self.list
    }

    /// The next video; `None` at the end.
    ///
    /// # Errors
    /// As [`Verbatim::videos`] describes. The stream then ends.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<ListedVideo>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<ListedVideo>>> {
        loop {
            if self.limit == 0 {
                self.next = NextPage::End;
                return Poll::Ready(None);
            }
            if let Some(video) = self.ready.pop_front() {
                self.limit -= 1;
                return Poll::Ready(Some(Ok(video)));
            }
            let page = match &mut self.next {
                NextPage::End => return Poll::Ready(None),
                NextPage::At(position) => {
                    let (verbatim, list) = (self.verbatim.clone(), self.list.clone());
                    let (position, since, batch) = (position.take(), self.since, self.batch.clone());
                    let read =
                        async move { batch.video_page(&verbatim, &list, position.as_ref(), since).await };
                    let mut task = JoinSet::new();
                    task.spawn_on(read, &self.verbatim.runtime);
                    self.next = NextPage::Reading(task);
                    continue;
                }
                NextPage::Reading(task) => ready!(task.poll_join_next(context)),
            };
            self.next = NextPage::End;
            match page {
                None => {}
                Some(Ok(Ok(page))) => self.take(page),
                Some(Ok(Err(error))) => return Poll::Ready(Some(Err(error))),
                Some(Err(error)) => {
                    let error = Error::unexpected("the request was interrupted")
                        .with_cause(Some(ErrorCause::new(error)));
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn take(&mut self, page: VideoListPage) {
        self.info.title = self.info.title.take().or(page.title);
        self.info.stated_count = self.info.stated_count.or(page.stated_count);
        self.info.hidden_count = page.hidden_count;
        self.ready.extend(page.videos);
        if let Some(position) = page.next {
            self.next = NextPage::At(Some(position));
        }
    }
}

impl Stream for VideoStream {
    type Item = Result<ListedVideo>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

/// The error of a page that could not be read.
fn supply_error(failure: SupplyError) -> Error {
    let (kind, retry) = match failure.reason() {
        SupplyReason::Misconfigured => (ErrorKind::Unsupported, Retry::Never),
        _ => (ErrorKind::Unavailable, Retry::Backoff),
    };
    let retry = failure.retry_after().map_or(retry, Retry::After);
    Error::new(kind, retry, failure.message().to_owned()).with_cause(Some(ErrorCause::new(failure)))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn list_info_and_missing_list_json_is_exact() {
        let info = ListInfo { title: Some("A list".to_owned()), stated_count: Some(3), hidden_count: 1 };
        let expected = json!({ "title": "A list", "statedCount": 3, "hiddenCount": 1 });
        assert_eq!(to_value(info).unwrap(), expected);
        assert_eq!(to_value(ListInfo::default()).unwrap(), json!({ "hiddenCount": 0 }));
        let absence = ListAbsence { reason: ListAbsenceReason::NoTab, message: "It has none.".to_owned() };
        let expected = json!({ "reason": "no_tab", "message": "It has none." });
        assert_eq!(to_value(UnavailableList(absence)).unwrap(), expected);
    }
}
