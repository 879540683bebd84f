//! Sliding windows of bounded size, independent of the database.

use serde::{Deserialize, Serialize};
use transcript_core::{
    Timestamp,
    limits::{LimitOutcome, LimitRequest, TIMES_EXACT, WINDOW_PARTS},
};

/// The end of a window is stored in whole hours, rounded up.
///
/// It is only needed to delete expired windows, and an unchanged end needs no write to the row or its index.
const END_STEP_MS: i64 = 3_600_000;

/// The requests counted in one bucket that have not expired.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SlidingWindow {
    pub(crate) bucket: String,
    /// Times and the count at each; the oldest first.
    #[serde(with = "text")]
    taken: Vec<(i64, u32)>,
    /// The time at which all counts have expired.
    pub(crate) ends_at: i64,
}

impl SlidingWindow {
    fn fresh(bucket: &str) -> Self {
        Self { bucket: bucket.to_owned(), taken: Vec::new(), ends_at: 0 }
    }

    /// Decodes a stored window. `None` if it is malformed.
    pub(crate) fn read(bucket: &str, ends_at: i64, taken: &str) -> Option<Self> {
        Some(Self { bucket: bucket.to_owned(), taken: text::read(taken)?, ends_at })
    }

    /// The counted requests in the stored form.
    pub(crate) fn text(&self) -> String {
        text::write(&self.taken)
    }

    /// The later of `now` and the newest counted time, so that a clock that steps back has no effect.
    fn effective_now(&self, now: i64) -> i64 {
        self.taken.last().map_or(now, |(last, _)| now.max(*last))
    }

    /// Removes expired counts. A count expires exactly `per_ms` after its time.
    fn slide(&mut self, per_ms: i64, now: i64) {
        let horizon = self.effective_now(now).saturating_sub(per_ms);
        self.taken.retain(|(at, _)| *at > horizon);
    }

    /// Merges counts in the same part of a window once there are too many times.
    ///
    /// A merged count has the latest time of its part, so no window ever exceeds its limit.
    fn merge(&mut self, per_ms: i64) {
        if self.taken.len() <= TIMES_EXACT {
            return;
        }
        let part = (per_ms / WINDOW_PARTS).max(1);
        self.taken.dedup_by(|later, earlier| {
            let is_same = later.0.div_euclid(part) == earlier.0.div_euclid(part);
            if is_same {
                *earlier = (later.0, earlier.1.saturating_add(later.1));
            }
            is_same
        });
    }

    fn used(&self) -> u64 {
        self.taken.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The wait until the request is possible. `None` if it is possible now.
    fn wait_ms(&self, take: &LimitRequest, now: i64) -> Option<i64> {
        let excess = (self.used() + u64::from(take.cost)).saturating_sub(u64::from(take.max));
        if take.cost == 0 || excess == 0 {
            return None;
        }
        let mut freed = 0;
        let frees_enough = |(_, count): &&(i64, u32)| {
            freed += u64::from(*count);
            freed >= excess
        };
        let effective_now = self.effective_now(now);
        let last = self.taken.iter().find(frees_enough).map_or(effective_now, |(at, _)| *at);
        Some(last.saturating_add(length(take)).saturating_sub(effective_now))
    }

    /// Counts the request; returns the remaining count and the time until all counts have expired.
    fn take(&mut self, take: &LimitRequest, now: i64) -> (u32, u64) {
        let effective_now = self.effective_now(now);
        match self.taken.last_mut() {
            _ if take.cost == 0 => {}
            Some((at, count)) if *at == effective_now => *count = count.saturating_add(take.cost),
            _ => self.taken.push((effective_now, take.cost)),
        }
        self.merge(length(take));
        let left = u64::from(take.max).saturating_sub(self.used());
        let end = self.taken.last().map_or(effective_now, |(last, _)| last.saturating_add(length(take)));
        // The end never moves back: otherwise a request with a shorter window would need a second write.
        self.ends_at = self.ends_at.max(end.div_euclid(END_STEP_MS).saturating_add(1) * END_STEP_MS);
        let reset_ms = end.saturating_sub(effective_now).unsigned_abs();
        (u32::try_from(left).unwrap_or(take.max), reset_ms)
    }
}

/// Takes from all windows or none.
///
/// `windows` holds the stored windows; after a success it holds the windows to store.
pub(crate) fn take(
    windows: &mut Vec<SlidingWindow>,
    requests: &[LimitRequest],
    now: Timestamp,
) -> LimitOutcome {
    let now = now.as_millis();
    let mut indexes = Vec::with_capacity(requests.len());
    for take in requests {
        let index = windows.iter().position(|window| window.bucket == take.bucket).unwrap_or_else(|| {
            windows.push(SlidingWindow::fresh(&take.bucket));
            windows.len() - 1
        });
        windows[index].slide(length(take), now);
        indexes.push(index);
    }
    let mut limited: Option<(u32, i64)> = None;
    for ((take, index), number) in requests.iter().zip(&indexes).zip(0..) {
        if let Some(wait_ms) = windows[*index].wait_ms(take, now)
            && limited.is_none_or(|(_, longest)| wait_ms > longest)
        {
            limited = Some((number, wait_ms));
        }
    }
    if let Some((take, wait_ms)) = limited {
        return LimitOutcome::Limited { limit_index: take, retry_after_ms: wait_ms.max(1).unsigned_abs() };
    }
    let states = requests.iter().zip(&indexes).map(|(take, index)| windows[*index].take(take, now));
    let (remaining, reset_ms) = states.min_by_key(|(remaining, _)| *remaining).unwrap_or_default();
    LimitOutcome::Allowed { remaining, reset_ms }
}

/// The length of a window in milliseconds.
fn length(take: &LimitRequest) -> i64 {
    i64::try_from(take.window_ms).unwrap_or(i64::MAX)
}

/// The stored form of counts: `1795132800000 12x3 250`.
///
/// Each time after the first is the distance from the previous one, with its count unless that is one. A window
/// is read and written with every request; as JSON it took three times the space and several times the time.
mod text {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn write(taken: &[(i64, u32)]) -> String {
        let mut text = String::with_capacity(16 + 6 * taken.len());
        // A formatter takes several times as long, and this runs for every request.
        let mut digits = itoa::Buffer::new();
        let mut before = 0;
        for (at, count) in taken {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(digits.format(at.saturating_sub(before)));
            before = *at;
            if *count != 1 {
                text.push('x');
                text.push_str(digits.format(*count));
            }
        }
        text
    }

