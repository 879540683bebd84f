//! Names of suppliers.

use transcript_core::{supplier::Supplier, video::Platform};

/// Suppliers of each platform by name, in the order in which they are called.
///
/// The names are those of `source` on the wire. Built in are `youtube-captions`, `tiktok-captions` and `x-captions`;
/// for every platform `yt-dlp` if its program is set, `verbatim-service` if [`crate::Options::service`] is set, and
/// `speech-to-text` if [`crate::Options::speech`] is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierOptions {
    /// Suppliers for YouTube.
    pub youtube: Vec<String>,
    /// Suppliers for TikTok.
    pub tiktok: Vec<String>,
    /// Suppliers for Instagram.
    pub instagram: Vec<String>,
    /// Suppliers for X.
    pub x: Vec<String>,
}

impl SupplierOptions {
    /// No suppliers: only archived or imported transcripts are found.
    pub fn none() -> Self {
        Self { youtube: Vec::new(), tiktok: Vec::new(), instagram: Vec::new(), x: Vec::new() }
    }

    /// Adds built-in suppliers by name to every platform that they cover, after the present ones. A present one keeps
    /// its position.
    ///
    /// Returns whether every name is known.
    pub fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let mut all_known = true;
        for name in names {
            let platforms: &[Platform] = match name {
                "youtube-captions" => &[Platform::YouTube],
                "tiktok-captions" => &[Platform::TikTok],
                "x-captions" => &[Platform::X],
                "yt-dlp" | "verbatim-service" | "speech-to-text" => &Platform::ALL,
                _ => &[],
            };
            all_known &= !platforms.is_empty();
            self.add_for(name, platforms);
        }
        all_known
    }

    /// Adds a supplier of the caller ([`crate::CustomPorts::suppliers`]), after the present ones.
    pub fn add_custom(&mut self, custom: &dyn Supplier) {
        let info = custom.info();
        self.add_for(&info.name, &info.platforms);
    }

    /// Suppliers of a platform.
    pub fn for_platform(&self, platform: Platform) -> &[String] {
        match platform {
            Platform::YouTube => &self.youtube,
            Platform::TikTok => &self.tiktok,
            Platform::Instagram => &self.instagram,
            Platform::X => &self.x,
        }
    }

    /// Suppliers of a platform, to change.
    pub fn for_platform_mut(&mut self, platform: Platform) -> &mut Vec<String> {
        match platform {
            Platform::YouTube => &mut self.youtube,
            Platform::TikTok => &mut self.tiktok,
            Platform::Instagram => &mut self.instagram,
            Platform::X => &mut self.x,
        }
    }

    fn add_for(&mut self, name: &str, platforms: &[Platform]) {
        for platform in platforms {
            let names = self.for_platform_mut(*platform);
            if !names.iter().any(|present| present == name) {
                names.push(name.to_owned());
            }
        }
    }
}

impl Default for SupplierOptions {
    fn default() -> Self {
        if !cfg!(feature = "upstream") {
            return Self::none();
        }
        let captions = |name: &str| vec![name.to_owned()];
        Self {
            youtube: captions("youtube-captions"),
            tiktok: captions("tiktok-captions"),
            instagram: Vec::new(),
            x: captions("x-captions"),
        }
    }
}
