//! Splits long audio into chunks, in the middle of the longest quiet stretch near the end of each.
//!
//! No I/O.
//!
//! Every sample belongs to exactly one chunk: no audio is lost or sent twice.

use super::loudness::{FRAME_MS, SILENCE};

/// Length of the searched stretch at the end of a chunk, in milliseconds; at most half of the chunk.
const SEARCH_LENGTH_MS: u64 = 60_000;
/// Minimum remainder after a split: services reject audio shorter than 100 ms.
const REMAINDER_MIN_MS: u64 = 1_000;
/// One in `QUIET_FRAME_RATIO` searched frames counts as quiet.
///
/// A pause may be `PAUSE_LOUDNESS_FACTOR` times as loud as a quiet frame.
const QUIET_FRAME_RATIO: usize = 50;
const PAUSE_LOUDNESS_FACTOR: u16 = 2;

/// A chunk of the audio, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AudioChunk {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
}

impl AudioChunk {
    /// Length of the chunk.
    pub(super) fn length_ms(self) -> u64 {
        self.end_ms - self.start_ms
    }
}

/// Splits audio of this loudness and length into chunks of at most `max_ms`, the first one of at most `first_max_ms`.
///
/// Both are raised to twice the minimum remainder.
pub(super) fn split(frames: &[u16], length_ms: u64, first_max_ms: u64, max_ms: u64) -> Vec<AudioChunk> {
    let mut parts = Vec::new();
    let mut start_ms = 0;
    loop {
        let max_ms = if start_ms == 0 { first_max_ms } else { max_ms }.max(2 * REMAINDER_MIN_MS);
        if length_ms - start_ms <= max_ms {
            break;
        }
        let latest = (start_ms + max_ms).min(length_ms - REMAINDER_MIN_MS);
        let earliest = (latest - SEARCH_LENGTH_MS.min(max_ms / 2)).max(start_ms + REMAINDER_MIN_MS / 2);
        let end_ms = find_quiet_position(frames, earliest, latest);
        parts.push(AudioChunk { start_ms, end_ms });
        start_ms = end_ms;
    }
    parts.push(AudioChunk { start_ms, end_ms: length_ms });
    parts
}

/// The middle of the longest quiet stretch between these times; the later one of equals.
fn find_quiet_position(frames: &[u16], earliest_ms: u64, latest_ms: u64) -> u64 {
    let index = |ms: u64| usize::try_from(ms / FRAME_MS).unwrap_or(usize::MAX).min(frames.len());
    // The first frame begins after the earliest position.
    let first = index(earliest_ms + FRAME_MS - 1);
    let searched = frames.get(first..index(latest_ms).max(first)).unwrap_or_default();
    let mut sorted = searched.to_vec();
    sorted.sort_unstable();
    let quietest = sorted.get(sorted.len() / QUIET_FRAME_RATIO).copied().unwrap_or(0);
    let threshold = quietest.saturating_mul(PAUSE_LOUDNESS_FACTOR).max(SILENCE);
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

    /// Frames of these lengths in milliseconds and loudness values.
    fn frames(parts: &[(u64, u16)]) -> Vec<u16> {
        parts.iter().flat_map(|(ms, loudness)| vec![*loudness; (ms / FRAME_MS) as usize]).collect()
    }

    fn ends(frames: &[u16], max_ms: u64) -> Vec<u64> {
        split(frames, frames.len() as u64 * FRAME_MS, max_ms, max_ms).iter().map(|part| part.end_ms).collect()
    }

    #[test]
    fn chunking_short_audio_is_one_chunk() {
        assert_eq!(ends(&frames(&[(10_000, 900)]), 10_000), [10_000]);
        assert_eq!(split(&[], 0, 10_000, 10_000), [AudioChunk { start_ms: 0, end_ms: 0 }]);
    }

    #[test]
    fn chunking_splits_middle_of_longest_pause() {
        let speech = frames(&[(6_000, 900), (400, 5), (1_000, 900), (200, 5), (8_000, 900)]);
        assert_eq!(ends(&speech, 10_000), [6_200, 15_600]);
    }

    #[test]
    fn chunking_finds_pause_in_noise() {
        let speech = frames(&[(7_000, 3_000), (300, 700), (2_700, 3_000), (5_000, 3_000)]);
        assert_eq!(ends(&speech, 10_000), [7_150, 15_000]);
    }

    #[test]
    fn chunking_ignores_pause_before_search_range() {
        let speech = frames(&[(1_000, 900), (2_000, 5), (5_000, 900), (200, 5), (9_000, 900)]);
        assert_eq!(ends(&speech, 10_000)[0], 8_100);
    }

    #[test]
    fn chunking_first_chunk_has_shorter_limit() {
        let speech = frames(&[(3_000, 900), (200, 5), (5_000, 900), (200, 5), (5_000, 900)]);
        let ends: Vec<_> = split(&speech, 13_400, 4_000, 20_000).iter().map(|part| part.end_ms).collect();
        assert_eq!(ends, [3_100, 13_400]);
    }

    proptest! {
        #[test]
        fn chunks_cover_audio_once(
            frames in prop::collection::vec(0_u16..2_000, 0..3_000),
            odd in 0_u64..FRAME_MS,
            first_max_ms in 0_u64..20_000,
            max_ms in 0_u64..20_000,
        ) {
            let length = (frames.len() as u64 * FRAME_MS).saturating_sub(odd);
            let parts = split(&frames, length, first_max_ms, max_ms);
            prop_assert_eq!(parts[0].start_ms, 0);
            prop_assert_eq!(parts[parts.len() - 1].end_ms, length);
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].end_ms, pair[1].start_ms);
            }
            if parts.len() > 1 {
                for part in parts {
                    let max_ms = if part.start_ms == 0 { first_max_ms } else { max_ms };
                    prop_assert!(part.length_ms() <= max_ms.max(2 * REMAINDER_MIN_MS) && part.length_ms() >= REMAINDER_MIN_MS / 2);
                }
            }
        }
    }
}
