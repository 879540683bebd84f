//! Who listens to videos that have no captions.

use std::{path::PathBuf, time::Duration};

use verbatim::find_program;

use super::{
    layers::Raw,
    reader::Reader,
    value::{BaseUrl, ByteSize, Secret, Setting},
};

/// `speech.*`
#[derive(Clone, Debug)]
pub struct Speech {
    /// `speech.base_url`: an OpenAI-compatible speech-to-text service, `/v1` included.
    pub base_url: Option<BaseUrl>,
    /// `speech.model`: its model.
    pub model: Option<String>,
    /// `speech.api_key`: its key.
    pub api_key: Option<Secret>,
    /// `speech.max_duration`: longer videos are not listened to.
    pub max_duration: Duration,
    /// `speech.max_bytes`: the largest upload.
    pub max_bytes: u64,
    /// `speech.max_download`: the largest file of a platform that is fetched.
    pub max_download: u64,
    /// `speech.part`: the longest part that is sent at once.
    pub part: Duration,
    /// `speech.format`: in which form parts are sent.
    pub format: Format,
    /// `speech.timeout`: how long the service may take for one part.
    pub timeout: Duration,
    /// `speech.retries`: how often a part that failed in passing is sent again.
    pub retries: u32,
    /// `speech.concurrency`: how many parts are sent at once.
    pub concurrency: u32,
    /// `speech.ffmpeg`: the ffmpeg program.
    pub ffmpeg: PathBuf,
}

impl Speech {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
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
            part: reader.duration("speech.part", seconds(600), seconds(2)..=seconds(3_600)),
            format: reader.value("speech.format", Format::Ogg),
            timeout: reader.duration("speech.timeout", seconds(600), seconds(1)..=seconds(3_600)),
            retries: reader.small("speech.retries", 3, 0..=10),
            concurrency: reader.small("speech.concurrency", 2, 1..=64),
            ffmpeg: reader.value("speech.ffmpeg", PathBuf::from("ffmpeg")),
        };
        reader
            .needs(("speech.base_url", speech.base_url.is_some()), ("speech.model", speech.model.is_some()));
        speech
    }

    /// Whether the ffmpeg program is where it is looked for.
    pub fn has_ffmpeg(&self) -> bool {
        find_program(&self.ffmpeg).is_some()
    }
}

fn size(reader: &mut Reader<'_>, name: &str, default: u64, within: std::ops::RangeInclusive<u64>) -> u64 {
    let default = ByteSize(default);
    let given = reader.value(name, default);
    reader.within(name, given, default, &(ByteSize(*within.start())..=ByteSize(*within.end()))).0
}

/// In which form parts of a sound are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `ogg`
    Ogg,
    /// `flac`
    Flac,
    /// `wav`
    Wav,
}

impl Setting for Format {
    const ALLOWED: &'static str = "ogg, flac or wav";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
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
