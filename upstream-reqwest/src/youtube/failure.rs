//! Failures of a fetch from YouTube.
//!
//! A failure decides whether to try another client, which one is reported, and with which message.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
    transcript::TrackInfo,
    video::Platform,
};

use super::request::PLATFORM;
use crate::{
    http::HttpError,
    social::{BLOCKED_PAUSE, no_language},
};

const TRANSLATIONS_THROTTLED: &str = "YouTube translates no more captions for this server's address for now. Try again \
                                      later, or request a language that the video has.";

/// Why one client returned no captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum YouTubeFailure {
    /// A bot check.
    BotCheck,
    /// A bot check with a captcha.
    Captcha,
    /// "Try again later": the address sent too many requests.
    ///
    /// YouTube then rejects every video for some time.
    SessionLimit,

    Age,
    Private,
    /// Removed, alone or with its account.
    Removed,
    RecordingRemoved,
    Region,
    Members,
    MusicPremium,
    Payment,
    Upcoming(Option<Timestamp>),
    Live,
    /// A finished live stream that has no captions yet.
    JustEnded,

    /// Tracks exist, but their URLs need a proof-of-origin token or returned an empty body.
    Gated,
    /// The captions arrived in no readable format; the text says what was wrong.
    UnreadableCaptions(String),
    /// A part of the captions is missing or unreadable in every format; the text says what was wrong.
    ///
    /// A person who uploads captions can cause it.
    IncompleteCaptions(&'static str),
    /// A translation has the words of the original, as it does if that has the name of another language.
    Untranslated,
    /// The video plays, and has no captions.
    NoCaptions,
    /// The captions contain no text.
    EmptyCaptions,
    /// The response was about another video.
    OtherVideo,
    /// "Video unavailable" without a reason, or an empty response.
    Unavailable,
    /// Login required, for an unknown reason.
    Login,
    /// An unknown reason, in YouTube's wording.
    Other(String),
    /// No captions in the selected language; the video has these tracks.
    NoLanguage(Vec<TrackInfo>),
    /// The video plays, but no audio URL works outside YouTube's own players.
    NoPlainSound,
    /// HTTP 403: the address, or this client on it, is blocked.
    Forbidden,
    /// The client's version is outdated.
    TooOld,
    /// The cookie consent page.
    Consent,
    /// Not player data.
    NotPlayerData,
    /// The request itself was rejected.
    BadRequest(u16),
    /// "Not available" on this client without a reason: another client may work.
    WrongClient,

    /// Translations are throttled, with the `Retry-After`; untranslated captions still work.
    TranslationsThrottled(Option<Duration>),
    /// No response.
    Transport(HttpError),
    /// No waiter is left.
    Cancelled,
}

impl YouTubeFailure {
    /// Whether another client is useless.
    ///
    /// The failure is then about the video, or YouTube blocks the address and each further request makes that worse.
    pub(super) fn is_conclusive(&self) -> bool {
        match self {
            Self::BotCheck
            | Self::Captcha
            | Self::SessionLimit
            | Self::TranslationsThrottled(_)
            | Self::Untranslated
            | Self::Cancelled => true,
            Self::Transport(fault) => affects_every_client(fault),
            other => other.is_about_the_video(),
        }
    }

    /// Whether the egress address is the cause, so that another proxy may succeed.
    pub(super) fn is_route_blocked(&self) -> bool {
        matches!(
            self,
            Self::BotCheck | Self::Captcha | Self::SessionLimit | Self::Forbidden | Self::OtherVideo
        )
    }

    /// How long to pause YouTube, after its name in the transport, on the route of this failure.
    ///
    /// Only failures about the address count: the others may concern one video, and one video must not pause
    /// YouTube for all.
    pub(super) fn platform_pause(&self) -> Option<(&'static str, Duration)> {
        let is_of_address = matches!(self, Self::BotCheck | Self::Captcha | Self::SessionLimit);
        is_of_address.then_some((PLATFORM, BLOCKED_PAUSE))
    }

    /// Whether it is a property of the video, the same for every client.
    fn is_about_the_video(&self) -> bool {
        matches!(
            self,
            Self::Age
                | Self::Private
                | Self::Removed
                | Self::RecordingRemoved
                | Self::Region
                | Self::Members
                | Self::MusicPremium
                | Self::Payment
                | Self::Upcoming(_)
                | Self::Live
                | Self::JustEnded
        )
    }

