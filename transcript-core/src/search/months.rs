//! Months of documents as terms, so that an index narrows a search by date before it ranks anything.

use super::tokens::FACET_MARKS;
use crate::time::Timestamp;

/// Months before the year 10,000, the end of [`Timestamp`]'s calendar.
const MONTHS_END: u32 = 120_000;
/// Periods that are a prefix of a month's term: months of each, and digits of its prefix.
const PERIODS: [(u32, usize); 5] = [(12_000, 1), (1_200, 2), (120, 3), (12, 4), (1, 6)];

/// The number of a month since the year 0.
fn month(time: Timestamp) -> u32 {
    let date = time.civil();
    u32::from(date.year().unsigned_abs()) * 12 + u32::from(date.month().unsigned_abs()) - 1
}

fn term(month: u32) -> String {
    format!("{FACET_MARKS}{:04}{:02}", month / 12, month % 12 + 1)
}

/// The term of the documents of this date.
pub(super) fn month_term(date: Timestamp) -> String {
    term(month(date))
}

/// The beginning of the month of a time, or of one some months before; `None` before the year 0.
pub(super) fn month_start(time: Timestamp, months_before: u32) -> Option<Timestamp> {
    let month = month(time).checked_sub(months_before)?;
    Timestamp::parse(&format!("{:04}-{:02}-01T00:00:00Z", month / 12, month % 12 + 1))
}

/// The shortest list of prefixes that all months from `after` to the moment before `before` have, and no others.
pub(super) fn month_prefixes(after: Option<Timestamp>, before: Option<Timestamp>) -> Vec<String> {
    let mut next = after.map_or(0, month);
    let last = before.map(|before| month(Timestamp::from_millis(before.as_millis().saturating_sub(1))));
    // A range without a moment has the month of its beginning: a query has at least one condition.
    let end = last.map_or(MONTHS_END, |last| last + 1).max(next + 1);
    let mut prefixes = Vec::new();
    while next < end {
        let fits = |(months, _): &(u32, usize)| next.is_multiple_of(*months) && next + months <= end;
        let (months, letters) = PERIODS.into_iter().find(fits).unwrap_or((1, 6));
        prefixes.push(term(next).chars().take(2 + letters).collect());
        next += months;
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(after: Option<&str>, before: Option<&str>, expect: &str) {
        let time = |day: &str| Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap();
        assert_eq!(
            month_prefixes(after.map(time), before.map(time)).join(" "),
            expect,
            "{after:?} {before:?}"
        );
    }

    #[test]
    fn month_prefixes_cover_exactly_the_months_of_a_range() {
        check(Some("2023-02-28"), Some("2023-03-02"), "··202302 ··202303");
        check(Some("2023-02-28"), Some("2023-03-01"), "··202302");
        check(Some("2023-01-01"), Some("2024-01-01"), "··2023");
        check(Some("2018-11-05"), Some("2031-02-01"), "··201811 ··201812 ··2019 ··202 ··2030 ··203101");
        check(None, Some("2001-03-01"), "··0 ··1 ··2000 ··200101 ··200102");
        check(
            Some("2026-12-31"),
            None,
            "··202612 ··2027 ··2028 ··2029 ··203 ··204 ··205 ··206 ··207 ··208 ··209 ··21 ··22 ··23 ··24 ··25 ··26 ··27 ··28 ··29 ··3 \
             ··4 ··5 ··6 ··7 ··8 ··9",
        );
        check(Some("2024-05-01"), Some("2023-01-01"), "··202405");
    }

    #[test]
    fn month_start_is_first_moment_of_a_month() {
        let time = |text: &str| Timestamp::parse(text).unwrap();
        for (months, expect) in
            [(0, "2023-02-01T00:00:00Z"), (1, "2023-01-01T00:00:00Z"), (2, "2022-12-01T00:00:00Z")]
        {
            assert_eq!(month_start(time("2023-02-28T23:59:59Z"), months), Some(time(expect)));
        }
        assert_eq!(month_start(time("2023-02-28T23:59:59Z"), 30_000), None);
    }

    #[test]
    fn month_term_has_year_and_month() {
        assert_eq!(month_term(Timestamp::parse("2023-02-28T23:59:59Z").unwrap()), "··202302");
        assert_eq!(month_term(Timestamp::from_millis(0)), "··197001");
    }
}
