use transcript_core::ErrorKind;

use transcript_core::time::Timestamp;
use transcript_core::transcript::{Chapter, VideoMetadata, Word};

use super::*;

const SNIPPETS: &str = r#"[{"text":"b","start":2.5,"duration":1},{"text":"a","start":0.1,"duration":2.345},
    {"text":" ","start":9,"duration":1}]"#;

#[test]
fn draft_with_half_emoji_is_read() {
    let drafts = ImportDraft::read(br#"[{"text":"a \ud83d","start":0,"duration":1}]"#).unwrap();
    assert_eq!(drafts[0].segments[0].text, "a \u{FFFD}");
}

fn segments() -> Vec<Segment> {
    vec![Segment::new("a", 100, 2_345), Segment::new("b", 2_500, 1_000)]
}

fn parse_single(body: &str) -> ImportDraft {
    let mut drafts = ImportDraft::read(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(drafts.len(), 1, "{body}");
    drafts.remove(0)
}

fn video() -> Option<VideoId> {
    VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").ok()
}

#[test]
fn json_snippet_list_is_transcript() {
    for body in [SNIPPETS.to_owned(), format!("\u{FEFF} \n[{SNIPPETS}]\n")] {
        assert_eq!(
            parse_single(&body),
            ImportDraft { segments: segments(), ..ImportDraft::default() },
            "{body}"
        );
    }
    let ends = parse_single(r#"{"language":"en","segments":[{"text":"a","start":1,"end":2.5,"words":[]}]}"#);
    assert_eq!(ends.segments, [Segment::new("a", 1_000, 1_500)]);
}

#[test]
fn json_in_utf16_is_read() {
    let text = format!("\u{FEFF}\r\n{}", SNIPPETS.replace("\"a\"", "\"é\""));
    for is_little in [true, false] {
        let bytes = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        let body: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
        let segments = ImportDraft::read(&body).unwrap().remove(0).segments;
        assert_eq!(segments, [Segment::new("é", 100, 2_345), Segment::new("b", 2_500, 1_000)]);
    }
}

#[test]
fn text_in_brackets_is_named() {
    for body in [
        "[Script Info]\nTitle: x",
        "\u{FEFF}[00:12.00]So",
        "[ti:So]\n",
        "[00:00.000 --> 00:04.000]  So",
        "[INFORMATION]\n[TITLE]\n",
        "{25}{50}Hello there|you",
        "{1}{1}23.976\n",
    ] {
        let error = ImportDraft::read(body.as_bytes()).unwrap_err();
        assert!(error.message().contains("ASS, LRC"), "{error}: {body}");
    }
}

#[test]
fn json_object_has_transcript_metadata() {
    let english = LanguageTag::parse("en-GB").ok();
    let expect = ImportDraft {
        video: video(),
        language: english,
        kind: Some(TrackKind::Generated),
        segments: segments(),
        ..ImportDraft::default()
    };
    let library = format!(
        r#"{{"snippets":{SNIPPETS},"video_id":"dQw4w9WgXcQ","language":"English","language_code":"en-GB",
            "is_generated":true}}"#
    );
    assert_eq!(parse_single(&library), expect);
    let v1 = format!(
        r#"{{"video_id":"dQw4w9WgXcQ","title":"T","language":"en-GB","is_generated":true,"segments":{SNIPPETS}}}"#
    );
    assert_eq!(parse_single(&v1), ImportDraft { title: Some("T".to_owned()), ..expect });
    let look_up = format!(
        r#"{{"platform":"microblog","videoId":"20","available":true,"fromCache":true,"watchUrl":"x",
            "source":"x-captions","transcript":{SNIPPETS}}}"#
    );
    let draft = parse_single(&look_up);
    assert_eq!(draft.video, VideoId::new(Platform::X, "20").ok());
    assert_eq!((draft.source.as_deref(), draft.segments), (Some("x-captions"), segments()));
}

