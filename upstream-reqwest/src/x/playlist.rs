//! HLS playlists (RFC 8216), as far as captions need them. No I/O, and total.

use transcript_core::transcript::{LanguageTag, TrackInfo, TrackKind};

use crate::social::{SocialFailure, SocialTrack, SocialTracks};

/// Maximum number of lines per playlist, of renditions, and of parts per rendition.
///
/// A video of two hours in parts of four seconds has 1,800 parts, but X puts the captions of a whole video into one.
const LINES_MAX: usize = 20_000;
const RENDITIONS_MAX: usize = 100;
const PARTS_MAX: usize = 24;

/// The caption tracks of a master playlist, each with the URL of its playlist.
pub(super) fn tracks(text: &str) -> Result<SocialTracks, SocialFailure> {
    let mut tracks: Vec<SocialTrack> = Vec::new();
    for line in lines(text).ok_or_else(no_playlist)? {
        let Some(attributes) = line.strip_prefix("#EXT-X-MEDIA:") else { continue };
        let attributes = PlaylistAttributes::read(attributes);
        let (Some("SUBTITLES"), Some(uri)) = (attributes.value("TYPE"), attributes.value("URI")) else {
            continue;
        };
        // Several groups of renditions may name the same file.
        let is_new = !tracks.iter().any(|track| track.addresses.iter().any(|address| address == uri));
        if is_new && tracks.len() < RENDITIONS_MAX {
            let name = attributes.value("NAME").unwrap_or("");
            let language = language(attributes.value("LANGUAGE").unwrap_or(""), name);
            let info = TrackInfo::new(language, kind(name));
            tracks.push(SocialTrack { info, addresses: vec![uri.to_owned()] });
        }
    }
    mark_original(&mut tracks);
    Ok(SocialTracks(tracks))
}

/// URLs of the parts in a rendition's playlist, in order.
pub(super) fn parts(text: &str) -> Result<Vec<&str>, SocialFailure> {
    let lines = lines(text).ok_or_else(no_playlist)?;
    check_captions(text)?;
    let parts: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    match parts.len() {
        0 => Err(SocialFailure::EmptyCaptions),
        1..=PARTS_MAX => Ok(parts),
        _ => Err(SocialFailure::UnreadableCaptions("they are in too many parts".to_owned())),
    }
}

/// As [`check_whole`], for the playlist of captions.
pub(super) fn check_captions(text: &str) -> Result<(), SocialFailure> {
    check_whole(text).map_err(|fault| SocialFailure::IncompleteCaptions(format!("their playlist {fault}")))
}

/// Checks that a playlist lists its video from start to end, in parts that are whole, readable files.
///
/// X's playlists begin with part 0 and have an end. Without these, a list is cut off, or that of a broadcast.
///
/// # Errors
/// What is wrong, as the rest of a sentence about the playlist.
pub(super) fn check_whole(text: &str) -> Result<(), &'static str> {
    let mut has_end = false;
    for line in lines(text).into_iter().flatten() {
        if let Some(attributes) = line.strip_prefix("#EXT-X-KEY:") {
            if PlaylistAttributes::read(attributes).value("METHOD") != Some("NONE") {
                return Err("is encrypted");
            }
        } else if let Some(number) = line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:") {
            if number.trim().parse() != Ok(0_u64) {
                return Err("begins after the start of the video");
            }
        } else if line.starts_with("#EXT-X-BYTERANGE") {
            return Err("names byte ranges of files");
        } else if line.starts_with("#EXT-X-GAP") || line.starts_with("#EXT-X-SKIP") {
            return Err("has a gap");
        }
        has_end |= line == "#EXT-X-ENDLIST";
    }
    if has_end { Ok(()) } else { Err("has no end") }
}

/// The lines of a playlist; `None` if the text is not a playlist.
pub(super) fn lines(text: &str) -> Option<impl Iterator<Item = &str>> {
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    text.starts_with("#EXTM3U").then(|| text.lines().map(str::trim).take(LINES_MAX))
}