    pub(super) fn read(text: &str) -> Option<Vec<(i64, u32)>> {
        if text.starts_with('[') {
            // The form of older versions.
            return serde_json::from_str(text).ok();
        }
        let mut before = 0_i64;
        let entry = |part: &str| {
            let (distance, count) = part.split_once('x').unwrap_or((part, "1"));
            before = before.checked_add(distance.parse().ok()?)?;
            Some((before, count.parse().ok()?))
        };
        text.split_ascii_whitespace().map(entry).collect()
    }

    pub(super) fn serialize<S: Serializer>(taken: &[(i64, u32)], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&write(taken))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(i64, u32)>, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        read(&text).ok_or_else(|| D::Error::custom("malformed list of times"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        windows: &mut Vec<SlidingWindow>,
        now: i64,
        count: u32,
        per_ms: u64,
        cost: u32,
        expect: LimitOutcome,
    ) {
        let request = LimitRequest { bucket: "api/a".to_owned(), max: count, window_ms: per_ms, cost };
        assert_eq!(take(windows, &[request], Timestamp::from_millis(now)), expect, "{now}");
    }

    #[test]
    fn window_entry_expires_at_exact_length() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 2, 100, 1, LimitOutcome::Allowed { remaining: 1, reset_ms: 100 });
        check(windows, 1_040, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 1 });
        check(windows, 1_099, 2, 100, 2, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 41 });
        check(windows, 1_099, 1, 100, 0, LimitOutcome::Allowed { remaining: 0, reset_ms: 41 });
        check(windows, 1_100, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn window_clock_stepping_back_stands_still() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 1, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 500, 1, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 100 });
        check(windows, 500, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 1 });
        check(windows, 1_100, 2, 100, 2, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn window_many_requests_stays_bounded() {
        for per_ms in [1, 63, 64, 127, 128, 1_000, 60_000, 31_622_400_000] {
            let windows = &mut Vec::new();
            let request =
                LimitRequest { bucket: "api/a".to_owned(), max: 100_000, window_ms: per_ms, cost: 1 };
            let step = i64::try_from(per_ms / 2_000).unwrap().max(1);
            for n in 0..5_000 {
                take(windows, std::slice::from_ref(&request), Timestamp::from_millis(n * step));
                assert!(windows[0].taken.len() <= TIMES_EXACT, "{per_ms}: {}", windows[0].taken.len());
            }
        }
    }

    #[test]
    fn window_text_and_json_forms_decode_equal() {
        for (taken, stored) in [
            (&[][..], ""),
            (&[(1_795_132_800_000, 1)], "1795132800000"),
            (&[(1_000, 2), (1_000, 1), (1_250, 100_000)], "1000x2 0 250x100000"),
            (&[(-5, 1), (3, 1)], "-5 8"),
        ] {
            assert_eq!(text::write(taken), stored);
            assert_eq!(text::read(stored).unwrap(), taken);
            assert_eq!(text::read(&serde_json::to_string(taken).unwrap()).unwrap(), taken);
        }
        for damaged in ["x", "1x", "1xx2", "1 x2", "1 2 three", "[[1]]", "1,2", "9223372036854775807 1"] {
            assert_eq!(text::read(damaged), None, "{damaged}");
        }
    }
}
