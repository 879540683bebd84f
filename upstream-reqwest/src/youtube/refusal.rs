//! What YouTube says instead of captions: whether another client should be asked, which of several such
//! answers tells most, and what is told to the person.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
    transcript::LanguageTag,
    video::Platform,
};

use crate::http::HttpFault;

/// How many languages a message lists.
const LANGUAGES_SHOWN: usize = 20;

/// How long YouTube is left alone after it asked for a proof that we are human.
const DISTRUST_SILENCE: Duration = Duration::from_secs(60);

/// Why one client gave no captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It wants a proof that we are human.
    BotCheck,
    /// The same, with a captcha.
    Captcha,
    /// "Try again later": the address has asked too much, and for some time every video is refused.
    SessionLimit,

    Age,
    Private,
    /// Removed, with its account or alone.
    Gone,
    RecordingGone,
    Region,
    Members,
    MusicPremium,
    Payment,
    Upcoming(Option<Timestamp>),
    Live,
    /// A live stream that is over, but not yet a video with captions.
    JustEnded,

    /// The tracks are there, but their addresses want a proof of origin, or answered with nothing.
    Gated,
    /// The captions came, but in no readable form; the text says what was wrong with them.
    UnreadableCaptions(String),
    /// The video plays, and has no captions.
    NoCaptions,
    /// It has captions without a single word.
    NoWords,
    /// The answer was about another video.
    OtherVideo,
    /// "Video unavailable", without a reason, or no answer at all about this video.
    Unavailable,
    /// Only for those who are logged in, for a reason that we don't know.
    Login,
    /// A reason that we don't know, in YouTube's words.
    Other(String),
    /// It has captions, but not in the wished language; in these it has.
    NoLanguage(Vec<LanguageTag>),
    /// It plays, but its sound has no address that others than YouTube's own players can use.
    NoPlainSound,
    /// HTTP 403: the address, or this client there, is not welcome.
    Forbidden,
    /// The client's version is too old.
    TooOld,
    /// The page where a visitor consents to cookies.
    Consent,
    /// Nothing that player data could be.
    NotPlayerData,
    /// The request itself was refused.
    BadRequest(u16),
    /// "Not available" on this client, without a reason: another client may well have it.
    WrongClient,

    /// Too many translations, with the wait that YouTube named; what is not translated can be had.
    TranslationsThrottled(Option<Duration>),
    /// No answer came.
    Fault(HttpFault),
    /// Nobody waits for the answer any more.
    Cancelled,
}

impl Refusal {
    /// Whether asking as another client is of no use: the video is what it is, or YouTube distrusts the
    /// address, and every further request makes that worse.
    pub(super) fn is_conclusive(&self) -> bool {
        match self {
            Self::BotCheck
            | Self::Captcha
            | Self::SessionLimit
            | Self::TranslationsThrottled(_)
            | Self::Cancelled => true,
            Self::Fault(fault) => stops(fault),
            other => other.is_about_the_video(),
        }
    }

