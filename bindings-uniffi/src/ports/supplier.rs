//! A supplier of the app's.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{self, Supplied, SupplierCard, SupplierKind, SupplyError},
    video::Platform,
};

use crate::{error::VerbatimError, transcript::Transcript};

/// Why a supplier has no transcript. The first group is remembered for a while, the second is passing, the third is for
/// whoever runs the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum SupplyReason {
    /// The video has no captions, or no speech.
    NoCaptions,
    /// It has transcripts, but none in the wished language.
    NoLanguage,
    /// It is private.
    Private,
    /// It was removed, or never existed.
    Removed,
    /// It is not offered where we ask from.
    Region,
    /// It is for viewers of a certain age.
    Age,
    /// It is for members.
    Members,
    /// It must be paid for.
    Payment,
    /// It is shown to people who are logged in.
    Login,
    /// It is live now.
    Live,
    /// It has not started yet.
    Upcoming,
    /// The platform throttles us.
    Throttled,
    /// The platform asks for a proof that we are human.
    BotCheck,
    /// The platform answered about another video.
    OtherVideo,
    /// The platform took too long.
    Timeout,
    /// The platform could not be reached.
    Unreachable,
    /// The platform answered with a fault of its own.
    PlatformFault,
    /// The platform's answer cannot be read.
    Unreadable,
    /// What the supplier pretends to be is too old.
    Stale,
    /// The supplier's settings are wrong.
    Misconfigured,
}

/// What a supplier fails with.
#[derive(Clone, Debug, PartialEq, uniffi::Error)]
pub enum SupplyFailure {
    /// It has no transcript.
    Failed {
        /// Why.
        reason: SupplyReason,
        /// Why, in a sentence for people.
        sentence: String,
        /// After how long asking again may help.
        retry_after: Option<Duration>,
    },
}

impl fmt::Display for SupplyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Failed { sentence, .. } = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for SupplyFailure {}

impl From<uniffi::UnexpectedUniFFICallbackError> for SupplyFailure {
    /// What the app's code threw that it had not declared, and what it returned that is no transcript.
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        let sentence = format!("The app's own supplier failed: {}", error.reason);
        Self::Failed { reason: SupplyReason::PlatformFault, sentence, retry_after: None }
    }
}

/// Whoever waits for a supplier: hears how far it is, and may have left.
#[derive(Debug, uniffi::Object)]
pub struct Watcher {
    inner: Arc<dyn supplier::Watcher>,
}

#[uniffi::export]
impl Watcher {
    /// Tells that the work reached `done` of `of` in a stage; `of` is 0 when nobody knows.
    pub fn stage(&self, name: String, done: i64, of: i64) {
        let count = |value: i64| u64::try_from(value).unwrap_or_default();
        self.inner.stage(&name, count(done), count(of));
    }

    /// Whether nobody wants the answer any more. Long work asks between its steps.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

/// What a supplier is asked.
#[derive(Clone, Debug, uniffi::Record)]
pub struct SupplierAsk {
    /// Where the video is.
    pub platform: Platform,
    /// Its id there.
    pub video_id: String,
    /// Its address.
    pub url: String,
    /// The wished language as a BCP 47 tag; none for the default: English, else the spoken language.
    pub language: Option<String>,
    /// How long there is for it.
    pub time: Duration,
    /// Who waits.
    pub watcher: Arc<Watcher>,
}

/// Something that can produce a transcript that is not archived.
#[uniffi::export(foreign)]
#[async_trait]
pub trait Supplier: Send + Sync {
    /// The transcripts of a video, the best for the wish first; none of them: it has no captions.
    async fn supply(&self, ask: SupplierAsk) -> Result<Vec<Transcript>, SupplyFailure>;
}

/// A supplier of the app's as the core's port.
pub(crate) struct ForeignSupplier {
    supplier: Arc<dyn Supplier>,
    card: SupplierCard,
    patience: Duration,
    clock: verbatim::SystemClock,
}

impl fmt::Debug for ForeignSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignSupplier").field("name", &self.card.name).finish_non_exhaustive()
    }
}

