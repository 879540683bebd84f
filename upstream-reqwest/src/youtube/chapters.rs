//! Chapters in the description of a video. No I/O.

use transcript_core::transcript::{CHAPTERS_MAX, Chapter};

/// The rules of YouTube: at least this number of chapters, each at least this long, the first one at 0:00.
const COUNT_MIN: usize = 3;
const LENGTH_MIN_MS: u64 = 10_000;
/// Characters between the time and the title.
const SEPARATORS: &[char] = &['-', '–', '—', ':', '|', '•', '.', ')', ']', '»', '>', '='];

/// The chapters that YouTube shows for a description; empty if it does not follow the rules.
pub(super) fn in_description(description: &str, duration_ms: Option<u64>) -> Vec<Chapter> {
    let read = |line: fn(&str) -> Option<Chapter>| -> Vec<Chapter> {
        description.lines().filter_map(line).take(CHAPTERS_MAX + 1).collect()
    };
    let lists = [read(time_first), read(time_last)];
    lists.into_iter().find(|list| is_valid(list, duration_ms)).unwrap_or_default()
}

fn is_valid(chapters: &[Chapter], duration_ms: Option<u64>) -> bool {
    let starts = chapters.iter().map(|chapter| chapter.start_ms);
    let ends = starts.clone().skip(1).chain(duration_ms);
    (COUNT_MIN..=CHAPTERS_MAX).contains(&chapters.len())
        && starts.clone().next() == Some(0)
        && starts.zip(ends).all(|(start, end)| end >= start.saturating_add(LENGTH_MIN_MS))
}

/// A line such as `0:00 Intro`, `(1:02:03) – Questions` or `0:00 - 1:30 Intro`.
fn time_first(line: &str) -> Option<Chapter> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (start_ms, rest) = split_time(line)?;
    let title = trim(rest);
    let title = split_time(title).map_or(title, |(_, rest)| trim(rest));
    (!title.is_empty()).then(|| Chapter { title: title.to_owned(), start_ms })
}

/// A line such as `Intro 0:00` or `Intro (0:00)`.
fn time_last(line: &str) -> Option<Chapter> {
    let line = line.trim().trim_end_matches([')', ']']);
    let at = line.rfind(|c: char| !c.is_ascii_digit() && c != ':')?;
    let (title, time) = line.split_at_checked(at + line.get(at..)?.chars().next()?.len_utf8())?;
    let (start_ms, rest) = split_time(time)?;
    let title = title
        .trim_end_matches(|c: char| c.is_whitespace() || SEPARATORS.contains(&c) || c == '(' || c == '[');
    (rest.is_empty() && !title.is_empty()).then(|| Chapter { title: title.to_owned(), start_ms })
}

fn trim(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)).trim_end()
}

/// The time at the beginning of a text, in milliseconds, and the rest: `m:ss` or `h:mm:ss`.
fn split_time(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(text.len());
    let (time, rest) = text.split_at_checked(end)?;
    // `1:02pm` is no place in a video.
    if rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    let time = time.strip_suffix(':').unwrap_or(time);
    let mut parts = time.rsplit(':');
    let (seconds, minutes) = (parts.next()?, parts.next()?);
    let hours = parts.next();
    let number = |part: &str, digits: std::ops::RangeInclusive<usize>, max: u64| {
        let number = digits.contains(&part.len()).then(|| part.parse::<u64>().ok()).flatten()?;
        (number <= max).then_some(number)
    };
    let minutes_max = if hours.is_some() { 59 } else { 999 };
    let seconds = number(seconds, 2..=2, 59)? + 60 * number(minutes, 1..=3, minutes_max)?;
    let hours = hours.map_or(Some(0), |hours| number(hours, 1..=2, 99))?;
    parts.next().is_none().then_some(((hours * 3_600 + seconds) * 1_000, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(description: &str, duration_s: Option<u64>, expect: &[(&str, u64)]) {
        let found = in_description(description, duration_s.map(|seconds| seconds * 1_000));
        let found: Vec<_> = found.iter().map(|c| (c.title.as_str(), c.start_ms / 1_000)).collect();
        assert_eq!(found, expect, "{description}");
    }

    #[test]
    fn chapters_in_usual_notations_are_read() {
        let expect = &[("A fish", 0), ("The net", 70), ("10 boats: a list", 3_723)];
        for description in [
            "About boats. Filmed at 12:30 in May\n\n0:00 A fish\n1:10 The net\n1:02:03 10 boats: a list\nBye",
            "00:00 - A fish\r\n01:10 – The net\r\n01:02:03 — 10 boats: a list",
            "• (0:00) A fish\n• (1:10) The net\n• (1:02:03) 10 boats: a list",
            "0:00 - 1:10 A fish\n1:10 - 1:02:03 The net\n1:02:03 - 1:03:00 10 boats: a list",
            "A fish 0:00\nThe net - 1:10\n10 boats: a list (1:02:03)",
        ] {
            check(description, Some(4_000), expect);
            check(description, None, expect);
        }
    }

    #[test]
    fn chapters_against_rules_are_not_read() {
        for (description, duration_s) in [
            ("0:01 a\n0:20 b\n0:40 c", 100),
            ("0:00 a\n0:20 b", 100),
            ("0:00 a\n0:05 b\n0:40 c", 100),
            ("0:00 a\n0:40 b\n0:20 c", 100),
            ("0:00 a\n0:20 b\n0:40 c", 45),
            ("0:00 a\n0:20 b\n0:40 c", 30),
            ("0:00 \n0:20\n0:40", 100),
            ("0:00a\n0:20b\n0:40c", 100),
            ("0:0 a\n0:2 b\n0:4 c", 100),
            ("0:00 a\n0:60 b\n1:70 c", 100),
            ("0:00:00:00 a\n0:20 b\n0:40 c", 100),
            ("", 100),
        ] {
            check(description, Some(duration_s), &[]);
        }
        let many: String = (0..=CHAPTERS_MAX).map(|n| format!("{}:{:02} x\n", n / 6, n % 6 * 10)).collect();
        check(&many, None, &[]);
    }

    proptest! {
        #[test]
        fn chapters_any_text_follow_rules(description in "([0-9]{0,3}[:( ]?[0-9]{0,2}[:\\- aé]{0,4}\n?){0,20}") {
            let found = in_description(&description, Some(100_000));
            prop_assert!(found.is_empty() || is_valid(&found, Some(100_000)));
        }
    }
}
