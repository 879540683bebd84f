//! Bodies of the search API (specification 17).

use serde::{Deserialize, Serialize};

use crate::{
    body::segments::seconds,
    search::{SearchMoment, SearchPage, SearchResult},
};

/// JSON response of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "Videos of the archive whose transcripts match a query.")
)]
#[serde(rename_all = "camelCase")]
pub struct SearchResponse {
    /// The query as it was sent.
    pub query: String,
    /// The number of matching videos.
    pub total: SearchTotalObject,
    /// The cursor of the next page; null at the end.
    pub next_cursor: Option<String>,
    /// The query with its typing errors corrected, if nothing was found and there are similar words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub did_you_mean: Option<String>,
    /// The videos, in the requested order.
    pub hits: Vec<SearchHitObject>,
}

/// Number of matching videos.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(rename = "SearchTotal", description = "The number of matching videos.")
)]
pub struct SearchTotalObject {
    /// The number.
    pub value: u64,
    /// `eq`: it is exact; `gte`: there are at least as many.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["eq", "gte"])))]
    pub relation: String,
}

/// Video that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(rename = "SearchHit", description = "A video that matches, with its best transcript.")
)]
#[serde(rename_all = "camelCase")]
pub struct SearchHitObject {
    /// The platform of the video.
    pub platform: String,
    /// The video's id.
    pub video_id: String,
    /// The title, if known.
    pub title: Option<String>,
    /// The name of the channel or profile, if known.
    pub author: Option<String>,
    /// The language of the transcript that matches best.
    pub language: String,
    /// The address of the transcript page for people.
    pub watch_url: String,
    /// The score: higher is better. Comparable within one search only.
    pub score: f64,
    /// The best moments, best first; at most 5. None if only the title or the channel matches.
    pub moments: Vec<SearchMomentObject>,
}

/// Moment of a video in which words of the query are spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(rename = "SearchMoment", description = "A moment in which words of the query are spoken.")
)]
pub struct SearchMomentObject {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// The text of the transcript at this time.
    pub text: String,
    /// Half-open ranges of the matches in `text`, in Unicode code points.
    #[cfg_attr(feature = "openapi", schemars(with = "Vec<[u32; 2]>"))]
    pub matches: Vec<(u32, u32)>,
    /// The address of the video at the start.
    pub url: String,
}

impl SearchResponse {
    /// The body of a page; `watch_url` makes the address of a video's transcript page.
    pub fn new(query: &str, page: &SearchPage, watch_url: impl Fn(&SearchResult) -> String) -> Self {
        let relation = if page.total.is_exact { "eq" } else { "gte" };
        Self {
            query: query.to_owned(),
            total: SearchTotalObject { value: page.total.value, relation: relation.to_owned() },
            next_cursor: page.next.clone(),
            did_you_mean: page.suggestion.clone(),
            hits: page.hits.iter().map(|hit| SearchHitObject::new(hit, watch_url(hit))).collect(),
        }
    }
}

impl SearchHitObject {
    fn new(hit: &SearchResult, watch_url: String) -> Self {
        let transcript = &hit.stored.transcript;
        let moments = hit.moments.iter();
        Self {
            platform: transcript.video.platform().as_str().to_owned(),
            video_id: transcript.video.id().to_owned(),
            title: transcript.title.clone(),
            author: transcript.author.clone(),
            language: transcript.track.language.as_str().to_owned(),
            watch_url,
            score: (hit.score * 1e6).round() / 1e6,
            moments: moments
                .map(|moment| {
                    SearchMomentObject::new(moment, transcript.video.address_at(moment.start_ms / 1_000))
                })
                .collect(),
        }
    }
}

impl SearchMomentObject {
    fn new(moment: &SearchMoment, url: String) -> Self {
        let SearchMoment { start_ms, end_ms, text, matches } = moment.clone();
        Self { start: seconds(start_ms), end: seconds(end_ms), text, matches, url }
    }
}
