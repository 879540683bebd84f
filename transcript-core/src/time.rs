//! Timestamps, and the traits for clock and randomness.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use jiff::{civil, tz::Offset};
use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use transcript_core::Timestamp;
///
/// let time = Timestamp::from_millis(1_795_132_800_000);
/// assert_eq!(time.to_string(), "2026-11-20T00:00:00Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// How far a clock may be ahead and only stand still, in milliseconds. One further ahead was wrong, and steps back.
pub const CLOCK_STEP_MS: i64 = 2_000;
/// How far ahead a hold of credits, a lease, a claim, a pause of a job or a counted request may be.
///
/// None is taken for longer without renewal, and no call waits as long for a store. What is further ahead is of a clock
/// that was ahead and was corrected since.
pub const LEASE_MAX: Duration = Duration::from_secs(900);
/// How far ahead the clock of another server may be, where a record lasts for long: a day.
///
/// A session, link, token or billing month that is further ahead is of a clock that was wrong.
pub const CLOCK_LEAD_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The latest time that the calendar functions support: 9999-12-30T22:00:00Z, the end of jiff's range.
const LATEST_MS: i64 = 253_402_207_200_000;

impl Timestamp {
    /// The time this many milliseconds after 1970-01-01T00:00:00Z.
    ///
    /// It is clamped to the range from that time to 9999-12-30T22:00:00Z.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LATEST_MS))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The time that is `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// The latest expiry at this time of what is valid for `validity`: a clock that was ahead made those with a later
    /// one.
    #[must_use]
    pub(crate) fn expiry_max(self, validity: Duration) -> Self {
        self.plus(validity.saturating_add(CLOCK_LEAD_MAX))
    }

    /// The time that is `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }

    /// The duration from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }

    /// Milliseconds until `end`; zero if it has passed.
    pub(crate) fn millis_until(self, end: Self) -> u64 {
        end.0.saturating_sub(self.0).try_into().unwrap_or(0)
    }

    /// The UTC calendar day and time of day.
    pub(crate) fn civil(self) -> civil::DateTime {
        // Every value between 1970 and 9999 is a valid jiff timestamp; see `from_millis`.
        jiff::Timestamp::from_millisecond(self.0)
            .map(|time| Offset::UTC.to_datetime(time))
            .unwrap_or(civil::DateTime::MIN)
    }

    /// The timestamp of a UTC calendar date and time.
    pub(crate) fn from_civil(time: civil::DateTime) -> Self {
        Offset::UTC.to_timestamp(time).map_or(Self(LATEST_MS), |t| Self::from_millis(t.as_millisecond()))
    }
}

impl Timestamp {
    /// Parses a time in RFC 3339 with any offset; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|time| Self::from_millis(time.as_millisecond()))
    }

    /// Parses a time as [`Timestamp::parse`] does, or a date such as `2026-01-31`: its start in UTC.
    ///
    /// `None` if the text is neither.
    pub fn parse_time_or_date(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| Self::parse(&format!("{text}T00:00:00Z")))
    }
}

/// The time in whole milliseconds, within the bounds of [`Timestamp::from_millis`].
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        // A time before 1970 is an error.
        time.duration_since(SystemTime::UNIX_EPOCH).map_or(Self(0), |since| Self(0).plus(since))
    }
}

/// Formats a wait for a message, rounded up: `1 second`, `59 seconds`, `2 minutes`.
pub(crate) fn format_wait(wait: Duration) -> String {
    let seconds = ceil_seconds(wait);
    let counted = |count: u64, unit: &str| match count {
        1 => format!("1 {unit}"),
        count => format!("{count} {unit}s"),
    };
    match seconds {
        0..=90 => counted(seconds, "second"),
        91..=5_400 => counted(seconds.div_ceil(60), "minute"),
        _ => counted(seconds.div_ceil(3_600), "hour"),
    }
}

