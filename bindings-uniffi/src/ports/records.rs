//! Records of the core, as stores of an app receive and return them.

use transcript_core::{
    PageRequest, Timestamp,
    archive::{Absence, ArchiveStats, ArchivedTrack, FetchLease, LeaseOutcome, TrackSelector},
    ids::{AccountId, Cursor, GrantId, HoldId, Holder, KeyId, WalletId},
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{Platform, ShortLink as ShortLinkId, VideoId},
};

/// A video.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Video {
    /// Platform of the video.
    pub platform: Platform,
    /// The video's id on its platform.
    pub id: String,
}

/// A short link of a platform.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ShortLink {
    /// Platform of the link.
    pub platform: Platform,
    /// Canonical name of the link.
    pub name: String,
}

uniffi::custom_type!(VideoId, Video, {
    remote,
    try_lift: |video| Ok(VideoId::new(video.platform, &video.id)?),
    lower: |id| Video { platform: id.platform(), id: id.id().to_owned() },
});
uniffi::custom_type!(ShortLinkId, ShortLink, {
    remote,
    try_lift: |link| {
        ShortLinkId::from_name(link.platform, &link.name)
            .ok_or_else(|| uniffi::deps::anyhow::anyhow!("the short link is invalid"))
    },
    lower: |link| ShortLink { platform: link.platform(), name: link.name() },
});
uniffi::custom_type!(Timestamp, i64, {
    remote,
    try_lift: |millis| Ok(Timestamp::from_millis(millis)),
    lower: |time| time.as_millis(),
});
uniffi::custom_type!(LanguageTag, String, {
    remote,
    try_lift: |tag| Ok(LanguageTag::parse(&tag)?),
    lower: |tag| tag.as_str().to_owned(),
});
uniffi::custom_type!(TrackSelector, String, {
    remote,
    try_lift: |name| Ok(TrackSelector::from_name(&name)),
    lower: |selector| selector.as_str().to_owned(),
});

macro_rules! names {
    ($($name:ident),* $(,)?) => {$(
        uniffi::custom_type!($name, String, {
            remote,
            try_lift: |name| Ok($name::new(name)),
            lower: |name| name.as_str().to_owned(),
        });
    )*};
}

names!(AccountId, Cursor, GrantId, HoldId, Holder, KeyId, WalletId);

/// A caption track.
#[uniffi::remote(Record)]
pub struct TrackInfo {
    /// Language as a BCP 47 tag.
    pub language: LanguageTag,
    /// Origin of the track.
    pub kind: TrackKind,
    /// Name of the track, if it has one in addition to its language.
    #[uniffi(default = None)]
    pub name: Option<String>,
    /// Whether the language is the spoken one, as far as the supplier knows.
    #[uniffi(default = false)]
    pub original: bool,
}

/// Negative-cache entry: a fetch found no transcript.
#[uniffi::remote(Record)]
pub struct Absence {
    /// The video.
    pub video: VideoId,
    /// The selector: `default`, a language, or `translation:` and a language.
    pub selector: TrackSelector,
    /// Failure reason on the wire.
    pub reason: String,
    /// Message for people.
    pub message: String,
    /// Names of the suppliers that were called.
    pub suppliers_tried: Vec<String>,
    /// Expiry, in milliseconds since 1970.
    pub until: Timestamp,
}

/// Lease on a fetch.
#[uniffi::remote(Record)]
pub struct FetchLease {
    /// The video.
    pub video: VideoId,
    /// The selector.
    pub selector: TrackSelector,
    /// Holder of the lease.
    pub holder: Holder,
    /// Current time.
    pub now: Timestamp,
    /// Expiry, unless the lease is renewed.
    pub until: Timestamp,
}

/// Outcome of acquiring a lease.
#[uniffi::remote(Enum)]
pub enum LeaseOutcome {
    /// The caller holds the lease.
    Acquired,
    /// Another holder has the lease.
    Busy {
        /// Expiry of that lease.
        until: Timestamp,
    },
}

/// A track of a video, with its archived state.
#[uniffi::remote(Record)]
pub struct ArchivedTrack {
    /// The video.
    pub video: VideoId,
    /// The track.
    pub track: TrackInfo,
    /// Selectors that the archived track serves, in order; empty if it is not archived.
    pub selectors: Vec<TrackSelector>,
    /// Newest revision, if archived.
    pub revision: Option<u32>,
    /// Time at which that revision was stored.
    pub stored_at: Option<Timestamp>,
}

/// Totals of an archive.
#[uniffi::remote(Record)]
pub struct ArchiveStats {
    /// Videos with at least one transcript.
    pub videos: u64,
    /// Transcripts, including all revisions.
    pub transcripts: u64,
    /// Absences, including expired ones that are not deleted yet.
    pub absences: u64,
    /// Withdrawn videos.
    pub withdrawn: u64,
    /// Stored short links.
    pub links: u64,
    /// Bytes of the transcripts as stored.
    pub bytes: u64,
    /// Transcripts in cold storage.
    #[uniffi(default = 0)]
    pub compact: u64,
}

/// Request for a page of a list.
#[uniffi::remote(Record)]
pub struct PageRequest {
    /// Cursor of the previous page; `None`: the first page.
    pub after: Option<Cursor>,
    /// Maximum of items, 1 to 1,000.
    pub limit: u32,
}
