//! Terms of a plan at a point in time: pure functions of the plan and the time.

use jiff::{ToSpan, civil};
use serde::{Deserialize, Serialize};

use super::{Pool, Terms};
use crate::{names::names, time::Timestamp};

/// UTC calendar period of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowancePeriod {
    /// A calendar month in UTC.
    Month,
    /// A calendar day in UTC.
    Day,
}

names!(AllowancePeriod, from_wire {
    Month = "month",
    Day = "day",
});

impl AllowancePeriod {
    /// Name of the bucket at this time: `month/2026-11`, `day/2026-11-20`.
    pub fn bucket(self, now: Timestamp) -> String {
        let today = now.civil().date();
        match self {
            Self::Month => format!("month/{:04}-{:02}", today.year(), today.month()),
            Self::Day => format!("day/{:04}-{:02}-{:02}", today.year(), today.month(), today.day()),
        }
    }

    /// Start of the bucket at this time.
    pub fn start(self, now: Timestamp) -> Timestamp {
        let today = now.civil().date();
        let first = match self {
            Self::Month => today.first_of_month(),
            Self::Day => today,
        };
        Timestamp::from_civil(first.to_datetime(civil::Time::midnight()))
    }

    /// End of the bucket at this time.
    pub fn end(self, now: Timestamp) -> Timestamp {
        let today = now.civil().date();
        let first = match self {
            Self::Month => today.first_of_month().saturating_add(1.month()),
            Self::Day => today.saturating_add(1.day()),
        };
        Timestamp::from_civil(first.to_datetime(civil::Time::midnight()))
    }
}

/// Returns the terms of a single allowance of `limit` per period.
pub fn allowance(period: AllowancePeriod, limit: u64, now: Timestamp) -> Terms {
    Terms {
        pools: vec![Pool::Allowance { bucket: period.bucket(now), limit }],
        resets_at: Some(period.end(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i16, month: i8, day: i8, hour: i8) -> Timestamp {
        Timestamp::from_civil(civil::date(year, month, day).at(hour, 0, 0, 0))
    }

    #[test]
    fn period_bucket_is_named_by_period() {
        let now = at(2026, 11, 20, 13);
        assert_eq!(AllowancePeriod::Month.bucket(now), "month/2026-11");
        assert_eq!(AllowancePeriod::Day.bucket(now), "day/2026-11-20");
    }

    #[test]
    fn period_ends_at_midnight_utc() {
        for (now, month_ends, day_ends) in [
            (at(2026, 11, 20, 13), at(2026, 12, 1, 0), at(2026, 11, 21, 0)),
            (at(2026, 12, 31, 23), at(2027, 1, 1, 0), at(2027, 1, 1, 0)),
            (at(2028, 2, 28, 0), at(2028, 3, 1, 0), at(2028, 2, 29, 0)),
            (at(2028, 2, 29, 23), at(2028, 3, 1, 0), at(2028, 3, 1, 0)),
        ] {
            assert_eq!(AllowancePeriod::Month.end(now), month_ends, "{now}");
            assert_eq!(AllowancePeriod::Day.end(now), day_ends, "{now}");
        }
    }

    #[test]
    fn period_starts_where_previous_ends() {
        let now = at(2028, 2, 29, 13);
        for period in AllowancePeriod::ALL {
            let start = period.start(now);
            assert_eq!(period.end(Timestamp::from_millis(start.as_millis() - 1)), start);
            assert_eq!(period.bucket(start), period.bucket(now));
        }
    }

    #[test]
    fn period_last_millisecond_is_in_old_bucket() {
        let ends = AllowancePeriod::Month.end(at(2026, 11, 20, 13));
        let before = Timestamp::from_millis(ends.as_millis() - 1);
        assert_eq!(AllowancePeriod::Month.bucket(before), "month/2026-11");
        assert_eq!(AllowancePeriod::Month.bucket(ends), "month/2026-12");
    }
}
