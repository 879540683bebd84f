//! HLS playlists (RFC 8216), as far as captions need them. Pure and total.

use transcript_core::transcript::{LanguageTag, TrackInfo, TrackKind};

use crate::social::{Refusal, Track, Tracks};

/// The most lines of a playlist, renditions, and parts of one rendition. A video of two hours in parts of four
/// seconds has 1,800 parts, but X puts the captions of a whole video into one.
const LINES_MAX: usize = 20_000;
const RENDITIONS_MAX: usize = 100;
const PARTS_MAX: usize = 24;

/// The caption tracks of a master playlist, each at the address of its own playlist.
pub(super) fn tracks(text: &str) -> Result<Tracks, Refusal> {
    let mut tracks: Vec<Track> = Vec::new();
    for line in lines(text).ok_or_else(no_playlist)? {
        let Some(attributes) = line.strip_prefix("#EXT-X-MEDIA:") else { continue };
        let attributes = Attributes::read(attributes);
        let (Some("SUBTITLES"), Some(uri)) = (attributes.value("TYPE"), attributes.value("URI")) else {
            continue;
        };
        // Each group of renditions may name the same file again.
        let is_new = !tracks.iter().any(|track| track.addresses.iter().any(|address| address == uri));
        if is_new && tracks.len() < RENDITIONS_MAX {
            let name = attributes.value("NAME").unwrap_or("");
            let language = language(attributes.value("LANGUAGE").unwrap_or(""), name);
            let info = TrackInfo::new(language, kind(name));
            tracks.push(Track { info, addresses: vec![uri.to_owned()] });
        }
    }
    mark_original(&mut tracks);
    Ok(Tracks(tracks))
}

/// The addresses of the parts of a rendition's own playlist, in order.
pub(super) fn parts(text: &str) -> Result<Vec<&str>, Refusal> {
    let lines = lines(text).ok_or_else(no_playlist)?;
    let parts: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    match parts.len() {
        0 => Err(Refusal::NoWords),
        1..=PARTS_MAX => Ok(parts),
        _ => Err(Refusal::UnreadableCaptions("they are in too many parts".to_owned())),
    }
}

/// The lines of a playlist; none when the text is no playlist.
pub(super) fn lines(text: &str) -> Option<impl Iterator<Item = &str>> {
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    text.starts_with("#EXTM3U").then(|| text.lines().map(str::trim).take(LINES_MAX))
}

fn no_playlist() -> Refusal {
    Refusal::UnreadableCaptions("their playlist is none".to_owned())
}

/// The language of a rendition; X leaves it out at times, and then writes it into the name of the file.
fn language(code: &str, name: &str) -> LanguageTag {
    if let Ok(tag) = LanguageTag::parse(code) {
        return tag;
    }
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let codes = words.filter(|word| matches!(word.split('-').next().map(str::len), Some(2)));
    codes.filter_map(|word| LanguageTag::parse(word).ok()).next().unwrap_or_else(LanguageTag::unknown)
}

/// How the words came to be: X's own come from a machine, those of a file that was uploaded from a person.
fn kind(name: &str) -> TrackKind {
    let name = name.to_ascii_lowercase();
    let is_file = [".srt", ".vtt"].iter().any(|end| name.ends_with(end));
    if is_file && !name.contains("auto") { TrackKind::Human } else { TrackKind::Generated }
}

/// What a machine heard is the spoken language, where it heard one.
fn mark_original(tracks: &mut [Track]) {
    let mut heard = tracks.iter().filter(|track| track.info.kind == TrackKind::Generated);
    let Some(spoken) = heard.next().map(|track| track.info.language.clone()) else { return };
    if heard.any(|track| track.info.language != spoken) {
        return;
    }
    for track in tracks {
        track.info.original = spoken.matches(&track.info.language);
    }
}

/// The attributes of a tag: names and values, of which some are in quotation marks.
pub(super) struct Attributes<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Attributes<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                // A comma inside quotation marks parts nothing.
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
    fn subtitles_are_found_whatever_the_order_of_their_attributes() {
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
    fn a_language_that_is_left_out_is_taken_from_the_name() {
        let line = |name: &str| format!("#EXT-X-MEDIA:TYPE=SUBTITLES,NAME=\"{name}\",URI=\"u\"");
        check(&line("en (auto-generated)"), &[("en", "generated", true, "u")]);
        check(&line("captions.en.srt"), &[("en", "human", false, "u")]);
        check(&line("captions.pt-BR.vtt"), &[("pt-BR", "human", false, "u")]);
        check(&line("Subtitles"), &[("und", "generated", true, "u")]);
        check(&line(""), &[("und", "generated", true, "u")]);
    }

    #[test]
    fn what_is_malformed_is_left_out() {
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
    fn parts_are_bounded() {
        assert_eq!(
            parts("#EXTM3U\n#EXTINF:5,\n/a.vtt\n\n#EXTINF:5,\nb.vtt\n#EXT-X-ENDLIST").unwrap(),
            ["/a.vtt", "b.vtt"]
        );
        assert_eq!(parts("#EXTM3U\n"), Err(Refusal::NoWords));
        assert!(matches!(
            parts(&format!("#EXTM3U\n{}", "/a\n".repeat(25))),
            Err(Refusal::UnreadableCaptions(_))
        ));
        assert!(matches!(parts("WEBVTT\n"), Err(Refusal::UnreadableCaptions(_))));
    }

    proptest! {
        #[test]
        fn any_text_has_a_meaning(text in "\\PC{0,80}", line in "[A-Z=\",#]{0,60}") {
            let _ = tracks(&text);
            let _ = tracks(&format!("#EXTM3U\n#EXT-X-MEDIA:{line}"));
            let _ = parts(&text);
        }
    }
}
