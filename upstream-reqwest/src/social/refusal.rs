//! What TikTok, Instagram and X say instead of captions, and what is told to the person.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    transcript::LanguageTag,
    video::Platform,
};

use crate::http::HttpFault;

/// How many languages a message lists.
const LANGUAGES_SHOWN: usize = 20;
/// How much of a platform's own words is quoted, in characters.
const QUOTE_MAX: usize = 160;
/// How long a platform is left alone after it asked for a proof that we are human, or for a log-in.
const DISTRUST_SILENCE: Duration = Duration::from_secs(60);

/// Why there are no captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The post is private.
    Private,
    /// The account is private.
    PrivateAccount,
    /// The post was removed, or never was.
    Gone,
    /// Its account was closed, suspended or never was.
    AccountGone,
    /// It is not offered where we ask from.
    Region,
    /// It is only for viewers who are logged in and of age.
    Age,
    /// It is only for viewers who are logged in.
    Login,
    /// The platform is still looking at it before anybody may see it.
    InReview,
    /// Pictures or text, no video.
    NoVideo,
    /// A video without sound.
    NoSound,
    /// No video of its own: the post that it quotes, with this number, has one.
    Quoted(String),
    /// The video plays, and has no captions.
    NoCaptions,
    /// It has captions without a single word.
    NoWords,
    /// It has captions, but not in the wished language; in these it has.
    NoLanguage(Vec<LanguageTag>),

    /// Removed, private or kept from our address: the platform does not say which. Its code, where it has one.
    Withheld(Option<u64>),
    /// The platform wants a proof that we are human.
    BotCheck,
    /// The platform wants a log-in for what anybody may see, as it does when one address asks too much.
    LoginWall,
    /// The post's page came without the post, as it does when one address asks too much.
    HeldBack,
    /// HTTP 401 or 403: the address that we ask from is not welcome.
    Forbidden(u16),
    /// The answer was about another video.
    OtherVideo,

    /// A page of the platform without the video's data, as it shows in passing.
    Shell,
    /// Captions were found, but their addresses gave nothing that can be read; the text says what was wrong.
    UnreadableCaptions(String),
    /// The answer is in no form that we know; the text says what was wrong.
    Unreadable(String),
    /// A reason that we don't know, in the platform's words.
    Other(String),
    /// The platform no longer knows what we ask; the settings with this name can be renewed.
    Stale(&'static str),
    /// No answer came.
    Fault(HttpFault),
    /// Nobody waits for the answer any more.
    Cancelled,
}

impl Refusal {
    /// A reason in the platform's own words, shortened and on one line.
    pub(crate) fn quoting(words: &str) -> Self {
        let words: Vec<_> = words.split_whitespace().collect();
        let words: String = words.join(" ").chars().take(QUOTE_MAX).collect();
        Self::Other(words.replace('"', "'").trim_end_matches('.').to_owned())
    }

    /// Whether it says something about the post itself, so that asking in another way is of no use.
    pub(crate) fn is_about_the_post(&self) -> bool {
        matches!(
            self,
            Self::Private
                | Self::PrivateAccount
                | Self::Gone
                | Self::AccountGone
                | Self::Region
                | Self::Age
                | Self::Login
                | Self::InReview
                | Self::NoVideo
                | Self::NoSound
                | Self::Quoted(_)
                | Self::NoCaptions
                | Self::NoWords
                | Self::NoLanguage(_)
        )
    }

