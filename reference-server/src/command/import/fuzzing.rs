//! Entry points of the fuzz targets.

use std::path::Path;

use transcript_core::video::VideoId;

use super::{info::InfoFile, name::CaptionFileName};

/// Reads the path of a caption file.
pub fn import_name(path: &str) {
    let name = CaptionFileName::read(Path::new(path));
    if let Some(video) = &name.video {
        assert_eq!(VideoId::new(video.platform(), video.id()).as_ref(), Ok(video));
        assert!(path.contains(video.id()), "{video}");
    }
    assert!(name.language.is_none() || name.key.is_some());
}

/// Reads the metadata that yt-dlp writes next to captions with this language in their name.
pub fn import_info(json: &str, key: &str) {
    let Some(info) = InfoFile::parse(json.as_bytes()) else { return };
    info.video();
    info.title();
    info.author();
    info.duration_ms();
    assert!(info.metadata().check().is_ok());
    info.track(key);
}
