//! Caption files of all formats, and what is written from them.

use transcript_core::{
    body,
    captions::{
        CaptionErrorKind, CaptionFormat, parse, parse_as, parse_raw_timedtext, parse_with_report, sniff,
        write_srt, write_webvtt, write_webvtt_with_words,
    },
    transcript::{SEGMENTS_MAX, Segment, TIME_MAX_MS, WORDS_MAX, paragraphs, prose, remove_unfit_words},
};

use crate::seeds;

const FORMATS: [CaptionFormat; 7] = [
    CaptionFormat::TimedText,
    CaptionFormat::Srv3,
    CaptionFormat::Json3,
    CaptionFormat::WebVtt,
    CaptionFormat::Srt,
    CaptionFormat::Ttml,
    CaptionFormat::Utterances,
];

/// The first byte selects the format: 0 to 6, any other the one that is detected.
pub(crate) fn run(input: &[u8]) {
    let Some((&selector, body)) = input.split_first() else { return };
    // The digit of a seed, so that seeds stay readable.
    let format = FORMATS.get(usize::from(selector.wrapping_sub(b'0'))).copied();
    let parsed = match format {
        Some(format) => parse_as(format, body),
        None => {
            let _ = parse_raw_timedtext(body);
            let parsed = parse(body);
            assert!(parsed.is_err() || sniff(body).is_some(), "captions have a format");
            let report = parse_with_report(body);
            assert_eq!(report.map(|report| report.segments), parsed);
            parsed
        }
    };
    if let Ok(segments) = parsed {
        check_guarantees(&segments);
        check_writers(&segments);
    }
}

/// What every parser guarantees.
fn check_guarantees(segments: &[Segment]) {
    assert!((1..=SEGMENTS_MAX).contains(&segments.len()));
    assert!(segments.is_sorted_by_key(|segment| segment.start_ms));
    for segment in segments {
        assert!(!segment.text.trim().is_empty() && !segment.text.contains('\0'), "{segment:?}");
        assert!(segment.start_ms <= TIME_MAX_MS && segment.end_ms() <= TIME_MAX_MS, "{segment:?}");
        assert!(segment.words.iter().all(|word| word.text.trim() == word.text), "{segment:?}");
    }
    assert!(segments.iter().map(|segment| segment.words.len()).sum::<usize>() <= WORDS_MAX);
    let mut fitting = segments.to_vec();
    remove_unfit_words(&mut fitting);
    assert_eq!(fitting, segments);
}

/// What is written from segments is read back as the same segments.
pub(crate) fn check_writers(segments: &[Segment]) {
    check_captions(segments, CaptionFormat::WebVtt, write_webvtt);
    check_captions(segments, CaptionFormat::Srt, write_srt);
    let json = body::segments::write(segments).expect("parsed segments are within the limits");
    let without_words: Vec<_> = segments.iter().map(without_words).collect();
    assert_eq!(body::segments::read(&json), Some(without_words));
    check_words(segments);
    check_stored_words(segments);
    prose(segments);
    paragraphs(segments);
}

fn without_words(segment: &Segment) -> Segment {
    Segment::new(segment.text.as_str(), segment.start_ms, segment.duration_ms)
}

/// Times of words change nothing else, and are read back as often as they are written.
fn check_words(segments: &[Segment]) {
    let plain = parse_as(CaptionFormat::WebVtt, write_webvtt(segments).as_bytes());
    let timed = parse_as(CaptionFormat::WebVtt, write_webvtt_with_words(segments).as_bytes());
    let (Ok(plain), Ok(timed)) = (plain, timed) else { return };
    assert_eq!(timed.iter().map(without_words).collect::<Vec<_>>(), plain);
    let again = parse_as(CaptionFormat::WebVtt, write_webvtt_with_words(&timed).as_bytes());
    assert_eq!(again, Ok(timed));
}

/// Words are stored unchanged.
fn check_stored_words(segments: &[Segment]) {
    let encoded = body::words::encode(segments);
    assert_eq!(encoded.is_some(), segments.iter().any(|segment| !segment.words.is_empty()));
    if let Some(encoded) = encoded {
        let mut decoded: Vec<_> = segments.iter().map(without_words).collect();
        assert_eq!(body::words::decode(&encoded, &mut decoded), Some(()));
        assert_eq!(decoded, segments);
    }
}

