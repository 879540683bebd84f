//! Every way in which a supplier can fail.

use std::{fmt, time::Duration};

use crate::{time::Timestamp, transcript::LanguageTag};

/// Why there is no transcript.
///
/// The first group says something about the video and is remembered for a while as an absence; the
/// second is a passing state of the platform or of our way to it; the third is for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupplyReason {
    /// The video has no captions, or no speech.
    NoCaptions,
    /// The video has transcripts, but none in the wished language; these are the languages it has.
    NoLanguage(Vec<LanguageTag>),
    /// The video is private.
    Private,
    /// The video was removed, or never existed.
    Removed,
    /// The video is not offered where we ask from.
    Region,
    /// The video is only for viewers of a certain age.
    Age,
    /// The video is only for members of a channel or a subscription.
    Members,
    /// The video must be paid for.
    Payment,
    /// The platform shows the video only to people who are logged in.
    Login,
    /// The video is live now: its words come later.
    Live,
    /// The video has not started yet; it does at this moment, where that is known.
    Upcoming(Option<Timestamp>),

    /// The platform throttles us; it named this wait, if any.
    Throttled(Option<Duration>),
    /// The platform asks for a proof that we are human. It is not given.
    BotCheck,
    /// The platform answered about another video, which it does to clients it distrusts.
    OtherVideo,
    /// The platform took too long.
    Timeout,
    /// The platform could not be reached.
    Unreachable,
    /// The platform answered with a fault of its own.
    PlatformFault,
    /// The platform's answer was empty, cut off, too large or in no form that we know.
    Unreadable,
    /// Nobody wanted the answer any more.
    Cancelled,

    /// Every client identity was refused as too old: the settings must be renewed.
    Stale,
    /// The supplier's settings are wrong.
    Misconfigured,
}

impl SupplyReason {
    /// A lasting name, for storage, logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoCaptions => "no_captions",
            Self::NoLanguage(_) => "no_language",
            Self::Private => "private",
            Self::Removed => "removed",
            Self::Region => "region",
            Self::Age => "age",
            Self::Members => "members",
            Self::Payment => "payment",
            Self::Login => "login",
            Self::Live => "live",
            Self::Upcoming(_) => "upcoming",
            Self::Throttled(_) => "throttled",
            Self::BotCheck => "bot_check",
            Self::OtherVideo => "other_video",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::PlatformFault => "platform_fault",
            Self::Unreadable => "unreadable",
            Self::Cancelled => "cancelled",
            Self::Stale => "stale",
            Self::Misconfigured => "misconfigured",
        }
    }

    /// Whether it says something about the video itself, which is remembered as an absence.
    pub fn is_about_the_video(&self) -> bool {
        matches!(
            self,
            Self::NoCaptions
                | Self::NoLanguage(_)
                | Self::Private
                | Self::Removed
                | Self::Region
                | Self::Age
                | Self::Members
                | Self::Payment
                | Self::Login
                | Self::Live
                | Self::Upcoming(_)
        )
    }

    /// Whether no other supplier could do better: what the video is, it is for all of them.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Private | Self::Removed | Self::Payment | Self::Live | Self::Upcoming(_))
    }

    /// Whether it is due to the supplier, to our way to the platform or to the platform as a whole, and not to the
    /// video: what is asked for next is likely to meet the same.
    pub fn is_against_the_supplier(&self) -> bool {
        !self.is_about_the_video() && *self != Self::Cancelled
    }

    /// When the platform wants to be asked again, where it said so.
    pub fn named_wait(&self) -> Option<Duration> {
        match self {
            Self::Throttled(named) => *named,
            _ => None,
        }
    }

    /// Whether the same supplier may succeed when asked again at once.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Timeout | Self::Unreachable | Self::PlatformFault | Self::Unreadable)
    }
}

/// A supplier's failure: the reason to decide by, and a sentence that helps the person who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplyError {
    reason: SupplyReason,
    message: String,
    asked: bool,
    perhaps_the_video: bool,
    only_the_video: bool,
    declined: bool,
    again_after: Option<Duration>,
}

impl SupplyError {
    /// A failure with this reason and this sentence, which begins with a capital and ends with a full stop.
    pub fn new(reason: SupplyReason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            reason,
            message,
            asked: true,
            perhaps_the_video: false,
            only_the_video: false,
            declined: false,
            again_after: None,
        }
    }

    /// As [`SupplyError::new`], of a supplier that asked nobody for anything: what was refused a moment ago is left
    /// alone. Such a failure costs nobody anything.
    pub fn unasked(reason: SupplyReason, message: impl Into<String>) -> Self {
        Self { asked: false, ..Self::new(reason, message) }
    }

    /// As [`SupplyError::unasked`], of a supplier that was not meant to answer this question: what the others say is
    /// all that there is to say, as if it were not there.
    pub fn declined(reason: SupplyReason, message: impl Into<String>) -> Self {
        Self { declined: true, ..Self::unasked(reason, message) }
    }

    /// Whether the supplier was not meant to answer the question.
    pub fn is_declined(&self) -> bool {
        self.declined
    }

    /// Whether anybody was asked before it failed.
    pub fn was_asked(&self) -> bool {
        self.asked
    }

    /// The same failure, which may be due to the video alone, whatever its reason: it does not speak against the
    /// supplier, so that nobody can make it rest by asking for odd videos.
    #[must_use]
    pub fn perhaps_the_video(self) -> Self {
        Self { perhaps_the_video: true, ..self }
    }

    /// The same failure, found out before the supplier itself was tried: it says nothing of whether that works.
    #[must_use]
    pub fn only_the_video(self) -> Self {
        Self { only_the_video: true, ..self }
    }

    /// Whether it says nothing of the supplier, since that was not tried.
    pub fn is_only_of_the_video(&self) -> bool {
        self.only_the_video
    }

    /// The same failure, of which it is known when asking again may be of use.
    #[must_use]
    pub fn again_after(self, wait: Duration) -> Self {
        Self { again_after: Some(wait), ..self }
    }

    /// Whether it speaks against the supplier: somebody was asked, and it is not about the video.
    pub fn speaks_against_the_supplier(&self) -> bool {
        let is_the_video = self.perhaps_the_video || self.only_the_video;
        self.asked && !is_the_video && self.reason.is_against_the_supplier()
    }

    /// After how long it may be of use to ask again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.again_after.or(self.reason.named_wait())
    }

    /// The same failure, told after somebody was asked.
    #[must_use]
    pub fn after_asking(self) -> Self {
        Self { asked: true, ..self }
    }

    /// Why there is no transcript.
    pub fn reason(&self) -> &SupplyReason {
        &self.reason
    }

    /// The sentence, as [`fmt::Display`] prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for SupplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SupplyError {}
