//! The core's own records, as the stores of an app get and give them.

use transcript_core::{
    PageRequest, Timestamp,
    archive::{Absence, ArchivedTrack, Claim, Lease, Stats, Wish},
    ids::{AccountId, Cursor, GrantId, HoldId, Holder, KeyId, WalletId},
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{Platform, ShortLink, VideoId},
};

/// A video.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Video {
    /// Where it is.
    pub platform: Platform,
    /// Its id there.
    pub id: String,
}

/// A platform's short link.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ShortLinkName {
    /// Whose it is.
    pub platform: Platform,
    /// Its lasting name.
    pub name: String,
}

uniffi::custom_type!(VideoId, Video, {
    remote,
    try_lift: |video| Ok(VideoId::new(video.platform, &video.id)?),
    lower: |id| Video { platform: id.platform(), id: id.id().to_owned() },
});
uniffi::custom_type!(ShortLink, ShortLinkName, {
    remote,
    try_lift: |link| {
        ShortLink::from_name(link.platform, &link.name)
            .ok_or_else(|| uniffi::deps::anyhow::anyhow!("this is no short link"))
    },
    lower: |link| ShortLinkName { platform: link.platform(), name: link.name() },
});
uniffi::custom_type!(Timestamp, i64, {
    remote,
    try_lift: |millis| Ok(Timestamp::from_millis(millis)),
    lower: |moment| moment.as_millis(),
});
uniffi::custom_type!(LanguageTag, String, {
    remote,
    try_lift: |tag| Ok(LanguageTag::parse(&tag)?),
    lower: |tag| tag.as_str().to_owned(),
});
uniffi::custom_type!(Wish, String, {
    remote,
    try_lift: |name| Ok(Wish::from_name(&name)),
    lower: |wish| wish.as_str().to_owned(),
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

/// One track of captions.
#[uniffi::remote(Record)]
pub struct TrackInfo {
    /// The language as a BCP 47 tag.
    pub language: LanguageTag,
    /// How the words came to be.
    pub kind: TrackKind,
    /// The track's own name, where it has one beside its language.
    pub name: Option<String>,
    /// Whether this is the language that is spoken in the video, as far as the supplier knows.
    pub original: bool,
}

/// A wish that is known to have nothing, for a while.
#[uniffi::remote(Record)]
pub struct Absence {
    /// The video.
    pub video: VideoId,
    /// What was wished: `default`, or a language.
    pub wish: Wish,
    /// The lasting name of the reason.
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// The names of the suppliers that were asked.
    pub asked: Vec<String>,
    /// When it ends, in milliseconds since 1970.
    pub until: Timestamp,
}

/// A claim on the right to fetch.
#[uniffi::remote(Record)]
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
#[uniffi::remote(Enum)]
pub enum Claim {
    /// The caller holds it now.
    Claimed,
    /// Another holds it.
    Busy {
        /// When the other's lease ends.
        until: Timestamp,
    },
}

/// A track of a video, and what the archive has of it.
#[uniffi::remote(Record)]
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
#[uniffi::remote(Record)]
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
    /// Transcripts that are in a smaller form.
    #[uniffi(default = 0)]
    pub compact: u64,
}

/// What part of a list is wanted.
#[uniffi::remote(Record)]
pub struct PageRequest {
    /// After which item, as an earlier page named it; none: from the beginning.
    pub after: Option<Cursor>,
    /// How many items at most, from 1 to 1,000.
    pub limit: u32,
}
