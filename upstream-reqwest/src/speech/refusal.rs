//! Why nothing was heard, and what is told to the person.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    transcript::LanguageTag,
};

use crate::http::HttpFault;

/// Why nothing was heard. It holds nothing that the service said: that may name the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The platform gave no file.
    Platform(SupplyError),
    /// The video has no sound, or none that lasts.
    NoSound,
    /// Nobody speaks.
    NoWords,
    /// The video is longer than what is listened to, in milliseconds; its length where that is known.
    TooLong { length_ms: Option<u64>, max_ms: u64 },
    /// Another language is spoken than the one that was wished.
    NoLanguage(LanguageTag),
    /// The platform's file is nothing that can be listened to.
    NotSound,
    /// The ffmpeg program cannot be run.
    NoProgram,
    /// It broke down, or took too long.
    ProgramFailed,
    /// There is no room for temporary files.
    NoRoom,
    /// Nobody waits for the answer any more.
    Cancelled,
    /// The time was over.
    TooSlow,

    /// The service gave no answer.
    Away(HttpFault),
    /// The service wants to be left alone, for this time where it says so.
    Throttled(Option<Duration>),
    /// What the operator bought there is used up.
    UsedUp,
    /// The service does not accept the key.
    Key,
    /// The service does not know the model or the address.
    Unknown,
    /// The service takes no parts that are so large.
    PartTooLarge,
    /// The service refuses the request, with this status.
    Refused(u16),
    /// The service has a fault of its own, with this status.
    Fault(u16),
    /// The answer is no transcription; why.
    Unreadable(&'static str),
    /// The times in the answer cannot be true; why.
    Times(&'static str),
    /// The service tells no times: parts must be shorter, so that they say where the words are.
    Untimed,
    /// The service told none this once, though it may for other sounds.
    UntimedOnce,
}

impl Refusal {
    /// Whether another source of the platform's files may still have the sound: nothing is known of the video that
    /// would be so for every source.
    pub(super) fn is_about_one_source(&self) -> bool {
        match self {
            Self::Platform(error) => {
                let reason = error.reason();
                !reason.is_final() && !matches!(reason, SupplyReason::NoCaptions | SupplyReason::Cancelled)
            }
            Self::NotSound => true,
            _ => false,
        }
    }

    /// Whether the same part may be heard when it is sent again.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Away(fault) => {
                matches!(fault, HttpFault::Timeout | HttpFault::Unreachable(_) | HttpFault::CutOff)
            }
            Self::Throttled(_) | Self::Fault(_) | Self::Unreadable(_) | Self::Times(_) => true,
            _ => false,
        }
    }

    /// The failure to report.
    pub(super) fn error(&self) -> SupplyError {
        match self {
            Self::Platform(error) => error.clone(),
            // What cannot be decoded, takes too long, or makes a model talk nonsense or refuse it, may be this sound alone.
            Self::NotSound
            | Self::ProgramFailed
            | Self::TooSlow
            | Self::Refused(400 | 422)
            | Self::Times(_) => SupplyError::new(self.reason(), self.message()).perhaps_the_video(),
            other => SupplyError::new(other.reason(), other.message()),
        }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::Platform(error) => error.reason().clone(),
            Self::NoSound | Self::NoWords | Self::TooLong { .. } => SupplyReason::NoCaptions,
            Self::NoLanguage(language) => SupplyReason::NoLanguage(vec![language.clone()]),
            Self::NotSound | Self::Unreadable(_) | Self::Times(_) | Self::Untimed | Self::UntimedOnce => {
                SupplyReason::Unreadable
            }
            Self::NoProgram
            | Self::NoRoom
            | Self::UsedUp
            | Self::Key
            | Self::Unknown
            | Self::PartTooLarge => SupplyReason::Misconfigured,
            Self::ProgramFailed | Self::Refused(_) | Self::Fault(_) => SupplyReason::PlatformFault,
            Self::Cancelled => SupplyReason::Cancelled,
            Self::TooSlow | Self::Away(HttpFault::Timeout) => SupplyReason::Timeout,
            Self::Away(HttpFault::TooLarge | HttpFault::Encoded | HttpFault::CutOff) => {
                SupplyReason::Unreadable
            }
            Self::Away(_) => SupplyReason::Unreachable,
            Self::Throttled(wait) => SupplyReason::Throttled(*wait),
        }
    }

    fn message(&self) -> String {
        let text = match self {
            Self::NoSound => "This video has no sound.",
            Self::NoWords => "Nobody speaks in this video, as far as can be heard.",
            Self::TooLong { length_ms, max_ms } => return too_long(*length_ms, *max_ms),
            Self::NoLanguage(language) if *language == LanguageTag::unknown() => {
                "Which language is spoken in this video could not be heard. Ask for no language to get its words."
            }
            Self::NoLanguage(language) => {
                return format!("This video is not spoken in the wished language, but in {language}.");
            }
            Self::NotSound => "What the platform gave for this video cannot be listened to. Try again later.",
            Self::NoProgram => {
                "The program that reads sound cannot be run. The operator can install ffmpeg, or set speech.ffmpeg."
            }
            Self::ProgramFailed => "The sound of this video could not be read. Try again in a moment.",
            Self::NoRoom => {
                "The sound of this video could not be put down. The operator can look after the room in the folder \
                 for temporary files."
            }
            Self::Cancelled => "Nobody waits for this transcript any more.",
            Self::TooSlow => "Listening to this video took too long. Try again later.",
            Self::Away(fault) => return away(fault),
            Self::Throttled(Some(wait)) => {
                return format!(
                    "The speech-to-text service gets too many requests. Try again in {} s.",
                    wait.as_secs().max(1)
                );
            }
            Self::Throttled(None) => "The speech-to-text service gets too many requests. Try again later.",
            Self::UsedUp => {
                "What may be spent at the speech-to-text service is used up. The operator can look after the account."
            }
            Self::Key => {
                "The speech-to-text service does not accept its key. The operator can correct speech.api_key."
            }
            Self::Unknown => {
                "The speech-to-text service does not know what it is asked for. The operator can correct \
                 speech.base_url and speech.model."
            }
            Self::PartTooLarge => {
                "The speech-to-text service takes no parts of this size. The operator can lower speech.max_bytes or \
                 speech.part."
            }
            Self::Refused(status) => {
                return format!("The speech-to-text service refuses the sound (HTTP {status}).");
            }
            Self::Fault(status) => {
                return format!(
                    "The speech-to-text service has a fault of its own (HTTP {status}). Try again in a moment."
                );
            }
            Self::Unreadable(why) => {
                return format!(
                    "The speech-to-text service's answer could not be read: {why}. Try again later."
                );
            }
            Self::Times(why) => {
                return format!("The times in the speech-to-text service's answer make no sense: {why}.");
            }
            Self::Untimed | Self::UntimedOnce => "The speech-to-text service tells no times.",
            Self::Platform(error) => error.message(),
        };
        text.to_owned()
    }
}

