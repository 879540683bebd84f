//! Failures of TikTok, Instagram and X, and their messages.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    text::one_line,
    transcript::{LanguageTag, TrackInfo, distinct_languages},
    video::Platform,
};

use crate::http::HttpError;

/// Maximum number of languages in a message.
const LANGUAGES_SHOWN: usize = 20;
/// Maximum length of a quoted message in characters.
const QUOTE_MAX: usize = 160;
/// How long a platform is paused after a bot check or a login wall.
pub(crate) const BLOCKED_PAUSE: Duration = Duration::from_secs(60);

/// Why there are no captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocialFailure {
    /// The post is private.
    Private,
    /// The account is private.
    PrivateAccount,
    /// The post was removed or never existed.
    Removed,
    /// The account was closed or suspended, or never existed.
    AccountRemoved,
    /// Not available in the country of the egress address.
    Region,
    /// Only for logged-in adults.
    Age,
    /// Only for logged-in viewers.
    Login,
    /// The platform is reviewing the post before publishing it.
    InReview,
    /// No video, but pictures or text.
    NoVideo,
    /// A video without audio.
    NoAudio,
    /// No video, but the quoted post, with this id, has one.
    Quoted(String),
    /// The video plays, and has no captions.
    NoCaptions,
    /// The captions contain no text.
    EmptyCaptions,
    /// No captions in the selected language; the video has these tracks.
    NoLanguage(Vec<TrackInfo>),

    /// Removed, private or blocked for the egress address: the platform does not distinguish them.
    ///
    /// With its code.
    Withheld(Option<u64>),
    /// A bot check.
    BotCheck,
    /// A login wall for a public post, as after too many requests from one address.
    LoginWall,
    /// The page does not contain the post, as after too many requests from one address.
    PostMissing,
    /// HTTP 401 or 403: the egress address is blocked.
    Forbidden(u16),
    /// The response contains another video.
    OtherVideo,

    /// A page without the video's data, as the platform occasionally returns.
    EmptyPage,
    /// Captions exist, but their URLs returned nothing readable; the text describes the error.
    UnreadableCaptions(String),
    /// Captions of which a part is missing or unreadable; the text describes what.
    ///
    /// A person who uploads captions can cause it.
    IncompleteCaptions(String),
    /// The response has an unknown format; the text describes the error.
    Unreadable(String),
    /// An unknown reason, in the platform's wording.
    Other(String),
    /// The platform rejects the request as outdated; the setting with this name can be updated.
    Stale(&'static str),
    /// The HTTP request failed.
    Transport(HttpError),
    /// X answered guests with this failure, and its service for embedded posts has nothing about the post.
    Unserved(Box<Self>),
    /// No waiter is left.
    Cancelled,
}

impl SocialFailure {
    /// The failure for an unknown message of the platform, shortened and on one line.
    pub(crate) fn from_platform_message(message: &str) -> Self {
        let message: String = one_line(message).chars().take(QUOTE_MAX).collect();
        Self::Other(message.replace('"', "'").trim_end_matches('.').to_owned())
    }

    /// Whether it is a property of the post, so that another request cannot help.
    pub(crate) fn is_about_the_post(&self) -> bool {
        matches!(
            self,
            Self::Private
                | Self::PrivateAccount
                | Self::Removed
                | Self::AccountRemoved
                | Self::Region
                | Self::Age
                | Self::Login
                | Self::InReview
                | Self::NoVideo
                | Self::NoAudio
                | Self::Quoted(_)
                | Self::NoCaptions
                | Self::EmptyCaptions
                | Self::NoLanguage(_)
        )
    }

