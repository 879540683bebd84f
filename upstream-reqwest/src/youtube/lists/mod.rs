//! Lists of videos on YouTube, by the requests of its website: a request for each page, one at a time.

mod age;
mod entry;
mod page;
mod position;
mod request;
mod results;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http::StatusCode;
use serde_json::Value;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until, timeout_at},
};
use transcript_core::{
    supplier::{
        ListAbsence, ListAbsenceReason, ListOutcome, ListPosition, SupplyError, SupplyReason, VideoListPage,
        VideoLister,
    },
    time::{Clock, Timestamp},
    video::{ChannelTab, VideoList},
};

use self::{
    page::{BrowseOutcome, ListEntries, ListPart, read_page},
    position::{PagePosition, page_mark},
    results::read_results,
};
use super::{YouTubeOptions, classify, failure::YouTubeFailure, request::PLATFORM};
use crate::{
    deadline::call_end,
    http::{EgressSession, HttpRequest, HttpTransport},
    json::{self, field},
};

/// Maximum number of requests for one page, with retries and lookups of the channel.
const REQUESTS_MAX: u32 = 12;
/// Maximum number of addresses and channels that lead to another one.
const MOVES_MAX: u32 = 3;
/// How often a page is requested if YouTube answers that there is nothing, as it does now and then.
const TRIES: u32 = 2;
/// Maximum number of `{`, `[` and `,` in a response, which as [`Value`] takes at most 100 MB with them.
///
/// The largest recorded page, with 100 videos, has 20,100.
const SEPARATORS_MAX: usize = 150_000;

/// The playlists, channels and searches of YouTube.
///
/// Requests of all callers run one at a time, with pauses. A platform that throttles or blocks is reported, as in every
/// supplier.
#[derive(Debug)]
pub struct YouTubeLists {
    http: Arc<HttpTransport>,
    options: YouTubeOptions,
    clock: Arc<dyn Clock>,
    /// When the next request may start. Held during a request.
    next_request: Mutex<Option<Instant>>,
}

/// Why a page was not read.
enum PageFailure {
    Absent(ListAbsence),
    YouTube(YouTubeFailure),
    /// The requests of other callers took until the deadline; whether this page had sent one before.
    NoTurn {
        has_sent: bool,
    },
    /// A status that says nothing about the egress route.
    Status(StatusCode),
    /// An error, in YouTube's words.
    Other(String),
    /// The response has an unknown format.
    Unknown,
}

impl From<YouTubeFailure> for PageFailure {
    fn from(failure: YouTubeFailure) -> Self {
        Self::YouTube(failure)
    }
}

struct PageRequests<'a> {
    lists: &'a YouTubeLists,
    session: EgressSession,
    deadline: Instant,
    has_sent: bool,
}

impl YouTubeLists {
    /// Creates the lister over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, options: YouTubeOptions, clock: Arc<dyn Clock>) -> Self {
        Self { http, options, clock, next_request: Mutex::default() }
    }

    /// The number of available videos before a position, and the number of videos that the list states; `None` if it is
    /// not one of this lister.
    #[cfg(feature = "ytdlp")]
    pub(crate) fn listed_before(position: &ListPosition) -> Option<(u64, Option<u64>)> {
        let position = PagePosition::read(position)?;
        Some((position.videos.saturating_sub(position.unavailable), position.stated_count))
    }
}

#[async_trait]
impl VideoLister for YouTubeLists {
    async fn list_page(
        &self,
        list: &VideoList,
        position: Option<&ListPosition>,
        deadline: Timestamp,
    ) -> Result<ListOutcome, SupplyError> {
        let deadline = call_end(self.clock.as_ref(), deadline);
        let session = self.http.session().with_request_limit(REQUESTS_MAX);
        let mut requests = PageRequests { lists: self, session, deadline, has_sent: false };
        let page = match position.map(PagePosition::read) {
            None => requests.first_page(list).await,
            Some(Some(position)) => requests.further_page(position).await,
            Some(None) => Err(PageFailure::Unknown),
        };
        match page {
            Ok(page) => {
                requests.session.resume_platform(PLATFORM);
                Ok(ListOutcome::Page(page))
            }
            Err(PageFailure::Absent(absence)) => {
                requests.session.resume_platform(PLATFORM);
                Ok(ListOutcome::Absent(absence))
            }
            Err(failure) => Err(requests.session.with_pause(failure.error(), PLATFORM)),
        }
    }
}