impl ForeignSupplier {
    pub(crate) fn new(
        supplier: Arc<dyn Supplier>,
        name: String,
        platforms: Vec<Platform>,
        kind: SupplierKind,
        patience: Duration,
    ) -> Self {
        let clock = verbatim::SystemClock::default();
        Self { supplier, card: SupplierCard { name, platforms, kind }, patience, clock }
    }

    /// The transcripts that the app's code returned, as the core has them.
    fn tracks(&self, given: Vec<Transcript>) -> Result<Supplied, SupplyError> {
        let read = |transcript: Transcript| {
            let mut transcript = transcript.into_core()?;
            // Another service names who answered there.
            if self.card.kind != SupplierKind::Remote {
                self.card.name.clone_into(&mut transcript.source);
            }
            Ok(transcript)
        };
        let tracks = given.into_iter().map(read).collect::<Result<Vec<_>, VerbatimError>>();
        let tracks = tracks.map_err(|error| {
            let what = format!("The supplier {} returned what is no transcript: {error}.", self.card.name);
            SupplyError::new(supplier::SupplyReason::Unreadable, what)
        })?;
        if tracks.is_empty() {
            return Err(SupplyError::new(supplier::SupplyReason::NoCaptions, "The video has no captions."));
        }
        let known_tracks = tracks.iter().map(|track| track.track.clone()).collect();
        Ok(Supplied { tracks, known_tracks })
    }
}

#[async_trait]
impl supplier::Supplier for ForeignSupplier {
    fn card(&self) -> SupplierCard {
        self.card.clone()
    }

    async fn supply(
        &self,
        ask: supplier::Ask,
        watcher: Arc<dyn supplier::Watcher>,
    ) -> Result<Supplied, SupplyError> {
        let time = ask.deadline.since(self.clock.now()).min(self.patience);
        let asked = SupplierAsk {
            platform: ask.video.platform(),
            video_id: ask.video.id().to_owned(),
            url: ask.video.address(),
            language: match &ask.wish {
                Wish::Default => None,
                Wish::Language(tag) => Some(tag.as_str().to_owned()),
            },
            time,
            watcher: Arc::new(Watcher { inner: watcher }),
        };
        match tokio::time::timeout(time, self.supplier.supply(asked)).await {
            Ok(Ok(given)) => self.tracks(given),
            Ok(Err(failure)) => Err(told(failure)),
            Err(_) => {
                let what = format!("The supplier {} did not answer in time.", self.card.name);
                Err(SupplyError::new(supplier::SupplyReason::Timeout, what))
            }
        }
    }
}

/// What the app's code failed with, as the core has it.
fn told(failure: SupplyFailure) -> SupplyError {
    use supplier::SupplyReason as Core;
    let SupplyFailure::Failed { reason, sentence, retry_after } = failure;
    let reason = match reason {
        SupplyReason::NoCaptions => Core::NoCaptions,
        SupplyReason::NoLanguage => Core::NoLanguage(Vec::new()),
        SupplyReason::Private => Core::Private,
        SupplyReason::Removed => Core::Removed,
        SupplyReason::Region => Core::Region,
        SupplyReason::Age => Core::Age,
        SupplyReason::Members => Core::Members,
        SupplyReason::Payment => Core::Payment,
        SupplyReason::Login => Core::Login,
        SupplyReason::Live => Core::Live,
        SupplyReason::Upcoming => Core::Upcoming(None),
        SupplyReason::Throttled => Core::Throttled(retry_after),
        SupplyReason::BotCheck => Core::BotCheck,
        SupplyReason::OtherVideo => Core::OtherVideo,
        SupplyReason::Timeout => Core::Timeout,
        SupplyReason::Unreachable => Core::Unreachable,
        SupplyReason::PlatformFault => Core::PlatformFault,
        SupplyReason::Unreadable => Core::Unreadable,
        SupplyReason::Stale => Core::Stale,
        SupplyReason::Misconfigured => Core::Misconfigured,
    };
    let error = SupplyError::new(reason, sentence);
    match retry_after {
        Some(wait) => error.again_after(wait),
        None => error,
    }
}
