//! Jobs.

use serde::{Deserialize, Serialize};

use super::VideoTranscript;
#[cfg(feature = "openapi")]
use crate::accounts::{
    jobs::{ItemStatus, JobStatus, PauseReason},
    webhooks::CALLBACK_URL_MAX,
};
#[cfg(feature = "openapi")]
use crate::transcript::LanguageTag;
use crate::{
    accounts::jobs::{ItemFailure, JobItem, JobView},
    error::{Error, Result},
    transcript::TrackInfo,
    video::{Platform, VideoId},
    wire::{AFTER_SEGMENTS, LanguageObject, details},
};

/// Longest text of a search, in characters.
#[cfg(feature = "openapi")]
const SEARCH_CHARS_MAX: usize = crate::video::VideoList::QUERY_CHARS_MAX;

/// The body of `POST /api/v1/jobs`: exactly one of `urls`, `playlist`, `channel` and `search`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(rename = "NewJob", extend("oneOf" = sources()))
)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// Links or ids of videos. Links of the same video are one item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "Vec<String>", length(min = 1)))]
    pub urls: Option<Vec<String>>,
    /// The link or id of a playlist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String", length(min = 1)))]
    pub playlist: Option<String>,
    /// The link, handle or id of a channel, or the link of a TikTok profile. The link of a channel may name the tab
    /// `/videos` (the default), `/shorts` or `/streams`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String", length(min = 1)))]
    pub channel: Option<String>,
    /// Words that YouTube searches in its videos; `limit` is then required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String", length(min = 1, max = SEARCH_CHARS_MAX)))]
    pub search: Option<String>,
    /// The largest number of videos of a list; by default as many as a job may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "u64", range(min = 1)))]
    pub limit: Option<u64>,
    /// A date or time: videos of a list that were surely published before it are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String", length(min = 10)))]
    pub since: Option<String>,
    /// The language tag of the transcripts; English by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(length(max = LanguageTag::LENGTH_MAX), regex(pattern = LanguageTag::PATTERN))
    )]
    pub lang: Option<String>,
    /// An https address on a public host: the server sends it the events of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri"), length(max = CALLBACK_URL_MAX)))]
    pub callback_url: Option<String>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A job: transcripts of many videos.", rename = "Job")
)]
pub struct JobInfo {
    /// True.
    pub success: bool,
    /// The id.
    pub job_id: String,
    /// The state.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = JobStatus::ALL.map(JobStatus::as_str))))]
    pub status: String,
    /// When it was created: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// When it ended; null before.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub ended_at: Option<String>,
    /// The address of its playlist, channel or search; null if its videos are links.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub list_url: Option<String>,
    /// Its items by state. While its list is read, those that were found.
    pub counts: JobItemCounts,
    /// Its credits.
    pub credits: JobCredits,
    /// Why it is paused; null if it is not. It resumes when the reason is gone.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = pause_reasons())))]
    pub pause_reason: Option<String>,
    /// Why its list could not be read, such as `private`, `removed`, `empty` or `throttled`; null if it has not failed.
    pub reason: Option<String>,
    /// What happened, for people; null if it has not failed.
    pub message: Option<String>,
    /// The address of the job.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub poll_url: String,
    /// The address of its results.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub results_url: String,
    /// Where its events are sent; null: nowhere.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub callback_url: Option<String>,
}

/// The items of a job by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct JobItemCounts {
    /// All items.
    pub total: u64,
    /// Items that wait.
    pub queued: u64,
    /// Items that are worked on.
    pub running: u64,
    /// Items whose transcript is delivered.
    pub done: u64,
    /// Items without a transcript; they are free.
    pub failed: u64,
    /// Items that a cancellation left out; they are free.
    pub skipped: u64,
}

/// The credits of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct JobCredits {
    /// What its items cost so far.
    pub spent: u64,
    /// What its unfinished items cost at most.
    pub estimate: u64,
    /// The account's credits.
    pub remaining: u64,
}

/// The jobs of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A page of the jobs of an account.")
)]
pub struct JobList {
    /// True.
    pub success: bool,
    /// The jobs, the newest first.
    pub jobs: Vec<JobInfo>,
    /// Where the next page begins; null after the last one.
    pub next_cursor: Option<String>,
}

/// Results of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A page of the items of a job.")
)]
pub struct JobResults {
    /// The id of the job.
    pub job_id: String,
    /// Where the next page begins; null after the last one.
    pub next_cursor: Option<String>,
    /// The items, in the order of their links.
    pub items: Vec<JobResult>,
}