    /// Priority among the failures of several clients: the highest is reported.
    ///
    /// Captions that exist but cannot be fetched come before "no captions", which would be stored as an absence; a
    /// sign of blocking comes before a plain "unavailable", which may be a consequence of it. So does a failure that
    /// passes: the next answer of that client may be the video.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::Transport(HttpError::BudgetExhausted) => 5,
            other if other.is_conclusive() => 100,
            Self::Gated => 90,
            Self::UnreadableCaptions(_) | Self::IncompleteCaptions(_) | Self::NoPlainSound => 85,
            Self::NoLanguage(_) => 82,
            Self::EmptyCaptions => 81,
            Self::NoCaptions => 80,
            Self::OtherVideo => 70,
            Self::Forbidden => 65,
            Self::Transport(_) => 64,
            Self::NotPlayerData => 63,
            Self::Consent => 62,
            Self::Unavailable => 60,
            Self::Login => 55,
            Self::Other(_) => 50,
            Self::TooOld => 30,
            Self::BadRequest(_) => 20,
            _ => 10,
        }
    }

    /// The supply error to report.
    pub(super) fn error(&self) -> SupplyError {
        if let Self::Transport(fault) = self {
            return fault.supply_error(Platform::YouTube);
        }
        let error = SupplyError::new(self.reason(), self.message());
        // A single video may fail with an unknown reason, have audio in other formats only, or captions that a person
        // uploaded. While translations are throttled, all other requests succeed.
        let is_ambiguous = matches!(
            self,
            Self::Other(_)
                | Self::NoPlainSound
                | Self::TranslationsThrottled(_)
                | Self::IncompleteCaptions(_)
                | Self::Untranslated
        );
        if is_ambiguous { error.ambiguous() } else { error }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::BotCheck | Self::Captcha => SupplyReason::BotCheck,
            Self::SessionLimit | Self::Forbidden => SupplyReason::Throttled(None),
            Self::TranslationsThrottled(named) => SupplyReason::Throttled(*named),
            Self::Age => SupplyReason::Age,
            Self::Private => SupplyReason::Private,
            Self::Removed | Self::RecordingRemoved | Self::Unavailable => SupplyReason::Removed,
            Self::Region => SupplyReason::Region,
            Self::Members | Self::MusicPremium => SupplyReason::Members,
            Self::Payment => SupplyReason::Payment,
            Self::Upcoming(start) => SupplyReason::Upcoming(*start),
            Self::Live | Self::JustEnded => SupplyReason::Live,
            Self::NoCaptions | Self::EmptyCaptions => SupplyReason::NoCaptions,
            Self::NoLanguage(tracks) => SupplyReason::NoLanguage(tracks.clone()),
            Self::OtherVideo => SupplyReason::OtherVideo,
            Self::Login => SupplyReason::Login,
            Self::TooOld => SupplyReason::Stale,
            Self::Cancelled => SupplyReason::Cancelled,
            Self::Gated
            | Self::UnreadableCaptions(_)
            | Self::IncompleteCaptions(_)
            | Self::Untranslated
            | Self::Consent
            | Self::NotPlayerData => SupplyReason::Unreadable,
            // Not `Region`: it would be stored for a video that a newer client may be able to play.
            Self::WrongClient
            | Self::NoPlainSound
            | Self::Other(_)
            | Self::BadRequest(_)
            | Self::Transport(_) => SupplyReason::PlatformFault,
        }
    }

    fn message(&self) -> String {
        let fixed = match self {
            Self::Upcoming(Some(start)) => {
                return format!(
                    "The video has not started yet: it is scheduled for {start}. Try again after its start."
                );
            }
            Self::NoLanguage(tracks) => return no_language(tracks),
            Self::UnreadableCaptions(what) => {
                return format!("YouTube's captions of this video could not be read: {what}.");
            }
            Self::IncompleteCaptions(what) => {
                return format!("YouTube's captions of this video could not be read: {what}.");
            }
            Self::Other(words) => {
                return format!(
                    "YouTube does not play this video for this server. Its message: \"{words}\"."
                );
            }
            Self::BadRequest(status) => {
                return format!("YouTube rejected the request for this video (HTTP {status}).");
            }
            other => other.fixed_message(),
        };
        fixed.to_owned()
    }

    fn fixed_message(&self) -> &'static str {
        match self {
            Self::BotCheck => {
                "YouTube requires a bot check: it blocks this server's address. Try \
                 again later; the operator can set upstream.proxy."
            }
            Self::Captcha => {
                "YouTube requires a captcha: it blocks this server's address. Try again later; the operator \
                 can set upstream.proxy."
            }
            Self::SessionLimit => {
                "YouTube rejects all requests from this server's address for up to an hour, since it sent \
                 too many. Try again later; the operator can set upstream.proxy."
            }
            Self::Forbidden => {
                "YouTube rejects requests from this server's address (HTTP 403). Try again later; the \
                 operator can set upstream.proxy."
            }
            Self::Age => "YouTube shows this video only to logged-in adults.",
            Self::Private => "This video is private.",
            Self::Removed => "This video was removed from YouTube.",
            Self::RecordingRemoved => "The recording of this live stream is not available.",
            Self::Region => "This video is not available in the country of this server's address.",
            Self::Members => "This video is only for members of its channel.",
            Self::MusicPremium => "This video is only for members of YouTube Music Premium.",
            Self::Payment => "This video must be bought or rented.",
            Self::Upcoming(_) => "The video has not started yet. Try again after its start.",
            Self::Live => "The video is live: its captions appear after the stream.",
            Self::JustEnded => {
                "This live stream is over, and YouTube is still processing its recording. Try \
                 again in some hours."
            }
            Self::Gated => {
                "YouTube has captions for this video, but returned an empty response for them. Try again \
                 later; if the error persists, the operator can update or reorder youtube.clients."
            }
            Self::NoCaptions => "This video has no captions.",
            Self::EmptyCaptions => "This video's captions contain no text.",
            Self::NoPlainSound => "YouTube provides the audio of this video to its own players only.",
            Self::OtherVideo => {
                "YouTube returned another video, as it does for blocked addresses. Try again \
                 later; the operator can set upstream.proxy."
            }
            Self::Unavailable => {
                "YouTube reports this video as unavailable: it was removed or never existed."
            }
            Self::Login => "YouTube shows this video only to logged-in viewers.",
            Self::TooOld => {
                "YouTube rejects the configured client versions as outdated. The operator can set newer ones in \
                 youtube.clients, for example android@VERSION."
            }
            Self::Consent => {
                "YouTube returned its consent page. The operator can set upstream.proxy \
                 to a proxy in another country."
            }
            Self::NotPlayerData => "YouTube's response has an unknown format. Try again in a moment.",
            Self::WrongClient => {
                "YouTube offers this video to none of the configured clients, and names no reason. Try \
                 again later; if the error persists, the operator can update or reorder youtube.clients."
            }
            Self::TranslationsThrottled(_) => TRANSLATIONS_THROTTLED,
            Self::Untranslated => "YouTube's translation of the captions has the words of the original.",
            Self::Cancelled => "No waiter is left for this transcript.",
            Self::UnreadableCaptions(_)
            | Self::IncompleteCaptions(_)
            | Self::NoLanguage(_)
            | Self::Other(_)
            | Self::BadRequest(_)
            | Self::Transport(_) => "YouTube returned no captions.",
        }
    }
}