fn away(fault: &HttpFault) -> String {
    let what = match fault {
        HttpFault::Timeout => "took too long to answer. Try again later",
        HttpFault::Unreachable(how) => {
            return format!("The speech-to-text service could not be reached: {how}.");
        }
        HttpFault::TooLarge => "gave an answer that is larger than any that is read",
        _ => "broke off its answer. Try again in a moment",
    };
    format!("The speech-to-text service {what}.")
}

fn too_long(length_ms: Option<u64>, max_ms: u64) -> String {
    let max = spoken(max_ms);
    match length_ms {
        Some(length) => format!(
            "This video has no captions and lasts {}; what lasts more than {max} is not listened to.",
            spoken(length)
        ),
        None => format!("This video has no captions and lasts more than {max}, so it is not listened to."),
    }
}

/// A length as people say it: `4 h`, `12 h 5 min`, `90 s`.
fn spoken(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (hours, minutes) = (seconds / 3_600, seconds % 3_600 / 60);
    match (hours, minutes) {
        (0, _) if seconds < 600 => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_a_sentence() {
        for refusal in [
            Refusal::NoSound,
            Refusal::NoWords,
            Refusal::TooLong { length_ms: Some(43_200_000), max_ms: 14_400_000 },
            Refusal::TooLong { length_ms: None, max_ms: 90_000 },
            Refusal::NoLanguage(LanguageTag::english()),
            Refusal::NoLanguage(LanguageTag::unknown()),
            Refusal::NotSound,
            Refusal::NoProgram,
            Refusal::ProgramFailed,
            Refusal::NoRoom,
            Refusal::Cancelled,
            Refusal::TooSlow,
            Refusal::Away(HttpFault::Timeout),
            Refusal::Away(HttpFault::Unreachable("no connection came about")),
            Refusal::Away(HttpFault::CutOff),
            Refusal::Away(HttpFault::TooLarge),
            Refusal::Throttled(None),
            Refusal::Throttled(Some(Duration::from_secs(7))),
            Refusal::UsedUp,
            Refusal::Key,
            Refusal::Unknown,
            Refusal::PartTooLarge,
            Refusal::Refused(400),
            Refusal::Fault(503),
            Refusal::Unreadable("it is empty"),
            Refusal::Times("they run backwards"),
            Refusal::Untimed,
            Refusal::UntimedOnce,
        ] {
            let error = refusal.error();
            let message = error.message();
            assert!(
                message.ends_with('.') && !message.contains("  ") && !message.contains('\n'),
                "{message}"
            );
        }
    }

    #[test]
    fn what_may_be_due_to_one_sound_is_nothing_against_the_service() {
        for refusal in [Refusal::TooSlow, Refusal::Refused(400), Refusal::Refused(422), Refusal::NotSound] {
            assert!(!refusal.error().speaks_against_the_supplier(), "{refusal:?}");
        }
        for refusal in [Refusal::Refused(302), Refusal::Fault(500), Refusal::Away(HttpFault::Timeout)] {
            assert!(refusal.error().speaks_against_the_supplier(), "{refusal:?}");
        }
    }

    #[test]
    fn lengths_are_said_as_people_say_them() {
        for (ms, expect) in
            [(90_000, "90 s"), (660_000, "11 min"), (14_400_000, "4 h"), (43_500_000, "12 h 5 min")]
        {
            assert_eq!(spoken(ms), expect);
        }
    }
}
