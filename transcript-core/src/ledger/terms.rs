//! Which pools a plan gives at a moment: pure functions of the plan and the time.

use jiff::{ToSpan, civil};

use super::{Pool, Terms};
use crate::time::Timestamp;

/// The UTC calendar period over which an allowance runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// A calendar month in UTC.
    Month,
    /// A calendar day in UTC.
    Day,
}

impl Period {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 2] = [Self::Month, Self::Day];

    /// The name on the wire (specification 2.2, key object).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Day => "day",
        }
    }

    /// The name of the bucket that is current at a moment: `month/2026-11`, `day/2026-11-20`.
    pub fn bucket(self, now: Timestamp) -> String {
        let today = now.civil().date();
        match self {
            Self::Month => format!("month/{:04}-{:02}", today.year(), today.month()),
            Self::Day => format!("day/{:04}-{:02}-{:02}", today.year(), today.month(), today.day()),
        }
    }

    /// When the bucket that is current at a moment is replaced by the next.
    pub fn ends(self, now: Timestamp) -> Timestamp {
        let today = now.civil().date();
        let first = match self {
            Self::Month => today.first_of_month().saturating_add(1.month()),
            Self::Day => today.saturating_add(1.day()),
        };
        Timestamp::from_civil(first.to_datetime(civil::Time::midnight()))
    }
}

/// The terms of an allowance of `limit` in each period, and nothing else.
pub fn allowance(period: Period, limit: u64, now: Timestamp) -> Terms {
    Terms {
        pools: vec![Pool::Allowance { bucket: period.bucket(now), limit }],
        resets_at: Some(period.ends(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i16, month: i8, day: i8, hour: i8) -> Timestamp {
        Timestamp::from_civil(civil::date(year, month, day).at(hour, 0, 0, 0))
    }

    #[test]
    fn buckets_are_named_by_their_period() {
        let now = at(2026, 11, 20, 13);
        assert_eq!(Period::Month.bucket(now), "month/2026-11");
        assert_eq!(Period::Day.bucket(now), "day/2026-11-20");
    }

    #[test]
    fn periods_end_at_midnight_utc() {
        for (now, month_ends, day_ends) in [
            (at(2026, 11, 20, 13), at(2026, 12, 1, 0), at(2026, 11, 21, 0)),
            (at(2026, 12, 31, 23), at(2027, 1, 1, 0), at(2027, 1, 1, 0)),
            (at(2028, 2, 28, 0), at(2028, 3, 1, 0), at(2028, 2, 29, 0)),
            (at(2028, 2, 29, 23), at(2028, 3, 1, 0), at(2028, 3, 1, 0)),
        ] {
            assert_eq!(Period::Month.ends(now), month_ends, "{now}");
            assert_eq!(Period::Day.ends(now), day_ends, "{now}");
        }
    }

    #[test]
    fn the_last_millisecond_belongs_to_the_old_period() {
        let ends = Period::Month.ends(at(2026, 11, 20, 13));
        let before = Timestamp::from_millis(ends.as_millis() - 1);
        assert_eq!(Period::Month.bucket(before), "month/2026-11");
        assert_eq!(Period::Month.bucket(ends), "month/2026-12");
    }
}
