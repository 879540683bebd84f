//! WebVTT, read as leniently as players read it.
//!
//! Removed are the header, notes, styles and regions, cue identifiers and settings, and the formatting tags of
//! [`super::markup`], with the speaker name of a voice tag. Entities are decoded. Line breaks inside a cue stay.
//! A cue with unreadable times is left out and reported; the others are kept. `X-TIMESTAMP-MAP` is not applied:
//! in a single file, and in segments that share one map, cue times count from the start of the video.
//!
//! Text that players drop because of an irregularity is kept: times in unusual notation ([`super::timing`]) or
//! in reverse order, a line with an arrow in a cue's text ("ten --> eleven"), an unclosed `<`, and tags and
//! entities that WebVTT does not define.

use super::{
    CaptionError,
    cue_collector::CueCollector,
    cue_file::CueFile,
    sniff::is_webvtt,
    timing::{ARROW, TimingLine, lines},
};
use crate::transcript::LanguageTag;

/// Maximum length of a kind, in bytes; the longest defined one is `descriptions`.
const KIND_LENGTH_MAX: usize = 16;

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let body = text.trim_start();
    if !is_webvtt(body) {
        return Err(CaptionError::not_captions("The captions do not begin with WEBVTT."));
    }
    let blank_lines =
        text.get(..text.len() - body.len()).map_or(0, |blank_lines| lines(blank_lines).count() - 1);
    let mut file = CueFile::for_webvtt();
    let mut header = WebVttHeader { is_open: true, ..WebVttHeader::default() };
    let mut outside_block = WebVttBlock::default();
    for (line, number) in lines(body).zip(1 + blank_lines as u64..) {
        header.read_line(line);
        match TimingLine::parse(line) {
            // The next cue needs no empty line before it; what precedes it there is its identifier.
            TimingLine::Times(start, end) => {
                outside_block = WebVttBlock::Nothing;
                end_before_timing(&mut file)?;
                file.begin(Some((start, end)), number);
            }
            TimingLine::Invalid => {
                outside_block = WebVttBlock::Nothing;
                end_before_timing(&mut file)?;
                file.begin(None, number);
            }
            TimingLine::NotTiming if line.is_empty() => {
                file.end()?;
                outside_block.end(&mut file);
            }
            TimingLine::NotTiming if file.is_open() => file.push_line(line),
            TimingLine::NotTiming => {
                if number > 1 + blank_lines as u64 && is_webvtt(line) {
                    file.begin_part();
                }
                outside_block.read_line(line, number);
            }
        }
    }
    outside_block.end(&mut file);
    let mut cues = file.finish()?;
    (cues.language, cues.kind) = (header.language, header.kind);
    Ok(cues)
}

/// Block of lines outside of cues that is being read.
#[derive(Clone, Copy, Debug, Default)]
enum WebVttBlock {
    /// No block, or only numbers so far.
    #[default]
    Nothing,
    /// A header, note, style or region: no text.
    NonText,
    /// An identifier if times follow, otherwise text that lost its times; in the line with this number.
    Untimed(u64),
}

impl WebVttBlock {
    fn read_line(&mut self, line: &str, number: u64) {
        let is_non_text =
            is_webvtt(line) || ["NOTE", "STYLE", "REGION"].iter().any(|name| line.starts_with(name));
        match self {
            Self::Nothing if is_non_text => *self = Self::NonText,
            Self::Nothing if line.contains(ARROW) || line.chars().any(char::is_alphabetic) => {
                *self = Self::Untimed(number)
            }
            _ => {}
        }
    }

    fn end(&mut self, file: &mut CueFile) {
        if let Self::Untimed(line) = std::mem::take(self) {
            file.count_left_out(line);
        }
    }
}

/// Metadata in the first block of a file: `Language: en`, `Kind: captions`.
#[derive(Default)]
struct WebVttHeader {
    is_open: bool,
    language: Option<LanguageTag>,
    kind: Option<String>,
}

