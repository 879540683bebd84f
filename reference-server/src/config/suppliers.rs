//! Which suppliers are asked for a platform's videos, and in which order.

use std::{collections::BTreeMap, time::Duration};

use transcript_core::video::Platform;

use super::{layers::Raw, reader::Reader, service::Service, speech::Speech, upstream::Ytdlp, value::Setting};

/// The suppliers that can be named, under the name that is `source` on the wire.
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

    /// The name on the wire and in settings.
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

    /// The supplier that reads a platform's own captions, where it offers any.
    pub fn captions_of(platform: Platform) -> Option<Self> {
        match platform {
            Platform::VideoSite => Some(Self::YoutubeCaptions),
            Platform::ShortVideo => Some(Self::TiktokCaptions),
            Platform::Reels => None,
            Platform::Microblog => Some(Self::XCaptions),
        }
    }

    /// The section of its own settings.
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

    /// With how many videos at once it works unless told otherwise: programs and files want room.
    fn videos(self) -> u32 {
        match self {
            Self::YoutubeCaptions | Self::TiktokCaptions | Self::XCaptions | Self::VerbatimService => 32,
            Self::Ytdlp => 2,
            Self::SpeechToText => 4,
        }
    }

    /// Whether it can produce transcripts of a platform's videos.
    pub fn covers(self, platform: Platform) -> bool {
        matches!(self, Self::Ytdlp | Self::VerbatimService | Self::SpeechToText)
            || Self::captions_of(platform) == Some(self)
    }
}

impl Setting for SupplierName {
    const ALLOWED: &'static str = "names of suppliers: youtube-captions, tiktok-captions, x-captions, yt-dlp, \
                                   verbatim-service, speech-to-text";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        let name = String::read(raw)?;
        Self::ALL.into_iter().find(|supplier| supplier.as_str() == name).ok_or(None)
    }

    fn show(&self) -> String {
        self.as_str().to_owned().show()
    }
}

/// `suppliers.*`: the suppliers of each platform, in the order in which they are asked, and how they are treated.
#[derive(Clone, Debug)]
pub struct Suppliers {
    of: BTreeMap<Platform, Vec<SupplierName>>,
    videos: BTreeMap<SupplierName, u32>,
    /// `suppliers.rest_after`: with how many videos in a row a supplier must fail to rest; 0: none ever rests.
    pub rest_after: u32,
    /// `suppliers.rest`: how long the first rest is; each further one in a row is twice as long.
    pub rest: Duration,
    /// `suppliers.rest_max`: the longest rest.
    pub rest_max: Duration,
}

impl Suppliers {
    /// Reads the section. The default is the platform's captions, then what is configured beside them.
    pub fn read(reader: &mut Reader<'_>, ytdlp: &Ytdlp, service: &Service, speech: &Speech) -> Self {
        let configured = |supplier: SupplierName| match supplier {
            SupplierName::Ytdlp => ytdlp.program.is_some(),
            SupplierName::VerbatimService => service.base_url.is_some(),
            SupplierName::SpeechToText => speech.base_url.is_some(),
            _ => true,
        };
        let mut of = BTreeMap::new();
        for platform in Platform::ALL {
            let usable = |supplier: &SupplierName| supplier.covers(platform) && configured(*supplier);
            let default = SupplierName::ALL.into_iter().filter(usable).collect();
            let setting = format!("suppliers.{platform}");
            let names: Vec<SupplierName> = reader.value(&setting, default);
            for (place, name) in names.iter().enumerate() {
                let why = match name {
                    name if !name.covers(platform) => "it has no transcripts of this platform's videos",
                    name if !configured(*name) => "its own settings are missing",
                    name if names[..place].contains(name) => "it is named twice",
                    _ => continue,
                };
                reader.refuse(&setting, &format!("{} cannot be asked: {why}", name.as_str()), "leave it out");
            }
            of.insert(platform, names);
        }
        let videos = |supplier: SupplierName| {
            let setting = format!("{}.videos", supplier.section());
            (supplier, reader.small(&setting, supplier.videos(), 1..=1_024))
        };
        let videos = SupplierName::ALL.into_iter().map(videos).collect();
        let second = Duration::from_secs(1);
        let suppliers = Self {
            of,
            videos,
            rest_after: reader.small("suppliers.rest_after", 5, 0..=1_000),
            rest: reader.duration("suppliers.rest", 30 * second, second..=3_600 * second),
            rest_max: reader.duration("suppliers.rest_max", 900 * second, second..=86_400 * second),
        };
        if suppliers.rest > suppliers.rest_max {
            reader.refuse("suppliers.rest", &"it is longer than suppliers.rest_max", "give a shorter time");
        }
        suppliers
    }

    /// With how many videos at once a supplier works.
    pub fn videos(&self, supplier: SupplierName) -> u32 {
        self.videos.get(&supplier).copied().unwrap_or(1)
    }

    /// The suppliers of a platform, in order.
    pub fn of(&self, platform: Platform) -> &[SupplierName] {
        self.of.get(&platform).map_or(&[], Vec::as_slice)
    }
}
