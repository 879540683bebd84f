//! Failures of speech-to-text, and their messages.

use std::time::Duration;

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    transcript::{LanguageTag, TrackInfo, TrackKind},
};

use crate::http::HttpError;

/// Why there is no transcription. It contains no text of the service, which may include the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpeechFailure {
    /// The platform provided no file.
    Platform(SupplyError),
    /// The video has no audio, or too little.
    NoAudio,
    /// No speech was found.
    NoSpeech,
    /// The video exceeds the maximum length, in milliseconds; `length_ms` is its length if known.
    TooLong { length_ms: Option<u64>, max_ms: u64 },
    /// The spoken language is not the selected one.
    NoLanguage(LanguageTag),
    /// The platform's file contains no readable audio, or only a part of it.
    NotSound,
    /// The ffmpeg program cannot be run.
    NoProgram,
    /// The ffmpeg program failed, or took too long.
    ProgramFailed,
    /// No disk space for temporary files.
    NoRoom,
    /// No waiter is left.
    Cancelled,
    /// The deadline passed.
    TooSlow,

    /// The service returned no response.
    Unreachable(HttpError),
    /// The service is throttling, with its `Retry-After`.
    Throttled(Option<Duration>),
    /// The quota at the service is used up.
    QuotaExceeded,
    /// The service rejected the key.
    Key,
    /// The service does not know the model or the URL.
    Unknown,
    /// The chunk is too large for the service.
    PartTooLarge,
    /// The service rejected the request, with this status.
    Rejected(u16),
    /// The service failed with an internal error, with this status.
    ServerError(u16),
    /// The response is not a transcription; the text says why.
    Unreadable(&'static str),
    /// The times in the response are impossible; the text says why.
    Times(&'static str),
    /// The service returns no times: shorter chunks are needed to place the text.
    Untimed,
    /// The service returned no times for this audio, though it may for other audio.
    UntimedOnce,
}

impl SpeechFailure {
    /// Whether another media source may still have the audio.
    ///
    /// The failure is then not a property of the video for every source.
    pub(super) fn is_about_one_source(&self) -> bool {
        match self {
            Self::Platform(error) => {
                let reason = error.reason();
                !reason.is_final() && !matches!(reason, SupplyReason::NoCaptions | SupplyReason::Cancelled)
            }
            Self::NotSound => true,
            // Another source may state the language of the audio.
            Self::NoLanguage(language) => *language == LanguageTag::unknown(),
            _ => false,
        }
    }

    /// Whether a retry of the same chunk may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(fault) => {
                matches!(fault, HttpError::Timeout | HttpError::Unreachable(_) | HttpError::CutOff)
            }
            Self::Throttled(_) | Self::ServerError(_) | Self::Unreadable(_) | Self::Times(_) => true,
            _ => false,
        }
    }

    /// Whether a service that has no times of words may fail like this when they are requested.
    pub(super) fn may_concern_words(&self) -> bool {
        matches!(self, Self::Rejected(400 | 422) | Self::ServerError(500 | 501))
    }

    /// The supply error to report.
    pub(super) fn error(&self) -> SupplyError {
        match self {
            Self::Platform(error) => error.clone(),
            // Decoding errors, timeouts, rejections and impossible times may concern this audio alone.
            Self::NotSound
            | Self::ProgramFailed
            | Self::TooSlow
            | Self::Rejected(400 | 422)
            | Self::Times(_) => SupplyError::new(self.reason(), self.message()).ambiguous(),
            other => SupplyError::new(other.reason(), other.message()),
        }
    }

    fn reason(&self) -> SupplyReason {
        match self {
            Self::Platform(error) => error.reason().clone(),
            Self::NoAudio | Self::NoSpeech | Self::TooLong { .. } => SupplyReason::NoCaptions,
            Self::NoLanguage(language) => {
                SupplyReason::NoLanguage(spoken_track(language).into_iter().collect())
            }
            Self::NotSound | Self::Unreadable(_) | Self::Times(_) | Self::Untimed | Self::UntimedOnce => {
                SupplyReason::Unreadable
            }
            Self::NoProgram
            | Self::NoRoom
            | Self::QuotaExceeded
            | Self::Key
            | Self::Unknown
            | Self::PartTooLarge => SupplyReason::Misconfigured,
            Self::ProgramFailed | Self::Rejected(_) | Self::ServerError(_) => SupplyReason::PlatformFault,
            Self::Cancelled => SupplyReason::Cancelled,
            Self::TooSlow | Self::Unreachable(HttpError::Timeout) => SupplyReason::Timeout,
            Self::Unreachable(HttpError::TooLarge | HttpError::Encoded | HttpError::CutOff) => {
                SupplyReason::Unreadable
            }
            Self::Unreachable(_) => SupplyReason::Unreachable,
            Self::Throttled(wait) => SupplyReason::Throttled(*wait),
        }
    }

    fn message(&self) -> String {
        let text = match self {
            Self::NoAudio => "This video has no audio.",
            Self::NoSpeech => "This video contains no recognizable speech.",
            Self::TooLong { length_ms, max_ms } => return too_long(*length_ms, *max_ms),
            Self::NoLanguage(language) if *language == LanguageTag::unknown() => {
                "The spoken language of this video could not be detected. Request no language to get its transcript."
            }
            Self::NoLanguage(language) => {
                return format!("The spoken language of this video is {language}, not the requested one.");
            }
            Self::NotSound => {
                "The platform's file of this video is incomplete or contains no readable audio. Try again later."
            }
            Self::NoProgram => {
                "ffmpeg cannot be started. The operator can install ffmpeg or set speech.ffmpeg."
            }
            Self::ProgramFailed => "The audio of this video could not be decoded. Try again in a moment.",
            Self::NoRoom => {
                "The audio of this video could not be written to disk. The operator can free space in the folder \
                 for temporary files."
            }
            Self::Cancelled => "No waiter is left for this transcript.",
            Self::TooSlow => "The transcription of this video took too long. Try again later.",
            Self::Unreachable(fault) => return unreachable_message(fault),
            Self::Throttled(Some(wait)) => {
                return format!(
                    "The speech-to-text service receives too many requests. Try again in {} s.",
                    wait.as_secs().max(1)
                );
            }
            Self::Throttled(None) => {
                "The speech-to-text service receives too many requests. Try again later."
            }
            Self::QuotaExceeded => {
                "The quota at the speech-to-text service is used up. The operator can check the account."
            }
            Self::Key => {
                "The speech-to-text service rejected the API key. The operator can correct speech.api_key."
            }
            Self::Unknown => {
                "The speech-to-text service does not know the model or the URL. The operator can correct \
                 speech.base_url and speech.model."
            }
            Self::PartTooLarge => {
                "The upload is too large for the speech-to-text service. The operator can lower speech.max_bytes or \
                 speech.chunk_duration."
            }
            Self::Rejected(status) => {
                return format!("The speech-to-text service rejected the audio (HTTP {status}).");
            }
            Self::ServerError(status) => {
                return format!(
                    "The speech-to-text service failed with an internal error (HTTP {status}). Try again in a moment."
                );
            }
            Self::Unreadable(why) => {
                return format!(
                    "The response of the speech-to-text service is invalid: {why}. Try again later."
                );
            }
            Self::Times(why) => {
                return format!(
                    "The times in the response of the speech-to-text service are impossible: {why}."
                );
            }
            Self::Untimed | Self::UntimedOnce => "The speech-to-text service returns no times.",
            Self::Platform(error) => error.message(),
        };
        text.to_owned()
    }
}

