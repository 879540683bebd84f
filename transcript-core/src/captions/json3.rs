//! YouTube's JSON captions.
//!
//! Their form is `{"wireMagic": "pb3", "events": [{"tStartMs": 0, "dDurationMs": 4100, "segs": […]}]}`.
//!
//! The text of an event is its segments, joined unchanged: it is neither unescaped nor stripped of tags, because
//! this format has pens for styles. Events without text are window definitions, and those with `aAppend` only
//! move the lines up: both are blank and dropped. Times stay unchanged, so neighbouring segments overlap: each
//! line is shown for two. Padding and copies of styling tools are removed; see [`super::styling`]. Fields of an
//! unexpected type count as absent, and as left out where they may have text.
//!
//! Recognized speech has one segment for each word, with its offset from the event's start (`tOffsetMs`); the first
//! has none. Captions written by people have no offsets, hence no words.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    CaptionError,
    cue_collector::{self, CueCollector},
    lenient::{
        LenientList, LenientMillis, LenientObject, LenientText, TextItem, accept_other_types, parse_object,
    },
    parsed::Occurrences,
    styling,
    time_marks::{TimeMark, TimedLine},
};

#[derive(Deserialize)]
struct Json3Body<'a> {
    #[serde(borrow, default)]
    events: Option<LenientList<Json3Event<'a>>>,
    #[serde(default, rename = "wireMagic")]
    magic: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Json3Event<'a> {
    #[serde(default, rename = "tStartMs")]
    start: Option<LenientMillis>,
    #[serde(default, rename = "dDurationMs")]
    duration: LenientMillis,
    /// Number of its window position, which is read like a time.
    #[serde(default, rename = "wpWinPosId")]
    place: LenientMillis,
    #[serde(borrow, default, rename = "segs")]
    pieces: Option<Json3Segments<'a>>,
}

#[derive(Deserialize)]
struct Json3Segment<'a> {
    #[serde(borrow, default)]
    utf8: Option<LenientText<'a>>,
    #[serde(default, rename = "tOffsetMs")]
    offset: LenientMillis,
}

/// Joined text of all segments of an event, with their times.
///
/// It is joined while it is read, so that a body of countless empty segments takes no memory.
#[derive(Default)]
struct Json3Segments<'a> {
    line: TimedLine<'a>,
    /// Whether a part has an unexpected type, so that text may be missing.
    is_partial: bool,
}

impl TextItem for Json3Event<'_> {
    fn is_blank(&self) -> bool {
        let is_blank =
            |pieces: &Json3Segments<'_>| !pieces.is_partial && cue_collector::is_blank(&pieces.line.text);
        self.pieces.as_ref().is_none_or(is_blank)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json3Segments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Json3SegmentsVisitor<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Json3SegmentsVisitor<'a> {
            type Value = Json3Segments<'a>;
            accept_other_types!(
                Json3Segments { is_partial: true, ..Json3Segments::default() };
                unit, bool, number, str, map
            );

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json3Segments<'a>, A::Error> {
                let (mut line, mut is_partial) = (TimedLine::default(), false);
                while let Some(piece) = list.next_element::<Option<LenientObject<Json3Segment<'a>>>>()? {
                    let (text, offset) = match piece {
                        None | Some(LenientObject(Some(Json3Segment { utf8: None, .. }))) => continue,
                        Some(LenientObject(Some(Json3Segment {
                            utf8: Some(LenientText(Some(text))),
                            offset,
                        }))) => (text, offset),
                        Some(_) => {
                            is_partial = true;
                            continue;
                        }
                    };
                    if text.is_empty() {
                        continue;
                    }
                    line.parts += usize::from(!cue_collector::is_blank(&text));
                    let mark = |time_ms| TimeMark { offset: line.text.len(), time_ms };
                    line.marks.extend(offset.0.map(mark));
                    line.text += styling::remove_padding(text);
                }
                Ok(Json3Segments { line, is_partial })
            }
        }
        deserializer.deserialize_any(Json3SegmentsVisitor(std::marker::PhantomData))
    }
}

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let Some(Json3Body { events, magic }) = parse_object(text)? else {
        return Err(CaptionError::not_captions("This is JSON without captions."));
    };
    if events.is_none() && magic.is_none() {
        return Err(CaptionError::not_captions("This is JSON without caption events."));
    }
    let mut cues = CueCollector::default();
    let Some(LenientList { items, unreadable }) = events else { return Ok(cues) };
    let is_partial = |event: &&Json3Event<'_>| event.pieces.as_ref().is_some_and(|pieces| pieces.is_partial);
    let count = unreadable.saturating_add(items.iter().filter(is_partial).count() as u64);
    cues.set_left_out(Occurrences { count, lines: Vec::new() });
    // An absent start is the beginning: it precedes the others, and not all lines begin there. Otherwise it is unknown,
    // like a start that is not a number.
    let mut may_lack_start = items.len() == 1 || items.iter().any(|event| event.start.is_some());
    for event in items {
        let line = event.pieces.unwrap_or_default().line;
        let start = match event.start {
            Some(start) => start.0,
            None => may_lack_start.then_some(0),
        };
        may_lack_start &= start.is_none_or(|start| start <= 0);
        if let Some(start) = start {
            cues.add_line(line, start, event.duration.0.unwrap_or(0), event.place.0)?;
        } else {
            cues.count_left_out(&line.text);
        }
    }
    Ok(cues)
}