impl PageRequests<'_> {
    async fn first_page(&mut self, list: &VideoList) -> Result<VideoListPage, PageFailure> {
        let (response, entries) = match (list.playlist_id(), list.query()) {
            (Some(id), _) => self.playlist(id).await?,
            (None, Some(words)) => self.search(words).await?,
            (None, None) => {
                let channel = self.channel_id(list).await?;
                self.tab(channel, list.tab().unwrap_or_default()).await?
            }
        };
        let position = PagePosition {
            visitor: page::visitor(&response),
            title: entries.title.clone(),
            owner: entries.owner.clone(),
            stated_count: entries.stated_count,
            is_channel: list.tab().is_some(),
            is_search: list.query().is_some(),
            ..PagePosition::default()
        };
        position.page(entries)
    }

    async fn further_page(&mut self, position: PagePosition) -> Result<VideoListPage, PageFailure> {
        let (client, is_search) = (&self.lists.options.list_client, position.is_search);
        let request = request::further(client, is_search, &position.token, position.visitor.as_deref());
        let now = self.lists.clock.now();
        let outcome = match is_search {
            true => read_results(&self.send_again(&request).await?, false, now),
            false => read_page(&self.browse(&request).await?, ListPart::Further, now),
        };
        match outcome {
            BrowseOutcome::Entries(entries) => position.page(entries),
            outcome => Err(PageFailure::of(outcome)),
        }
    }

    async fn playlist(&mut self, id: &str) -> Result<(Value, ListEntries), PageFailure> {
        let request = request::playlist(&self.lists.options.list_client, id);
        let response = self.browse(&request).await?;
        match read_page(&response, ListPart::Playlist, self.lists.clock.now()) {
            BrowseOutcome::Entries(entries) => Ok((response, entries)),
            outcome => Err(PageFailure::of(outcome)),
        }
    }

    async fn search(&mut self, words: &str) -> Result<(Value, ListEntries), PageFailure> {
        let request = request::search(&self.lists.options.list_client, words);
        let response = self.send_again(&request).await?;
        match read_results(&response, true, self.lists.clock.now()) {
            BrowseOutcome::Entries(entries) => Ok((response, entries)),
            // What it says of lists is not about a search.
            BrowseOutcome::Alert(words) => Err(PageFailure::Other(words)),
            outcome => Err(PageFailure::of(outcome)),
        }
    }

    async fn tab(
        &mut self,
        mut channel: String,
        tab: ChannelTab,
    ) -> Result<(Value, ListEntries), PageFailure> {
        for _ in 0..=MOVES_MAX {
            let request = request::tab(&self.lists.options.list_client, &channel, tab);
            let response = self.browse(&request).await?;
            match read_page(&response, ListPart::Tab(tab), self.lists.clock.now()) {
                BrowseOutcome::Entries(entries) => return Ok((response, entries)),
                BrowseOutcome::Moved(id) => channel = id,
                BrowseOutcome::AgeGate => return self.uploads(&channel, tab).await,
                outcome => return Err(PageFailure::of(outcome)),
            }
        }
        Err(PageFailure::Unknown)
    }

    /// The playlist of a channel's uploads that has what a tab has. It is shown where the channel has an age gate.
    async fn uploads(&mut self, channel: &str, tab: ChannelTab) -> Result<(Value, ListEntries), PageFailure> {
        let prefix = match tab {
            ChannelTab::Videos => "UULF",
            ChannelTab::Shorts => "UUSH",
            ChannelTab::Streams => "UULV",
        };
        let id = channel.strip_prefix("UC").ok_or(PageFailure::Unknown)?;
        match self.playlist(&format!("{prefix}{id}")).await {
            Err(PageFailure::Absent(ListAbsence { reason: ListAbsenceReason::Removed, .. })) => {
                Err(PageFailure::Absent(no_tab()))
            }
            found => found,
        }
    }

    async fn channel_id(&mut self, list: &VideoList) -> Result<String, PageFailure> {
        if let Some(id) = list.channel_id() {
            return Ok(id.to_owned());
        }
        let removed = || PageFailure::Absent(removed("YouTube has no channel with this name."));
        let mut address = list.channel_address().ok_or_else(removed)?;
        for _ in 0..=MOVES_MAX {
            let request = request::resolve(&self.lists.options.list_client, &address);
            let response = match self.send(&request).await {
                Err(PageFailure::Status(StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)) => {
                    return Err(removed());
                }
                response => response?,
            };
            let endpoint = field(&response, "endpoint");
            let id = field(field(endpoint, "browseEndpoint"), "browseId").as_str();
            if let Some(id) = id.filter(|id| id.starts_with("UC")) {
                return Ok(id.to_owned());
            }
            match field(field(endpoint, "urlEndpoint"), "url").as_str() {
                Some(next) => next.clone_into(&mut address),
                None if endpoint.is_object() => return Err(removed()),
                None => return Err(PageFailure::Unknown),
            }
        }
        Err(PageFailure::Unknown)
    }

    /// A response to a request for a page of a list.
    async fn browse(&mut self, request: &HttpRequest) -> Result<Value, PageFailure> {
        match self.send_again(request).await {
            Err(PageFailure::Status(StatusCode::BAD_REQUEST)) => {
                Err(PageFailure::Absent(removed("YouTube has no list with this id.")))
            }
            response => response,
        }
    }

    /// Sends a request; again if YouTube answers that there is nothing.
    async fn send_again(&mut self, request: &HttpRequest) -> Result<Value, PageFailure> {
        let mut tries = 1;
        loop {
            match self.send(request).await {
                Err(PageFailure::Status(StatusCode::NOT_FOUND)) if tries < TRIES => tries += 1,
                response => return response,
            }
        }
    }

    /// Sends a request in turn; over another egress route if YouTube blocks the first.
    async fn send(&mut self, request: &HttpRequest) -> Result<Value, PageFailure> {
        let mut attempt = 0;
        loop {
            let failure = match self.send_in_turn(request).await {
                Err(PageFailure::YouTube(failure)) if failure.is_route_blocked() => failure,
                response => return response,
            };
            let has_others = self.session.leave_route(self.session.route(), failure.platform_pause());
            if !has_others || attempt >= self.lists.http.retries() {
                return Err(failure.into());
            }
            attempt += 1;
        }
    }

    async fn send_in_turn(&mut self, request: &HttpRequest) -> Result<Value, PageFailure> {
        let has_sent = self.has_sent;
        let turn = timeout_at(self.deadline, self.lists.next_request.lock()).await;
        let mut next_request = turn.map_err(|_| PageFailure::NoTurn { has_sent })?;
        if let Some(next) = *next_request {
            if next >= self.deadline {
                return Err(PageFailure::NoTurn { has_sent });
            }
            sleep_until(next).await;
        }
        self.has_sent = true;
        let response = self.session.send(request, self.deadline).await;
        *next_request = Some(Instant::now() + jittered(self.lists.options.list_pause));
        drop(next_request);
        let response = response.map_err(YouTubeFailure::Transport)?;
        if let Some(failure) = response.location.as_ref().and_then(classify::classify_redirect) {
            return Err(failure.into());
        }
        match (parse(&response.body), response.status) {
            (Some(json), status) if status.is_success() => Ok(json),
            (_, StatusCode::FORBIDDEN) => Err(YouTubeFailure::Forbidden.into()),
            (None, status) => {
                let page = classify::page(&response.body).map(PageFailure::from);
                let unknown =
                    if status.is_success() { PageFailure::Unknown } else { PageFailure::Status(status) };
                Err(page.unwrap_or(unknown))
            }
            (Some(_), status) => Err(PageFailure::Status(status)),
        }
    }
}

