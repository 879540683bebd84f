//! Billing months of an account: each begins on the same day of the month as the first one.

use jiff::{ToSpan, civil};

use crate::time::{CLOCK_LEAD_MAX, Timestamp};

/// A month of an account: start inclusive, end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BillingMonth {
    /// The start.
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
}

impl BillingMonth {
    /// The month that contains `now`, with months counted from `anchor`.
    ///
    /// Each month begins on the anchor's day of the month, at its time of day in UTC; a calendar month without
    /// that day uses its last day. Months never drift: after 31 January come the last day of February and
    /// 31 March. A time up to a day before the anchor counts as the anchor, whose clock may have been ahead;
    /// an anchor that is further ahead is of a wrong clock, and months are counted back from it.
    ///
    /// ```
    /// use transcript_core::{Timestamp, accounts::BillingMonth};
    ///
    /// let anchor = Timestamp::from_millis(1_801_405_800_000);
    /// assert_eq!(anchor.to_string(), "2027-01-31T14:30:00Z");
    /// let first = BillingMonth::new(anchor, anchor);
    /// assert_eq!(first.end.to_string(), "2027-02-28T14:30:00Z");
    /// assert_eq!(BillingMonth::new(anchor, first.end).end.to_string(), "2027-03-31T14:30:00Z");
    /// ```
    pub fn new(anchor: Timestamp, now: Timestamp) -> Self {
        let now = if anchor.since(now) > CLOCK_LEAD_MAX { now } else { now.max(anchor) };
        let (first, today) = (anchor.civil(), now.civil());
        let years = i32::from(today.year()) - i32::from(first.year());
        let months = years * 12 + i32::from(today.month()) - i32::from(first.month());
        let start = nth_start(first, months);
        if start <= now {
            Self { start, end: nth_start(first, months + 1) }
        } else {
            // The anchor's day of this calendar month is still ahead.
            Self { start: nth_start(first, months - 1), end: start }
        }
    }

    /// The ledger bucket that counts the use of this month: `month/2027-01-31T14:30:00Z`.
    pub fn bucket(&self) -> String {
        format!("month/{}", self.start)
    }
}

/// The start of the month `months` after the anchor's.
fn nth_start(anchor: civil::DateTime, months: i32) -> Timestamp {
    Timestamp::from_civil(anchor.saturating_add(months.months()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_civil(text.parse().unwrap())
    }

    fn before(time: Timestamp) -> Timestamp {
        Timestamp::from_millis(time.as_millis() - 1)
    }

    /// The starts of the months from an anchor on.
    fn starts(anchor: &str, count: usize) -> Vec<String> {
        let anchor = at(anchor);
        let mut starts = vec![BillingMonth::new(anchor, anchor).start];
        while starts.len() < count {
            let month = BillingMonth::new(anchor, *starts.last().unwrap());
            assert_eq!(
                BillingMonth::new(anchor, before(month.end)),
                month,
                "the last millisecond is in the month"
            );
            starts.push(month.end);
        }
        starts.iter().map(|start| start.to_string().replace('Z', "")).collect()
    }

    #[test]
    fn billing_months_in_short_months_are_clipped_and_never_drift() {
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
    fn billing_month_before_anchor_is_first_month() {
        let anchor = at("2027-01-31T14:30:00");
        assert_eq!(BillingMonth::new(anchor, before(anchor)), BillingMonth::new(anchor, anchor));
        assert_eq!(BillingMonth::new(anchor, at("2027-01-30T14:30:00")).start, anchor);
    }

    #[test]
    fn billing_months_before_anchor_of_wrong_clock_are_counted_back() {
        let anchor = at("2028-01-31T14:30:00");
        let month = |now: &str| BillingMonth::new(anchor, at(now));
        let february = BillingMonth { start: at("2027-01-31T14:30:00"), end: at("2027-02-28T14:30:00") };
        assert_eq!((month("2027-01-31T14:30:00"), month("2027-02-28T14:29:59")), (february, february));
        assert_eq!(month("2027-02-28T14:30:00").start, february.end);
        assert_eq!(month("2028-01-30T14:29:59").end, anchor, "the first month follows");
        assert_eq!(month("2028-01-30T14:30:00").start, anchor);
    }

    #[test]
    fn billing_month_bucket_is_named_by_start() {
        let month = BillingMonth::new(at("2027-01-31T14:30:00.25"), at("2027-03-01T00:00:00"));
        assert_eq!(month.bucket(), "month/2027-02-28T14:30:00.250Z");
    }

    proptest! {
        #[test]
        fn billing_month_any_time_is_in_one_month_on_anchor_day(
            anchor in 0_i64..4_000_000_000_000,
            later in 0_i64..400_000_000_000,
        ) {
            let anchor = Timestamp::from_millis(anchor);
            let now = Timestamp::from_millis(anchor.as_millis() + later);
            let month = BillingMonth::new(anchor, now);
            prop_assert!(month.start <= now && now < month.end);
            prop_assert_eq!(BillingMonth::new(anchor, month.start), month);
            prop_assert_eq!(BillingMonth::new(anchor, month.end).start, month.end, "no gap and no overlap");
            let (first, start) = (anchor.civil(), month.start.civil());
            prop_assert_eq!(start.time(), first.time());
            prop_assert_eq!(start.day(), first.day().min(start.date().days_in_month()));
            let days = month.end.since(month.start).as_secs() / 86_400;
            prop_assert!((28..=31).contains(&days), "a month of {} days", days);
        }

        #[test]
        fn billing_month_any_input_gives_valid_range(anchor: i64, now: i64) {
            let month = BillingMonth::new(Timestamp::from_millis(anchor), Timestamp::from_millis(now));
            prop_assert!(month.start <= month.end);
        }
    }
}
