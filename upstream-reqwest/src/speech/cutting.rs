//! Where a long sound is cut: in the middle of the longest quiet moment near the end of each part. Pure.
//!
//! Every sample goes into exactly one part, so that nothing is lost at a cut and nothing is heard twice.

use super::loudness::{FRAME_MS, SILENCE};

/// How much of a part's end is searched for a quiet moment, in milliseconds; at most half of it.
const SEARCHED_MS: u64 = 60_000;
/// The shortest rest after a cut: services refuse sound that is shorter than a tenth of a second.
const REST_MS: u64 = 1_000;
/// Which part of the searched frames is taken for pauses, and how much louder than those a pause may be.
const QUIETEST_OF: usize = 50;
const LOUDER: u16 = 2;

/// A part of a sound, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
}

impl Part {
    /// How long it is.
    pub(super) fn length_ms(self) -> u64 {
        self.end_ms - self.start_ms
    }
}

/// The parts of a sound with this loudness and length, each of at most `max_ms`, which is at least twice
/// the shortest rest.
pub(super) fn parts(frames: &[u16], length_ms: u64, max_ms: u64) -> Vec<Part> {
    let max_ms = max_ms.max(2 * REST_MS);
    let mut parts = Vec::new();
    let mut start_ms = 0;
    while length_ms - start_ms > max_ms {
        let latest = (start_ms + max_ms).min(length_ms - REST_MS);
        let earliest = (latest - SEARCHED_MS.min(max_ms / 2)).max(start_ms + REST_MS / 2);
        let end_ms = quiet_moment(frames, earliest, latest);
        parts.push(Part { start_ms, end_ms });
        start_ms = end_ms;
    }
    parts.push(Part { start_ms, end_ms: length_ms });
    parts
}

/// The middle of the longest quiet moment between these times; the later one of equals.
fn quiet_moment(frames: &[u16], earliest_ms: u64, latest_ms: u64) -> u64 {
    let place = |ms: u64| usize::try_from(ms / FRAME_MS).unwrap_or(usize::MAX).min(frames.len());
    // The first frame begins after the earliest moment.
    let first = place(earliest_ms + FRAME_MS - 1);
    let searched = frames.get(first..place(latest_ms).max(first)).unwrap_or_default();
    let mut sorted = searched.to_vec();
    sorted.sort_unstable();
    let quietest = sorted.get(sorted.len() / QUIETEST_OF).copied().unwrap_or(0);
    let threshold = quietest.saturating_mul(LOUDER).max(SILENCE);
    let (mut best, mut run) = ((0, 0), 0);
    for (frame, loudness) in searched.iter().enumerate() {
        run = if *loudness <= threshold { run + 1 } else { 0 };
        if run > 0 && run >= best.1 {
            best = (frame + 1 - run, run);
        }
    }
    let middle = (first + best.0) as u64 * FRAME_MS + best.1 as u64 * FRAME_MS / 2;
    middle.clamp(earliest_ms, latest_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames of these lengths in milliseconds and loudnesses.
    fn frames(parts: &[(u64, u16)]) -> Vec<u16> {
        parts.iter().flat_map(|(ms, loudness)| vec![*loudness; (ms / FRAME_MS) as usize]).collect()
    }

    fn ends(frames: &[u16], max_ms: u64) -> Vec<u64> {
        parts(frames, frames.len() as u64 * FRAME_MS, max_ms).iter().map(|part| part.end_ms).collect()
    }

    #[test]
    fn a_short_sound_is_one_part() {
        assert_eq!(ends(&frames(&[(10_000, 900)]), 10_000), [10_000]);
        assert_eq!(parts(&[], 0, 10_000), [Part { start_ms: 0, end_ms: 0 }]);
    }

    #[test]
    fn the_longest_pause_is_cut_in_its_middle() {
        let speech = frames(&[(6_000, 900), (400, 5), (1_000, 900), (200, 5), (8_000, 900)]);
        assert_eq!(ends(&speech, 10_000), [6_200, 15_600]);
    }

    #[test]
    fn pauses_over_noise_are_found_too() {
        let speech = frames(&[(7_000, 3_000), (300, 700), (2_700, 3_000), (5_000, 3_000)]);
        assert_eq!(ends(&speech, 10_000), [7_150, 15_000]);
    }

    #[test]
    fn a_pause_before_the_searched_stretch_does_not_count() {
        let speech = frames(&[(1_000, 900), (2_000, 5), (5_000, 900), (200, 5), (9_000, 900)]);
        assert_eq!(ends(&speech, 10_000)[0], 8_100);
    }

    proptest! {
        #[test]
        fn parts_cover_the_sound_once(
            frames in prop::collection::vec(0_u16..2_000, 0..3_000),
            odd in 0_u64..FRAME_MS,
            max_ms in 0_u64..20_000,
        ) {
            let length = (frames.len() as u64 * FRAME_MS).saturating_sub(odd);
            let parts = parts(&frames, length, max_ms);
            prop_assert_eq!(parts[0].start_ms, 0);
            prop_assert_eq!(parts[parts.len() - 1].end_ms, length);
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].end_ms, pair[1].start_ms);
            }
            if parts.len() > 1 {
                for part in parts {
                    prop_assert!(part.length_ms() <= max_ms.max(2 * REST_MS) && part.length_ms() >= REST_MS / 2);
                }
            }
        }
    }
}
