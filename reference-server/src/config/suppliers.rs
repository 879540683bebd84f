//! Settings of suppliers: their order per platform, concurrency and circuit breakers.

use std::{collections::BTreeMap, time::Duration};

use transcript_core::video::Platform;

use super::{
    layers::RawSettings, reader::SettingsReader, service::ServiceSettings, speech::SpeechSettings,
    upstream::YtDlpSettings, value::ParseSetting,
};

/// Supplier names, as in `source` on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SupplierName {
    /// `youtube-captions`
    YoutubeCaptions,
    /// `tiktok-captions`
    TiktokCaptions,
    /// `x-captions`
    XCaptions,
    /// `yt-dlp`
    Ytdlp,
    /// `verbatim-service`
    VerbatimService,
    /// `speech-to-text`
    SpeechToText,
}

impl SupplierName {
    const ALL: [Self; 6] = [
        Self::YoutubeCaptions,
        Self::TiktokCaptions,
        Self::XCaptions,
        Self::Ytdlp,
        Self::VerbatimService,
        Self::SpeechToText,
    ];

    /// Returns the name on the wire and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::YoutubeCaptions => "youtube-captions",
            Self::TiktokCaptions => "tiktok-captions",
            Self::XCaptions => "x-captions",
            Self::Ytdlp => "yt-dlp",
            Self::VerbatimService => "verbatim-service",
            Self::SpeechToText => "speech-to-text",
        }
    }

    /// Returns the supplier of a platform's own captions, if the platform has captions.
    pub fn captions(platform: Platform) -> Option<Self> {
        match platform {
            Platform::YouTube => Some(Self::YoutubeCaptions),
            Platform::TikTok => Some(Self::TiktokCaptions),
            Platform::Instagram => None,
            Platform::X => Some(Self::XCaptions),
        }
    }

    /// The section of the supplier's own settings.
    fn section(self) -> &'static str {
        match self {
            Self::YoutubeCaptions => "youtube",
            Self::TiktokCaptions => "tiktok",
            Self::XCaptions => "x",
            Self::Ytdlp => "ytdlp",
            Self::VerbatimService => "service",
            Self::SpeechToText => "speech",
        }
    }

    /// Default number of concurrent videos: programs and files take memory and disk space.
    fn max_concurrent_videos(self) -> u32 {
        match self {
            Self::YoutubeCaptions | Self::TiktokCaptions | Self::XCaptions | Self::VerbatimService => 32,
            Self::Ytdlp => 2,
            Self::SpeechToText => 4,
        }
    }

    /// Whether it can supply transcripts of a platform's videos.
    pub fn covers(self, platform: Platform) -> bool {
        matches!(self, Self::Ytdlp | Self::VerbatimService | Self::SpeechToText)
            || Self::captions(platform) == Some(self)
    }
}

impl ParseSetting for SupplierName {
    const ALLOWED: &'static str = "names of suppliers: youtube-captions, tiktok-captions, x-captions, yt-dlp, \
                                   verbatim-service, speech-to-text";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let name = String::read(raw)?;
        Self::ALL.into_iter().find(|supplier| supplier.as_str() == name).ok_or(None)
    }

    fn show(&self) -> String {
        self.as_str().to_owned().show()
    }
}

/// `suppliers.*`: suppliers of each platform in order, their concurrency and circuit breakers.
#[derive(Clone, Debug)]
pub struct SupplierSettings {
    by_platform: BTreeMap<Platform, Vec<SupplierName>>,
    videos: BTreeMap<SupplierName, u32>,
    /// `suppliers.breaker_threshold`: consecutive failures that open the circuit breaker; 0: never.
    pub breaker_threshold: u32,
    /// `suppliers.breaker_cooldown`: first cooldown. Each consecutive cooldown is twice as long.
    pub breaker_cooldown: Duration,
    /// `suppliers.breaker_cooldown_max`: longest cooldown.
    pub breaker_cooldown_max: Duration,
}

impl SupplierSettings {
    /// Reads the section. The default is the platform's captions, then the other configured suppliers.
    pub fn read(
        reader: &mut SettingsReader<'_>,
        ytdlp: &YtDlpSettings,
        service: &ServiceSettings,
        speech: &SpeechSettings,
    ) -> Self {
        let configured = |supplier: SupplierName| match supplier {
            SupplierName::Ytdlp => ytdlp.program.is_some(),
            SupplierName::VerbatimService => service.base_url.is_some(),
            SupplierName::SpeechToText => speech.base_url.is_some(),
            _ => true,
        };
        let mut by_platform = BTreeMap::new();
        for platform in Platform::ALL {
            let usable = |supplier: &SupplierName| supplier.covers(platform) && configured(*supplier);
            let default = SupplierName::ALL.into_iter().filter(usable).collect();
            let setting = format!("suppliers.{platform}");
            let names: Vec<SupplierName> = reader.value(&setting, default);
            for (index, name) in names.iter().enumerate() {
                let why = match name {
                    name if !name.covers(platform) => "it has no transcripts of this platform's videos",
                    name if !configured(*name) => "its own settings are missing",
                    name if names[..index].contains(name) => "it is named twice",
                    _ => continue,
                };
                reader.refuse(&setting, &format!("{} is not usable: {why}", name.as_str()), "leave it out");
            }
            by_platform.insert(platform, names);
        }
        let videos = |supplier: SupplierName| {
            let setting = format!("{}.max_concurrent_videos", supplier.section());
            (supplier, reader.small(&setting, supplier.max_concurrent_videos(), 1..=1_024))
        };
        let videos = SupplierName::ALL.into_iter().map(videos).collect();
        let second = Duration::from_secs(1);
        let suppliers = Self {
            by_platform,
            videos,
            breaker_threshold: reader.small("suppliers.breaker_threshold", 5, 0..=1_000),
            breaker_cooldown: reader.duration(
                "suppliers.breaker_cooldown",
                30 * second,
                second..=3_600 * second,
            ),
            breaker_cooldown_max: reader.duration(
                "suppliers.breaker_cooldown_max",
                900 * second,
                second..=86_400 * second,
            ),
        };
        if suppliers.breaker_cooldown > suppliers.breaker_cooldown_max {
            reader.refuse(
                "suppliers.breaker_cooldown",
                &"it is longer than suppliers.breaker_cooldown_max",
                "give a shorter time",
            );
        }
        suppliers
    }

    /// Returns the maximum number of videos a supplier works on concurrently.
    pub fn max_concurrent_videos(&self, supplier: SupplierName) -> u32 {
        self.videos.get(&supplier).copied().unwrap_or(1)
    }

    /// Returns the suppliers of a platform, in order.
    pub fn for_platform(&self, platform: Platform) -> &[SupplierName] {
        self.by_platform.get(&platform).map_or(&[], Vec::as_slice)
    }
}
