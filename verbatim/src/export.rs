//! What the archive has of a video, whole: to be shown, and to be exported without loss.

use serde::Serialize;
use transcript_core::{
    Error, Result,
    archive::{Found, StoredTranscript, Wish},
    transcript::{Segment, TrackInfo},
    video::VideoId,
};

use crate::Verbatim;

/// The name and version of the form in which [`Archived::to_json`] writes.
pub(crate) const FORMAT: &str = "verbatim-export/1";

/// A transcript of a video, with everything that the archive knows about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The wishes that it answers, in order; at least one.
    pub wishes: Vec<Wish>,
    /// The transcript.
    pub stored: StoredTranscript,
    /// All tracks that the video is known to have.
    pub known_tracks: Vec<TrackInfo>,
}

impl Verbatim {
    /// All transcripts that are archived of a video; none of a withdrawn one.
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn archived(&self, video: &VideoId) -> Result<Vec<Archived>> {
        let tracks = self.archive().tracks(video).await?;
        let known: Vec<TrackInfo> = tracks.iter().map(|track| track.track.clone()).collect();
        let mut archived: Vec<Archived> = Vec::new();
        for wish in tracks.into_iter().flat_map(|track| track.wishes) {
            let Found::Transcript(stored) = self.archive().find(video, &wish, self.now()).await? else {
                continue;
            };
            let same = archived.iter_mut().find(|one| one.stored.content_sha256 == stored.content_sha256);
            match same {
                Some(one) => one.wishes.push(wish),
                None => archived.push(Archived { wishes: vec![wish], stored, known_tracks: known.clone() }),
            }
        }
        archived.iter_mut().for_each(|one| one.wishes.sort());
        Ok(archived)
    }
}

/// A withdrawal as JSON, from which [`crate::Draft::read`] gives it back: nothing of the video's words is in it.
///
/// # Errors
/// None that is known.
pub fn withdrawal_to_json(video: &VideoId) -> Result<String> {
    let document = Withdrawal {
        format: FORMAT,
        platform: video.platform().as_str(),
        video_id: video.id(),
        available: false,
        withdrawn: true,
        transcript: [],
    };
    let json = serde_json::to_string_pretty(&document);
    json.map(|json| json + "\n").map_err(|error| Error::unexpected(error.to_string()))
}

impl Archived {
    /// A name for it that no other transcript of the video has, of letters, digits, `-`, `_` and `.` only:
    /// its language, with the wish that it answers in front where that is another one.
    pub fn name(&self) -> String {
        let language = &self.stored.transcript.track.language;
        let own = Wish::Language(language.clone());
        let name = match self.wishes.first() {
            Some(wish) if !self.wishes.contains(&own) => format!("{wish}.{language}"),
            _ => language.to_string(),
        };
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
    }

    /// The transcript as JSON, from which [`crate::Draft::read`] gives it back without loss; only the
    /// revision and the moment of storing are another archive's own.
    ///
    /// It has all fields of the look-up API's answer that are about the transcript, with the same meaning.
    ///
    /// # Errors
    /// None that is known: everything in a transcript can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        let transcript = &self.stored.transcript;
        let document = Document {
            format: FORMAT,
            platform: transcript.video.platform().as_str(),
            video_id: transcript.video.id(),
            available: true,
            source: &transcript.source,
            title: transcript.title.as_deref(),
            author: transcript.author.as_deref(),
            duration: transcript.duration_ms.map(seconds),
            language: transcript.track.language.as_str(),
            kind: transcript.track.kind.as_str(),
            is_generated: transcript.track.is_generated(),
            track_name: transcript.track.name.as_deref(),
            original: transcript.track.original,
            wishes: self.wishes.iter().map(Wish::as_str).collect(),
            tracks: self.known_tracks.iter().map(Track::from).collect(),
            revision: self.stored.revision,
            stored_at: self.stored.stored_at.to_string(),
            parser_version: self.stored.parser_version,
            transcript: transcript.segments.iter().map(Snippet::from).collect(),
        };
        let json = serde_json::to_string_pretty(&document);
        json.map(|json| json + "\n").map_err(|error| Error::unexpected(error.to_string()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    format: &'a str,
    platform: &'a str,
    video_id: &'a str,
    available: bool,
    source: &'a str,
    title: Option<&'a str>,
    author: Option<&'a str>,
    duration: Option<f64>,
    language: &'a str,
    kind: &'a str,
    is_generated: bool,
    track_name: Option<&'a str>,
    original: bool,
    wishes: Vec<&'a str>,
    tracks: Vec<Track<'a>>,
    revision: u32,
    stored_at: String,
    parser_version: u32,
    transcript: Vec<Snippet<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal<'a> {
    format: &'a str,
    platform: &'a str,
    video_id: &'a str,
    available: bool,
    withdrawn: bool,
    transcript: [(); 0],
}

#[derive(Serialize)]
struct Track<'a> {
    language: &'a str,
    kind: &'a str,
    name: Option<&'a str>,
    original: bool,
}

impl<'a> From<&'a TrackInfo> for Track<'a> {
    fn from(track: &'a TrackInfo) -> Self {
        Self {
            language: track.language.as_str(),
            kind: track.kind.as_str(),
            name: track.name.as_deref(),
            original: track.original,
        }
    }
}

#[derive(Serialize)]
struct Snippet<'a> {
    text: &'a str,
    start: f64,
    duration: f64,
}

impl<'a> From<&'a Segment> for Snippet<'a> {
    fn from(segment: &'a Segment) -> Self {
        Self { text: &segment.text, start: seconds(segment.start_ms), duration: seconds(segment.duration_ms) }
    }
}

/// Milliseconds as seconds, from which the nearest millisecond gives back the same number.
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

#[cfg(test)]
mod tests;