fn no_playlist() -> SocialFailure {
    SocialFailure::UnreadableCaptions("their playlist is invalid".to_owned())
}

/// The language of a rendition; sometimes X omits it and includes it in the name.
///
/// There it is the last part before the extension of a file, else the first word. Other words of two letters, as in
/// "Me at the zoo.srt", are no languages.
fn language(code: &str, name: &str) -> LanguageTag {
    if let Ok(tag) = LanguageTag::parse(code) {
        return tag;
    }
    let word = match file_stem(name) {
        Some(stem) => stem.rsplit('.').find(|part| !part.contains("auto")),
        None => name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next(),
    };
    // As `en`, `pt-BR` or `en_US`.
    let is_code = |word: &&str| match word.as_bytes().get(2) {
        None | Some(b'-') => true,
        Some(b'_') => word.len() == 5,
        Some(_) => false,
    };
    word.filter(is_code).and_then(|word| LanguageTag::parse(word).ok()).unwrap_or_else(LanguageTag::unknown)
}

/// The name of an uploaded file without its extension; `None` for another name.
fn file_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    ["srt", "vtt"].iter().any(|known| extension.eq_ignore_ascii_case(known)).then_some(stem)
}

/// The origin of a track: X's own captions are generated, uploaded files are written by a person.
fn kind(name: &str) -> TrackKind {
    let is_auto = name.to_ascii_lowercase().contains("auto");
    if file_stem(name).is_some() && !is_auto { TrackKind::Human } else { TrackKind::Generated }
}

/// Marks the language of generated captions as the original, if there is only one.
fn mark_original(tracks: &mut [SocialTrack]) {
    let mut generated = tracks.iter().filter(|track| track.info.kind == TrackKind::Generated);
    let Some(spoken) = generated.next().map(|track| track.info.language.clone()) else { return };
    if generated.any(|track| track.info.language != spoken) {
        return;
    }
    for track in tracks {
        track.info.original = spoken.matches(&track.info.language);
    }
}

/// The attributes of a tag: names and values, some of them quoted.
pub(super) struct PlaylistAttributes<'a>(Vec<(&'a str, &'a str)>);

