//! TTML times: clock times (`00:00:01.5`, `00:00:01:12`) and offsets (`1.5s`, `36f`, `1000t`).
//!
//! A number without a metric is seconds, as in the first drafts of TTML and in Apple's lyrics. SMPTE's separator of
//! drop-frame times, `00:00:01;12`, is read too. A clock of NTSC's drop-frame times leaves out two frame numbers in
//! each minute but every tenth.

use super::{
    decimal::{HUGE, parse_scaled},
    timing::parse_timestamp,
    xml::XmlElement,
};

/// Frame and tick rates of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeBase {
    /// Frames in `frame_seconds` seconds.
    frames: i64,
    frame_seconds: i64,
    /// Ticks per second.
    ticks: i64,
    /// Factor and divisor of a clock time: 1, unless the clock counts frames as if their rate were whole.
    clock_scale: (i64, i64),
    /// Frame numbers that the clock leaves out in nine of ten minutes.
    dropped_frames: i64,
}

/// Highest accepted rate, per second.
const RATE_MAX: i64 = 10_000_000_000;

impl TimeBase {
    /// Reads the parameters of the root element, with TTML's defaults for absent or invalid ones.
    pub(super) fn from_root(root: &XmlElement<'_>) -> Self {
        let rate = |name: &str| {
            let value = root.attribute(name)?;
            parse_scaled(&value, 0).filter(|rate| (1..=RATE_MAX).contains(rate))
        };
        let frame_rate = rate("frameRate");
        let (numerator, denominator) = root
            .attribute("frameRateMultiplier")
            .and_then(|value| {
                let (numerator, denominator) = value.trim().split_once([' ', ':'])?;
                let read = |part: &str| parse_scaled(part, 0).filter(|n| (1..=1_000_000).contains(n));
                Some((read(numerator)?, read(denominator)?))
            })
            .unwrap_or((1, 1));
        let sub_frames = rate("subFrameRate").unwrap_or(1);
        let ticks = rate("tickRate").or_else(|| Some(frame_rate?.saturating_mul(sub_frames).min(RATE_MAX)));
        let has = |name: &str, expect: &str| root.attribute(name).is_some_and(|value| value.trim() == expect);
        let is_ntsc = frame_rate == Some(30) && (numerator, denominator) == (1_000, 1_001);
        let is_smpte = has("timeBase", "smpte");
        let drops_frames = is_smpte && is_ntsc && has("dropMode", "dropNTSC");
        let counts_frames = drops_frames
            || is_smpte && root.attribute("dropMode").is_none_or(|mode| mode.trim() == "nonDrop");
        Self {
            clock_scale: if counts_frames { (denominator, numerator) } else { (1, 1) },
            dropped_frames: if drops_frames { 2 } else { 0 },
            frames: frame_rate.unwrap_or(30) * numerator,
            frame_seconds: denominator,
            ticks: ticks.unwrap_or(1),
        }
    }

    /// Parses a time expression as milliseconds; `None` if it is unreadable.
    pub(super) fn milliseconds(&self, text: &str) -> Option<i64> {
        let text = text.trim();
        if text.contains(':') {
            return self.clock(text);
        }
        let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, metric) = text.split_at_checked(unit)?;
        match metric {
            "" => parse_scaled(number, 3),
            "h" => Some(parse_scaled(number, 3)?.saturating_mul(3_600).min(HUGE)),
            "m" => Some(parse_scaled(number, 3)?.saturating_mul(60).min(HUGE)),
            "s" => parse_scaled(number, 3),
            "ms" => parse_scaled(number, 0),
            "f" => self.frames(number),
            "t" => Some(ratio(parse_scaled(number, 3)?, 1, self.ticks)),
            _ => None,
        }
    }

    /// Parses a clock time with an optional frame count in the fourth field.
    fn clock(&self, text: &str) -> Option<i64> {
        let scaled = |clock: &str| {
            let (factor, divisor) = self.clock_scale;
            let time = parse_timestamp(clock)?;
            let minutes = time / 60_000;
            let dropped = self.dropped_frames * (minutes - minutes / 10);
            Some(ratio(time, factor, divisor) - ratio(dropped, self.frame_seconds * 1_000, self.frames))
        };
        if text.bytes().filter(|c| matches!(c, b':' | b';')).count() < 3 {
            return scaled(text);
        }
        let (clock, frames) = text.rsplit_once([':', ';'])?;
        // Parts of frames are rarely used and shorter than the precision of a segment's time.
        let frames = frames.split('.').next().unwrap_or(frames);
        Some(scaled(clock)?.saturating_add(self.frames(frames)?))
    }

    fn frames(&self, count: &str) -> Option<i64> {
        Some(ratio(parse_scaled(count, 3)?, self.frame_seconds, self.frames))
    }
}