fn check_captions(segments: &[Segment], format: CaptionFormat, write: fn(&[Segment]) -> String) {
    let file = write(segments);
    let found = match parse_as(format, file.as_bytes()) {
        Ok(found) => found,
        Err(error) => {
            let is_readable = |c: char| !c.is_whitespace() && c != char::REPLACEMENT_CHARACTER;
            let is_unreadable = !segments.iter().any(|segment| segment.text.chars().any(is_readable));
            assert!(is_unreadable && error.kind() == CaptionErrorKind::NoCues, "{error}: {file:?}");
            return;
        }
    };
    assert_eq!(sniff(file.as_bytes()), Some(format), "{file:?}");
    assert_eq!(found.len(), segments.len(), "{file:?}");
    for (found, segment) in found.iter().zip(segments) {
        // Line ends are \n in a file.
        let text = segment.text.replace("\r\n", "\n").replace('\r', "\n");
        assert_eq!((found.text.as_str(), found.start_ms), (text.as_str(), segment.start_ms), "{file:?}");
        // A cue ends at the start of the next one at the latest. A duration of 0 is unknown.
        assert!(segment.duration_ms == 0 || found.end_ms() <= segment.end_ms(), "{file:?}");
    }
    assert_eq!(write(&found), file);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = seeds::texts(&[
        "0<?xml version=\"1.0\"?><transcript><text start=\"1.54\" dur=\"4.16\">I&amp;#39;m &lt;i&gt;in&lt;/i&gt;\
         </text><text start=\"9\"/></transcript>",
        "1<timedtext format=\"3\"><head><pen id=\"1\"/></head><body><p t=\"10\" d=\"20\"><s t=\"3\">a</s><br/>&lt;\
         </p><p t=\"30\" d=\"9\" a=\"1\">b</p></body></timedtext>",
        "2{\"wireMagic\":\"pb3\",\"events\":[{\"tStartMs\":0,\"dDurationMs\":5,\"segs\":[{\"utf8\":\"in\\n\",\
         \"tOffsetMs\":1}]},{\"tStartMs\":7,\"aAppend\":1,\"segs\":[{\"utf8\":\"x\"}]}]}",
        "3WEBVTT\nKind: captions\nLanguage: en\n\nNOTE x\n\nSTYLE\n::cue {}\n\n1\n00:00:01.000 --> 00:00:02.000 \
         line:0\n<v A>one &amp; <00:00:01.500><c>two</c><00:00:01.800>\n\n00:02.000 --> 00:03.000\none two\nthree\n",
        "3WEBVTT\n\n00:01.000 --> 00:02.000\n<00:01.000>met<00:01.500>\n\n00:02.000 --> 00:03.000\n<00:02.000>him\n",
        "41\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<b>one</b>\r\n\r\n2\r\n\
         00:00:02,000 --> 00:00:03,000\r\none\r\n",
        "41\n\n0:00:01.000,0:00:02.000\n\n<u>one</u> two\n\n2\n\n00: 00: 02, 000 --> 00:00:03,000\n\n\
         one <u>two</u>\n",
        "3WEBVTT\n\n00:00.000 --> 00:10.000\na &#146;\n\nWEBVTT\n\n00:00.000 --> 00:10.000\na &#146;\n",
        "5<tt ttp:timeBase=\"smpte\" ttp:dropMode=\"nonDrop\"><body><div xml:lang=\"en\" begin=\"10\" end=\"20\"><p \
         begin=\"15\">a <span xml:space=\"preserve\">b</span></p></div><div xml:lang=\"fr\"><p begin=\"00:00:15;00\">c</p>\
         </div></body></tt>",
        "5<tt xml:lang=\"en\" ttp:frameRate=\"25\"><body begin=\"1s\"><div><p begin=\"00:00:01:12\" dur=\"9f\">a<br/>\
         <span begin=\"1t\">b</span></p></div></body></tt>",
        "6{\"utterances\":[{\"text\":\"hi\",\"start_time\":1,\"end_time\":900,\"words\":[]}]}",
        "-\u{FEFF}WEBVTT\n\n00:01.000 --> 00:02.000\n12:00:01.5 --> 1:2,5\n\u{200B} \n&#58;\n",
    ]);
    let files = ["youtube", "tiktok", "x"]
        .map(|platform| seeds::recordings(platform, &["vtt", "srt", "ttml", "xml", "srv1", "srv3", "json3"]));
    seeds.extend(files.into_iter().flatten().map(|file| [b"-", file.as_slice()].concat()));
    seeds
}