impl WebVttHeader {
    /// Reads a line unless the header has ended.
    ///
    /// Some files have all fields in the first line, separated by `;`.
    fn read_line(&mut self, line: &str) {
        self.is_open &= !line.trim().is_empty() && TimingLine::parse(line) == TimingLine::NotTiming;
        if !self.is_open {
            return;
        }
        for (name, value) in
            line.trim_start_matches("WEBVTT").split(';').filter_map(|part| part.split_once(':'))
        {
            let value = value.trim();
            if name.trim().eq_ignore_ascii_case("language") {
                self.language = LanguageTag::parse(value).ok();
            } else if name.trim().eq_ignore_ascii_case("kind")
                && value.len() <= KIND_LENGTH_MAX
                && value.bytes().all(|c| c.is_ascii_alphabetic())
            {
                self.kind = Some(value.to_ascii_lowercase());
            }
        }
    }
}

/// Ends the open cue at a timing line. A number after a blank line is the identifier of the next cue.
fn end_before_timing(file: &mut CueFile) -> Result<(), CaptionError> {
    let mut last = file.payload().trim_end_matches('\n').rsplit('\n');
    if let (Some(number), Some(blank_lines)) = (last.next(), last.next())
        && !number.is_empty()
        && number.bytes().all(|c| c.is_ascii_digit())
        && blank_lines.trim().is_empty()
    {
        let length = file.payload().len() - number.len() - 1;
        file.truncate(length);
    }
    file.end()
}

#[cfg(test)]
mod tests {
    use crate::{
        captions::{CaptionErrorKind, CaptionFormat, parse_as, parse_with_report},
        transcript::Word,
    };

    fn check(body: &str, expect: &[(&str, u64, u64)]) {
        let segments = parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
        assert_eq!(found, expect, "{body:?}");
    }

    #[test]
    fn webvtt_headers_notes_and_styles_are_dropped() {
        check(
            "WEBVTT - title\nKind: captions\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n\
             NOTE a note\nof two lines\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:a\n\n\
             intro\n00:01.000 --> 00:02.000 align:start position:0%\nHello\nthere\n\n2\n00:03.000 --> \
             00:04.000\nBye",
            &[("Hello\nthere", 1_000, 2_000), ("Bye", 3_000, 4_000)],
        );
    }

    #[test]
    fn webvtt_text_outside_cues_is_reported() {
        for (between, expect) in [
            ("00:03.000 --> xx\nlost words", &[6_u64] as &[u64]),
            ("--> 00:06.000\nlost", &[6]),
            ("abc --> 00:06.000\nlost", &[6]),
            ("1.000 --> 2.000\nlost", &[6]),
            ("behind a blank line", &[6]),
            ("a\n\nb", &[6, 8]),
            ("NOTE a --> b\nno words", &[]),
            ("STYLE\n::cue { color: red }", &[]),
            ("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000", &[]),
            ("00:03.000 -->\nlost", &[6]),
            ("intro\n00:03.000 --> 00:04.000\nc", &[]),
            ("17", &[]),
        ] {
            let body = format!(
                "WEBVTT\n\n00:01.000 --> 00:02.000\nok\n\n{between}\n\n\n00:08.000 --> 00:09.000\nbye"
            );
            let parsed = parse_with_report(body.as_bytes()).unwrap();
            assert_eq!(parsed.left_out.lines, expect, "{between:?}");
            assert_eq!(parsed.segments.last().unwrap().text, "bye");
        }
    }

    #[test]
    fn webvtt_all_line_ends_and_byte_order_mark_are_read() {
        for end in ["\n", "\r\n", "\r", "\r\r\n"] {
            let body = "\u{FEFF}WEBVTT\n\n00:01.000 --> 00:02.000\na\nb\n\n00:02.000 --> 00:03.000\nc\n";
            check(&body.replace('\n', end), &[("a\nb", 1_000, 2_000), ("c", 2_000, 3_000)]);
        }
    }