/// `value` × `by` ÷ `over`, without overflow.
fn ratio(value: i64, by: i64, over: i64) -> i64 {
    let exact = i128::from(value) * i128::from(by) / i128::from(over.max(1));
    i64::try_from(exact.clamp(i128::from(-HUGE), i128::from(HUGE))).unwrap_or(HUGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::xml::XmlDocument;

    fn check(attributes: &str, cases: &[(&str, Option<i64>)]) {
        let document = format!("<tt {attributes}></tt>");
        let (_, root) = XmlDocument::open(&document, "tt").unwrap();
        let base = TimeBase::from_root(&root);
        for &(text, expect) in cases {
            assert_eq!(base.milliseconds(text), expect, "{text:?} with {attributes:?}");
        }
    }

    #[test]
    fn ttml_time_reads_clocks_and_offsets() {
        check(
            "",
            &[
                ("00:00:01.540", Some(1_540)),
                ("01:00:00", Some(3_600_000)),
                ("00:00:01:15", Some(1_500)),
                ("1.5s", Some(1_500)),
                ("1500ms", Some(1_500)),
                ("2m", Some(120_000)),
                ("0.5h", Some(1_800_000)),
                ("15f", Some(500)),
                ("2t", Some(2_000)),
                (" 1s ", Some(1_000)),
                ("-1s", Some(-1_000)),
                ("9e99s", None),
                ("99999999999999999999h", Some(HUGE)),
                ("00:00:01;15", Some(1_500)),
                ("00;00:01:15", None),
                ("1.5", Some(1_500)),
                ("9.731", Some(9_731)),
                ("1x", None),
                (".", None),
                ("s", None),
                ("", None),
                ("1:2:3:4:5", None),
            ],
        );
    }

    #[test]
    fn ttml_time_uses_rates_of_document() {
        check(
            "ttp:frameRate='25'",
            &[("00:00:01:05", Some(1_200)), ("50f", Some(2_000)), ("25t", Some(1_000))],
        );
        check("ttp:frameRate='30' ttp:frameRateMultiplier='1000 1001'", &[("30f", Some(1_001))]);
        let film = "ttp:frameRate='24' ttp:frameRateMultiplier='999 1000'";
        let hour = [("01:00:00:00", Some(3_600_000)), ("00:00:00:24", Some(1_001))];
        check(film, &hour);
        check(&format!("{film} ttp:timeBase='smpte' ttp:dropMode='dropNTSC'"), &hour);
        check(&format!("{film} ttp:timeBase='media' ttp:dropMode='nonDrop'"), &hour);
        let counted = [("01:00:00:00", Some(3_603_603)), ("00:00:00:24", Some(1_001))];
        check(&format!("{film} ttp:timeBase='smpte' ttp:dropMode='nonDrop'"), &counted);
        check(&format!("{film} ttp:timeBase='smpte'"), &counted);
        let ntsc = "ttp:frameRate='30' ttp:frameRateMultiplier='1000 1001' ttp:timeBase='smpte'";
        check(
            &format!("{ntsc} ttp:dropMode='dropNTSC'"),
            &[
                ("00:00:59:29", Some(60_026)),
                ("00:01:00:02", Some(60_060)),
                ("00:10:00;00", Some(600_000)),
                ("01:00:00;00", Some(3_599_997)),
            ],
        );
        check(
            "ttp:tickRate='10000000'",
            &[("15400000t", Some(1_540)), ("99999999999999999999t", Some(HUGE / 10_000_000))],
        );
        check(
            "ttp:frameRate='0' ttp:tickRate='-5' ttp:frameRateMultiplier='0 0'",
            &[("30f", Some(1_000)), ("1t", Some(1_000))],
        );
    }
}