    /// Whether the same request may succeed a moment later: the platform failed, and did not refuse.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Transport(fault) if fault.is_transient() && !matches!(fault, HttpError::Throttled(_)))
    }

    /// Whether the egress address is the cause, so that another proxy may succeed.
    pub(crate) fn is_route_blocked(&self) -> bool {
        matches!(
            self.cause(),
            Self::BotCheck
                | Self::LoginWall
                | Self::PostMissing
                | Self::Forbidden(_)
                | Self::OtherVideo
                | Self::Withheld(_)
        )
    }

    /// Whether the post may be the cause as well as the egress address.
    pub(crate) fn may_be_the_post(&self) -> bool {
        matches!(self.cause(), Self::Withheld(_))
    }

    /// How long to pause the platform on the route of this failure.
    ///
    /// Only failures about the address count: one video must not pause the platform for all.
    pub(crate) fn platform_pause(&self) -> Option<Duration> {
        matches!(self.cause(), Self::BotCheck | Self::LoginWall | Self::PostMissing).then_some(BLOCKED_PAUSE)
    }

    /// The failure of the request that decides.
    fn cause(&self) -> &Self {
        match self {
            Self::Unserved(cause) => cause,
            other => other,
        }
    }

    /// The supply error to report.
    pub(crate) fn error(&self, platform: Platform) -> SupplyError {
        match self {
            Self::Transport(fault) => fault.supply_error(platform),
            // The post may be gone, or without a video.
            Self::Unserved(cause) => cause.error(platform).ambiguous(),
            // Such posts can be created on purpose: they must not open the breaker for the platform.
            Self::Withheld(_) | Self::InReview | Self::Other(_) | Self::IncompleteCaptions(_) => {
                SupplyError::new(self.reason(), self.message(platform.name())).ambiguous()
            }
            other => SupplyError::new(other.reason(), other.message(platform.name())),
        }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::Private | Self::PrivateAccount => SupplyReason::Private,
            Self::Removed | Self::AccountRemoved => SupplyReason::Removed,
            Self::Region => SupplyReason::Region,
            Self::Age => SupplyReason::Age,
            Self::Login => SupplyReason::Login,
            Self::NoVideo | Self::NoAudio | Self::Quoted(_) | Self::NoCaptions | Self::EmptyCaptions => {
                SupplyReason::NoCaptions
            }
            Self::NoLanguage(tracks) => SupplyReason::NoLanguage(tracks.clone()),
            Self::BotCheck => SupplyReason::BotCheck,
            Self::LoginWall | Self::PostMissing | Self::Forbidden(_) => SupplyReason::Throttled(None),
            Self::OtherVideo => SupplyReason::OtherVideo,
            Self::UnreadableCaptions(_)
            | Self::IncompleteCaptions(_)
            | Self::Unreadable(_)
            | Self::EmptyPage => SupplyReason::Unreadable,
            Self::Stale(_) => SupplyReason::Stale,
            Self::Unserved(cause) => cause.reason(),
            Self::Cancelled => SupplyReason::Cancelled,
            // Transient failures and those of the egress address are not stored as an absence.
            Self::InReview | Self::Withheld(_) | Self::Other(_) | Self::Transport(_) => {
                SupplyReason::PlatformFault
            }
        }
    }

    fn message(&self, name: &str) -> String {
        let proxy = "the operator can set upstream.proxy";
        match self {
            Self::Private => format!("This post is private on {name}."),
            Self::PrivateAccount => format!("This post belongs to a private account on {name}."),
            Self::Removed => format!("This post was removed from {name} or never existed."),
            Self::AccountRemoved => format!("The account of this post no longer exists on {name}."),
            Self::Region => {
                format!("{name} does not offer this post in the country of this server's address.")
            }
            Self::Age => format!("{name} shows this post only to logged-in adults."),
            Self::Login => format!("{name} shows this post only to logged-in viewers."),
            Self::InReview => {
                format!("{name} is still reviewing this post and does not show it yet. Try again later.")
            }
            Self::NoVideo => format!("This post on {name} has no video."),
            Self::NoAudio => format!("This video on {name} has no audio."),
            Self::Quoted(post) => format!(
                "This post on {name} has no video, but the quoted post has one: \
                 x.com/i/status/{post} is the link of that post."
            ),
            Self::NoCaptions => format!("{name} has no captions for this video."),
            Self::EmptyCaptions => "This video's captions contain no text.".to_owned(),
            Self::NoLanguage(tracks) => no_language(tracks),
            Self::Withheld(code) => {
                let code = code.map(|code| format!(" (its code is {code})")).unwrap_or_default();
                format!(
                    "{name} reports only that this post is not available{code}: it was removed, is private, or is \
                     blocked for this server's address. Try again later; {proxy}."
                )
            }
            Self::BotCheck => format!(
                "{name} requires a bot check: it blocks this server's address. Try again \
                 later; {proxy}."
            ),
            Self::LoginWall => format!(
                "{name} requires a login to show this post, as it does when many requests come from one \
                 address. Try again later; {proxy}."
            ),
            Self::PostMissing => format!(
                "{name} returned the page without the post, as it does when many requests come from one \
                 address. Try again later; {proxy}."
            ),
            Self::Forbidden(status) => format!(
                "{name} rejects requests from this server's address (HTTP {status}). Try again later; {proxy}."
            ),
            Self::OtherVideo => format!("{name} returned another post. Try again later; {proxy}."),
            Self::EmptyPage => {
                format!("{name} returned a page without the post's data. Try again in a moment.")
            }
            Self::UnreadableCaptions(what) | Self::IncompleteCaptions(what) => {
                format!(
                    "The captions of this video on {name} could not be read: {what}. Try again in a moment."
                )
            }
            Self::Unreadable(what) => {
                format!("The response of {name} could not be read: {what}. Try again in a moment.")
            }
            Self::Other(message) => {
                format!("{name} does not show this post to this server. Its message: \"{message}\".")
            }
            Self::Stale(setting) => format!(
                "{name} rejects the request as outdated. The operator can update {setting} or this program."
            ),
            Self::Cancelled => "No waiter is left for this transcript.".to_owned(),
            Self::Unserved(cause) => cause.message(name),
            Self::Transport(_) => format!("{name} returned no captions."),
        }
    }
}

