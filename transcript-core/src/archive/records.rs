//! What goes into the archive and comes out of it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::{Cursor, Holder},
    page::PageRequest,
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, Transcript},
    video::VideoId,
};

/// What was asked for a video.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Wish {
    /// Its default transcript: English where there is English, else the spoken language.
    Default,
    /// Its transcript in a language.
    Language(LanguageTag),
}

impl Wish {
    /// The wish's lasting name in storage: `default`, or the language tag.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::Language(tag) => tag.as_str(),
        }
    }

    /// The wish with this name in storage.
    pub fn from_name(name: &str) -> Self {
        match name {
            "default" => Self::Default,
            tag => Self::Language(LanguageTag::from_canonical(tag)),
        }
    }
}

impl From<String> for Wish {
    fn from(name: String) -> Self {
        Self::from_name(&name)
    }
}

impl From<Wish> for String {
    fn from(wish: Wish) -> Self {
        wish.as_str().to_owned()
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A transcript as the archive holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTranscript {
    /// The transcript.
    pub transcript: Arc<Transcript>,
    /// Counts the refreshes: 1 for the first.
    pub revision: u32,
    /// The content's [`super::content_digest`]: 32 bytes, the base of the ETag.
    pub content_sha256: Vec<u8>,
    /// Which version of our parsers made it of the platform's answer.
    pub parser_version: u32,
    /// When it was stored.
    pub stored_at: Timestamp,
}

/// A wish that is known to have nothing, for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The video.
    pub video: VideoId,
    /// What was wished.
    pub wish: Wish,
    /// The lasting name of the reason, from [`crate::supplier::SupplyReason::as_str`].
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// The names of the suppliers that were asked: a newly configured one voids the absence.
    pub asked: Vec<String>,
    /// When it ends.
    pub until: Timestamp,
}

/// What is known about a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// A transcript.
    Transcript(StoredTranscript),
    /// It is known that there is nothing.
    Absent(Absence),
    /// The operator took the video down.
    Withdrawn,
    /// Nothing is known.
    Nothing,
}

/// The most tracks that a video is known to have.
pub const KNOWN_TRACKS_MAX: usize = 1_000;

/// What to keep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Keep {
    /// The video.
    pub video: VideoId,
    /// The wishes that the transcript answers; at least one.
    pub wishes: Vec<Wish>,
    /// The transcript. Shared, since keeping may have to be tried again.
    pub transcript: Arc<Transcript>,
    /// All tracks that the video is known to have.
    pub known_tracks: Vec<TrackInfo>,
    /// Which version of our parsers made the transcript.
    pub parser_version: u32,
    /// Whether it replaces what is stored (a refresh).
    pub replace: bool,
    /// The present moment.
    pub now: Timestamp,
}

impl Keep {
    /// Checks the bounds of a request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: no wish, no segment, or a transcript of another video.
    pub fn check(&self) -> Result<()> {
        if self.wishes.is_empty() {
            return Err(Error::invalid("a transcript answers at least one wish"));
        }
        if self.known_tracks.len() > KNOWN_TRACKS_MAX {
            return Err(Error::invalid("a video has at most 1,000 known tracks"));
        }
        self.transcript.check()?;
        if self.transcript.video != self.video {
            return Err(Error::invalid("the transcript is of another video"));
        }
        Ok(())
    }
}

/// A claim on the right to fetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lease {
    /// The video.
    pub video: VideoId,
    /// What was wished.
    pub wish: Wish,
    /// Who claims.
    pub holder: Holder,
    /// The present moment.
    pub now: Timestamp,
    /// When the claim ends unless it is renewed.
    pub until: Timestamp,
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The caller holds it now.
    Claimed,
    /// Another holds it, until this moment unless it is renewed.
    Busy {
        /// When the other's lease ends.
        until: Timestamp,
    },
}

/// A track of a video, and what the archive has of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedTrack {
    /// The video.
    pub video: VideoId,
    /// The track.
    pub track: TrackInfo,
    /// The wishes that the archived track answers, in order; none when it is only known.
    pub wishes: Vec<Wish>,
    /// The newest revision, where it is archived.
    pub revision: Option<u32>,
    /// When that was stored.
    pub stored_at: Option<Timestamp>,
}

/// How much an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Videos with at least one transcript.
    pub videos: u64,
    /// Transcripts, all revisions counted.
    pub transcripts: u64,
    /// Absences, also those that have ended and were not cleared yet.
    pub absences: u64,
    /// Videos taken down by the operator.
    pub withdrawn: u64,
    /// Short links that were learnt.
    pub links: u64,
    /// Bytes that the transcripts take as stored.
    pub bytes: u64,
    /// Transcripts that are in a smaller form; see [`super::Archive::compact`].
    #[serde(default)]
    pub compact: u64,
}

/// Which transcripts to bring into a smaller form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compact {
    /// Only those that were stored before this moment.
    pub stored_before: Timestamp,
    /// Where to go on, and how many transcripts to look at.
    pub page: PageRequest,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// How many transcripts were looked at.
    pub looked_at: u64,
    /// How many of them are in a smaller form now, and were not before.
    pub compacted: u64,
    /// Bytes that these took before.
    pub bytes_before: u64,
    /// Bytes that they take now.
    pub bytes_after: u64,
    /// Videos of which a transcript could not be read as it lies there. It was left as it is.
    pub damaged: Vec<VideoId>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
}