impl<'a> PlaylistAttributes<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                // A comma inside quotation marks is part of the value.
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at_checked(after.find(',').unwrap_or(after.len())).unwrap_or((after, "")),
            };
            found.push((name.trim(), value));
            rest = after.trim_start().strip_prefix(',').unwrap_or("");
        }
        Self(found)
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(lines: &str, expect: &[(&str, &str, bool, &str)]) {
        for text in
            [format!("#EXTM3U\n{lines}"), format!("\u{FEFF}#EXTM3U\r\n{}", lines.replace('\n', "\r\n"))]
        {
            let found = tracks(&text).unwrap();
            let found: Vec<_> = found
                .0
                .iter()
                .map(|t| {
                    (t.info.language.as_str(), t.info.kind.as_str(), t.info.original, t.addresses[0].as_str())
                })
                .collect();
            assert_eq!(found, expect, "{lines}");
        }
    }

    #[test]
    fn playlist_attributes_in_any_order_are_read() {
        check(
            "#EXT-X-MEDIA:NAME=\"Audio\",TYPE=AUDIO,GROUP-ID=\"a\",URI=\"/a.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"subs\",NAME=\"English, of sorts\",DEFAULT=YES,LANGUAGE=\"en\",URI=\"/s.m3u8\"\n\
             #EXT-X-MEDIA:URI=\"/s.m3u8\",NAME=\"English\",TYPE=SUBTITLES,GROUP-ID=\"more\"\n\
             #EXT-X-MEDIA:LANGUAGE=\"pt-br\",URI=\"/captions.m3u8\",TYPE=SUBTITLES,NAME=\"captions.pt.srt\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES=\"subs\"\n/v.m3u8",
            &[("en", "generated", true, "/s.m3u8"), ("pt-BR", "human", false, "/captions.m3u8")],
        );
    }

    #[test]
    fn playlist_missing_language_is_taken_from_name() {
        let line = |name: &str| format!("#EXT-X-MEDIA:TYPE=SUBTITLES,NAME=\"{name}\",URI=\"u\"");
        check(&line("en (auto-generated)"), &[("en", "generated", true, "u")]);
        check(&line("captions.en.srt"), &[("en", "human", false, "u")]);
        check(&line("captions.pt-BR.vtt"), &[("pt-BR", "human", false, "u")]);
        check(&line("captions.en_US.SRT"), &[("en-US", "human", false, "u")]);
        check(&line("My trip.en.srt"), &[("en", "human", false, "u")]);
        check(&line("Me at the zoo.srt"), &[("und", "human", false, "u")]);
        check(&line("Subtitles of my trip"), &[("und", "generated", true, "u")]);
        check(&line("Subtitles"), &[("und", "generated", true, "u")]);
        check(&line(""), &[("und", "generated", true, "u")]);
    }

    #[test]
    fn playlist_malformed_rendition_is_skipped() {
        check(
            "#EXT-X-MEDIA:TYPE=SUBTITLES\n#EXT-X-MEDIA:TYPE=SUBTITLES,URI=\"\"\n#EXT-X-MEDIA:\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,URI=\"open,LANGUAGE=x\n#EXT-X-MEDIA:=,=",
            &[("und", "generated", true, "open,LANGUAGE=x")],
        );
        assert!(tracks("<html>").is_err() && tracks("").is_err());
        let many: String = (0..200).map(|n| format!("#EXT-X-MEDIA:TYPE=SUBTITLES,URI=\"{n}\"\n")).collect();
        assert_eq!(tracks(&format!("#EXTM3U\n{many}")).unwrap().0.len(), RENDITIONS_MAX);
    }

    #[test]
    fn playlist_part_count_is_bounded() {
        assert_eq!(
            parts("#EXTM3U\n#EXTINF:5,\n/a.vtt\n\n#EXTINF:5,\nb.vtt\n#EXT-X-ENDLIST").unwrap(),
            ["/a.vtt", "b.vtt"]
        );
        assert_eq!(parts("#EXTM3U\n#EXT-X-ENDLIST\n"), Err(SocialFailure::EmptyCaptions));
        let list = |count| format!("#EXTM3U\n{}#EXT-X-ENDLIST\n", "/a\n".repeat(count));
        assert_eq!(parts(&list(PARTS_MAX)).unwrap().len(), PARTS_MAX);
        assert!(matches!(parts(&list(PARTS_MAX + 1)), Err(SocialFailure::UnreadableCaptions(_))));
        assert!(matches!(parts("WEBVTT\n"), Err(SocialFailure::UnreadableCaptions(_))));
    }

    #[test]
    fn playlist_of_part_of_video_is_refused() {
        let check = |lines: &str| check_whole(&format!("#EXTM3U\n{lines}"));
        let whole = "#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:5,\na\n#EXT-X-ENDLIST";
        assert_eq!(check(whole), Ok(()));
        for (from, to, expect) in [
            ("#EXT-X-ENDLIST", "", "has no end"),
            ("#EXT-X-ENDLIST", "#EXT-X-ENDLI", "has no end"),
            ("SEQUENCE:0", "SEQUENCE:7", "begins after the start of the video"),
            ("SEQUENCE:0", "SEQUENCE:x", "begins after the start of the video"),
            ("METHOD=NONE", "METHOD=AES-128,URI=\"k\"", "is encrypted"),
            ("a\n", "#EXT-X-GAP\na\n", "has a gap"),
            ("#EXTINF", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXTINF", "has a gap"),
            ("a\n", "#EXT-X-BYTERANGE:7@0\na\n", "names byte ranges of files"),
        ] {
            assert_eq!(check(&whole.replace(from, to)), Err(expect), "{to}");
        }
    }

    proptest! {
        #[test]
        fn playlist_any_text_does_not_panic(text in "\\PC{0,80}", line in "[A-Z=\",#]{0,60}") {
            let _ = tracks(&text);
            let _ = tracks(&format!("#EXTM3U\n#EXT-X-MEDIA:{line}"));
            let _ = parts(&text);
        }
    }
}