/// An item of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct JobResult {
    /// The position in the job, from 0.
    pub index: u64,
    /// The link, as it was sent.
    pub url: String,
    /// The platform of the video; null if the link names none.
    pub platform: Option<String>,
    /// The id of the video; null if the link names none.
    pub video_id: Option<String>,
    /// The state.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ItemStatus::ALL.map(ItemStatus::as_str))))]
    pub status: String,
    /// Why there is no transcript: `no_captions`, `invalid_url`, `withdrawn`, `missing`, `damaged`, or one of a lookup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub reason: Option<String>,
    /// What happened, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub message: Option<String>,
    /// The languages of a video without a transcript in the language of the job, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<LanguageObject>,
    /// The transcript of an item that is done, as `GET /api/v1/transcript` returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "VideoTranscript"))]
    pub transcript: Option<VideoTranscript>,
}

/// The schemas of which a new job has exactly one.
#[cfg(feature = "openapi")]
fn sources() -> serde_json::Value {
    let only_lists = serde_json::json!([{ "required": ["limit"] }, { "required": ["since"] }]);
    serde_json::json!([
        { "required": ["urls"], "not": { "anyOf": only_lists } },
        { "required": ["playlist"] },
        { "required": ["channel"] },
        { "required": ["search", "limit"] },
    ])
}

#[cfg(feature = "openapi")]
fn pause_reasons() -> Vec<Option<&'static str>> {
    PauseReason::ALL.into_iter().map(|reason| Some(reason.as_str())).chain([None]).collect()
}

impl JobInfo {
    /// The job of a server with this address.
    pub fn new(view: &JobView, base_url: &str) -> Self {
        let JobView { job, credits_remaining, credits_estimate } = view;
        let poll_url = format!("{base_url}/api/v1/jobs/{}", job.id);
        Self {
            success: true,
            job_id: job.id.as_str().to_owned(),
            status: job.status.as_str().to_owned(),
            created_at: job.created_at.to_string(),
            ended_at: job.ended_at.map(|at| at.to_string()),
            list_url: job.list.as_ref().map(|list| list.list.address()),
            counts: JobItemCounts {
                total: job.counts.total,
                queued: job.counts.queued(),
                running: job.counts.running,
                done: job.counts.done,
                failed: job.counts.failed,
                skipped: job.counts.skipped,
            },
            credits: JobCredits {
                spent: job.spent,
                estimate: *credits_estimate,
                remaining: *credits_remaining,
            },
            pause_reason: job.pause_reason.map(|reason| reason.as_str().to_owned()),
            reason: job.failure.as_ref().map(|failure| failure.reason.clone()),
            message: job.failure.as_ref().map(|failure| failure.message.clone()),
            results_url: format!("{poll_url}/results"),
            poll_url,
            callback_url: job.callback_url.clone(),
        }
    }
}

impl JobResults {
    /// Returns the JSON of this page before its items. Their list and [`AFTER_SEGMENTS`] follow.
    ///
    /// # Errors
    /// Only if the serializer fails; no page causes that.
    pub fn before_items(self) -> Result<Vec<u8>> {
        details::before_last_list(&Self { items: Vec::new(), ..self })
    }
}

impl JobResult {
    /// The item, without its transcript; `loss` is why a delivered one cannot be shown.
    pub fn new(item: &JobItem, loss: Option<&ItemFailure>) -> Self {
        let video = item.video.as_ref();
        let failure = loss.or(item.failure.as_ref());
        Self {
            index: item.index,
            url: item.url.clone(),
            platform: video.map(|video| video.platform().as_str().to_owned()),
            video_id: video.map(VideoId::id).map(str::to_owned),
            status: item.status.as_str().to_owned(),
            reason: failure.map(|failure| failure.reason.clone()),
            message: failure.map(|failure| failure.message.clone()),
            languages: Vec::new(),
            transcript: None,
        }
    }

    /// Takes the transcript, which names a video of another platform than YouTube by its link.
    pub fn take_transcript(&mut self) -> Option<VideoTranscript> {
        let mut transcript = self.transcript.take()?;
        let platform = self.platform.as_deref().and_then(Platform::from_wire);
        if let Some(platform) = platform.filter(|platform| *platform != Platform::YouTube)
            && let Ok(video) = VideoId::new(platform, &transcript.video_id)
        {
            transcript.video_id = video.address();
        }
        Some(transcript)
    }

    /// Adds the languages that the video has instead.
    #[must_use]
    pub fn with_languages(self, tracks: &[TrackInfo]) -> Self {
        Self { languages: tracks.iter().map(LanguageObject::from).collect(), ..self }
    }

    /// The JSON of the item with the JSON of its transcript.
    ///
    /// # Errors
    /// Only if the serializer fails; no item causes that.
    pub fn json(&self, transcript: Option<&[u8]>) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(self);
        let mut json =
            json.map_err(|error| Error::unexpected(format!("cannot serialize an item of a job: {error}")))?;
        if let Some(transcript) = transcript {
            json.truncate(json.len().saturating_sub(AFTER_SEGMENTS.len()));
            json.extend_from_slice(b",\"transcript\":");
            json.extend_from_slice(transcript);
            json.extend_from_slice(AFTER_SEGMENTS);
        }
        Ok(json)
    }
}
