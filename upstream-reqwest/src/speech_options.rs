//! Options of speech-to-text: settings `speech.*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

use crate::base_url::endpoint_url;

/// Minimum length of a chunk.
const PART_MIN: Duration = Duration::from_secs(2);

/// Audio format of uploads. All have one channel with 16,000 samples per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AudioFormat {
    /// Opus in Ogg: 11 MB per hour.
    #[default]
    Ogg,
    /// Lossless: about 60 MB per hour.
    Flac,
    /// Uncompressed: 115 MB per hour. The server of whisper.cpp reads it without ffmpeg.
    Wav,
}

impl AudioFormat {
    /// Maximum bytes per second, including a share of the container.
    fn bytes_per_second(self) -> u64 {
        match self {
            // 24 kbit/s on average, and more for dense speech.
            Self::Ogg => 6_000,
            Self::Flac | Self::Wav => 33_000,
        }
    }

    /// File name of an upload: services detect the format by its extension.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Self::Ogg => "part.ogg",
            Self::Flac => "part.flac",
            Self::Wav => "part.wav",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Ogg => "audio/ogg",
            Self::Flac => "audio/flac",
            Self::Wav => "audio/wav",
        }
    }
}

/// Options of `SpeechToText`.
#[derive(Clone, smart_default::SmartDefault)]
pub struct SpeechOptions {
    /// URL of the service, including `/v1` (`speech.base_url`).
    ///
    /// The operator chooses it, so any host is allowed.
    pub base_url: String,
    /// The model (`speech.model`).
    pub model: String,
    /// The API key, if the service needs one (`speech.api_key`).
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum length of a video (`speech.max_duration`).
    #[default(Duration::from_secs(4 * 3_600))]
    pub max_duration: Duration,
    /// Maximum size of an upload in bytes (`speech.max_bytes`).
    #[default(25_000_000)]
    pub max_bytes: u64,
    /// Maximum size of a downloaded file in bytes (`speech.max_download`).
    #[default(1_000_000_000)]
    pub max_download: u64,
    /// Maximum length of a chunk (`speech.chunk_duration`); `max_bytes` may reduce it.
    #[default(Duration::from_secs(600))]
    pub part: Duration,
    /// Audio format of uploads (`speech.format`).
    pub format: AudioFormat,
    /// Timeout of the service for one chunk (`speech.timeout`).
    #[default(Duration::from_secs(600))]
    pub timeout: Duration,
    /// Number of retries of a chunk after a transient error (`speech.retries`).
    #[default(3)]
    pub retries: u32,
    /// Maximum number of concurrent uploads, over all videos (`speech.concurrency`).
    #[default(2)]
    pub concurrency: u32,
    /// The ffmpeg program: a path, or a name that is searched in `PATH` (`speech.ffmpeg`).
    #[default("ffmpeg")]
    pub ffmpeg: PathBuf,
}

impl SpeechOptions {
    /// Validates the options; returns the URL for uploads.
    pub(crate) fn check(&self) -> Result<Url> {
        let url = endpoint_url("speech.base_url", &self.base_url, "audio/transcriptions")?;
        if self.model.trim().is_empty() || self.model.chars().any(char::is_control) {
            return Err(Error::invalid("speech.model must name a model of the service"));
        }
        if self.timeout.is_zero() || self.max_duration.is_zero() || self.max_download == 0 {
            return Err(Error::invalid(
                "speech.timeout, .max_duration and .max_download must be more than zero",
            ));
        }
        if self.concurrency == 0 || self.part < PART_MIN {
            return Err(Error::invalid(
                "speech.concurrency must be at least 1, speech.chunk_duration at least 2s",
            ));
        }
        if self.chunk_duration() < PART_MIN {
            return Err(Error::invalid("speech.max_bytes must fit two seconds of audio"));
        }
        Ok(url)
    }

    /// The effective maximum length of a chunk.
    pub(crate) fn chunk_duration(&self) -> Duration {
        self.part.min(Duration::from_secs(self.max_bytes / self.format.bytes_per_second()))
    }
}

// Omits the key.
transcript_core::debug_fields!(SpeechOptions |this| {
    base_url, model, has_key: this.api_key.is_some(), part: this.chunk_duration(), format, timeout
});

#[cfg(test)]
mod tests {
    use super::*;

    fn options(base_url: &str) -> SpeechOptions {
        SpeechOptions { base_url: base_url.to_owned(), model: "whisper-1".to_owned(), ..Default::default() }
    }

    #[test]
    fn speech_url_is_below_base_url() {
        for (base, expect) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/audio/transcriptions"),
            ("http://10.0.0.3:8000/v1/", "http://10.0.0.3:8000/v1/audio/transcriptions"),
            ("http://localhost", "http://localhost/audio/transcriptions"),
        ] {
            assert_eq!(options(base).check().unwrap().as_str(), expect);
        }
        for bad in
            ["", "api.openai.com/v1", "ftp://a/v1", "https://me@a/v1", "https://a/v1?key=1", "data:text"]
        {
            assert!(options(bad).check().unwrap_err().message().contains("base_url"), "{bad}");
        }
    }

    #[test]
    fn speech_options_invalid_value_is_named() {
        let good = options("https://a/v1");
        for (options, named) in [
            (SpeechOptions { model: " ".to_owned(), ..good.clone() }, "model"),
            (SpeechOptions { timeout: Duration::ZERO, ..good.clone() }, "timeout"),
            (SpeechOptions { concurrency: 0, ..good.clone() }, "concurrency"),
            (SpeechOptions { max_bytes: 9_000, ..good.clone() }, "max_bytes"),
        ] {
            assert!(options.check().unwrap_err().message().contains(named), "{named}");
        }
    }

    #[test]
    fn chunk_length_fits_upload_limit() {
        let part = |format, max_bytes| {
            SpeechOptions { format, max_bytes, ..options("https://a/v1") }.chunk_duration().as_secs()
        };
        assert_eq!(part(AudioFormat::Ogg, 25_000_000), 600);
        assert_eq!(part(AudioFormat::Wav, 25_000_000), 600);
        assert_eq!(part(AudioFormat::Wav, 15_000_000), 454);
        assert_eq!(part(AudioFormat::Ogg, 600_000), 100);
    }

    #[test]
    fn speech_options_debug_hides_key() {
        let options = SpeechOptions { api_key: Some("sk-hush".to_owned()), ..options("https://a/v1") };
        assert!(!format!("{options:?}").contains("hush"));
    }
}