fn unreachable_message(fault: &HttpError) -> String {
    let what = match fault {
        HttpError::Timeout => "took too long to respond. Try again later",
        HttpError::Unreachable(how) => {
            return format!("The speech-to-text service could not be reached: {how}.");
        }
        HttpError::TooLarge => "returned a response that is too large",
        _ => "ended its response early. Try again in a moment",
    };
    format!("The speech-to-text service {what}.")
}

fn too_long(length_ms: Option<u64>, max_ms: u64) -> String {
    let max = format_length(max_ms);
    match length_ms {
        Some(length) => format!(
            "This video has no captions and lasts {}; speech-to-text is limited to {max}.",
            format_length(length)
        ),
        None => format!("This video has no captions and lasts more than {max}, the limit of speech-to-text."),
    }
}

/// Formats a length for people: `4 h`, `12 h 5 min`, `90 s`.
fn format_length(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (hours, minutes) = (seconds / 3_600, seconds % 3_600 / 60);
    match (hours, minutes) {
        (0, _) if seconds < 600 => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// The track of the recognized language; `None` if it is unknown.
fn spoken_track(language: &LanguageTag) -> Option<TrackInfo> {
    let track = TrackInfo::new(language.clone(), TrackKind::Generated);
    (*language != LanguageTag::unknown()).then_some(TrackInfo { original: true, ..track })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_message_is_a_sentence() {
        for failure in [
            SpeechFailure::NoAudio,
            SpeechFailure::NoSpeech,
            SpeechFailure::TooLong { length_ms: Some(43_200_000), max_ms: 14_400_000 },
            SpeechFailure::TooLong { length_ms: None, max_ms: 90_000 },
            SpeechFailure::NoLanguage(LanguageTag::english()),
            SpeechFailure::NoLanguage(LanguageTag::unknown()),
            SpeechFailure::NotSound,
            SpeechFailure::NoProgram,
            SpeechFailure::ProgramFailed,
            SpeechFailure::NoRoom,
            SpeechFailure::Cancelled,
            SpeechFailure::TooSlow,
            SpeechFailure::Unreachable(HttpError::Timeout),
            SpeechFailure::Unreachable(HttpError::Unreachable("the connection failed")),
            SpeechFailure::Unreachable(HttpError::CutOff),
            SpeechFailure::Unreachable(HttpError::TooLarge),
            SpeechFailure::Throttled(None),
            SpeechFailure::Throttled(Some(Duration::from_secs(7))),
            SpeechFailure::QuotaExceeded,
            SpeechFailure::Key,
            SpeechFailure::Unknown,
            SpeechFailure::PartTooLarge,
            SpeechFailure::Rejected(400),
            SpeechFailure::ServerError(503),
            SpeechFailure::Unreadable("it is empty"),
            SpeechFailure::Times("they run backwards"),
            SpeechFailure::Untimed,
            SpeechFailure::UntimedOnce,
        ] {
            let error = failure.error();
            let message = error.message();
            assert!(
                message.ends_with('.') && !message.contains("  ") && !message.contains('\n'),
                "{message}"
            );
        }
    }

    #[test]
    fn failure_of_one_audio_does_not_count_against_supplier() {
        for failure in [
            SpeechFailure::TooSlow,
            SpeechFailure::Rejected(400),
            SpeechFailure::Rejected(422),
            SpeechFailure::NotSound,
        ] {
            assert!(!failure.error().counts_against_supplier(), "{failure:?}");
        }
        for failure in [
            SpeechFailure::Rejected(302),
            SpeechFailure::ServerError(500),
            SpeechFailure::Unreachable(HttpError::Timeout),
        ] {
            assert!(failure.error().counts_against_supplier(), "{failure:?}");
        }
    }

    #[test]
    fn length_is_formatted_for_people() {
        for (ms, expect) in
            [(90_000, "90 s"), (660_000, "11 min"), (14_400_000, "4 h"), (43_500_000, "12 h 5 min")]
        {
            assert_eq!(format_length(ms), expect);
        }
    }
}