/// The error for throttled translations; other requests succeed.
#[cfg(feature = "ytdlp")]
pub(crate) fn translations_throttled(named: Option<Duration>) -> SupplyError {
    YouTubeFailure::TranslationsThrottled(named).error()
}

/// The error for a finished live stream that has no captions yet.
#[cfg(feature = "ytdlp")]
pub(crate) fn just_ended() -> SupplyError {
    YouTubeFailure::JustEnded.error()
}

/// Whether a transport error would affect every client: also a status with a wait, which is that of the platform.
fn affects_every_client(fault: &HttpError) -> bool {
    !matches!(
        fault,
        HttpError::Status(_, None)
            | HttpError::TooLarge
            | HttpError::DisallowedHost
            | HttpError::BudgetExhausted
    )
}

#[cfg(test)]
mod tests {
    use transcript_core::transcript::{LanguageTag, TrackKind};

    use super::*;

    #[test]
    fn failure_with_highest_weight_wins() {
        let check = |expect: YouTubeFailure, others: &[YouTubeFailure]| {
            for other in others {
                assert!(expect.weight() > other.weight(), "{expect:?} must outrank {other:?}");
            }
        };
        check(
            YouTubeFailure::Members,
            &[YouTubeFailure::WrongClient, YouTubeFailure::Unavailable, YouTubeFailure::TooOld],
        );
        check(
            YouTubeFailure::NoCaptions,
            &[YouTubeFailure::WrongClient, YouTubeFailure::Unavailable, YouTubeFailure::NotPlayerData],
        );
        check(
            YouTubeFailure::Gated,
            &[
                YouTubeFailure::NoCaptions,
                YouTubeFailure::EmptyCaptions,
                YouTubeFailure::NoLanguage(Vec::new()),
            ],
        );
        check(
            YouTubeFailure::NoLanguage(Vec::new()),
            &[YouTubeFailure::NoCaptions, YouTubeFailure::WrongClient],
        );
        check(YouTubeFailure::OtherVideo, &[YouTubeFailure::Unavailable]);
        // A passing failure leaves open whether the video is there.
        for passing in [
            YouTubeFailure::Transport(HttpError::Status(503, None)),
            YouTubeFailure::NotPlayerData,
            YouTubeFailure::Consent,
        ] {
            check(passing, &[YouTubeFailure::Unavailable, YouTubeFailure::Login, YouTubeFailure::TooOld]);
        }
        check(
            YouTubeFailure::Unavailable,
            &[YouTubeFailure::TooOld, YouTubeFailure::WrongClient, YouTubeFailure::Other(String::new())],
        );
        check(YouTubeFailure::TooOld, &[YouTubeFailure::WrongClient, YouTubeFailure::BadRequest(400)]);
        check(YouTubeFailure::BotCheck, &[YouTubeFailure::Gated, YouTubeFailure::NoCaptions]);
    }

