//! Names of suppliers.

use transcript_core::video::Platform;
use verbatim::{Options, SupplierOptions};

use super::{layers::RawSettings, reader::SettingsReader, value::ParseSetting};

/// Names of the suppliers, as in `source` on the wire.
const SUPPLIERS: [&str; 6] =
    ["youtube-captions", "tiktok-captions", "x-captions", "yt-dlp", "verbatim-service", "speech-to-text"];

#[derive(Clone, Copy, Debug)]
struct SupplierName(&'static str);

impl From<SupplierName> for String {
    fn from(name: SupplierName) -> Self {
        name.0.to_owned()
    }
}

impl ParseSetting for SupplierName {
    const ALLOWED: &'static str = "names of suppliers: youtube-captions, tiktok-captions, x-captions, yt-dlp, \
                                   verbatim-service, speech-to-text";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let given = String::read(raw)?;
        SUPPLIERS.into_iter().find(|name| *name == given).map(Self).ok_or(None)
    }

    fn show(&self) -> String {
        self.0.to_owned().show()
    }
}

/// Reads the suppliers of a platform, in order.
pub(super) fn read(reader: &mut SettingsReader<'_>, options: &mut Options, platform: Platform) {
    let place = options.suppliers.for_platform_mut(platform);
    reader.texts::<SupplierName>(place);
    let names = place.clone();
    for (index, name) in names.iter().enumerate() {
        let why = match name.as_str() {
            name if !covers(name, platform) => "it has no transcripts of this platform's videos",
            "yt-dlp" if options.ytdlp.program.is_none() => "its own settings are missing",
            "verbatim-service" if options.service.is_none() => "its own settings are missing",
            #[cfg(feature = "speech")]
            "speech-to-text" if options.speech.is_none() => "its own settings are missing",
            #[cfg(not(feature = "speech"))]
            "speech-to-text" => "this build lacks the feature speech",
            _ if names[..index].contains(name) => "it is named twice",
            _ => continue,
        };
        reader.refuse_this(&format!("{name} is not usable: {why}"), "leave it out");
    }
}

/// Whether a supplier can have transcripts of a platform's videos.
fn covers(name: &str, platform: Platform) -> bool {
    let mut one = SupplierOptions::none();
    one.add([name]);
    !one.for_platform(platform).is_empty()
}