/// The message for a video without captions in the requested language.
pub(crate) fn no_language(tracks: &[TrackInfo]) -> String {
    let languages = distinct_languages(tracks);
    let shown: Vec<_> = languages.iter().take(LANGUAGES_SHOWN).map(LanguageTag::as_str).collect();
    let more = if languages.len() > shown.len() { " and others" } else { "" };
    format!("This video has no captions in the requested language; it has {}{more}.", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use transcript_core::transcript::TrackKind;

    use super::*;

    #[test]
    fn failure_message_is_a_sentence() {
        let message = "It \"broke\"\u{1b}\n off.".to_owned();
        for failure in [
            SocialFailure::Private,
            SocialFailure::PrivateAccount,
            SocialFailure::Removed,
            SocialFailure::AccountRemoved,
            SocialFailure::Region,
            SocialFailure::Age,
            SocialFailure::Login,
            SocialFailure::InReview,
            SocialFailure::NoVideo,
            SocialFailure::NoAudio,
            SocialFailure::Quoted("20".to_owned()),
            SocialFailure::NoCaptions,
            SocialFailure::EmptyCaptions,
            SocialFailure::NoLanguage(vec![TrackInfo::new(LanguageTag::english(), TrackKind::Human); 30]),
            SocialFailure::Withheld(None),
            SocialFailure::Withheld(Some(10_204)),
            SocialFailure::BotCheck,
            SocialFailure::LoginWall,
            SocialFailure::PostMissing,
            SocialFailure::Forbidden(403),
            SocialFailure::OtherVideo,
            SocialFailure::EmptyPage,
            SocialFailure::UnreadableCaptions("it ended early".to_owned()),
            SocialFailure::Unreadable("it ended early".to_owned()),
            SocialFailure::from_platform_message(&message),
            SocialFailure::Stale("x.query_id"),
            SocialFailure::Transport(HttpError::Timeout),
            SocialFailure::Unserved(Box::new(SocialFailure::Forbidden(403))),
            SocialFailure::Cancelled,
        ] {
            let error = failure.error(Platform::TikTok);
            let message = error.message();
            assert!(
                message.ends_with('.') && !message.contains("  ") && !message.contains('\n'),
                "{message}"
            );
        }
        assert_eq!(
            SocialFailure::from_platform_message(&message),
            SocialFailure::Other("It 'broke' off".to_owned())
        );
    }

    #[test]
    fn failure_transient_is_not_stored_as_absence() {
        for failure in [
            SocialFailure::Withheld(None),
            SocialFailure::EmptyPage,
            SocialFailure::LoginWall,
            SocialFailure::InReview,
            SocialFailure::UnreadableCaptions("they are not WebVTT".to_owned()),
            SocialFailure::IncompleteCaptions("they are not UTF-8".to_owned()),
            SocialFailure::Unserved(Box::new(SocialFailure::Stale("x.query_id"))),
        ] {
            let error = failure.error(Platform::Instagram);
            assert!(!error.reason().is_about_video(), "{failure:?}");
            let perhaps = matches!(
                failure,
                SocialFailure::Withheld(_)
                    | SocialFailure::InReview
                    | SocialFailure::IncompleteCaptions(_)
                    | SocialFailure::Unserved(_)
            );
            assert_eq!(error.counts_against_supplier(), !perhaps, "{failure:?}");
        }
    }
}