/// The wait that a message names, in the words of this project; `None` if it names none.
///
/// For errors of the v1 API: their format has no field for it (specification 7.2).
pub fn parse_wait(message: &str) -> Option<Duration> {
    let rest = ["ry again in ", "etry in "].iter().find_map(|before| message.split_once(before))?.1;
    let mut words = rest.split([' ', '.', ',', ';']);
    let count: u32 = words.next()?.parse().ok()?;
    let unit_s = match words.next()? {
        "s" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3_600,
        _ => return None,
    };
    Some(Duration::from_secs(u64::from(count) * unit_s))
}

/// The duration in whole seconds, rounded up; at least 1.
pub fn ceil_seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1)
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with `Z`; milliseconds only if they are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.civil();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        )?;
        match time.millisecond() {
            0 => f.write_str("Z"),
            millis => write!(f, ".{millis:03}Z"),
        }
    }
}

/// The source of the current time. The core reads no clock itself.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time. It never goes backwards.
    fn now(&self) -> Timestamp;
}

/// The source of randomness. The core generates none itself.
pub trait Random: fmt::Debug + Send + Sync + 'static {
    /// Exactly `count` unpredictable bytes: ids and keys are made of them.
    fn bytes(&self, count: u32) -> Vec<u8>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_displays_as_rfc_3339() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_millis(1_234).to_string(), "1970-01-01T00:00:01.234Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).civil().year(), 9999);
        assert_eq!(Timestamp::from_millis(i64::MIN).as_millis(), 0);
        let [early, late] = [1_000, 2_500].map(Timestamp::from_millis);
        assert_eq!((early.millis_until(late), late.millis_until(early)), (1_500, 0));
        let (epoch, second) = (SystemTime::UNIX_EPOCH, Duration::from_secs(1));
        for (time, millis) in [(epoch + second, 1_000), (epoch - second, 0)] {
            assert_eq!(Timestamp::from(time).as_millis(), millis);
        }
    }

    #[test]
    fn timestamp_is_parsed_from_time_or_date() {
        for (text, expected) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500Z"),
            ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
        ] {
            let parsed = Timestamp::parse_time_or_date(text).map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), Some(expected), "{text}");
        }
        for wrong in ["", "2026", "2026-02-30", "31.01.2026", "2026-01-31T12:00:00", "tomorrow"] {
            assert_eq!(Timestamp::parse_time_or_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wait_formats_round_up() {
        let words = [1, 59, 91, 3_600, 5_401].map(|seconds| format_wait(Duration::from_secs(seconds)));
        assert_eq!(words, ["1 second", "59 seconds", "2 minutes", "60 minutes", "2 hours"]);
        let seconds = [0, 1, 1_000, 1_001].map(|millis| ceil_seconds(Duration::from_millis(millis)));
        assert_eq!(seconds, [1, 1, 1, 2]);
    }

    #[test]
    fn wait_in_message_is_parsed() {
        for seconds in [1, 59, 90, 120, 3_600, 7_200] {
            let wait = Duration::from_secs(seconds);
            let message = format!("It is paused. Try again in {}. Nothing was charged.", format_wait(wait));
            assert_eq!(parse_wait(&message), Some(wait), "{message}");
        }
        assert_eq!(parse_wait("Retry in 86400 seconds."), Some(Duration::from_secs(86_400)));
        assert_eq!(parse_wait("Try again in 7 s; the operator can help."), Some(Duration::from_secs(7)));
        for none in
            ["Try again in a moment.", "Try again in 5", "Try again in 99999999999 s", "Retry later.", ""]
        {
            assert_eq!(parse_wait(none), None, "{none}");
        }
    }

    #[test]
    fn timestamp_round_trips_through_calendar() {
        let time = Timestamp::from_millis(1_709_164_799_000);
        assert_eq!(time.to_string(), "2024-02-28T23:59:59Z");
        assert_eq!(Timestamp::from_civil(time.civil()), time);
    }
}
