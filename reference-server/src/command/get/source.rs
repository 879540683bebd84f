//! The videos of all links: lists are read while their first videos are fetched.

use std::{collections::HashSet, vec};

use transcript_core::{
    Error, ErrorCause, ErrorKind, Timestamp,
    engine::FailureReason,
    supplier::{ListedVideo, SupplyError},
    video::{VideoLink, VideoList},
};
use verbatim::{Batch, UnavailableList, Verbatim, VideoStream};

use super::link::{GivenLink, LinkTarget};

/// A video to get.
#[derive(Debug)]
pub(super) struct QueuedVideo {
    /// The link as it was given, or the address of a listed video.
    pub(super) label: String,
    /// The address that is requested.
    pub(super) address: String,
    /// Position in its list, or among the links, from 1.
    pub(super) index: usize,
}

/// What could not be got, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The link as it was given, or the address of a listed video.
    pub(super) label: String,
    /// The reason in one word.
    pub(super) reason: String,
    /// The reason for people, and what to do.
    pub(super) message: String,
    /// Whether the same request may succeed later.
    pub(super) may_pass: bool,
}

impl Failure {
    /// A failure that stays.
    pub(super) fn lasting(label: String, reason: &str, message: String) -> Self {
        Self { label, reason: reason.to_owned(), message, may_pass: false }
    }
}

/// Next item of a [`VideoSource`].
#[derive(Debug)]
pub(super) enum SourceItem {
    Video(QueuedVideo),
    /// A video that came before.
    Repeated,
    /// A link that names no video, or a list that cannot be read.
    Failed(Failure),
    /// Something to know about a list.
    Note(String),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListLimits {
    /// Most videos.
    pub(super) limit: Option<usize>,
    /// Videos that are surely older are left out.
    pub(super) since: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct VideoSource {
    verbatim: Verbatim,
    /// Pages of lists wait as the transcripts do.
    batch: Batch,
    limits: ListLimits,
    links: vec::IntoIter<GivenLink>,
    /// Number of links so far.
    taken: usize,
    list: Option<OpenList>,
    /// Addresses of all videos so far.
    addresses: HashSet<String>,
    is_done: bool,
}

/// A list that is being read.
#[derive(Debug)]
struct OpenList {
    label: String,
    videos: VideoStream,
    /// Number of its videos so far.
    count: usize,
}

impl VideoSource {
    pub(super) fn new(verbatim: Verbatim, batch: Batch, links: Vec<GivenLink>, limits: ListLimits) -> Self {
        let links = links.into_iter();
        Self {
            verbatim,
            batch,
            limits,
            links,
            taken: 0,
            list: None,
            addresses: HashSet::new(),
            is_done: false,
        }
    }

    /// Whether everything was returned.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The number of items that are still to come, if it is known.
    pub(super) fn remaining(&self) -> Option<usize> {
        let listed = match &self.list {
            None => 0,
            Some(_) if self.limits.since.is_some() => return None,
            Some(list) => {
                let stated = usize::try_from(list.videos.info().stated_count?).unwrap_or(usize::MAX);
                stated.min(self.limits.limit.unwrap_or(usize::MAX)).saturating_sub(list.count)
            }
        };
        let has_lists =
            self.links.as_slice().iter().any(|link| matches!(link.target, Ok(LinkTarget::List(_))));
        (!has_lists).then_some(listed + self.links.len())
    }

    /// The next item; `None` after the last one.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<SourceItem> {
        while !self.is_done {
            if let Some(list) = &mut self.list {
                let next = list.videos.next().await;
                if let Some(item) = self.listed(next) {
                    return Some(item);
                }
                continue;
            }
            let Some(GivenLink { label, target }) = self.links.next() else {
                self.is_done = true;
                return None;
            };
            self.taken += 1;
            match target {
                Err(error) => {
                    let failure = Failure::lasting(label, "invalid_url", error.to_string());
                    return Some(SourceItem::Failed(failure));
                }
                Ok(LinkTarget::List(list)) => self.list = Some(self.open(label, list)),
                Ok(LinkTarget::Video(VideoLink::Video(video))) => {
                    return Some(self.video(label, video.address(), self.taken));
                }
                Ok(LinkTarget::Video(VideoLink::Short(short))) => {
                    return Some(self.video(label, short.address().to_owned(), self.taken));
                }
            }
        }
        None
    }

    fn open(&self, label: String, list: VideoList) -> OpenList {
        let videos = self.verbatim.videos_of(list).with_batch(self.batch.clone());
        let videos = videos.with_limit(self.limits.limit.unwrap_or(usize::MAX));
        let videos = match self.limits.since {
            Some(since) => videos.since(since),
            None => videos,
        };
        OpenList { label, videos, count: 0 }
    }

    /// What the next video of the open list is; `None` if the list has ended and there is nothing to say.
    fn listed(&mut self, next: Option<Result<ListedVideo, Error>>) -> Option<SourceItem> {
        let list = self.list.as_mut()?;
        match next {
            Some(Ok(listed)) => {
                list.count += 1;
                let (address, index) = (listed.video.address(), list.count);
                Some(self.video(address.clone(), address, index))
            }
            Some(Err(error)) => {
                let label = std::mem::take(&mut list.label);
                self.list = None;
                Some(SourceItem::Failed(list_failure(label, &error)))
            }
            None => {
                let OpenList { label, videos, count } = self.list.take()?;
                let hidden = videos.info().hidden_count;
                let note = match (count, hidden) {
                    (0, 0) => format!("{label}: it has no videos"),
                    (_, 0) => return None,
                    _ => format!("{label}: videos that are not shown, such as private ones: {hidden}"),
                };
                Some(SourceItem::Note(note))
            }
        }
    }

    fn video(&mut self, label: String, address: String, index: usize) -> SourceItem {
        match self.addresses.insert(address.clone()) {
            true => SourceItem::Video(QueuedVideo { label, address, index }),
            false => SourceItem::Repeated,
        }
    }
}

fn list_failure(label: String, error: &Error) -> Failure {
    let cause = error.cause().map(ErrorCause::error);
    if let Some(list) = cause.and_then(|cause| cause.downcast_ref::<UnavailableList>()) {
        return Failure::lasting(label, list.reason().as_str(), error.to_string());
    }
    let supply = cause.and_then(|cause| cause.downcast_ref::<SupplyError>());
    let reason = match supply.map(FailureReason::for_supply_error) {
        Some(reason @ (FailureReason::RateLimited | FailureReason::ConfigError)) => reason,
        _ if error.kind() == ErrorKind::Unsupported => FailureReason::ConfigError,
        _ => FailureReason::FetchError,
    };
    let may_pass = reason != FailureReason::ConfigError;
    Failure { label, reason: reason.as_str().to_owned(), message: error.to_string(), may_pass }
}
