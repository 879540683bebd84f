//! Sliding windows, apart from any database: of a size that no limit and no caller makes larger.

use serde::{Deserialize, Serialize};
use transcript_core::{
    Timestamp,
    limits::{MOMENTS_EXACT, PARTS, Take, Taken},
};

/// The end of a window is stored in whole hours, rounded up: it is only needed to forget what is over, and what
/// stays as it is need not be written, in its row nor in an index.
const END_STEP_MS: i64 = 3_600_000;

/// What was taken of one bucket, as far back as it may still count.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) bucket: String,
    /// Moments, and how many were taken at each; the oldest first.
    #[serde(with = "text")]
    taken: Vec<(i64, u32)>,
    /// A moment at which nothing of it counts any more.
    pub(crate) ends_at: i64,
}

impl Window {
    fn fresh(bucket: &str) -> Self {
        Self { bucket: bucket.to_owned(), taken: Vec::new(), ends_at: 0 }
    }

    /// A window as it is stored; none when it cannot be read.
    pub(crate) fn read(bucket: &str, ends_at: i64, taken: &str) -> Option<Self> {
        Some(Self { bucket: bucket.to_owned(), taken: text::read(taken)?, ends_at })
    }

    /// What was taken, as it is stored.
    pub(crate) fn text(&self) -> String {
        text::write(&self.taken)
    }

    /// The moment that counts here: time does not run backwards.
    fn moment(&self, now: i64) -> i64 {
        self.taken.last().map_or(now, |(last, _)| now.max(*last))
    }

    /// Forgets what no longer counts. The window is open at its old end.
    fn slide(&mut self, per_ms: i64, now: i64) {
        let horizon = self.moment(now).saturating_sub(per_ms);
        self.taken.retain(|(at, _)| *at > horizon);
    }

    /// Joins what was taken in the same part of a window, once there are too many moments: it then counts as
    /// taken at the latest of them, so that no window ever has more than its count.
    fn join(&mut self, per_ms: i64) {
        if self.taken.len() <= MOMENTS_EXACT {
            return;
        }
        let part = (per_ms / PARTS).max(1);
        self.taken.dedup_by(|later, earlier| {
            let is_same = later.0.div_euclid(part) == earlier.0.div_euclid(part);
            if is_same {
                *earlier = (later.0, earlier.1.saturating_add(later.1));
            }
            is_same
        });
    }

    fn used(&self) -> u64 {
        self.taken.iter().map(|(_, many)| u64::from(*many)).sum()
    }

    /// How long to wait until a take is possible; none when it is possible now.
    fn wait_ms(&self, take: &Take, now: i64) -> Option<i64> {
        let excess = (self.used() + u64::from(take.cost)).saturating_sub(u64::from(take.count));
        if take.cost == 0 || excess == 0 {
            return None;
        }
        let mut freed = 0;
        let frees_enough = |(_, many): &&(i64, u32)| {
            freed += u64::from(*many);
            freed >= excess
        };
        let moment = self.moment(now);
        let last = self.taken.iter().find(frees_enough).map_or(moment, |(at, _)| *at);
        Some(last.saturating_add(length(take)).saturating_sub(moment))
    }

    /// Takes; returns how many remain, and in how long nothing counts any more.
    fn take(&mut self, take: &Take, now: i64) -> (u32, u64) {
        let moment = self.moment(now);
        match self.taken.last_mut() {
            _ if take.cost == 0 => {}
            Some((at, many)) if *at == moment => *many = many.saturating_add(take.cost),
            _ => self.taken.push((moment, take.cost)),
        }
        self.join(length(take));
        let left = u64::from(take.count).saturating_sub(self.used());
        let ends = self.taken.last().map_or(moment, |(last, _)| last.saturating_add(length(take)));
        // It never comes earlier: then a take that shortens the window would have to be written twice.
        self.ends_at = self.ends_at.max(ends.div_euclid(END_STEP_MS).saturating_add(1) * END_STEP_MS);
        let reset_ms = ends.saturating_sub(moment).unsigned_abs();
        (u32::try_from(left).unwrap_or(take.count), reset_ms)
    }
}

