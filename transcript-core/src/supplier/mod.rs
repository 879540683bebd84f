//! Suppliers: whatever can produce a transcript that is not archived.

mod error;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

pub use error::{SupplyError, SupplyReason};

use crate::{
    archive::Wish,
    time::Timestamp,
    transcript::{TrackInfo, Transcript},
    video::{Platform, ShortLink, VideoId},
};

/// How a supplier comes by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SupplierKind {
    /// It reads captions that the platform has.
    Captions,
    /// It listens to the audio.
    Speech,
    /// It asks another service that has transcripts.
    Remote,
}

/// Who a supplier is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierCard {
    /// Its name, `source` on the wire: `youtube-captions`, `speech-to-text`, …
    pub name: String,
    /// The platforms that it covers.
    pub platforms: Vec<Platform>,
    /// How it comes by its words.
    pub kind: SupplierKind,
}

/// What a supplier is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The video.
    pub video: VideoId,
    /// Which of its transcripts.
    pub wish: Wish,
    /// When an answer no longer helps. A supplier gives up by itself before that.
    pub deadline: Timestamp,
}

/// What a supplier found.
#[derive(Clone, Debug)]
pub struct Supplied {
    /// At least one transcript, the best for the wish first. When a language was wished, the default
    /// transcript comes along where it is another one.
    pub tracks: Vec<Transcript>,
    /// All tracks that the video is known to have, fetched or not.
    pub known_tracks: Vec<TrackInfo>,
}

/// Whoever waits for a supplier: hears how far it is and may call it off.
pub trait Watcher: fmt::Debug + Send + Sync + 'static {
    /// The work reached `done` of `of` in the stage `name`; `of` is 0 when nobody knows.
    fn stage(&self, name: &str, done: u64, of: u64);

    /// Whether nobody wants the answer any more. Long work asks between its steps.
    fn cancelled(&self) -> bool;
}

/// Something that can produce a transcript that is not archived.
#[async_trait]
pub trait Supplier: fmt::Debug + Send + Sync + 'static {
    /// Who the supplier is. It never changes.
    fn card(&self) -> SupplierCard;

    /// Produces the transcript of a video.
    ///
    /// **Behaviour**
    /// - The answer is of the video that was asked: a platform's answer about another one is a failure.
    /// - The words and times are the platform's; nothing is made up, and an empty answer is a failure.
    /// - Passing faults are retried inside, within the deadline.
    /// - Dropping the future ends the work; nothing is left behind.
    ///
    /// # Errors
    /// [`SupplyError`], with the reason that decides what is remembered, charged and told.
    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError>;
}

/// What a short link turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// It leads to this video.
    Video(VideoId),
    /// It has expired, or leads to something that is no video; the text says which.
    Nowhere(String),
}

/// Follows a platform's short links.
#[async_trait]
pub trait LinkResolver: fmt::Debug + Send + Sync + 'static {
    /// Follows a short link to the video that it means.
    ///
    /// **Behaviour**: redirects are followed only between the platform's known hosts, at most five, and
    /// no body is read.
    ///
    /// # Errors
    /// [`SupplyError`] when the platform cannot be reached or refuses for now.
    async fn resolve(&self, link: &ShortLink, deadline: Timestamp) -> Result<Resolved, SupplyError>;
}
