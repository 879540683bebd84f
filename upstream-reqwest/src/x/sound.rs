//! Where the sound of a video is that X has in parts only: its playlists (RFC 8216), as far as listening needs them.
//! Pure and total.

use super::playlist::{Attributes, lines};
use crate::social::Refusal;

/// The most parts of a sound: four hours of those of three seconds that X makes.
const PARTS_MAX: usize = 5_000;

/// The playlist of the smallest sound in a master playlist: sound alone where there is any, else with a picture.
/// None where the text is no master playlist, but one of parts already.
pub(super) fn smallest(text: &str) -> Result<Option<String>, Refusal> {
    let mut alone: Vec<(u64, &str)> = Vec::new();
    let mut with_picture: Vec<(u64, &str)> = Vec::new();
    // The bits a second of the form whose address comes on the next line.
    let mut next = None;
    for line in lines(text).ok_or_else(no_playlist)? {
        if let Some(attributes) = line.strip_prefix("#EXT-X-MEDIA:") {
            let attributes = Attributes::read(attributes);
            if let (Some("AUDIO"), Some(uri)) = (attributes.value("TYPE"), attributes.value("URI")) {
                // A group bears its bits a second in its name: audio-32000.
                let name = attributes.value("GROUP-ID").and_then(|name| name.rsplit('-').next());
                alone.push((name.and_then(|rate| rate.parse().ok()).unwrap_or(u64::MAX), uri));
            }
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-STREAM-INF:") {
            let rate = Attributes::read(attributes).value("BANDWIDTH").and_then(|rate| rate.parse().ok());
            next = Some(rate.unwrap_or(u64::MAX));
        } else if !line.is_empty() && !line.starts_with('#') {
            with_picture.extend(next.take().map(|rate| (rate, line)));
        }
    }
    let forms = if alone.is_empty() { with_picture } else { alone };
    Ok(forms.into_iter().min_by_key(|(rate, _)| *rate).map(|(_, address)| address.to_owned()))
}

/// The addresses of a sound's parts in order, of which the first may be only their beginning.
pub(super) fn parts(text: &str) -> Result<Vec<&str>, Refusal> {
    let mut found = Vec::new();
    let unreadable = |what: &str| Err(Refusal::Unreadable(format!("the playlist of its sound {what}")));
    for line in lines(text).ok_or_else(no_playlist)? {
        if let Some(attributes) = line.strip_prefix("#EXT-X-KEY:") {
            if Attributes::read(attributes).value("METHOD") != Some("NONE") {
                return unreadable("is locked");
            }
        } else if line.starts_with("#EXT-X-BYTERANGE") {
            return unreadable("names pieces of files");
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-MAP:") {
            let attributes = Attributes::read(attributes);
            match attributes.value("URI") {
                // Further ones say the same for what comes after a break.
                Some(uri) if found.is_empty() && attributes.value("BYTERANGE").is_none() => found.push(uri),
                Some(uri) if found.first() == Some(&uri) => {}
                _ => return unreadable("has more than one beginning"),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            found.push(line);
        }
    }
    match found.len() {
        0 => unreadable("is empty"),
        1..=PARTS_MAX => Ok(found),
        _ => unreadable("has more parts than any that are fetched"),
    }
}

fn no_playlist() -> Refusal {
    Refusal::Unreadable("the playlist of its sound is none".to_owned())
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
    fn the_smallest_sound_is_chosen_alone_where_it_is() {
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
    fn parts_come_in_order_behind_their_beginning() {
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
        fn any_text_is_read_or_refused(text in "(#EXTM3U\n)?(#EXT-X-(MEDIA|MAP|KEY|STREAM-INF):[A-Z\",=/a-z0-9-]{0,40}\n|[a-z/.]{0,9}\n){0,12}") {
            let _ = smallest(&text);
            let _ = parts(&text);
        }
    }
}