impl PagePosition {
    /// The page of a list at this position.
    fn page(self, entries: ListEntries) -> Result<VideoListPage, PageFailure> {
        let ListEntries { title, owner, stated_count, mut videos, token } = entries;
        let (pages, mark) = (self.pages.saturating_add(1), page_mark(&videos));
        // Pages that alternate would be read up to the largest number of pages, and look like the whole list.
        if self.is_complete() && self.is_repeated(mark.as_ref()) {
            return Err(PageFailure::Unknown);
        }
        let owner = self.owner.or(owner);
        // A channel's tab does not name the channel at each video, nor does a course. A search has no owner.
        let is_owners = self.is_channel || videos.iter().all(|video| video.author.is_none());
        for video in &mut videos {
            if video.author.is_none() && is_owners && !video.is_unavailable {
                video.author.clone_from(&owner);
            }
        }
        let stated_count = self.stated_count.or(stated_count);
        let title = self.title.or(title);
        let listed = self.videos.saturating_add(videos.len() as u64);
        let unavailable = videos.iter().filter(|video| video.is_unavailable).count() as u64;
        // A token that repeats leads to the same page again.
        let next = token.filter(|token| *token != self.token).map(|token| Self {
            token,
            owner,
            title: title.clone(),
            stated_count,
            pages,
            empty_pages: if videos.is_empty() { self.empty_pages.saturating_add(1) } else { 0 },
            videos: listed,
            visitor: self.visitor,
            is_channel: self.is_channel,
            is_search: self.is_search,
            unavailable: self.unavailable.saturating_add(unavailable),
            mark: if pages.is_power_of_two() { mark.or(self.mark) } else { self.mark },
        });
        let next = next.filter(|next| !next.is_exhausted());
        if next.as_ref().is_some_and(Self::is_idle) {
            return Err(PageFailure::Unknown);
        }
        let next = next.map(|next| next.write().ok_or(PageFailure::Unknown)).transpose()?;
        let hidden_count = match next {
            None => stated_count.unwrap_or_default().saturating_sub(listed),
            Some(_) => 0,
        };
        Ok(VideoListPage { title, stated_count, videos, next, hidden_count })
    }
}

