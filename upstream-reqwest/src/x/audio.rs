//! HLS playlists (RFC 8216) of a video's audio, for videos in parts only. No I/O, and total.

use std::time::Duration;

use super::playlist::{PlaylistAttributes, check_whole, lines};
use crate::social::{SocialFailure, is_shorter};

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
    let lines = lines(text).ok_or_else(no_playlist)?;
    check_whole(text).map_err(unreadable)?;
    for line in lines {
        if let Some(attributes) = line.strip_prefix("#EXT-X-MAP:") {
            let attributes = PlaylistAttributes::read(attributes);
            match attributes.value("URI") {
                // Repetitions after a discontinuity must name the same initialization segment.
                Some(uri) if found.is_empty() && attributes.value("BYTERANGE").is_none() => found.push(uri),
                Some(uri) if found.first() == Some(&uri) => {}
                _ => return Err(unreadable("has several initialization segments")),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            found.push(line);
        }
    }
    match found.len() {
        0 => Err(unreadable("is empty")),
        1..=PARTS_MAX => Ok(found),
        _ => Err(unreadable("has too many parts")),
    }
}

/// Checks that the parts together are as long as the video, whose length X states.
pub(super) fn check_length(text: &str, stated_ms: u64) -> Result<(), SocialFailure> {
    let seconds = |line: &str| line.strip_prefix("#EXTINF:")?.split(',').next()?.trim().parse::<f64>().ok();
    let lengths = lines(text).into_iter().flatten().filter_map(seconds);
    let lengths = lengths.filter_map(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let length = lengths.fold(Duration::ZERO, Duration::saturating_add);
    match is_shorter(u64::try_from(length.as_millis()).unwrap_or(u64::MAX), stated_ms) {
        true => Err(unreadable("is shorter than the video")),
        false => Ok(()),
    }
}

fn unreadable(fault: &str) -> SocialFailure {
    SocialFailure::Unreadable(format!("the playlist of its audio {fault}"))
}

fn no_playlist() -> SocialFailure {
    unreadable("is invalid")
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
        assert_eq!(parts("#EXTM3U\n#EXTINF:3.0,\na.ts\n#EXT-X-ENDLIST").unwrap(), ["a.ts"]);
        let many = "a.ts\n".repeat(PARTS_MAX + 1);
        for bad in [
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\na.ts\n",
            "#EXT-X-BYTERANGE:7@0\na.ts\n",
            "#EXT-X-MEDIA-SEQUENCE:7\na.ts\n",
            "#EXT-X-GAP\na.ts\n",
            "#EXT-X-MAP:URI=\"/a\",BYTERANGE=\"7@0\"\na.ts\n",
            "#EXT-X-MAP:URI=\"/a\"\na.ts\n#EXT-X-MAP:URI=\"/b\"\nb.ts\n",
            "",
            &many,
        ] {
            let list = format!("#EXTM3U\n{bad}#EXT-X-ENDLIST\n");
            assert!(parts(&list).is_err(), "{}", bad.get(..60).unwrap_or(bad));
        }
        assert!(parts("nonsense").is_err() && parts("#EXTM3U\n#EXTINF:3.0,\na.ts\n").is_err());
    }

    #[test]
    fn playlist_shorter_than_video_is_refused() {
        let list =
            |part: &str, count| format!("#EXTM3U\n{}", format!("#EXTINF:{part}\na.ts\n").repeat(count));
        for (list, stated_ms, expect) in [
            (list("3.003,title", 10), 30_030, true),
            (list("3,", 10), 35_000, true),
            (list("3,", 10), 35_001, false),
            (list("3", 100), 315_000, true),
            (list("3", 100), 316_000, false),
            (list("3,", 0), 29_626, false),
            (list("soon,", 10), 29_626, false),
            (list("-3,", 10), 29_626, false),
            (list("inf,", 10), 29_626, false),
        ] {
            assert_eq!(check_length(&list, stated_ms).is_ok(), expect, "{stated_ms}");
        }
    }

    proptest! {
        #[test]
        fn playlist_any_text_does_not_panic(text in "(#EXTM3U\n)?(#EXT-X-(MEDIA|MAP|KEY|STREAM-INF):[A-Z\",=/a-z0-9-]{0,40}\n|[a-z/.]{0,9}\n){0,12}") {
            let _ = smallest(&text);
            let _ = parts(&text);
            let _ = check_length(&text, 29_626);
        }
    }
}
