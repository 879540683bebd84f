//! Quotas and expiry times as text.

use transcript_core::{Timestamp, directory::RequestQuota, ledger::terms::AllowancePeriod};

/// Largest quota.
const QUOTA_MAX: u64 = 1_000_000_000;
/// What [`parse_quota`] reads, without white space.
pub(crate) const QUOTA_PATTERN: &str = "^([1-9][0-9]{0,8}|1000000000)/(day|month)$";

/// Parses a quota: `1000/day` or `20000/month`.
///
/// # Errors
/// What to give instead.
pub(crate) fn parse_quota(text: &str) -> Result<RequestQuota, String> {
    let parsed = text.split_once('/').and_then(|(max, period)| {
        let max = max.trim().parse().ok().filter(|max| (1..=QUOTA_MAX).contains(max))?;
        Some(RequestQuota { max, period: AllowancePeriod::from_wire(period.trim())? })
    });
    parsed.ok_or_else(|| {
        format!("give a number from 1 to {QUOTA_MAX} and a period, such as 1000/day or 20000/month")
    })
}

/// A quota as [`parse_quota`] reads it.
pub(crate) fn quota_text(quota: &RequestQuota) -> String {
    format!("{}/{}", quota.max, quota.period.as_str())
}

/// Parses a time: RFC 3339, a date (its start, UTC), or a duration from now such as `30d`.
///
/// # Errors
/// What to give instead.
pub(crate) fn parse_expiry(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Ok(duration) = humantime::parse_duration(text) {
        return Ok(now.plus(duration));
    }
    // An earlier time is read as this one.
    let earliest = Timestamp::from_millis(0);
    Timestamp::parse_time_or_date(text).filter(|time| *time > earliest).ok_or_else(|| {
        "give a time such as 2027-01-31T12:00:00Z, a date such as 2027-01-31, or a duration such as 30d"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_text_round_trips() {
        for text in ["1/day", "1000000000/month"] {
            assert_eq!(quota_text(&parse_quota(text).unwrap()), text);
        }
        assert_eq!(parse_quota(" 5 / day ").unwrap().max, 5);
        for wrong in
            ["", "5", "0/day", "-1/day", "5/week", "/day", "1000000001/day", "5/day/month", "1.5/day"]
        {
            parse_quota(wrong).unwrap_err();
        }
    }

    #[test]
    fn expiry_accepts_time_date_and_duration() {
        let now = Timestamp::from_millis(1_795_132_800_000);
        for (text, expected) in [
            ("2027-01-31T12:00:00Z", "2027-01-31T12:00:00Z"),
            ("2027-01-31T12:00:00+01:00", "2027-01-31T11:00:00Z"),
            (" 2027-01-31 ", "2027-01-31T00:00:00Z"),
            ("30d", "2026-12-20T00:00:00Z"),
            ("90m", "2026-11-20T01:30:00Z"),
        ] {
            assert_eq!(parse_expiry(text, now).unwrap().to_string(), expected, "{text}");
        }
        for wrong in ["", "tomorrow", "2027-13-01", "31.01.2027", "1969-01-01T00:00:00Z"] {
            parse_expiry(wrong, now).unwrap_err();
        }
    }
}
