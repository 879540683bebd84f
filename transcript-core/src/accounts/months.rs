//! The months of an account: they begin on the day of the month on which the first one began.

use jiff::{ToSpan, civil};

use crate::time::Timestamp;

/// A month of an account, from its first moment to the first moment of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment that is no longer in it.
    pub end: Timestamp,
}

impl Month {
    /// The month in which a moment lies, when months are counted from `anchor`.
    ///
    /// Each begins on the anchor's day of the month, at its time of day in UTC; in a month without that day,
    /// on its last one. They never drift: what began on 31 January goes on at the end of February, and then
    /// on 31 March. A moment before the anchor counts as the anchor.
    ///
    /// ```
    /// use transcript_core::{Timestamp, accounts::Month};
    ///
    /// let anchor = Timestamp::from_millis(1_801_405_800_000);
    /// assert_eq!(anchor.to_string(), "2027-01-31T14:30:00Z");
    /// let first = Month::of(anchor, anchor);
    /// assert_eq!(first.end.to_string(), "2027-02-28T14:30:00Z");
    /// assert_eq!(Month::of(anchor, first.end).end.to_string(), "2027-03-31T14:30:00Z");
    /// ```
    pub fn of(anchor: Timestamp, now: Timestamp) -> Self {
        let now = now.max(anchor);
        let (first, today) = (anchor.civil(), now.civil());
        let years = i32::from(today.year()) - i32::from(first.year());
        let months = years * 12 + i32::from(today.month()) - i32::from(first.month());
        let start = nth(first, months);
        if start <= now {
            Self { start, end: nth(first, months + 1) }
        } else {
            // Its day has not come yet in this calendar month.
            Self { start: nth(first, months - 1), end: start }
        }
    }

    /// The name of the bucket in which what is used in this month is counted: `month/2027-01-31T14:30:00Z`.
    pub fn bucket(&self) -> String {
        format!("month/{}", self.start)
    }
}

/// When the n-th month after the anchor's begins.
fn nth(anchor: civil::DateTime, months: i32) -> Timestamp {
    Timestamp::from_civil(anchor.saturating_add(months.months()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_civil(text.parse().unwrap())
    }

    fn before(moment: Timestamp) -> Timestamp {
        Timestamp::from_millis(moment.as_millis() - 1)
    }

    /// The starts of the months that follow an anchor.
    fn starts(anchor: &str, count: usize) -> Vec<String> {
        let anchor = at(anchor);
        let mut starts = vec![Month::of(anchor, anchor).start];
        while starts.len() < count {
            let month = Month::of(anchor, *starts.last().unwrap());
            assert_eq!(Month::of(anchor, before(month.end)), month, "the last millisecond belongs to it");
            starts.push(month.end);
        }
        starts.iter().map(|start| start.to_string().replace('Z', "")).collect()
    }

    #[test]
    fn months_are_clipped_to_short_ones_and_never_drift() {
        let days = [
            "2026-12-31T23:59:59.999",
            "2027-01-31T23:59:59.999",
            "2027-02-28T23:59:59.999",
            "2027-03-31T23:59:59.999",
            "2027-04-30T23:59:59.999",
            "2027-05-31T23:59:59.999",
        ];
        assert_eq!(starts(days[0], days.len()), days);
        let leap = ["2028-01-30T00:00:00", "2028-02-29T00:00:00", "2028-03-30T00:00:00"];
        assert_eq!(starts(leap[0], leap.len()), leap);
        assert_eq!(
            starts("2028-02-29T12:00:00", 14)[12..],
            ["2029-02-28T12:00:00".to_owned(), "2029-03-29T12:00:00".to_owned()]
        );
    }

    #[test]
    fn a_moment_before_the_anchor_lies_in_the_first_month() {
        let anchor = at("2027-01-31T14:30:00");
        assert_eq!(Month::of(anchor, before(anchor)), Month::of(anchor, anchor));
        assert_eq!(Month::of(anchor, Timestamp::from_millis(0)).start, anchor);
    }

    #[test]
    fn a_month_is_named_by_its_start() {
        let month = Month::of(at("2027-01-31T14:30:00.25"), at("2027-03-01T00:00:00"));
        assert_eq!(month.bucket(), "month/2027-02-28T14:30:00.250Z");
    }

    proptest! {
        #[test]
        fn each_moment_lies_in_one_month_on_the_anchors_day(
            anchor in 0_i64..4_000_000_000_000,
            later in 0_i64..400_000_000_000,
        ) {
            let anchor = Timestamp::from_millis(anchor);
            let now = Timestamp::from_millis(anchor.as_millis() + later);
            let month = Month::of(anchor, now);
            prop_assert!(month.start <= now && now < month.end);
            prop_assert_eq!(Month::of(anchor, month.start), month);
            prop_assert_eq!(Month::of(anchor, month.end).start, month.end, "no gap and no overlap");
            let (first, start) = (anchor.civil(), month.start.civil());
            prop_assert_eq!(start.time(), first.time());
            prop_assert_eq!(start.day(), first.day().min(start.date().days_in_month()));
            let days = month.end.since(month.start).as_secs() / 86_400;
            prop_assert!((28..=31).contains(&days), "a month of {} days", days);
        }

        #[test]
        fn any_two_moments_give_a_month(anchor: i64, now: i64) {
            let month = Month::of(Timestamp::from_millis(anchor), Timestamp::from_millis(now));
            prop_assert!(month.start <= month.end);
        }
    }
}