#[cfg(test)]
mod tests {
    use crate::{
        captions::{CaptionErrorKind, CaptionFormat, SEGMENTS_MAX, parse, parse_as, parse_with_report},
        transcript::Segment,
    };

    fn check(events: &str, expect: &[(&str, u64, u64)]) {
        let body =
            format!("{{\"wireMagic\":\"pb3\",\"pens\":[{{}}],\"events\":[{events}],\"new\":{{\"a\":[1]}}}}");
        let segments = parse(body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{events}");
    }

    #[test]
    fn json3_windows_and_appending_events_are_dropped() {
        check(
            "{\"tStartMs\":0,\"dDurationMs\":90000,\"id\":1,\"wpWinPosId\":1},\
             {\"tStartMs\":0,\"dDurationMs\":4100,\"wWinId\":1,\"segs\":[{\"utf8\":\"so\",\"acAsrConf\":200},\
             {\"utf8\":\" we\",\"tOffsetMs\":90}]},\
             {\"tStartMs\":1990,\"dDurationMs\":2110,\"aAppend\":1,\"segs\":[{\"utf8\":\"\\n\"}]},\
             {\"tStartMs\":3000,\"segs\":[{\"utf8\":\"end\"}]},{\"tStartMs\":3001,\"aAppend\":1,\
             \"segs\":[{\"utf8\":\"kept\"}]}",
            &[("so we", 0, 4_100), ("end", 3_000, 0), ("kept", 3_001, 0)],
        );
    }

    /// The words of each segment, with their starts and durations.
    fn words(events: &str) -> Vec<Vec<(String, u64, u64)>> {
        let segments = parse(format!("{{\"wireMagic\":\"pb3\",\"events\":[{events}]}}").as_bytes()).unwrap();
        let words = |segment: Segment| {
            segment.words.into_iter().map(|word| (word.text, word.start_ms, word.duration_ms)).collect()
        };
        segments.into_iter().map(words).collect()
    }

    #[test]
    fn json3_offsets_are_times_of_words() {
        let of = |text: &str, start, duration| (text.to_owned(), start, duration);
        let line = "{\"tStartMs\":100,\"dDurationMs\":900,\"segs\":[{\"utf8\":\"so\"},\
                    {\"utf8\":\" we\",\"tOffsetMs\":90},{\"utf8\":\" met\\n\",\"tOffsetMs\":\"200\"}]}";
        let single = "{\"tStartMs\":600,\"dDurationMs\":400,\"segs\":[{\"utf8\":\"[Music]\"}]}";
        let sentence = "{\"tStartMs\":700,\"dDurationMs\":400,\"segs\":[{\"utf8\":\"no words\"}]}";
        let words_of_line = vec![of("so", 100, 90), of("we", 190, 110), of("met", 300, 300)];
        assert_eq!(
            words(&format!("{line},{single},{sentence}")),
            [words_of_line, vec![of("[Music]", 600, 100)], Vec::new()]
        );
        // Captions of people: without any offset a single word has no time either.
        assert_eq!(words(&format!("{single},{sentence}")), [Vec::new(), Vec::new()]);
    }

    #[test]
    fn json3_impossible_offsets_cost_only_words() {
        let line = |offset: &str| {
            format!(
                "{{\"tStartMs\":100,\"segs\":[{{\"utf8\":\"a\",\"tOffsetMs\":90}},\
                 {{\"utf8\":\" b\",\"tOffsetMs\":{offset}}}]}}"
            )
        };
        for (offset, expect) in
            [("91", 2), ("90", 2), ("89", 0), ("1e18", 0), ("-1e18", 0), ("null", 1), ("[]", 1)]
        {
            let found = words(&line(offset));
            assert_eq!(found[0].len(), expect, "{offset}");
        }
    }

    #[test]
    fn json3_text_stays_unchanged() {
        check(
            "{\"tStartMs\":1,\"segs\":[{\"utf8\":\"<i>AT&amp;T</i>\\n\"},\
             {\"utf8\":\" \\u4e2d\\ud83d\\ude00 \"}]}",
            &[("<i>AT&amp;T</i>\n 中😀 ", 1, 0)],
        );
        check("{\"tStartMs\":1,\"segs\":[{\"utf8\":\"a\\u0000b\"}]}", &[("a\u{FFFD}b", 1, 0)]);
        // Half an emoji.
        check("{\"tStartMs\":1,\"segs\":[{\"utf8\":\"a \\ud83d\"}]}", &[("a \u{FFFD}", 1, 0)]);
    }

    #[test]
    fn json3_styling_padding_and_copies_are_removed() {
        let edge = "{\"utf8\":\"\\u200b\",\"pPenId\":1}";
        let event = |start, duration, pen| {
            format!(
                "{{\"tStartMs\":{start},\"dDurationMs\":{duration},\"wpWinPosId\":4,\"segs\":[{edge},\
                 {{\"utf8\":\"\\u200b \\u200bla la\\u200b \\u200b\",\"pPenId\":{pen}}},{edge}]}},"
            )
        };
        let blank = format!("{{\"tStartMs\":7,\"segs\":[{edge}]}}");
        check(
            &[
                event(0, 67, 2),
                event(0, 67, 3),
                event(67, 933, 4),
                event(1_000, 67, 2),
                event(1_067, 500, 2),
                blank,
            ]
            .concat(),
            &[("la la", 0, 1_067), ("la la", 1_067, 500)],
        );
        check("{\"tStartMs\":1,\"segs\":[{\"utf8\":\"คำ\\u200bพูด\"}]}", &[("คำ\u{200B}พูด", 1, 0)]);
    }

    #[test]
    fn json3_unexpected_types_count_as_absent() {
        check(
            "null,7,[],\"x\",{\"segs\":null},{\"segs\":[null,{\"utf8\":null},{\"utf8\":5},{},[],\
             {\"utf8\":\"a\"}]},\
             {\"tStartMs\":\"20\",\"dDurationMs\":\"5\",\"segs\":[{\"utf8\":\"b\"}]},\
             {\"tStartMs\":30.4,\"dDurationMs\":null,\"segs\":[{\"utf8\":\"c\"}]},\
             {\"tStartMs\":-10,\"dDurationMs\":15,\"segs\":[{\"utf8\":\"early\"}]},\
             {\"tStartMs\":\"NaN\",\"segs\":[{\"utf8\":\"dropped\"}]},\
             {\"tStartMs\":1e18,\"segs\":[{\"utf8\":\"never\"}]}",
            &[("a", 0, 0), ("early", 0, 5), ("b", 20, 5), ("c", 30, 0)],
        );
    }

    #[test]
    fn json3_changed_types_are_reported() {
        let event = |segments: &str| format!("{{\"tStartMs\":9,\"segs\":{segments}}}");
        for (changed, expect) in [
            (event("[{\"utf8\":{\"text\":\"lost\"}},{\"utf8\":\"x\"}]"), 1),
            (event("[{\"utf8\":[\"lost\"]}]"), 1),
            (event("[\"lost\",\"lost\"]"), 1),
            (event("{\"utf8\":\"lost\"}"), 1),
            ("\"lost\"".to_owned(), 1),
            (event("null"), 0),
            (event("[null,{},{\"pPenId\":1},{\"utf8\":null},{\"utf8\":\"\"}]"), 0),
            ("null,{}".to_owned(), 0),
        ] {
            let body = format!("{{\"events\":[{{\"tStartMs\":1,\"segs\":[{{\"utf8\":\"a\"}}]}},{changed}]}}");
            assert_eq!(parse_with_report(body.as_bytes()).unwrap().left_out.count, expect, "{changed}");
        }
    }

    #[test]
    fn json3_start_may_be_absent_at_beginning_only() {
        let event = |start: &str| format!("{{{start}\"segs\":[{{\"utf8\":\"a\"}}]}}");
        let (none, null, zero, later) =
            (event(""), event("\"tStartMs\":null,"), event("\"tStartMs\":0,"), event("\"tStartMs\":5,"));
        for (events, expect) in [
            (vec![&none], Ok(0)),
            (vec![&none, &none, &later], Ok(0)),
            (vec![&zero, &none, &later], Ok(0)),
            (vec![&later, &none], Ok(1)),
            (vec![&later, &null, &later], Ok(1)),
            (vec![&none, &none], Err(CaptionErrorKind::Malformed)),
            (vec![&null, &null, &null], Err(CaptionErrorKind::Malformed)),
        ] {
            let events: Vec<_> = events.into_iter().map(String::as_str).collect();
            let body = format!("{{\"events\":[{}]}}", events.join(","));
            let left_out = parse_with_report(body.as_bytes()).map(|parsed| parsed.left_out.count);
            assert_eq!(left_out.map_err(|error| error.kind()), expect, "{body}");
        }
    }

    #[test]
    fn json3_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse_as(CaptionFormat::Json3, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("{\"wireMagic\":\"pb3\"}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"events\":[]}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"events\":null,\"wireMagic\":\"pb3\"}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"events\":{\"0\":{}},\"wireMagic\":\"pb3\"}"), CaptionErrorKind::Malformed);
        assert_eq!(kind("{\"error\":1}"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("[]"), CaptionErrorKind::NotCaptions);
        assert_eq!(
            kind("{\"events\":[{\"tStartMs\":0,\"segs\":[{\"utf8\":\"cut"),
            CaptionErrorKind::Malformed
        );
        assert_eq!(kind("{\"events\":[}"), CaptionErrorKind::Malformed);
        assert_eq!(kind("{\"events\":[]} more"), CaptionErrorKind::Malformed);
        let cue = "{\"tStartMs\":1,\"segs\":[{\"utf8\":\"a\"}]},";
        assert_eq!(
            kind(&format!("{{\"events\":[{}0]}}", cue.repeat(SEGMENTS_MAX + 1))),
            CaptionErrorKind::TooLarge
        );
    }
}
