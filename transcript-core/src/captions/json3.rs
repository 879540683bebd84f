//! YouTube's JSON: `{"wireMagic": "pb3", "events": [{"tStartMs": 0, "dDurationMs": 4100, "segs": […]}]}`.
//!
//! An event's text is its pieces as they are, one behind the other; it is neither unescaped nor stripped of
//! tags, as styles are pens here. Events without text are window definitions, and those with `aAppend` only
//! move the lines up: both are blank and dropped. Times stay as given, so neighbours overlap: each line is
//! shown for two. Fields of an unexpected type count as absent.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    CaptionError, SEGMENTS_MAX,
    cues::{self, Cues},
    lenient::{Millis, Object, Text, otherwise},
};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    events: Option<Events<'a>>,
    #[serde(default, rename = "wireMagic")]
    magic: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, rename = "tStartMs")]
    start: Option<Millis>,
    #[serde(default, rename = "dDurationMs")]
    duration: Millis,
    #[serde(borrow, default, rename = "segs")]
    pieces: Pieces<'a>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    utf8: Text<'a>,
}

/// The events that have text, at most one more than there may be.
#[derive(Default)]
struct Events<'a>(Vec<Event<'a>>);

/// The text of all pieces of an event. It is joined while it is read, so that a body of countless empty
/// pieces takes no memory.
#[derive(Default)]
struct Pieces<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Events<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EventsVisitor<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for EventsVisitor<'a> {
            type Value = Events<'a>;
            otherwise!(Events::default(); unit, bool, number, str, map);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Events<'a>, A::Error> {
                let mut events = Vec::new();
                while let Some(Object(event)) = list.next_element::<Object<Event<'a>>>()? {
                    if let Some(event) = event
                        && events.len() <= SEGMENTS_MAX
                        && !cues::is_blank(&event.pieces.0)
                    {
                        events.push(event);
                    }
                }
                Ok(Events(events))
            }
        }
        deserializer.deserialize_any(EventsVisitor(std::marker::PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PiecesVisitor<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for PiecesVisitor<'a> {
            type Value = Pieces<'a>;
            otherwise!(Pieces::default(); unit, bool, number, str, map);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces<'a>, A::Error> {
                let mut joined = Cow::Borrowed("");
                while let Some(Object(piece)) = list.next_element::<Object<Piece<'a>>>()? {
                    if let Some(Piece { utf8: Text(Some(text)) }) = piece {
                        joined += text;
                    }
                }
                Ok(Pieces(joined))
            }
        }
        deserializer.deserialize_any(PiecesVisitor(std::marker::PhantomData))
    }
}

pub(super) fn parse(text: &str) -> Result<Cues, CaptionError> {
    let body: Object<Body<'_>> = serde_json::from_str(text).map_err(|error| {
        let what = if error.is_eof() { "are cut off" } else { "are no well-formed JSON" };
        CaptionError::malformed(format!("The captions {what}: ask for them again."))
    })?;
    let Some(Body { events, magic }) = body.0 else {
        return Err(CaptionError::not_captions("The answer is JSON without captions in it."));
    };
    if events.is_none() && magic.is_none() {
        return Err(CaptionError::not_captions("The answer is JSON without caption events."));
    }
    let mut gathered = Cues::default();
    for event in events.unwrap_or_default().0 {
        // An absent start is the beginning; one that is no number tells nothing.
        if let Some(start) = event.start.unwrap_or(Millis(Some(0))).0 {
            gathered.lasting(event.pieces.0.into_owned(), start, event.duration.0.unwrap_or(0))?;
        } else {
            gathered.leave_out(&event.pieces.0);
        }
    }
    Ok(gathered)
}

#[cfg(test)]
mod tests {
    use crate::captions::{CaptionErrorKind, CaptionFormat, SEGMENTS_MAX, parse, parse_as};

    fn check(events: &str, expect: &[(&str, u64, u64)]) {
        let body =
            format!("{{\"wireMagic\":\"pb3\",\"pens\":[{{}}],\"events\":[{events}],\"new\":{{\"a\":[1]}}}}");
        let segments = parse(body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{events}");
    }

    #[test]
    fn windows_and_appending_events_are_dropped() {
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

    #[test]
    fn text_is_left_untouched() {
        check(
            "{\"tStartMs\":1,\"segs\":[{\"utf8\":\"<i>AT&amp;T</i>\\n\"},\
             {\"utf8\":\" \\u4e2d\\ud83d\\ude00 \"}]}",
            &[("<i>AT&amp;T</i>\n 中😀 ", 1, 0)],
        );
        check("{\"tStartMs\":1,\"segs\":[{\"utf8\":\"a\\u0000b\"}]}", &[("a\u{FFFD}b", 1, 0)]);
    }

    #[test]
    fn odd_types_count_as_absent() {
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
    fn what_cannot_be_read_is_named() {
        let kind = |body: &str| parse_as(CaptionFormat::Json3, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("{\"wireMagic\":\"pb3\"}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"events\":[]}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"events\":null,\"wireMagic\":\"pb3\"}"), CaptionErrorKind::NoCues);
        assert_eq!(kind("{\"error\":1}"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("[]"), CaptionErrorKind::NotCaptions);
        assert_eq!(
            kind("{\"events\":[{\"tStartMs\":0,\"segs\":[{\"utf8\":\"cut"),
            CaptionErrorKind::Malformed
        );
        assert_eq!(kind("{\"events\":[}"), CaptionErrorKind::Malformed);
        assert_eq!(kind("{\"events\":[]} more"), CaptionErrorKind::Malformed);
        let cue = "{\"segs\":[{\"utf8\":\"a\"}]},";
        assert_eq!(
            kind(&format!("{{\"events\":[{}0]}}", cue.repeat(SEGMENTS_MAX + 1))),
            CaptionErrorKind::TooLarge
        );
    }
}
