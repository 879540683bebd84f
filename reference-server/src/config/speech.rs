//! Settings of speech-to-text.

use std::{path::PathBuf, time::Duration};

use verbatim::find_program;

use super::{
    layers::RawSettings,
    reader::SettingsReader,
    value::{BaseUrl, ByteSize, ParseSetting, Secret},
};

/// `speech.*`
#[derive(Clone, Debug)]
pub struct SpeechSettings {
    /// `speech.base_url`: an OpenAI-compatible speech-to-text service, `/v1` included.
    pub base_url: Option<BaseUrl>,
    /// `speech.model`: model name.
    pub model: Option<String>,
    /// `speech.api_key`: API key.
    pub api_key: Option<Secret>,
    /// `speech.max_duration`: longer videos are not transcribed.
    pub max_duration: Duration,
    /// `speech.max_bytes`: largest upload.
    pub max_bytes: u64,
    /// `speech.max_download`: largest media file downloaded from a platform.
    pub max_download: u64,
    /// `speech.chunk_duration`: longest audio chunk sent in one request.
    pub chunk_duration: Duration,
    /// `speech.format`: audio format of the chunks.
    pub format: SpeechFormat,
    /// `speech.timeout`: timeout of one chunk.
    pub timeout: Duration,
    /// `speech.retries`: number of retries of a chunk after a transient failure.
    pub retries: u32,
    /// `speech.concurrency`: maximum number of chunks sent concurrently.
    pub concurrency: u32,
    /// `speech.ffmpeg`: the ffmpeg program.
    pub ffmpeg: PathBuf,
}

impl SpeechSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let seconds = Duration::from_secs;
        let speech = Self {
            base_url: reader.optional("speech.base_url"),
            model: reader.optional("speech.model"),
            api_key: reader.optional("speech.api_key"),
            max_duration: reader.duration(
                "speech.max_duration",
                seconds(4 * 3_600),
                seconds(1)..=seconds(48 * 3_600),
            ),
            max_bytes: size(reader, "speech.max_bytes", 25_000_000, 100_000..=2_000_000_000),
            max_download: size(reader, "speech.max_download", 1_000_000_000, 100_000..=100_000_000_000),
            chunk_duration: reader.duration(
                "speech.chunk_duration",
                seconds(600),
                seconds(2)..=seconds(3_600),
            ),
            format: reader.value("speech.format", SpeechFormat::Ogg),
            timeout: reader.duration("speech.timeout", seconds(600), seconds(1)..=seconds(3_600)),
            retries: reader.small("speech.retries", 3, 0..=10),
            concurrency: reader.small("speech.concurrency", 2, 1..=64),
            ffmpeg: reader.value("speech.ffmpeg", PathBuf::from("ffmpeg")),
        };
        reader
            .needs(("speech.base_url", speech.base_url.is_some()), ("speech.model", speech.model.is_some()));
        speech
    }

    /// Whether the ffmpeg program exists.
    pub fn has_ffmpeg(&self) -> bool {
        find_program(&self.ffmpeg).is_some()
    }
}

fn size(
    reader: &mut SettingsReader<'_>,
    name: &str,
    default: u64,
    within: std::ops::RangeInclusive<u64>,
) -> u64 {
    let default = ByteSize(default);
    let given = reader.value(name, default);
    reader.within(name, given, default, &(ByteSize(*within.start())..=ByteSize(*within.end()))).0
}

/// Audio format of the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeechFormat {
    /// `ogg`
    Ogg,
    /// `flac`
    Flac,
    /// `wav`
    Wav,
}

impl ParseSetting for SpeechFormat {
    const ALLOWED: &'static str = "ogg, flac or wav";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        match String::read(raw)?.as_str() {
            "ogg" => Ok(Self::Ogg),
            "flac" => Ok(Self::Flac),
            "wav" => Ok(Self::Wav),
            _ => Err(None),
        }
    }

    fn show(&self) -> String {
        let name = match self {
            Self::Ogg => "ogg",
            Self::Flac => "flac",
            Self::Wav => "wav",
        };
        name.to_owned().show()
    }
}