/// Takes from all windows, or from none. `windows` are those that are stored; when something was taken, they
/// are afterwards those that must be stored.
pub(crate) fn take(windows: &mut Vec<Window>, takes: &[Take], now: Timestamp) -> Taken {
    let now = now.as_millis();
    let mut places = Vec::with_capacity(takes.len());
    for take in takes {
        let place = windows.iter().position(|window| window.bucket == take.bucket).unwrap_or_else(|| {
            windows.push(Window::fresh(&take.bucket));
            windows.len() - 1
        });
        windows[place].slide(length(take), now);
        places.push(place);
    }
    let mut refused: Option<(u32, i64)> = None;
    for ((take, place), number) in takes.iter().zip(&places).zip(0..) {
        if let Some(wait_ms) = windows[*place].wait_ms(take, now)
            && refused.is_none_or(|(_, longest)| wait_ms > longest)
        {
            refused = Some((number, wait_ms));
        }
    }
    if let Some((take, wait_ms)) = refused {
        return Taken::Limited { take, retry_after_ms: wait_ms.max(1).unsigned_abs() };
    }
    let figures = takes.iter().zip(&places).map(|(take, place)| windows[*place].take(take, now));
    let (remaining, reset_ms) = figures.min_by_key(|(remaining, _)| *remaining).unwrap_or_default();
    Taken::Allowed { remaining, reset_ms }
}

/// A window's length, as moments are counted.
fn length(take: &Take) -> i64 {
    i64::try_from(take.per_ms).unwrap_or(i64::MAX)
}

/// Moments as they are stored: `1795132800000 12x3 250`, each after the first as the distance from the one before,
/// with how many were taken at it where that is not one. A window is read and written with every request, and as
/// JSON it took three times the room and several times the time.
mod text {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn write(taken: &[(i64, u32)]) -> String {
        let mut text = String::with_capacity(16 + 6 * taken.len());
        // A formatter would take several times as long, and this is done for every request.
        let mut digits = itoa::Buffer::new();
        let mut before = 0;
        for (at, many) in taken {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(digits.format(at.saturating_sub(before)));
            before = *at;
            if *many != 1 {
                text.push('x');
                text.push_str(digits.format(*many));
            }
        }
        text
    }

    pub(super) fn read(text: &str) -> Option<Vec<(i64, u32)>> {
        if text.starts_with('[') {
            // As older programs stored it.
            return serde_json::from_str(text).ok();
        }
        let mut before = 0_i64;
        let moment = |part: &str| {
            let (distance, many) = part.split_once('x').unwrap_or((part, "1"));
            before = before.checked_add(distance.parse().ok()?)?;
            Some((before, many.parse().ok()?))
        };
        text.split_ascii_whitespace().map(moment).collect()
    }

    pub(super) fn serialize<S: Serializer>(taken: &[(i64, u32)], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&write(taken))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(i64, u32)>, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        read(&text).ok_or_else(|| D::Error::custom("no list of moments"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(windows: &mut Vec<Window>, now: i64, count: u32, per_ms: u64, cost: u32, expect: Taken) {
        let ask = Take { bucket: "api/a".to_owned(), count, per_ms, cost };
        assert_eq!(take(windows, &[ask], Timestamp::from_millis(now)), expect, "{now}");
    }

    #[test]
    fn a_window_is_open_at_its_old_end() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 2, 100, 1, Taken::Allowed { remaining: 1, reset_ms: 100 });
        check(windows, 1_040, 2, 100, 1, Taken::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, Taken::Limited { take: 0, retry_after_ms: 1 });
        check(windows, 1_099, 2, 100, 2, Taken::Limited { take: 0, retry_after_ms: 41 });
        check(windows, 1_099, 1, 100, 0, Taken::Allowed { remaining: 0, reset_ms: 41 });
        check(windows, 1_100, 2, 100, 1, Taken::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn a_clock_that_steps_back_stands_still() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 1, 100, 1, Taken::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 500, 1, 100, 1, Taken::Limited { take: 0, retry_after_ms: 100 });
        check(windows, 500, 2, 100, 1, Taken::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, Taken::Limited { take: 0, retry_after_ms: 1 });
        check(windows, 1_100, 2, 100, 2, Taken::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn a_window_stays_small_however_much_is_taken() {
        for per_ms in [1, 63, 64, 127, 128, 1_000, 60_000, 31_622_400_000] {
            let windows = &mut Vec::new();
            let ask = Take { bucket: "api/a".to_owned(), count: 100_000, per_ms, cost: 1 };
            let step = i64::try_from(per_ms / 2_000).unwrap().max(1);
            for n in 0..5_000 {
                take(windows, std::slice::from_ref(&ask), Timestamp::from_millis(n * step));
                assert!(windows[0].taken.len() <= MOMENTS_EXACT, "{per_ms}: {}", windows[0].taken.len());
            }
        }
    }

    #[test]
    fn moments_read_back_in_either_form() {
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