    /// Whether it is due to the address that we ask from, so that another proxy may fare better.
    pub(super) fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::BotCheck | Self::Captcha | Self::SessionLimit | Self::Forbidden | Self::OtherVideo
        )
    }

    /// How long YouTube is best left alone from the address that met this.
    ///
    /// Only what is said of the address counts: the other signs of distrust may be due to the video, and
    /// one video must not silence us for all.
    pub(super) fn silence(&self) -> Option<Duration> {
        matches!(self, Self::BotCheck | Self::Captcha | Self::SessionLimit).then_some(DISTRUST_SILENCE)
    }

    /// Whether it names something about the video that is the same for every client.
    fn is_about_the_video(&self) -> bool {
        matches!(
            self,
            Self::Age
                | Self::Private
                | Self::Gone
                | Self::RecordingGone
                | Self::Region
                | Self::Members
                | Self::MusicPremium
                | Self::Payment
                | Self::Upcoming(_)
                | Self::Live
                | Self::JustEnded
        )
    }

    /// How much it tells beside what other clients said: the highest is reported.
    ///
    /// That captions exist but can't be had comes before "no captions", which would be remembered; an
    /// answer that shows distrust comes before a bare "unavailable", which may be part of the distrust.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::Fault(HttpFault::Spent) => 5,
            other if other.is_conclusive() => 100,
            Self::Gated => 90,
            Self::UnreadableCaptions(_) | Self::NoPlainSound => 85,
            Self::NoLanguage(_) => 82,
            Self::NoWords => 81,
            Self::NoCaptions => 80,
            Self::OtherVideo => 70,
            Self::Forbidden => 65,
            Self::Unavailable => 60,
            Self::Login => 55,
            Self::Other(_) => 50,
            Self::Fault(_) => 45,
            Self::NotPlayerData => 40,
            Self::Consent => 35,
            Self::TooOld => 30,
            Self::BadRequest(_) => 20,
            _ => 10,
        }
    }

    /// The failure to report.
    pub(super) fn error(&self) -> SupplyError {
        if let Self::Fault(fault) = self {
            return fault.supply_error(Platform::VideoSite);
        }
        let error = SupplyError::new(self.reason(), self.message());
        // A single video may be refused in words that nobody knows yet, or have its sound in other forms alone.
        let perhaps_the_video = matches!(self, Self::Other(_) | Self::NoPlainSound);
        if perhaps_the_video { error.perhaps_the_video() } else { error }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::BotCheck | Self::Captcha => SupplyReason::BotCheck,
            Self::SessionLimit | Self::Forbidden => SupplyReason::Throttled(None),
            Self::TranslationsThrottled(named) => SupplyReason::Throttled(*named),
            Self::Age => SupplyReason::Age,
            Self::Private => SupplyReason::Private,
            Self::Gone | Self::RecordingGone | Self::Unavailable => SupplyReason::Removed,
            Self::Region => SupplyReason::Region,
            Self::Members | Self::MusicPremium => SupplyReason::Members,
            Self::Payment => SupplyReason::Payment,
            Self::Upcoming(start) => SupplyReason::Upcoming(*start),
            Self::Live | Self::JustEnded => SupplyReason::Live,
            Self::NoCaptions | Self::NoWords => SupplyReason::NoCaptions,
            Self::NoLanguage(languages) => SupplyReason::NoLanguage(languages.clone()),
            Self::OtherVideo => SupplyReason::OtherVideo,
            Self::Login => SupplyReason::Login,
            Self::TooOld => SupplyReason::Stale,
            Self::Cancelled => SupplyReason::Cancelled,
            Self::Gated | Self::UnreadableCaptions(_) | Self::Consent | Self::NotPlayerData => {
                SupplyReason::Unreadable
            }
            // Not the region: that would be remembered of a video which a newer client may well have.
            Self::WrongClient
            | Self::NoPlainSound
            | Self::Other(_)
            | Self::BadRequest(_)
            | Self::Fault(_) => SupplyReason::PlatformFault,
        }
    }

    fn message(&self) -> String {
        let fixed = match self {
            Self::Upcoming(Some(start)) => {
                return format!(
                    "The video has not started yet: it is planned for {start}. Ask again after it."
                );
            }
            Self::NoLanguage(languages) => return no_language(languages),
            Self::UnreadableCaptions(what) => {
                return format!("YouTube's captions for this video could not be read: {what}.");
            }
            Self::Other(words) => {
                return format!("YouTube does not play this video for us. Its words: \"{words}\".");
            }
            Self::BadRequest(status) => {
                return format!("YouTube refused the question for this video (HTTP {status}).");
            }
            other => other.fixed_message(),
        };
        fixed.to_owned()
    }

    fn fixed_message(&self) -> &'static str {
        match self {
            Self::BotCheck => {
                "YouTube asks for a proof that no bot is asking: it distrusts this server's address. Try \
                 again later; the operator can set upstream.proxy."
            }
            Self::Captcha => {
                "YouTube shows a captcha: it distrusts this server's address. Try again later; the operator \
                 can set upstream.proxy."
            }
            Self::SessionLimit => {
                "YouTube refuses all videos to this server's address for up to an hour, since it has asked \
                 for many. Try again later; the operator can set upstream.proxy."
            }
            Self::Forbidden => {
                "YouTube refuses requests from this server's address (HTTP 403). Try again later; the \
                 operator can set upstream.proxy."
            }
            Self::Age => "YouTube shows this video only to viewers who are logged in and of age.",
            Self::Private => "This video is private.",
            Self::Gone => "This video was removed from YouTube.",
            Self::RecordingGone => "The recording of this live stream is not available.",
            Self::Region => "This video is not offered in the country that this server asks from.",
            Self::Members => "This video is only for members of its channel.",
            Self::MusicPremium => "This video is only for members of YouTube Music Premium.",
            Self::Payment => "This video must be bought or rented.",
            Self::Upcoming(_) => "The video has not started yet. Ask again after it.",
            Self::Live => "The video is live now: its captions come when it is over.",
            Self::JustEnded => {
                "This live stream is over, and YouTube is still preparing its recording. Ask \
                 again in some hours."
            }
            Self::Gated => {
                "YouTube has captions for this video, but gave an empty answer in their place. Try again \
                 later; if it stays so, the operator can renew or reorder youtube.clients."
            }
            Self::NoCaptions => "This video has no captions.",
            Self::NoWords => "This video's captions hold no words.",
            Self::NoPlainSound => "YouTube gives the sound of this video to its own players only.",
            Self::OtherVideo => {
                "YouTube answered about another video, as it does to addresses that it distrusts. Try again \
                 later; the operator can set upstream.proxy."
            }
            Self::Unavailable => "YouTube says that this video is unavailable: it was removed, or never was.",
            Self::Login => "YouTube shows this video only to viewers who are logged in.",
            Self::TooOld => {
                "YouTube refuses our client versions as too old. The operator can set newer ones in \
                 youtube.clients, for example android@VERSION."
            }
            Self::Consent => {
                "YouTube showed its consent page in place of an answer. The operator can set upstream.proxy \
                 to one in another country."
            }
            Self::NotPlayerData => "YouTube's answer is in no form that we know. Try again in a moment.",
            Self::WrongClient => {
                "YouTube does not offer this video to any client that we ask as, and gives no reason. Try \
                 again later; if it stays so, the operator can renew or reorder youtube.clients."
            }
            Self::TranslationsThrottled(_) => {
                "YouTube translates no more for this server's address for now. Try again later, or ask for \
                 a language that the video has."
            }
            Self::Cancelled => "Nobody waits for this transcript any more.",
            Self::UnreadableCaptions(_)
            | Self::NoLanguage(_)
            | Self::Other(_)
            | Self::BadRequest(_)
            | Self::Fault(_) => "YouTube gave no captions.",
        }
    }
}