#[test]
fn json_object_by_video_has_several_transcripts() {
    let document = format!(r#"{{"snippets":{SNIPPETS},"language_code":"de"}}"#);
    let body = format!(r#"{{"dQw4w9WgXcQ":{SNIPPETS},"L1ghth0use1":{document}}}"#);
    let drafts = ImportDraft::read(body.as_bytes()).unwrap();
    let found: Vec<_> = drafts
        .iter()
        .map(|draft| {
            (draft.video.as_ref().map(VideoId::id), draft.language.as_ref().map(LanguageTag::as_str))
        })
        .collect();
    assert_eq!(found, [(Some("L1ghth0use1"), Some("de")), (Some("dQw4w9WgXcQ"), None)]);
    let list = format!(
        r#"[{{"video_id":"dQw4w9WgXcQ","snippets":{SNIPPETS}}},
        {{"video_id":"L1ghth0use1","snippets":{SNIPPETS}}}]"#
    );
    assert_eq!(ImportDraft::read(list.as_bytes()).unwrap().len(), 2);
}

#[test]
fn json_lines_are_transcripts_of_several_videos() {
    let line = |id: &str| format!(r#"{{"videoId":"{id}","available":true,"transcript":{SNIPPETS}}}"#);
    let body = format!("{}\n{}\n", line("dQw4w9WgXcQ"), line("L1ghth0use1"));
    let drafts = ImportDraft::read(body.as_bytes()).unwrap();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.video.as_ref().map(VideoId::id)).collect();
    assert_eq!(ids, [Some("dQw4w9WgXcQ"), Some("L1ghth0use1")]);
    assert!(drafts.iter().all(|draft| draft.segments == segments()));
}

#[test]
fn json_captions_are_read_as_captions() {
    let body = r#"{"wireMagic":"pb3","events":[{"tStartMs":500,"dDurationMs":10,"segs":[{"utf8":"a"}]}]}"#;
    assert_eq!(parse_single(body).segments, [Segment::new("a", 500, 10)]);
    let body = r#"{"utterances":[{"text":"So","start_time":40,"end_time":900}]}"#;
    assert_eq!(parse_single(body).segments, [Segment::new("So", 40, 860)]);
    // A title does not identify a format.
    let title = format!(r#"{{"title":"events","videoId":"dQw4w9WgXcQ","transcript":{SNIPPETS}}}"#);
    assert_eq!(parse_single(&title).title.as_deref(), Some("events"));
}

#[test]
fn json_without_transcript_returns_reason() {
    let snippet = |fields: &str| format!("[{{\"text\":\"a\",{fields}}}]");
    for (body, word) in [
        ("[", "cannot be read"),
        ("{", "cannot be read"),
        (r#"{"wireMagic":"pb3","events":[{"tStartMs""#, ""),
        ("[]", "empty"),
        ("[[]]", ""),
        ("{}", "contains no transcript"),
        ("[1]", "cannot be read"),
        (r#"{"error":"x"}"#, "known transcript format"),
        (r#"{"available":false,"transcript":[],"failureReason":"no_captions"}"#, "no_captions"),
        (r#"{"format":"verbatim-export/9","transcript":[]}"#, "verbatim-export/9"),
        (r#"{"platform":"radio","videoId":"1","transcript":[]}"#, "unknown platform"),
        (r#"{"videoId":"short","transcript":[]}"#, "11"),
        (r#"{"language_code":"???","transcript":[]}"#, "language"),
        (&format!("[{SNIPPETS},{SNIPPETS}]"), "video ids"),
        (&format!("{{\"transcript\":{SNIPPETS}}}\n{{\"transcript\":{SNIPPETS}}}"), "video ids"),
        (&format!("{{\"transcript\":{SNIPPETS}}}\n{{\"transcript\""), "cannot be read"),
        (&snippet("\"start\":1"), "neither"),
        (&snippet("\"start\":\"1\",\"duration\":1"), "cannot be read"),
        (&snippet("\"start\":1e300,\"duration\":1"), "1,000 hours"),
        (&snippet("\"start\":1e999,\"duration\":1"), "cannot be read"),
        (&format!("[{}]", vec![r#"{"text":"a","start":0,"duration":1}"#; 100_001].join(",")), "100,000"),
        (&"[".repeat(100_000), "cannot be read"),
        (&format!("[{}0]", "0,".repeat(100_001)), "100,000"),
        (
            &format!("{{{}}}", (0..10_001).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(",")),
            "10,000",
        ),
    ] {
        match ImportDraft::read(body.as_bytes()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.message().contains(word), "{error}: {:.80}", body);
                assert!(error.message().chars().count() < 400);
            }
            // An empty transcript is read here and rejected when it is stored.
            Ok(drafts) => assert!(word.is_empty() && drafts[0].segments.is_empty(), "{body:.80}"),
        }
    }
    assert!(ImportDraft::read(b"[\"\xFF\"]").is_err());
}

#[test]
fn json_foreign_words_that_do_not_fit_are_left_out() {
    let read = |words: &str| {
        let body = format!(
            r#"{{"language":"en","segments":[{{"text":" so we","start":1,"end":2,"words":{words}}}]}}"#
        );
        parse_single(&body).segments.remove(0).words
    };
    let recognizer = r#"[{"word":" so","start":1,"end":1.25},{"word":" we","start":1.5,"end":2}]"#;
    assert_eq!(read(recognizer), [Word::new("so", 1_000, 250), Word::new("we", 1_500, 500)]);
    for unfit in
        [r#"[{"text":"go","start":1,"duration":1}]"#, r#"["so"]"#, "7", r#"[{"text":"so","start":1e300}]"#]
    {
        assert_eq!(read(unfit), [], "{unfit}");
    }
}

#[test]
fn json_metadata_of_apis_is_cleaned_and_of_exports_is_strict() {
    let body = |format: &str| {
        format!(
            r#"{{{format}"transcript":{SNIPPETS},"duration":60,"metadata":{{"author_id":"UC",
            "authorUrl":"javascript:1","publishedAt":"2024-01-02T03:04:05+01:00","live":"maybe"}},
            "chapters":[{{"title":"late","start":61}},{{"title":"a","start":0.5}}]}}"#
        )
    };
    let metadata = parse_single(&body("")).metadata;
    let expect = VideoMetadata {
        author_id: Some("UC".to_owned()),
        published_at: Timestamp::parse("2024-01-02T02:04:05Z"),
        chapters: vec![Chapter { title: "a".to_owned(), start_ms: 500 }],
        ..VideoMetadata::default()
    };
    assert_eq!(metadata, expect);
    assert!(metadata.published_at.is_some());
    let ours = body(&format!(r#""format":"{FORMAT}","#));
    assert!(ImportDraft::read(ours.as_bytes()).unwrap_err().to_string().contains("live"));
    assert_eq!(
        parse_single(&format!(r#"{{"transcript":{SNIPPETS},"metadata":7,"chapters":"x"}}"#)).metadata,
        VideoMetadata::default()
    );
}

#[test]
fn json_of_apis_has_track_title_and_author() {
    let languages = r#"[{"tag":"en","name":"English","kind":"manual","original":false},
        {"tag":"de","name":"German","kind":"auto","original":true},
        {"tag":"de","name":"Notes","kind":"manual","original":false},
        {"tag":"tr","name":"Turkish","kind":"translated","original":false},
        {"tag":"fr","name":"French","kind":"translated","original":false},
        {"tag":"fr","name":"French","kind":"auto","original":true},
        {"tag":"??","name":"","kind":"auto","original":true}]"#;
    let read = |fields: &str| {
        parse_single(&format!(r#"{{{fields},"languages":{languages},"transcript":{SNIPPETS}}}"#))
    };
    for (fields, kind, name, original) in [
        (r#""language":"tr""#, Some(TrackKind::Translated), None, false),
        (r#""language":"tr","is_generated":true"#, Some(TrackKind::Translated), None, false),
        (r#""language":"en""#, Some(TrackKind::Human), None, false),
        (r#""language":"de""#, Some(TrackKind::Human), Some("Notes"), false),
        (r#""language":"de","is_generated":true"#, Some(TrackKind::Generated), None, true),
        (r#""language":"fr""#, Some(TrackKind::Generated), None, true),
        // The list does not have these.
        (r#""language":"en","is_generated":true"#, Some(TrackKind::Generated), None, false),
        (r#""language":"es""#, None, None, false),
        // A kind counts more than the list.
        (r#""language":"tr","kind":"human""#, Some(TrackKind::Human), None, false),
    ] {
        let draft = read(fields);
        assert_eq!((draft.kind, draft.name.as_deref(), draft.original), (kind, name, original), "{fields}");
    }
    // The tracks of the video say which one is its default; those of an export take precedence.
    let listed = ["en human", "de generated", "de human", "tr translated", "fr translated", "fr generated"];
    for (fields, expect) in [
        (r#""language":"tr""#, &listed[..]),
        (r#""language":"tr","kind":"human""#, &listed[..]),
        (r#""language":"tr","tracks":[{"language":"es","kind":"human"}]"#, &["es human"]),
    ] {
        let tracks = read(fields).known_tracks;
        let known: Vec<_> =
            tracks.iter().map(|track| format!("{} {}", track.language, track.kind.as_str())).collect();
        assert_eq!(known, expect, "{fields}");
    }
    for (fields, title, author, duration_ms) in [
        (
            r#""metadata":{"title":"T","author":"A","durationSeconds":61.5}"#,
            Some("T"),
            Some("A"),
            Some(61_500),
        ),
        (
            r#""metadata":{"title":"T","author":"A","duration_seconds":61.5}"#,
            Some("T"),
            Some("A"),
            Some(61_500),
        ),
        (r#""title":"","metadata":{"title":"a\nb","durationSeconds":-1}"#, Some("a b"), None, None),
        (
            r#""title":"U","duration":2,"metadata":{"title":"T","durationSeconds":9}"#,
            Some("U"),
            None,
            Some(2_000),
        ),
        (r#""metadata":{"title":" "}"#, None, None, None),
    ] {
        let draft = read(fields);
        let found = (draft.title.as_deref(), draft.author.as_deref(), draft.duration_ms);
        assert_eq!(found, (title, author, duration_ms), "{fields}");
    }
    let unfit = format!(r#"{{"language":"tr","languages":{{"tr":1}},"transcript":{SNIPPETS}}}"#);
    let unfit = parse_single(&unfit);
    assert_eq!((unfit.kind, unfit.known_tracks), (None, Vec::new()));
}