    /// Whether it is due to the address that we ask from, so that another proxy may fare better.
    pub(crate) fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::BotCheck
                | Self::LoginWall
                | Self::HeldBack
                | Self::Forbidden(_)
                | Self::OtherVideo
                | Self::Withheld(_)
        )
    }

    /// How long the platform is best left alone from the address that met this. One video alone must not
    /// silence us for all, so only what is said of the address counts.
    pub(crate) fn silence(&self) -> Option<Duration> {
        matches!(self, Self::BotCheck | Self::LoginWall | Self::HeldBack).then_some(DISTRUST_SILENCE)
    }

    /// The failure to report.
    pub(crate) fn error(&self, platform: Platform) -> SupplyError {
        match self {
            Self::Fault(fault) => fault.supply_error(platform),
            // Anybody can make up such posts: they must not take the platform from all others.
            Self::Withheld(_) | Self::InReview | Self::Other(_) => {
                SupplyError::new(self.reason(), self.message(platform.name())).perhaps_the_video()
            }
            other => SupplyError::new(other.reason(), other.message(platform.name())),
        }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::Private | Self::PrivateAccount => SupplyReason::Private,
            Self::Gone | Self::AccountGone => SupplyReason::Removed,
            Self::Region => SupplyReason::Region,
            Self::Age => SupplyReason::Age,
            Self::Login => SupplyReason::Login,
            Self::NoVideo | Self::NoSound | Self::Quoted(_) | Self::NoCaptions | Self::NoWords => {
                SupplyReason::NoCaptions
            }
            Self::NoLanguage(languages) => SupplyReason::NoLanguage(languages.clone()),
            Self::BotCheck => SupplyReason::BotCheck,
            Self::LoginWall | Self::HeldBack | Self::Forbidden(_) => SupplyReason::Throttled(None),
            Self::OtherVideo => SupplyReason::OtherVideo,
            Self::UnreadableCaptions(_) | Self::Unreadable(_) | Self::Shell => SupplyReason::Unreadable,
            Self::Stale(_) => SupplyReason::Stale,
            Self::Cancelled => SupplyReason::Cancelled,
            // What may pass, or may be due to our address, is not remembered of the video.
            Self::InReview | Self::Withheld(_) | Self::Other(_) | Self::Fault(_) => {
                SupplyReason::PlatformFault
            }
        }
    }

    fn message(&self, name: &str) -> String {
        let proxy = "the operator can set upstream.proxy";
        match self {
            Self::Private => format!("This post is private on {name}."),
            Self::PrivateAccount => format!("This post is of a private account on {name}."),
            Self::Gone => format!("This post was removed from {name}, or never was."),
            Self::AccountGone => format!("The account of this post is no longer on {name}."),
            Self::Region => {
                format!("{name} does not offer this post in the country that this server asks from.")
            }
            Self::Age => format!("{name} shows this post only to viewers who are logged in and of age."),
            Self::Login => format!("{name} shows this post only to viewers who are logged in."),
            Self::InReview => {
                format!("{name} is still reviewing this post, and shows it to nobody. Try again later.")
            }
            Self::NoVideo => format!("This post on {name} has no video."),
            Self::NoSound => format!("This video on {name} has no sound."),
            Self::Quoted(post) => format!(
                "This post on {name} has no video of its own, but the post that it quotes has one: \
                 x.com/i/status/{post} is the link of that post."
            ),
            Self::NoCaptions => format!("{name} has no captions for this video."),
            Self::NoWords => "This video's captions hold no words.".to_owned(),
            Self::NoLanguage(languages) => no_language(languages),
            Self::Withheld(code) => {
                let code = code.map(|code| format!(" (its code is {code})")).unwrap_or_default();
                format!(
                    "{name} says only that this post is not available{code}: it was removed, is private, or is \
                     kept from this server's address. Try again later; {proxy}."
                )
            }
            Self::BotCheck => format!(
                "{name} asks for a proof that no bot is asking: it distrusts this server's address. Try again \
                 later; {proxy}."
            ),
            Self::LoginWall => format!(
                "{name} wants a log-in before it shows this post, as it does when many requests come from one \
                 address. Try again later; {proxy}."
            ),
            Self::HeldBack => format!(
                "{name} keeps the post back from its own page, as it does when many requests come from one \
                 address. Try again later; {proxy}."
            ),
            Self::Forbidden(status) => format!(
                "{name} refuses requests from this server's address (HTTP {status}). Try again later; {proxy}."
            ),
            Self::OtherVideo => format!("{name} answered about another post. Try again later; {proxy}."),
            Self::Shell => format!("{name} showed a page without the post's data. Try again in a moment."),
            Self::UnreadableCaptions(what) => {
                format!("{name}'s captions for this video could not be read: {what}. Try again in a moment.")
            }
            Self::Unreadable(what) => {
                format!("{name}'s answer could not be read: {what}. Try again in a moment.")
            }
            Self::Other(words) => format!("{name} does not show this post to us. Its words: \"{words}\"."),
            Self::Stale(setting) => format!(
                "{name} no longer understands how it is asked. The operator can renew {setting}, or this program."
            ),
            Self::Cancelled => "Nobody waits for this transcript any more.".to_owned(),
            Self::Fault(_) => format!("{name} gave no captions."),
        }
    }
}

fn no_language(languages: &[LanguageTag]) -> String {
    let shown: Vec<_> = languages.iter().take(LANGUAGES_SHOWN).map(LanguageTag::as_str).collect();
    let more = if languages.len() > shown.len() { " and others" } else { "" };
    format!("This video has no captions in the wished language; it has {}{more}.", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_a_sentence() {
        let words = "It \"broke\"\n off.".to_owned();
        for refusal in [
            Refusal::Private,
            Refusal::PrivateAccount,
            Refusal::Gone,
            Refusal::AccountGone,
            Refusal::Region,
            Refusal::Age,
            Refusal::Login,
            Refusal::InReview,
            Refusal::NoVideo,
            Refusal::NoSound,
            Refusal::Quoted("20".to_owned()),
            Refusal::NoCaptions,
            Refusal::NoWords,
            Refusal::NoLanguage(vec![LanguageTag::english(); 30]),
            Refusal::Withheld(None),
            Refusal::Withheld(Some(10_204)),
            Refusal::BotCheck,
            Refusal::LoginWall,
            Refusal::HeldBack,
            Refusal::Forbidden(403),
            Refusal::OtherVideo,
            Refusal::Shell,
            Refusal::UnreadableCaptions("it broke off".to_owned()),
            Refusal::Unreadable("it broke off".to_owned()),
            Refusal::quoting(&words),
            Refusal::Stale("x.query_id"),
            Refusal::Fault(HttpFault::Timeout),
            Refusal::Cancelled,
        ] {
            let error = refusal.error(Platform::ShortVideo);
            let message = error.message();
            assert!(
                message.ends_with('.') && !message.contains("  ") && !message.contains('\n'),
                "{message}"
            );
        }
        assert_eq!(Refusal::quoting(&words), Refusal::Other("It 'broke' off".to_owned()));
    }

    #[test]
    fn what_may_pass_is_not_remembered_of_the_video() {
        for refusal in [Refusal::Withheld(None), Refusal::Shell, Refusal::LoginWall, Refusal::InReview] {
            let error = refusal.error(Platform::Reels);
            assert!(!error.reason().is_about_the_video(), "{refusal:?}");
            let perhaps = matches!(refusal, Refusal::Withheld(_) | Refusal::InReview);
            assert_eq!(error.speaks_against_the_supplier(), !perhaps, "{refusal:?}");
        }
    }
}