impl PageFailure {
    fn of(outcome: BrowseOutcome) -> Self {
        match outcome {
            BrowseOutcome::NoTab => Self::Absent(no_tab()),
            BrowseOutcome::Alert(words) => by_alert(&words).map_or(Self::Other(words), Self::Absent),
            BrowseOutcome::Entries(_)
            | BrowseOutcome::AgeGate
            | BrowseOutcome::Moved(_)
            | BrowseOutcome::Unknown => Self::Unknown,
        }
    }

    fn error(&self) -> SupplyError {
        match self {
            Self::YouTube(failure) => failure.error(),
            Self::Absent(absence) => SupplyError::new(SupplyReason::Removed, absence.message.clone()),
            Self::NoTurn { has_sent } => {
                let message = "Other lists are read first, which took too long. Try again in a moment.";
                // The queue is no failure of the platform: it counts as no attempt.
                let error = SupplyError::before_request(SupplyReason::Timeout, message);
                if *has_sent { error.mark_attempted() } else { error }
            }
            Self::Status(status) => SupplyError::new(
                SupplyReason::PlatformFault,
                format!(
                    "YouTube rejected the request for this list (HTTP {}). Try again later.",
                    status.as_u16()
                ),
            ),
            Self::Other(words) => SupplyError::new(
                SupplyReason::PlatformFault,
                format!(
                    "YouTube does not show this list now. Its message: \"{}\".",
                    words.trim_end_matches('.')
                ),
            ),
            Self::Unknown => SupplyError::new(
                SupplyReason::Unreadable,
                "YouTube's response for this list has an unknown format. Try again later; if the error persists, \
                 the operator can update Verbatim, or youtube.web_version.",
            ),
        }
    }
}

/// What an error of YouTube says of the list; `None` if it says nothing.
pub(crate) fn by_alert(words: &str) -> Option<ListAbsence> {
    let lower = words.to_lowercase();
    let has = |known: &[&str]| known.iter().any(|known| lower.contains(known));
    if has(&["is private"]) {
        Some(absence(ListAbsenceReason::Private, "This playlist is private."))
    } else if has(&["unviewable"]) {
        let message = "YouTube does not show playlists of this kind, such as mixes.";
        Some(absence(ListAbsenceReason::Unviewable, message))
    } else if has(&["terminated", "removed", "closed"]) {
        Some(removed("YouTube has removed this channel or playlist."))
    } else if has(&["does not exist", "not found", "isn't available", "unavailable"]) {
        Some(removed("This list does not exist on YouTube."))
    } else {
        None
    }
}

pub(crate) fn absence(reason: ListAbsenceReason, message: &str) -> ListAbsence {
    ListAbsence { reason, message: message.to_owned() }
}

fn removed(message: &str) -> ListAbsence {
    absence(ListAbsenceReason::Removed, message)
}

pub(crate) fn no_tab() -> ListAbsence {
    absence(ListAbsenceReason::NoTab, "This channel has no videos of this kind: it lacks the tab.")
}

/// Parses a response; `None` if it is not JSON, or has too many values for memory.
pub(super) fn parse(body: &[u8]) -> Option<Value> {
    let is_bounded = memchr::memchr3_iter(b'{', b'[', b',', body).count() <= SEPARATORS_MAX;
    is_bounded.then(|| json::parse(body).ok()).flatten()
}

/// A pause, a quarter longer or shorter at random.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + rand::random::<f64>() / 2.0)
}

/// Reads a response as each part of a list, and checks what holds for every page.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz(response: &Value, now: Timestamp) {
    let tabs = ChannelTab::ALL.map(ListPart::Tab);
    let parts = [ListPart::Playlist, ListPart::Further].into_iter().chain(tabs);
    let pages = parts.map(|part| read_page(response, part, now));
    for outcome in pages.chain([true, false].map(|is_first| read_results(response, is_first, now))) {
        match outcome {
            BrowseOutcome::Entries(entries) => {
                let (position, count) = (PagePosition::default(), entries.videos.len());
                let Ok(page) = position.page(entries) else { continue };
                assert_eq!(page.videos.len(), count);
                for video in &page.videos {
                    assert!(video.published.is_none_or(|at| at.earliest <= at.latest), "{video:?}");
                }
                let read = page.next.as_ref().map(|next| PagePosition::read(next).is_some());
                assert!(read.unwrap_or(true), "a position is read back");
            }
            outcome => drop(PageFailure::of(outcome).error()),
        }
    }
}
