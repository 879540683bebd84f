//! Which suppliers are asked for a platform's videos, and in which order.

use std::collections::BTreeMap;

use transcript_core::video::Platform;

use super::{layers::Raw, reader::Reader, speech::Speech, upstream::Ytdlp, value::Setting};

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
    /// `speech-to-text`
    SpeechToText,
}

impl SupplierName {
    const ALL: [Self; 5] =
        [Self::YoutubeCaptions, Self::TiktokCaptions, Self::XCaptions, Self::Ytdlp, Self::SpeechToText];

    /// The name on the wire and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::YoutubeCaptions => "youtube-captions",
            Self::TiktokCaptions => "tiktok-captions",
            Self::XCaptions => "x-captions",
            Self::Ytdlp => "yt-dlp",
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

    /// Whether it can produce transcripts of a platform's videos.
    pub fn covers(self, platform: Platform) -> bool {
        matches!(self, Self::Ytdlp | Self::SpeechToText) || Self::captions_of(platform) == Some(self)
    }
}

impl Setting for SupplierName {
    const ALLOWED: &'static str =
        "names of suppliers: youtube-captions, tiktok-captions, x-captions, yt-dlp, speech-to-text";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        let name = String::read(raw)?;
        Self::ALL.into_iter().find(|supplier| supplier.as_str() == name).ok_or(None)
    }

    fn show(&self) -> String {
        self.as_str().to_owned().show()
    }
}

/// `suppliers.*`: the suppliers of each platform, in the order in which they are asked.
#[derive(Clone, Debug)]
pub struct Suppliers {
    of: BTreeMap<Platform, Vec<SupplierName>>,
}

impl Suppliers {
    /// Reads the section. The default is the platform's captions, then what is configured beside them.
    pub fn read(reader: &mut Reader<'_>, ytdlp: &Ytdlp, speech: &Speech) -> Self {
        let configured = |supplier: SupplierName| match supplier {
            SupplierName::Ytdlp => ytdlp.program.is_some(),
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
        Self { of }
    }

    /// The suppliers of a platform, in order.
    pub fn of(&self, platform: Platform) -> &[SupplierName] {
        self.of.get(&platform).map_or(&[], Vec::as_slice)
    }
}
