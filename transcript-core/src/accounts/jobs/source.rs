//! The videos of a new job: links, or a list.

use std::collections::HashSet;

use super::{ItemFailure, JobItem, NewItem, SourceList};
use crate::{
    accounts::{
        V1Error,
        transcript::{LanguagePreference, parse_language},
    },
    text::head,
    time::Timestamp,
    video::{VideoId, VideoLink, VideoList},
};

/// The reason of an item whose link names no video.
const INVALID_URL: &str = "invalid_url";

/// A new job, unvalidated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobParams {
    /// `urls`: links or ids of videos.
    pub urls: Option<Vec<String>>,
    /// `playlist`: the link or id of a playlist.
    pub playlist: Option<String>,
    /// `channel`: the link, handle or id of a channel, or the link of a profile.
    pub channel: Option<String>,
    /// `search`: words that YouTube searches in its videos.
    pub search: Option<String>,
    /// `limit`: the largest number of videos of a list. A search needs it.
    pub limit: Option<u64>,
    /// `since`: a date or time; videos of a list that were surely published before it are left out.
    pub since: Option<String>,
    /// `lang`: a language tag; without one it is English.
    pub lang: Option<String>,
    /// `callback_url`: where the events of the job are sent.
    pub callback_url: Option<String>,
}

/// The videos of a new job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobSource {
    /// Links or ids.
    Links(Vec<String>),
    /// A playlist, a channel, a search or a profile.
    List(SourceList),
}

impl JobParams {
    /// The videos; exactly one of `urls`, `playlist`, `channel` and `search` names them.
    pub(super) fn source(&self, items_max: u32) -> Result<JobSource, V1Error> {
        match (&self.urls, &self.playlist, &self.channel, &self.search) {
            (Some(urls), None, None, None) => {
                for (name, is_given) in [("limit", self.limit.is_some()), ("since", self.since.is_some())] {
                    if is_given {
                        return Err(bad(name, "it is only for a playlist, channel or search"));
                    }
                }
                links(urls, items_max)
            }
            (None, Some(playlist), None, None) => self.list("playlist", playlist, items_max),
            (None, None, Some(channel), None) => self.list("channel", channel, items_max),
            (None, None, None, Some(_)) if self.limit.is_none() => {
                Err(bad("limit", "it is missing: a search needs the largest number of videos"))
            }
            (None, None, None, Some(words)) => self.list("search", words, items_max),
            (None, None, None, None) => Err(bad(
                "urls",
                "it is missing: name videos by urls, or a list by playlist, channel or search",
            )),
            _ => Err(bad("body", "it has more than one of urls, playlist, channel and search: name one")),
        }
    }

    fn list(&self, name: &str, text: &str, items_max: u32) -> Result<JobSource, V1Error> {
        let list = if name == "search" { VideoList::search(text) } else { VideoList::parse(text) };
        let list = list.map_err(|error| bad(name, format!("{error}")))?;
        // A store reads the list from its address.
        if VideoList::parse(&list.address()).as_ref() != Ok(&list) {
            return Err(bad(name, "it is no list that this server can store"));
        }
        match (list.playlist_id(), list.query()) {
            (Some(_), _) if name != "playlist" => {
                return Err(bad(name, "it names a playlist: send it as playlist"));
            }
            (None, Some(_)) if name != "search" => {
                return Err(bad(name, "it names a search: send its words as search"));
            }
            (None, None) if name != "channel" => {
                return Err(bad(name, "it names a channel: send it as channel"));
            }
            _ => {}
        }
        let items_max = u64::from(items_max);
        let limit = self.limit.unwrap_or(items_max);
        if !(1..=items_max).contains(&limit) {
            return Err(bad("limit", format!("it must be a number from 1 to {items_max}")));
        }
        let since = match self.since.as_deref().map(Timestamp::parse_time_or_date) {
            Some(None) => {
                return Err(bad(
                    "since",
                    "it must be a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z",
                ));
            }
            since => since.flatten(),
        };
        Ok(JobSource::List(SourceList { list, limit, since, is_open: true }))
    }
}

fn links(urls: &[String], items_max: u32) -> Result<JobSource, V1Error> {
    if urls.is_empty() {
        return Err(bad("urls", "it is empty: name at least one video"));
    }
    if urls.len() > items_max as usize {
        let count = urls.len();
        return Err(bad("urls", format!("it has {count} links; at most {items_max} are allowed")));
    }
    Ok(JobSource::Links(urls.to_vec()))
}

fn bad(name: &str, problem: impl std::fmt::Display) -> V1Error {
    V1Error::BadRequest(format!("{name}: {problem}"))
}

impl LanguagePreference {
    /// The preference of a `lang` parameter.
    pub(super) fn parse(lang: Option<&str>) -> Result<Self, V1Error> {
        parse_language(lang, false)
    }
}

/// The items of a new job: each video once, in the order of its first link.
pub(super) fn new_items(urls: Vec<String>) -> Vec<NewItem> {
    let mut known = HashSet::new();
    let items = urls.into_iter().map(|url| {
        let invalid = |_| ItemFailure { reason: INVALID_URL.to_owned(), message: String::new() };
        let video = parse_link(&url).map_err(invalid);
        NewItem { url: shorten(url), video }
    });
    let name = |item: &NewItem| match &item.video {
        Ok(video) => video.to_string(),
        Err(_) => format!(" {}", item.url),
    };
    items.filter(|item| known.insert(name(item))).collect()
}

/// Adds the message to the failure of an item whose link names no video: it is not stored, since such items are free.
pub(super) fn add_message(item: &mut JobItem) {
    let is_without = |failure: &&mut ItemFailure| failure.reason == INVALID_URL && failure.message.is_empty();
    if let Some(failure) = item.failure.as_mut().filter(is_without) {
        failure.message = match parse_link(&item.url) {
            _ if item.url.len() > STORED_IN_PART => {
                let max = VideoLink::LENGTH_MAX;
                format!(
                    "The link is too long, or names no video: send only the link of the video, of at most {max} bytes."
                )
            }
            Err(message) => message,
            Ok(_) => "The link names no video.".to_owned(),
        };
    }
}

/// The video of a link, or of an id.
///
/// # Errors
/// The message for people.
fn parse_link(text: &str) -> Result<VideoId, String> {
    match VideoLink::parse(text.trim()) {
        Ok(VideoLink::Video(video)) => Ok(video),
        // A job is stored before anything is requested, and needs to know which links name the same video.
        Ok(VideoLink::Short(_)) => {
            Err("A short link does not say which video it leads to: open it, and send that link.".to_owned())
        }
        Err(error) => Err(format!("The link names no video: {error}.")),
    }
}

/// A longer stored link is one of which only a part is stored, to the last whole character.
const STORED_IN_PART: usize = VideoLink::LENGTH_MAX - 4;

/// The link as it is stored: at most the length of a link.
fn shorten(mut url: String) -> String {
    url.truncate(head(&url, VideoLink::LENGTH_MAX).len());
    url
}
