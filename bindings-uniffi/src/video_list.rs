//! Lists of videos, page by page.

use std::sync::Arc;

use transcript_core::{
    ErrorCause,
    supplier::{self, SupplyError, SupplyReason},
    time::Timestamp,
    transcript::LiveStatus,
    video::{ChannelTab, Platform, VideoList},
};
use verbatim::{Error, UnavailableList};

use crate::{
    call::{CallOptions, run},
    error::{Failure, FailureKind, VerbatimError, count},
    transcripts::Transcripts,
};

/// A tab of a channel with videos.
#[uniffi::remote(Enum)]
pub enum ChannelTab {
    /// Its videos, without shorts and streams.
    Videos,
    /// Its shorts. Their lists name neither dates nor durations.
    Shorts,
    /// Its live streams: running, past and scheduled.
    Streams,
}

/// When something happened, known to lie between two times: lists name ages such as "2 weeks ago".
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct TimeRange {
    /// The earliest possible time, in milliseconds since 1970.
    pub earliest: Timestamp,
    /// The latest possible time, in milliseconds since 1970.
    pub latest: Timestamp,
}

/// A video, as a list describes it. `None` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ListedVideo {
    /// The platform.
    pub platform: Platform,
    /// The video's id on its platform.
    pub video_id: String,
    /// The URL of the video.
    pub url: String,
    /// The title.
    pub title: Option<String>,
    /// The name of the channel that published it.
    pub author: Option<String>,
    /// Length in milliseconds.
    pub duration_ms: Option<i64>,
    /// When it was published. A scheduled video has none.
    pub published: Option<TimeRange>,
    /// Whether it is or was live.
    pub live: Option<LiveStatus>,
    /// Whether it is only for members of its channel.
    pub is_members_only: bool,
    /// Whether the list shows it as private or deleted.
    pub is_unavailable: bool,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct VideoListPage {
    /// The title of a playlist, or the name of a channel. A search has none.
    pub title: Option<String>,
    /// The number of videos that a playlist states, hidden ones included.
    pub stated_count: Option<i64>,
    /// On the last page: how many stated videos the list has not shown, such as private ones.
    pub hidden_count: i64,
    /// The videos in the order of the list; a page may have none.
    pub videos: Vec<ListedVideo>,
    /// Position of the next page; `None` at the end.
    pub next: Option<String>,
}

/// The address of YouTube's search for these words, a list for `video_list_page`.
///
/// # Errors
/// `InvalidInput` without words, or with more than 200 characters.
#[uniffi::export]
pub fn youtube_search_address(words: String) -> Result<String, VerbatimError> {
    let list = VideoList::search(&words);
    Ok(list.map_err(|error| Failure::invalid_input(error.to_string()))?.address())
}

#[uniffi::export]
impl Transcripts {
    /// Reads a page of a playlist, channel or search of YouTube, or of a profile of TikTok: the first one, or that at a
    /// position of the page before.
    ///
    /// `list` is the link of a playlist, or of a channel, also with a tab; an id of one; a handle such as `@name`; the
    /// address of a search; or the link of a profile, which only yt-dlp lists. `tab` replaces the tab of a channel.
    /// Videos that were surely published before `since` are left out.
    ///
    /// # Errors
    /// `InvalidInput` if the text names no list, a list of the logged-in viewer, or a mix, which never ends; `NotFound`
    /// with the `reason` `private`, `removed`, `no_tab` or `unviewable` if there is no such list; `RateLimited`;
    /// `FetchFailed`, also with the `reason` `unreadable` for an unknown format; `NotConfigured` if no supplier
    /// requests YouTube itself, or for TikTok without yt-dlp.
    #[uniffi::method(default(tab = None, position = None, since = None, call = None))]
    pub async fn video_list_page(
        &self,
        list: String,
        tab: Option<ChannelTab>,
        position: Option<String>,
        since: Option<Timestamp>,
        call: Option<CallOptions>,
    ) -> Result<VideoListPage, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(call, async move {
            let list = VideoList::parse(&list).map_err(|error| Failure::invalid_input(error.to_string()))?;
            let list = tab.map_or(list.clone(), |tab| list.with_tab(tab));
            let too_long = || Failure::invalid_input("the position of the page is too long");
            let position =
                position.map(|text| supplier::ListPosition::new(text).ok_or_else(too_long)).transpose()?;
            let verbatim = lazy.open().await?;
            let page = verbatim.video_page(&list, position.as_ref(), since).await;
            Ok(page.map_err(|error| list_error(error, list.platform()))?.into())
        })
        .await
    }
}

/// The error of a list that was not read.
fn list_error(error: Error, platform: Platform) -> VerbatimError {
    let cause = error.cause().map(ErrorCause::error);
    let absence = cause.and_then(|cause| cause.downcast_ref::<UnavailableList>());
    let fault = cause.and_then(|cause| cause.downcast_ref::<SupplyError>());
    let (kind, reason) = match (absence, fault.map(SupplyError::reason)) {
        (Some(absence), _) => (FailureKind::NotFound, absence.reason().as_str()),
        (None, Some(reason @ (SupplyReason::Throttled(_) | SupplyReason::BotCheck))) => {
            (FailureKind::RateLimited, reason.as_str())
        }
        (None, Some(reason @ SupplyReason::Misconfigured)) => (FailureKind::NotConfigured, reason.as_str()),
        (None, Some(reason)) => (FailureKind::FetchFailed, reason.as_str()),
        (None, None) => return error.into(),
    };
    let VerbatimError::Failed { failure } = error.clone().into();
    Failure { kind, reason: Some(reason.to_owned()), platform: Some(platform), ..failure }.into()
}

impl From<supplier::VideoListPage> for VideoListPage {
    fn from(page: supplier::VideoListPage) -> Self {
        Self {
            title: page.title,
            stated_count: page.stated_count.map(count),
            hidden_count: count(page.hidden_count),
            videos: page.videos.into_iter().map(ListedVideo::from).collect(),
            next: page.next.map(|next| next.as_str().to_owned()),
        }
    }
}

impl From<supplier::ListedVideo> for ListedVideo {
    fn from(listed: supplier::ListedVideo) -> Self {
        Self {
            platform: listed.video.platform(),
            video_id: listed.video.id().to_owned(),
            url: listed.video.address(),
            title: listed.title,
            author: listed.author,
            duration_ms: listed.duration_s.map(|seconds| count(seconds.saturating_mul(1_000))),
            published: listed
                .published
                .map(|range| TimeRange { earliest: range.earliest, latest: range.latest }),
            live: listed.live,
            is_members_only: listed.members_only,
            is_unavailable: listed.is_unavailable,
        }
    }
}