    #[test]
    fn failure_conclusive_stops_other_clients() {
        for failure in [
            YouTubeFailure::BotCheck,
            YouTubeFailure::Captcha,
            YouTubeFailure::SessionLimit,
            YouTubeFailure::Private,
            YouTubeFailure::Untranslated,
            YouTubeFailure::Upcoming(None),
            YouTubeFailure::Transport(HttpError::Throttled(None)),
            YouTubeFailure::Transport(HttpError::Timeout),
            YouTubeFailure::Transport(HttpError::Status(503, Some(Duration::from_secs(120)))),
        ] {
            assert!(failure.is_conclusive(), "{failure:?}");
        }
        for failure in [
            YouTubeFailure::WrongClient,
            YouTubeFailure::Unavailable,
            YouTubeFailure::NoCaptions,
            YouTubeFailure::TooOld,
            YouTubeFailure::OtherVideo,
            YouTubeFailure::NoLanguage(Vec::new()),
            YouTubeFailure::Transport(HttpError::Status(500, None)),
        ] {
            assert!(!failure.is_conclusive(), "{failure:?}");
        }
    }

    #[test]
    fn failure_of_translation_or_content_does_not_count_against_supplier() {
        for (failure, expect) in [
            (YouTubeFailure::TranslationsThrottled(Some(Duration::from_secs(3_600))), false),
            (YouTubeFailure::TranslationsThrottled(None), false),
            (YouTubeFailure::Untranslated, false),
            (YouTubeFailure::IncompleteCaptions("they are not UTF-8"), false),
            (YouTubeFailure::UnreadableCaptions("they are not captions".to_owned()), true),
            (YouTubeFailure::Transport(HttpError::Throttled(None)), true),
            (YouTubeFailure::SessionLimit, true),
        ] {
            assert_eq!(failure.error().counts_against_supplier(), expect, "{failure:?}");
        }
    }

    #[test]
    fn failure_message_is_a_sentence() {
        for failure in [
            YouTubeFailure::Upcoming(Some(Timestamp::from_millis(1_677_592_800_000))),
            YouTubeFailure::Upcoming(None),
            YouTubeFailure::UnreadableCaptions("it ended early".to_owned()),
            YouTubeFailure::IncompleteCaptions("it ended early"),
            YouTubeFailure::Untranslated,
            YouTubeFailure::Other("Custom Reason".to_owned()),
            YouTubeFailure::BadRequest(404),
            YouTubeFailure::NoLanguage(vec![TrackInfo::new(LanguageTag::english(), TrackKind::Human); 30]),
            YouTubeFailure::Cancelled,
            YouTubeFailure::Gated,
            YouTubeFailure::TooOld,
            YouTubeFailure::Transport(HttpError::Timeout),
            YouTubeFailure::Transport(HttpError::CoolingDown {
                left: Duration::from_secs(7),
                attempted: true,
            }),
            YouTubeFailure::Transport(HttpError::BudgetExhausted),
            YouTubeFailure::TranslationsThrottled(None),
            YouTubeFailure::WrongClient,
        ] {
            let error = failure.error();
            assert!(error.message().ends_with('.') && !error.message().contains("  "), "{error}");
        }
        let error = YouTubeFailure::Upcoming(Some(Timestamp::from_millis(1_677_592_800_000))).error();
        assert!(error.message().contains("2023-02-28T14:00:00Z"), "{error}");
    }
}
