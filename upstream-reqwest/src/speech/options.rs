//! The knobs of listening: settings `speech.*` (design section 7).

use std::{fmt, path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

/// The shortest part that sound is cut into.
const PART_MIN: Duration = Duration::from_secs(2);

/// In which form a service is sent sound. All are one channel of 16,000 samples a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SoundFormat {
    /// Opus in Ogg: 11 MB an hour.
    #[default]
    Ogg,
    /// Without loss: some 60 MB an hour.
    Flac,
    /// As it is: 115 MB an hour; what whisper.cpp's own server reads without ffmpeg.
    Wav,
}

impl SoundFormat {
    /// The most bytes of one second, its share of everything around it included.
    fn bytes_a_second(self) -> u64 {
        match self {
            // 24 kbit/s on average, and more where much is said.
            Self::Ogg => 6_000,
            Self::Flac | Self::Wav => 33_000,
        }
    }

    /// What a file of this form is called: services tell forms by the name.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Ogg => "part.ogg",
            Self::Flac => "part.flac",
            Self::Wav => "part.wav",
        }
    }

    /// The media type.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Ogg => "audio/ogg",
            Self::Flac => "audio/flac",
            Self::Wav => "audio/wav",
        }
    }
}

/// Options of [`super::SpeechToText`].
#[derive(Clone)]
pub struct SpeechOptions {
    /// Where the service is, `/v1` included (`speech.base_url`). It is the operator's, so any host will do.
    pub base_url: String,
    /// Its model (`speech.model`).
    pub model: String,
    /// Its key, where it wants one (`speech.api_key`).
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Longer videos are not listened to (`speech.max_duration`).
    pub max_duration: Duration,
    /// The largest upload in bytes (`speech.max_bytes`).
    pub max_bytes: u64,
    /// The largest file of a platform that is fetched, in bytes (`speech.max_download`).
    pub max_download: u64,
    /// The longest part that is sent at once (`speech.part`); shorter where `max_bytes` wants it.
    pub part: Duration,
    /// In which form parts are sent (`speech.format`).
    pub format: SoundFormat,
    /// How long the service may take for one part (`speech.timeout`).
    pub timeout: Duration,
    /// How often a part that failed in passing is sent again (`speech.retries`).
    pub retries: u32,
    /// How many parts are sent at once, of all videos together (`speech.concurrency`).
    pub concurrency: u32,
    /// The ffmpeg program: a path, or a name that is looked for in `PATH` (`speech.ffmpeg`).
    pub ffmpeg: PathBuf,
}

impl Default for SpeechOptions {
    /// No service and no model; 4 h, uploads of 25 MB, files of 1 GB, parts of 10 min in Ogg, 10 min for a part,
    /// 3 retries, 2 parts at once, `ffmpeg`.
    fn default() -> Self {
        Self {
            base_url: String::new(),
            model: String::new(),
            api_key: None,
            ca_file: None,
            max_duration: Duration::from_secs(4 * 3_600),
            max_bytes: 25_000_000,
            max_download: 1_000_000_000,
            part: Duration::from_secs(600),
            format: SoundFormat::Ogg,
            timeout: Duration::from_secs(600),
            retries: 3,
            concurrency: 2,
            ffmpeg: PathBuf::from("ffmpeg"),
        }
    }
}

impl SpeechOptions {
    /// The address that parts are sent to, when the options are sound.
    pub(super) fn check(&self) -> Result<Url> {
        let wrong = || {
            Error::invalid(
                "speech.base_url must be http:// or https://, /v1 included, without a query or a user name",
            )
        };
        let mut url = Url::parse(&self.base_url).map_err(|_| wrong())?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain {
            return Err(wrong());
        }
        url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(["audio", "transcriptions"]);
        if self.model.trim().is_empty() || self.model.chars().any(char::is_control) {
            return Err(Error::invalid("speech.model must name a model of the service"));
        }
        if self.timeout.is_zero() || self.max_duration.is_zero() || self.max_download == 0 {
            return Err(Error::invalid(
                "speech.timeout, .max_duration and .max_download must be more than zero",
            ));
        }
        if self.concurrency == 0 || self.part < PART_MIN {
            return Err(Error::invalid("speech.concurrency must be at least 1, speech.part at least 2s"));
        }
        if self.part() < PART_MIN {
            return Err(Error::invalid("speech.max_bytes has no room for two seconds of sound"));
        }
        Ok(url)
    }

    /// The longest part that may be sent.
    pub(super) fn part(&self) -> Duration {
        self.part.min(Duration::from_secs(self.max_bytes / self.format.bytes_a_second()))
    }
}

impl fmt::Debug for SpeechOptions {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeechOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("has_key", &self.api_key.is_some())
            .field("part", &self.part())
            .field("format", &self.format)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(base_url: &str) -> SpeechOptions {
        SpeechOptions { base_url: base_url.to_owned(), model: "whisper-1".to_owned(), ..Default::default() }
    }

    #[test]
    fn parts_are_sent_below_the_base() {
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
    fn nonsense_is_named() {
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
    fn parts_fit_into_an_upload() {
        let part = |format, max_bytes| {
            SpeechOptions { format, max_bytes, ..options("https://a/v1") }.part().as_secs()
        };
        assert_eq!(part(SoundFormat::Ogg, 25_000_000), 600);
        assert_eq!(part(SoundFormat::Wav, 25_000_000), 600);
        assert_eq!(part(SoundFormat::Wav, 15_000_000), 454);
        assert_eq!(part(SoundFormat::Ogg, 600_000), 100);
    }

    #[test]
    fn the_key_is_never_shown() {
        let options = SpeechOptions { api_key: Some("sk-hush".to_owned()), ..options("https://a/v1") };
        assert!(!format!("{options:?}").contains("hush"));
    }
}
