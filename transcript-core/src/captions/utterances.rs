//! TikTok's JSON of captions edited by a creator.
//!
//! Its form is `{"utterances": [{"text": "So", "start_time": 40, "end_time": 900}]}`. Times are in milliseconds.
//!
//! The text has no markup and stays unchanged. Fields of an unexpected type count as absent, and a text of one as left
//! out.

use serde::Deserialize;

use super::{
    CaptionError,
    cue_collector::{self, CueCollector},
    lenient::{LenientList, LenientMillis, LenientText, TextItem, parse_object},
    parsed::Occurrences,
};

#[derive(Deserialize)]
struct UtterancesBody<'a> {
    #[serde(borrow, default)]
    utterances: Option<LenientList<Utterance<'a>>>,
}

#[derive(Deserialize)]
struct Utterance<'a> {
    #[serde(borrow, default)]
    text: Option<LenientText<'a>>,
    #[serde(default)]
    start_time: Option<LenientMillis>,
    #[serde(default)]
    end_time: LenientMillis,
}

impl TextItem for Utterance<'_> {
    fn is_blank(&self) -> bool {
        self.text.as_ref().is_none_or(|text| text.0.as_deref().is_some_and(cue_collector::is_blank))
    }
}

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let Some(UtterancesBody { utterances: Some(LenientList { items, unreadable }) }) = parse_object(text)?
    else {
        return Err(CaptionError::not_captions("This is JSON without utterances."));
    };
    let textless = items.iter().filter(|item| item.text == Some(LenientText(None))).count() as u64;
    let mut cues = CueCollector::default();
    cues.set_left_out(Occurrences { count: unreadable.saturating_add(textless), lines: Vec::new() });
    // A program may omit a zero: an absent start is the beginning until a later one follows, and then unknown.
    let mut may_lack_start = items.len() == 1 || items.iter().any(|item| item.start_time.is_some());
    for Utterance { text, start_time, end_time } in items {
        let start = start_time.map_or(may_lack_start.then_some(0), |start| start.0);
        may_lack_start &= start.is_some_and(|start| start <= 0);
        let Some(LenientText(Some(text))) = text else { continue };
        match start {
            Some(start) => cues.add_between(text.into_owned(), start, end_time.0.unwrap_or(start))?,
            // Text without a time could belong anywhere.
            None => cues.count_left_out(&text),
        }
    }
    Ok(cues)
}

#[cfg(test)]
mod tests {
    use crate::captions::{
        CaptionErrorKind, CaptionFormat, SEGMENTS_MAX, parse, parse_as, parse_with_report,
    };

    fn check(utterances: &str, expect: &[(&str, u64, u64)]) {
        let segments = parse(format!("{{\"utterances\":[{utterances}],\"x\":1}}").as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{utterances}");
    }

    #[test]
    fn utterances_times_are_milliseconds() {
        check(
            "{\"text\":\"then <b>\",\"start_time\":900,\"end_time\":1400,\"words\":[{\"text\":\"then\"}]},\
             {\"text\":\"So\",\"start_time\":40,\"end_time\":\"900\"}",
            &[("So", 40, 860), ("then <b>", 900, 500)],
        );
    }

    #[test]
    fn utterances_absent_start_is_zero_before_later_ones() {
        check(
            "{\"text\":\"So\",\"end_time\":900},{\"text\":\"then\",\"start_time\":900,\"end_time\":1400},\
             {\"text\":\"when\"}",
            &[("So", 0, 900), ("then", 900, 500)],
        );
    }

    #[test]
    fn utterances_unexpected_types_count_as_absent() {
        check(
            "null,7,{\"text\":\" \",\"start_time\":1},{\"text\":5,\"start_time\":1},{\"text\":\"when\"},\
             {\"text\":\"kept\",\"start_time\":10.4,\"end_time\":null},\
             {\"text\":\"back\\ude00\",\"start_time\":20,\"end_time\":10}",
            &[("kept", 10, 0), ("back\u{FFFD}", 20, 0)],
        );
    }

    #[test]
    fn utterances_changed_types_are_reported() {
        for (changed, expect) in
            [("\"lost\"", 1), ("{\"text\":[\"lost\"],\"start_time\":1}", 1), ("null,{},{\"text\":null}", 0)]
        {
            let body = format!("{{\"utterances\":[{{\"text\":\"a\",\"start_time\":1}},{changed}]}}");
            assert_eq!(parse_with_report(body.as_bytes()).unwrap().left_out.count, expect, "{changed}");
        }
    }

    #[test]
    fn utterances_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse_as(CaptionFormat::Utterances, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("{\"utterances\":[]}"), CaptionErrorKind::NoCues);
        assert_eq!(
            kind("{\"utterances\":[{\"text\":\" \",\"start_time\":\"x\"}]}"),
            CaptionErrorKind::NoCues
        );
        assert_eq!(
            kind("{\"utterances\":[{\"text\":\"hi\",\"start_time\":\"0:01\"},{\"text\":\"hi\"}]}"),
            CaptionErrorKind::Malformed
        );
        assert_eq!(kind("{\"utterances\":null}"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("[]"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("{\"utterances\":[{\"text\":\"cut"), CaptionErrorKind::Malformed);
        let one = "{\"text\":\"a\",\"start_time\":1},";
        assert_eq!(
            kind(&format!("{{\"utterances\":[{}0]}}", one.repeat(SEGMENTS_MAX + 1))),
            CaptionErrorKind::TooLarge
        );
    }
}
