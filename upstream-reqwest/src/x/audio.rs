//! HLS playlists (RFC 8216) of a video's audio, for videos in parts only. No I/O, and total.

use super::playlist::{PlaylistAttributes, lines};
use crate::social::SocialFailure;

/// Maximum number of parts: four hours of X's parts of three seconds.
const PARTS_MAX: usize = 5_000;

/// The playlist with the smallest audio in a master playlist: audio only if available, else with video.
///
/// `None` if the text is not a master playlist, but already one of parts.
pub(super) fn smallest(text: &str) -> Result<Option<String>, SocialFailure> {
    let mut alone: Vec<(u64, &str)> = Vec::new();
    let mut with_picture: Vec<(u64, &str)> = Vec::new();
    // The bandwidth of the variant whose URL is on the next line.
    let mut next = None;
    for line in lines(text).ok_or_else(no_playlist)? {
        if let Some(attributes) = line.strip_prefix("#EXT-X-MEDIA:") {
            let attributes = PlaylistAttributes::read(attributes);
            if let (Some("AUDIO"), Some(uri)) = (attributes.value("TYPE"), attributes.value("URI")) {
                // The group's name contains its bitrate: audio-32000.
                let name = attributes.value("GROUP-ID").and_then(|name| name.rsplit('-').next());
                alone.push((name.and_then(|rate| rate.parse().ok()).unwrap_or(u64::MAX), uri));
            }
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-STREAM-INF:") {
            let rate =
                PlaylistAttributes::read(attributes).value("BANDWIDTH").and_then(|rate| rate.parse().ok());
            next = Some(rate.unwrap_or(u64::MAX));
        } else if !line.is_empty() && !line.starts_with('#') {
            with_picture.extend(next.take().map(|rate| (rate, line)));
        }
    }
    let forms = if alone.is_empty() { with_picture } else { alone };
    Ok(forms.into_iter().min_by_key(|(rate, _)| *rate).map(|(_, address)| address.to_owned()))
}

/// URLs of the parts in order; the first may be the initialization segment.
pub(super) fn parts(text: &str) -> Result<Vec<&str>, SocialFailure> {
    let mut found = Vec::new();
    let unreadable = |what: &str| Err(SocialFailure::Unreadable(format!("the playlist of its audio {what}")));
    for line in lines(text).ok_or_else(no_playlist)? {
        if let Some(attributes) = line.strip_prefix("#EXT-X-KEY:") {
            if PlaylistAttributes::read(attributes).value("METHOD") != Some("NONE") {
                return unreadable("is encrypted");
            }
        } else if line.starts_with("#EXT-X-BYTERANGE") {
            return unreadable("names byte ranges of files");
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-MAP:") {
            let attributes = PlaylistAttributes::read(attributes);
            match attributes.value("URI") {
                // Repetitions after a discontinuity must name the same initialization segment.
                Some(uri) if found.is_empty() && attributes.value("BYTERANGE").is_none() => found.push(uri),
                Some(uri) if found.first() == Some(&uri) => {}
                _ => return unreadable("has several initialization segments"),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            found.push(line);
        }
    }
    match found.len() {
        0 => unreadable("is empty"),
        1..=PARTS_MAX => Ok(found),
        _ => unreadable("has too many parts"),
    }
}

fn no_playlist() -> SocialFailure {
    SocialFailure::Unreadable("the playlist of its audio is invalid".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASTER: &str = "#EXTM3U\n\
        #EXT-X-MEDIA:NAME=\"Audio, loud\",TYPE=AUDIO,GROUP-ID=\"audio-128000\",URI=\"/c.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio-32000\",URI=\"/a.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"subs\",URI=\"/s.m3u8\"\n\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9000,AUDIO=\"audio-32000\"\n/v.m3u8\n";

    #[test]
    fn playlist_smallest_audio_only_rendition_is_chosen() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(smallest(text).unwrap().as_deref(), expect);
        check(MASTER, Some("/a.m3u8"));
        let muxed = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9000\nbig.m3u8\n#EXT-X-STREAM-INF:AVERAGE-BANDWIDTH=1,\
                     BANDWIDTH=700,CODECS=\"a,b\"\r\nsmall.m3u8\r\n";
        check(muxed, Some("small.m3u8"));
        check("#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"x\",URI=\"/only.m3u8\"", Some("/only.m3u8"));
        check("#EXTM3U\n#EXTINF:3,\na.m4s\n", None);
        assert!(smallest("<html>").is_err() && smallest("").is_err());
    }

    #[test]
    fn playlist_parts_follow_initialization_segment() {
        let list = "#EXTM3U\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI=\"/init.mp4\"\n#EXTINF:3.0,\n/0.m4s\n\
                    #EXT-X-MAP:URI=\"/init.mp4\"\n#EXTINF:3.0,\n/1.m4s\n#EXT-X-ENDLIST\n";
        assert_eq!(parts(list).unwrap(), ["/init.mp4", "/0.m4s", "/1.m4s"]);
        assert_eq!(parts("#EXTM3U\n#EXTINF:3.0,\na.ts\n").unwrap(), ["a.ts"]);
        let many = format!("#EXTM3U\n{}", "a.ts\n".repeat(PARTS_MAX + 1));
        for bad in [
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\na.ts\n",
            "#EXTM3U\n#EXT-X-BYTERANGE:7@0\na.ts\n",
            "#EXTM3U\n#EXT-X-MAP:URI=\"/a\",BYTERANGE=\"7@0\"\na.ts\n",
            "#EXTM3U\n#EXT-X-MAP:URI=\"/a\"\na.ts\n#EXT-X-MAP:URI=\"/b\"\nb.ts\n",
            "#EXTM3U\n#EXT-X-ENDLIST\n",
            "nonsense",
            &many,
        ] {
            assert!(parts(bad).is_err(), "{}", bad.get(..60).unwrap_or(bad));
        }
    }

    proptest! {
        #[test]
        fn playlist_any_text_does_not_panic(text in "(#EXTM3U\n)?(#EXT-X-(MEDIA|MAP|KEY|STREAM-INF):[A-Z\",=/a-z0-9-]{0,40}\n|[a-z/.]{0,9}\n){0,12}") {
            let _ = smallest(&text);
            let _ = parts(&text);
        }
    }
}
