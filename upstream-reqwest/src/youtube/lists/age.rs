//! Times in the texts of lists: ages such as "2 weeks ago", and durations such as "1:02:03".

use std::time::Duration;

use transcript_core::{Timestamp, supplier::TimeRange};

const DAY_S: u64 = 24 * 3600;
/// Units of ages: their names, short and long, and their shortest and longest length in seconds.
const UNITS: [(&[&str], u64, u64); 7] = [
    (&["s", "sec", "second"], 1, 1),
    (&["m", "min", "minute"], 60, 60),
    (&["h", "hr", "hour"], 3600, 3600),
    (&["d", "day"], DAY_S, DAY_S),
    (&["w", "wk", "week"], 7 * DAY_S, 7 * DAY_S),
    (&["mo", "month"], 28 * DAY_S, 31 * DAY_S),
    (&["y", "yr", "year"], 365 * DAY_S, 366 * DAY_S),
];
/// Words before the age of a stream or of a premiere.
const BEFORE: [&str; 2] = ["Streamed ", "Premiered "];

/// The time that a text such as "Streamed 2 weeks ago" names; `None` for another text.
pub(super) fn published(text: &str, now: Timestamp) -> Option<TimeRange> {
    let text = BEFORE.iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text);
    let age = text.trim().strip_suffix("ago")?.trim_end();
    let digits = age.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = age.split_at_checked(digits)?;
    let count: u64 = count.parse::<u32>().ok()?.into();
    let unit = unit.trim_start();
    let (_, shortest, longest) = UNITS.iter().find(|(names, ..)| {
        names.iter().any(|name| unit.strip_prefix(name).is_some_and(|rest| matches!(rest, "" | "s")))
    })?;
    let ago = |count: u64, unit_s: u64| now.minus(Duration::from_secs(count.saturating_mul(unit_s)));
    Some(TimeRange { earliest: ago(count.saturating_add(1), *longest), latest: ago(count, *shortest) })
}

/// Seconds of a duration in the form of a clock; `None` for another text.
pub(super) fn clock_seconds(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    parts.into_iter().try_fold(0_u64, |seconds, part| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let part: u64 = is_number.then(|| part.parse().ok())??;
        Some(seconds.saturating_mul(60).saturating_add(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_range_of_its_unit() {
        let now = Timestamp::from_millis(1_795_132_800_000);
        let days = |text: &str| {
            let range = published(text, now)?;
            let ago = |at: Timestamp| now.since(at).as_secs() as f64 / DAY_S as f64;
            Some((ago(range.latest), ago(range.earliest)))
        };
        for (text, latest, earliest) in [
            ("2 weeks ago", 14.0, 21.0),
            ("1 day ago", 1.0, 2.0),
            ("Streamed 6 months ago", 168.0, 217.0),
            ("Premiered 1 year ago", 365.0, 732.0),
            ("16h ago", 16.0 / 24.0, 17.0 / 24.0),
            ("1mo ago", 28.0, 62.0),
            ("12d ago", 12.0, 13.0),
        ] {
            assert_eq!(days(text), Some((latest, earliest)), "{text}");
        }
        for text in
            ["266m views", "ago", "some ago", "2 parsecs ago", "99999999999 years ago", "hace 2 semanas", ""]
        {
            assert_eq!(days(text), None, "{text}");
        }
    }

    #[test]
    fn clock_is_read_and_other_badges_are_not() {
        for (text, expect) in [
            ("3:36:56", Some(13_016)),
            ("0:05", Some(5)),
            ("12:00", Some(720)),
            ("100:00:00", Some(360_000)),
            ("LIVE", None),
            ("Upcoming", None),
            ("1:2:3:4", None),
            ("1:-2", None),
            (":", None),
            ("12345:00", None),
        ] {
            assert_eq!(clock_seconds(text), expect, "{text}");
        }
    }
}