fn no_language(languages: &[LanguageTag]) -> String {
    let shown: Vec<_> = languages.iter().take(LANGUAGES_SHOWN).map(LanguageTag::as_str).collect();
    let more = if languages.len() > shown.len() { " and others" } else { "" };
    format!("This video has no captions in the wished language; it has {}{more}.", shown.join(", "))
}

/// Whether a transport fault would meet every client alike.
fn stops(fault: &HttpFault) -> bool {
    !matches!(
        fault,
        HttpFault::Status(..) | HttpFault::TooLarge | HttpFault::ForeignAddress | HttpFault::Spent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_answer_is_reported() {
        let check = |expect: Refusal, others: &[Refusal]| {
            for other in others {
                assert!(expect.weight() > other.weight(), "{expect:?} tells more than {other:?}");
            }
        };
        check(Refusal::Members, &[Refusal::WrongClient, Refusal::Unavailable, Refusal::TooOld]);
        check(Refusal::NoCaptions, &[Refusal::WrongClient, Refusal::Unavailable, Refusal::NotPlayerData]);
        check(Refusal::Gated, &[Refusal::NoCaptions, Refusal::NoWords, Refusal::NoLanguage(Vec::new())]);
        check(Refusal::NoLanguage(Vec::new()), &[Refusal::NoCaptions, Refusal::WrongClient]);
        check(Refusal::OtherVideo, &[Refusal::Unavailable]);
        check(Refusal::Unavailable, &[Refusal::TooOld, Refusal::WrongClient, Refusal::Other(String::new())]);
        check(Refusal::TooOld, &[Refusal::WrongClient, Refusal::BadRequest(400)]);
        check(Refusal::BotCheck, &[Refusal::Gated, Refusal::NoCaptions]);
    }

    #[test]
    fn asking_on_ends_where_it_is_of_no_use() {
        for refusal in [
            Refusal::BotCheck,
            Refusal::Captcha,
            Refusal::SessionLimit,
            Refusal::Private,
            Refusal::Upcoming(None),
            Refusal::Fault(HttpFault::Throttled(None)),
            Refusal::Fault(HttpFault::Timeout),
        ] {
            assert!(refusal.is_conclusive(), "{refusal:?}");
        }
        for refusal in [
            Refusal::WrongClient,
            Refusal::Unavailable,
            Refusal::NoCaptions,
            Refusal::TooOld,
            Refusal::OtherVideo,
            Refusal::NoLanguage(Vec::new()),
            Refusal::Fault(HttpFault::Status(500, None)),
        ] {
            assert!(!refusal.is_conclusive(), "{refusal:?}");
        }
    }

    #[test]
    fn every_message_is_a_sentence() {
        for refusal in [
            Refusal::Upcoming(Some(Timestamp::from_millis(1_677_592_800_000))),
            Refusal::Upcoming(None),
            Refusal::UnreadableCaptions("it broke off".to_owned()),
            Refusal::Other("Custom Reason".to_owned()),
            Refusal::BadRequest(404),
            Refusal::NoLanguage(vec![LanguageTag::english(); 30]),
            Refusal::Cancelled,
            Refusal::Gated,
            Refusal::TooOld,
            Refusal::Fault(HttpFault::Timeout),
            Refusal::Fault(HttpFault::Resting { left: Duration::from_secs(7), asked: true }),
            Refusal::Fault(HttpFault::Spent),
            Refusal::TranslationsThrottled(None),
            Refusal::WrongClient,
        ] {
            let error = refusal.error();
            assert!(error.message().ends_with('.') && !error.message().contains("  "), "{error}");
        }
        let error = Refusal::Upcoming(Some(Timestamp::from_millis(1_677_592_800_000))).error();
        assert!(error.message().contains("2023-02-28T14:00:00Z"), "{error}");
    }
}
