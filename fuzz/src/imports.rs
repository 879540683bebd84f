//! Files to import, their names, and the stored forms of transcripts.

use reference_server::fuzzing;
use transcript_core::{
    body::{segments, words, zstd_frame::ZstdFrame},
    transcript::{SEGMENTS_MAX, Segment, TIME_MAX_MS, Word},
};
use verbatim::ImportDraft;

use crate::seeds;

/// The first byte: `f` a file, `n` the name of a file, `i` yt-dlp's metadata next to a file, `z` a zstd frame, `s`
/// the stored segments, `w` the stored words.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind {
        b'f' => read_file(rest),
        b'n' => fuzzing::import_name(&String::from_utf8_lossy(rest)),
        b'i' => {
            let text = String::from_utf8_lossy(rest);
            let (key, json) = text.split_once('\n').unwrap_or(("en", &text));
            fuzzing::import_info(json, key);
        }
        b'z' => {
            if let Ok(frame) = ZstdFrame::read(rest) {
                let wrapped = frame.wrap_between(b"before", b"after");
                let length = ZstdFrame::read(&wrapped).expect("a frame that we write is valid").length();
                // A longer one is not declared.
                let expected = frame
                    .length()
                    .and_then(|length| length.checked_add(11))
                    .filter(|&length| length <= u32::MAX.into());
                assert_eq!(length, expected);
            }
        }
        b's' => {
            if let Some(read) = segments::read(rest)
                && let Ok(json) = segments::write(&read)
            {
                assert_eq!(segments::read(&json), Some(read));
            }
        }
        b'w' => read_words(rest),
        _ => {}
    }
}

/// Segments to which stored words belong.
fn lines() -> [Segment; 3] {
    [Segment::new("so, this is", 80, 2_800), Segment::new("", 900, 0), Segment::new("it 再见", 2_879, 900)]
}

/// Words that were decoded are stored unchanged.
fn read_words(bytes: &[u8]) {
    let mut segments = lines();
    if words::decode(bytes, &mut segments).is_none() {
        return;
    }
    if let Some(encoded) = words::encode(&segments) {
        let mut decoded = lines();
        assert_eq!(words::decode(&encoded, &mut decoded), Some(()));
        assert_eq!(decoded, segments);
    }
}

fn stored_words() -> Vec<u8> {
    let mut segments = lines();
    segments[0].words =
        [("so,", 80), ("this", 320), ("is", 639)].map(|(text, start)| Word::new(text, start, 240)).into();
    segments[2].words =
        vec![Word::new("it", 2_879, 121), Word::new("再", 3_000, 80), Word::new("见", 3_080, 699)];
    words::encode(&segments).unwrap_or_default()
}

fn read_file(body: &[u8]) {
    let drafts = match ImportDraft::read(body) {
        Ok(drafts) => drafts,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!drafts.is_empty());
    for draft in drafts {
        assert!(draft.withdrawn || (1..=SEGMENTS_MAX).contains(&draft.segments.len()));
        assert!(draft.segments.is_sorted_by_key(|segment| segment.start_ms));
        assert!(draft.segments.iter().all(|segment| segment.start_ms <= TIME_MAX_MS));
        if !draft.segments.is_empty() {
            let json =
                segments::write(&draft.segments).expect("the segments of a draft are within the limits");
            assert_eq!(segments::read(&json), Some(draft.segments));
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        r#"f[{"text":"b","start":2.5,"duration":1},{"text":"a","start":0.1,"duration":2.345}]"#,
        r#"f{"snippets":[{"text":"b","start":2.5,"duration":1}],"video_id":"dQw4w9WgXcQ","language":"English",
            "language_code":"en-GB","is_generated":true}"#,
        r#"f{"dQw4w9WgXcQ":[{"text":"b","start":2.5,"duration":1}],
            "aaaaaaaaaaa":{"snippets":[{"text":"b","start":2.5,"duration":1}]}}"#,
        r#"f{"videoId":"dQw4w9WgXcQ","platform":"video_site","available":true,"source":"x",
            "transcript":[{"text":"a","start":1,"duration":2}]}"#,
        r#"f{"language":"en","segments":[{"text":"a","start":1,"end":2.5,"words":[]}]}"#,
        r#"f{"format":"verbatim-export/1","platform":"video_site","videoId":"dQw4w9WgXcQ","title":"A","author":"B",
            "duration":60,"language":"en","kind":"human","source":"import","parserVersion":2,
            "tracks":[{"language":"en","kind":"human"}],
            "transcript":[{"text":"a","start":1,"duration":2}]}"#,
        "fWEBVTT\nLanguage: de\n\n00:01.000 --> 00:02.000\nhi\n",
        "nTitle [dQw4w9WgXcQ].en-orig.vtt",
        "nvideo_site/dQw4w9WgXcQ/zh-Hans.srt",
        "nTitle-dQw4w9WgXcQ.de-en-ehkg1hFWq8A.json3",
        r#"ide-en
           {"id":"dQw4w9WgXcQ","extractor_key":"Youtube","webpage_url":"https://x.com/a/status/20","title":"T",
            "channel":"C","duration":61.25,"language":"en","subtitles":{"en":[]},
            "automatic_captions":{"en-orig":[],"de":[],"de-en":[]}}"#,
        r#"s[{"text":"a","start":1.5,"duration":2.345}]"#,
    ])
    .into_iter()
    .chain([[b"w".as_slice(), &stored_words()].concat()])
    .chain([[b"z".as_slice(), &transcript_core::body::zstd_frame::uncompressed(b"[{\"text\":\"a\"}]")].concat()])
    .collect()
}