    #[test]
    fn webvtt_tags_are_removed_before_entities_are_decoded() {
        check(
            "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Tom &amp; &lt;i&gt; List&lt;T&gt; &#39;x&#39; \
             &#x4e2d;&lrm;\n\n\
             00:02.000 --> 00:03.000\n<c.yellow>a</c> <00:00:02.500><c>b</c> <\n\n\
             00:03.000 --> 00:04.000\n&nbsp;\n",
            &[("Tom & <i> List<T> 'x' 中\u{200E}", 1_000, 2_000), ("a b <", 2_000, 3_000)],
        );
    }

    #[test]
    fn webvtt_broken_cues_are_dropped_others_kept() {
        check(
            "WEBVTT\n\n00:5s.000 --> 00:06.000\nbroken\n\n00:xx --> 00:04.000\nunreadable\n\n\
             00:01.000-->00:02.20\nshort\n\n00:02,500 --> 00:03,000\ncomma\n\n00:06.000 --> 00:07.000\n\n\
             -00:00:01.000 --> 00:00:00.500\nnegative\n\n9999:00:00.000 --> 9999:00:01.000\nlate",
            &[("negative", 0, 500), ("short", 1_000, 2_200), ("comma", 2_500, 3_000)],
        );
    }

    #[test]
    fn webvtt_irregular_cues_keep_text() {
        check(
            "WEBVTT\n\n00:05.000 --> 00:04.000\nbackwards\n\n00:06.000 --> 00:07.000\nten --> eleven\n\n\
             00:59.000 --> 00:60.000\nsixty\n\n01:01.000 --> 01:02.000line:0\nglued settings\n\n\
             01:03.000 --> 01:04.000\0line:0\nzero byte",
            &[
                ("backwards", 5_000, 5_000),
                ("ten --> eleven", 6_000, 7_000),
                ("sixty", 59_000, 60_000),
                ("glued settings", 61_000, 62_000),
                ("zero byte", 63_000, 64_000),
            ],
        );
    }

    #[test]
    fn webvtt_note_inside_cue_is_text() {
        check(
            "WEBVTT\n\nNOTE no words\n00:00.000 -->\n\n00:01.000 --> 00:02.000\nNOTE one\n\n\
             00:02.000 --> 00:03.000\nNOTE one\nNOTE two\n",
            &[("NOTE one", 1_000, 2_000), ("NOTE one\nNOTE two", 2_000, 3_000)],
        );
    }

    #[test]
    fn webvtt_timing_line_ends_previous_cue() {
        check(
            "WEBVTT\n00:01.000 --> 00:02.000\na\n00:02.000 --> 00:03.000\nb --> c\n \n7\n00:03.000 --> \
             00:04.000\n8\n",
            &[("a", 1_000, 2_000), ("b --> c", 2_000, 3_000), ("8", 3_000, 4_000)],
        );
    }

    #[test]
    fn webvtt_rolling_lines_appear_once() {
        check(
            "WEBVTT\n\n00:00.000 --> 00:02.990\n \nso<00:00:00.100><c> we</c>\n\n00:02.990 --> 00:03.000\n\
             so we\n \n\n\
             00:03.000 --> 00:05.000\nso we\nmet<00:00:03.100><c> him</c>\n",
            &[("so we", 0, 2_990), ("met him", 3_000, 5_000)],
        );
    }

    #[test]
    fn webvtt_inline_times_are_times_of_words() {
        let body = "WEBVTT\n\n00:00.000 --> 00:02.990\n \nso<00:00:00.100><c> we &amp;</c>\n\n\
                    00:02.990 --> 00:03.000\nso we &amp;\n \n\n\
                    00:03.000 --> 00:05.000\nso we &amp;\nmet<00:00:03.100><c> him</c><00:04.500>\n\n\
                    00:06.000 --> 00:07.000\n<v Ann>a<00:07.000> b<00:06.000> c\n";
        let segments = parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap();
        let words: Vec<Vec<_>> = segments.into_iter().map(|segment| segment.words).collect();
        assert_eq!(
            words,
            [
                vec![Word::new("so", 0, 100), Word::new("we &", 100, 2_890)],
                vec![Word::new("met", 3_000, 100), Word::new("him", 3_100, 1_400)],
                Vec::new(),
            ]
        );
    }

