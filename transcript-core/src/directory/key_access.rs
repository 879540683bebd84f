//! Expiry, quota and request counts of a key of the lookup API.

use serde::{Deserialize, Serialize};

use crate::{ids::KeyId, ledger::terms::AllowancePeriod, time::Timestamp};

/// When a key ends, how often it may be used, and how often it was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAccess {
    /// When the key expires; `None`: never.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Maximum number of requests; `None`: no limit.
    #[serde(default)]
    pub quota: Option<RequestQuota>,
    /// The requests so far, as stored.
    #[serde(default)]
    pub requests: RequestCounts,
}

/// Maximum number of requests in a calendar period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestQuota {
    /// The maximum.
    pub max: u64,
    /// The period, in UTC.
    pub period: AllowancePeriod,
}

/// Counts of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All requests.
    pub total: u64,
    /// Time of the last one; `None` without any.
    pub last_at: Option<Timestamp>,
    /// Those of the latest day with a request.
    pub day: PeriodRequests,
    /// Those of the latest month with a request.
    pub month: PeriodRequests,
}

/// Requests within one day or month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodRequests {
    /// Start of the period; `None` without any request.
    pub start: Option<Timestamp>,
    /// Number of requests.
    pub count: u64,
}

/// Requests of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRequests {
    /// The key.
    pub key: KeyId,
    /// Its requests.
    pub counts: RequestCounts,
}

/// Change of a key's expiry and quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAccessChange {
    /// The expiry.
    pub expires_at: FieldChange<Timestamp>,
    /// The quota.
    pub quota: FieldChange<RequestQuota>,
}

/// Change of an optional field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldChange<T> {
    /// It keeps its value.
    #[default]
    Keep,
    /// It has no value.
    Clear,
    /// It has this value.
    Set(T),
}

impl<T: Copy> FieldChange<T> {
    /// The field after the change.
    pub fn apply(self, old: Option<T>) -> Option<T> {
        match self {
            Self::Keep => old,
            Self::Clear => None,
            Self::Set(new) => Some(new),
        }
    }
}

impl KeyAccessChange {
    /// The access after the change; the counts stay.
    #[must_use]
    pub fn apply(self, old: &KeyAccess) -> KeyAccess {
        KeyAccess {
            expires_at: self.expires_at.apply(old.expires_at),
            quota: self.quota.apply(old.quota),
            requests: old.requests.clone(),
        }
    }
}

impl KeyAccess {
    /// Whether the key has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl PeriodRequests {
    /// The requests of both: of the later period, or of the common one.
    fn plus(self, other: Self) -> Self {
        let count = match self.start.cmp(&other.start) {
            std::cmp::Ordering::Less => other.count,
            std::cmp::Ordering::Equal => self.count.saturating_add(other.count),
            std::cmp::Ordering::Greater => self.count,
        };
        Self { start: self.start.max(other.start), count }
    }

    /// The newer of two states of one counter.
    fn newest(self, other: Self) -> Self {
        if (self.start, self.count) < (other.start, other.count) { other } else { self }
    }
}

impl RequestCounts {
    /// One request at this time.
    pub fn one(now: Timestamp) -> Self {
        let one = |period: AllowancePeriod| PeriodRequests { start: Some(period.start(now)), count: 1 };
        Self {
            total: 1,
            last_at: Some(now),
            day: one(AllowancePeriod::Day),
            month: one(AllowancePeriod::Month),
        }
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The requests of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            last_at: self.last_at.max(other.last_at),
            day: self.day.plus(other.day),
            month: self.month.plus(other.month),
        }
    }

    /// The newer of two states of one counter, field by field: counts only grow.
    #[must_use]
    pub fn newest(&self, other: &Self) -> Self {
        Self {
            total: self.total.max(other.total),
            last_at: self.last_at.max(other.last_at),
            day: self.day.newest(other.day),
            month: self.month.newest(other.month),
        }
    }

    /// The requests in the period of this time.
    ///
    /// Those of a later period count too: another server's clock is ahead.
    pub fn within(&self, period: AllowancePeriod, now: Timestamp) -> u64 {
        let counted = match period {
            AllowancePeriod::Day => self.day,
            AllowancePeriod::Month => self.month,
        };
        if counted.start >= Some(period.start(now)) { counted.count } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_millis(1_795_132_800_000 + days * DAY_MS)
    }

    #[test]
    fn request_counts_restart_with_each_period() {
        // 20 November 2026, and 1 December.
        let counts = [0, 0, 1, 11].map(at).map(RequestCounts::one);
        let sum = counts.iter().fold(RequestCounts::default(), |sum, one| sum.plus(one));
        assert_eq!((sum.total, sum.last_at), (4, Some(at(11))));
        for (day, today, month) in [(11, 1, 1), (10, 1, 1), (12, 0, 1), (42, 0, 0)] {
            let now = at(day);
            let within = AllowancePeriod::ALL.map(|period| sum.within(period, now));
            assert_eq!(within, [month, today], "{now}");
        }
        let reverse = counts.iter().rev().fold(RequestCounts::default(), |sum, one| sum.plus(one));
        assert_eq!(reverse, sum, "the order matters");
    }

    #[test]
    fn request_counts_newest_state_wins() {
        let old = RequestCounts::one(at(0));
        let new = old.plus(&RequestCounts::one(at(0)));
        let next_day = new.plus(&RequestCounts::one(at(1)));
        for (a, b, newest) in [(&old, &new, &new), (&new, &next_day, &next_day), (&new, &new, &new)] {
            assert_eq!((&a.newest(b), &b.newest(a)), (newest, newest));
        }
    }

    #[test]
    fn key_access_change_keeps_other_fields() {
        let quota = RequestQuota { max: 5, period: AllowancePeriod::Day };
        let old =
            KeyAccess { expires_at: Some(at(1)), quota: Some(quota), requests: RequestCounts::one(at(0)) };
        assert_eq!(KeyAccessChange::default().apply(&old), old);
        let change = KeyAccessChange { expires_at: FieldChange::Clear, ..KeyAccessChange::default() };
        assert_eq!(change.apply(&old), KeyAccess { expires_at: None, ..old.clone() });
        let change = KeyAccessChange { expires_at: FieldChange::Set(at(2)), quota: FieldChange::Clear };
        assert_eq!(change.apply(&old), KeyAccess { expires_at: Some(at(2)), quota: None, ..old });
        assert!(!KeyAccess::default().is_expired(at(9)));
        assert!(KeyAccess { expires_at: Some(at(2)), ..KeyAccess::default() }.is_expired(at(2)));
    }
}