    #[test]
    fn webvtt_cue_split_by_playlist_is_joined() {
        check(
            "WEBVTT\n\n00:01.000 --> 00:02.000\nsame\n\nWEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00.000\n\n\
             00:02.000 --> 00:03.000\nsame\n\n00:03.000 --> 00:04.000\nsame\n",
            &[("same", 1_000, 3_000), ("same", 3_000, 4_000)],
        );
    }

    #[test]
    fn webvtt_overlapping_cues_at_seam_are_joined() {
        check(
            "WEBVTT\n\n00:00.000 --> 00:10.000\n[Music]\n\n00:02.000 --> 00:09.000\nSo we met\n\n\
             WEBVTT\n\n00:00.000 --> 00:10.000\n[Music]\n\n00:02.000 --> 00:09.000\nSo we met\n\n\
             00:09.000 --> 00:12.000\nhim\n\n\
             WEBVTT\n\n00:00.000 --> 00:14.000\n[Music]\n\n00:13.000 --> 00:14.000\nso we met\n",
            &[
                ("[Music]", 0, 14_000),
                ("So we met", 2_000, 9_000),
                ("him", 9_000, 12_000),
                ("so we met", 13_000, 14_000),
            ],
        );
        // Of many cues in a part those that end last are known at its end.
        let short: String = (10..40).map(|s| format!("00:{s}.000 --> 00:{s}.500\nat {s}\n\n")).collect();
        let long = "00:00.000 --> 00:50.000\n[Music]\n\n";
        let body = format!("WEBVTT\n\n{long}{short}WEBVTT\n\n{long}");
        assert_eq!(parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap().len(), 31);
        // What is in one part twice was said twice.
        check(
            "WEBVTT\n\n00:01.000 --> 00:02.000\nNo.\n\n00:02.000 --> 00:03.000\nNo.\n\n\
             WEBVTT\n\n00:02.000 --> 00:03.000\nNo.\n\n00:03.000 --> 00:04.000\nNo.\n",
            &[("No.", 1_000, 2_000), ("No.", 2_000, 3_000), ("No.", 3_000, 4_000)],
        );
    }

    #[test]
    fn webvtt_header_sets_language_and_kind() {
        for (header, language, kind) in [
            ("WEBVTT\nKind: captions\nLanguage: pt_br", Some("pt-BR"), Some("captions")),
            ("WEBVTT Kind: Subtitles; Language: de", Some("de"), Some("subtitles")),
            ("WEBVTT\rlanguage:zh-Hant", Some("zh-Hant"), None),
            ("WEBVTT\nLanguage: the one of Shakespeare\nKind: no kind", None, None),
            ("WEBVTT - Language\n\nLanguage: en", None, None),
            ("WEBVTT", None, None),
        ] {
            let parsed =
                parse_with_report(format!("{header}\n\n00:01.000 --> 00:02.000\nLanguage: fr\n").as_bytes())
                    .unwrap();
            assert_eq!(parsed.language.as_ref().map(|tag| tag.as_str()), language, "{header:?}");
            assert_eq!(parsed.kind.as_deref(), kind, "{header:?}");
        }
    }

    #[test]
    fn webvtt_other_formats_are_rejected() {
        let kind = |body: &str| parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<html></html>"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("00:01.000 --> 00:02.000\na"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("WEBVTT"), CaptionErrorKind::NoCues);
        assert_eq!(kind("WEBVTT\n\n00:01.000 --> 00:02.000\n\n"), CaptionErrorKind::NoCues);
        assert_eq!(kind("WEBVTT\n\nNOTE nothing"), CaptionErrorKind::NoCues);
    }
}
