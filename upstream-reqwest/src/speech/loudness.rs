//! Measures loudness 50 times per second, to find split positions and silence. No I/O.

/// Samples per second.
pub(super) const RATE: u64 = 16_000;
/// Bytes of one sample.
pub(super) const SAMPLE: u64 = 2;
/// Length of one frame in milliseconds and samples.
pub(super) const FRAME_MS: u64 = 20;
const FRAME: u32 = 320;
/// Threshold of silence: a thousandth of full scale, −60 dB. Quiet rooms are 20 times as loud.
pub(super) const SILENCE: u16 = 32;

/// Measures the loudness of each frame as the root mean square of its samples.
#[derive(Debug, Default)]
pub(super) struct LoudnessMeter {
    /// First byte of an incomplete sample.
    half: Option<u8>,
    squares: u64,
    count: u32,
    frames: Vec<u16>,
    samples: u64,
}

impl LoudnessMeter {
    /// Adds bytes of 16-bit little-endian samples, split at any position.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let mut bytes = bytes.iter().copied();
        loop {
            let Some(low) = self.half.take().or_else(|| bytes.next()) else { return };
            let Some(high) = bytes.next() else {
                self.half = Some(low);
                return;
            };
            let sample = i64::from(i16::from_le_bytes([low, high]));
            self.squares += (sample * sample).unsigned_abs();
            self.count += 1;
            self.samples += 1;
            if self.count == FRAME {
                self.end_frame();
            }
        }
    }

    fn end_frame(&mut self) {
        let mean = self.squares / u64::from(self.count.max(1));
        self.frames.push(u16::try_from(mean.isqrt()).unwrap_or(u16::MAX));
        (self.squares, self.count) = (0, 0);
    }

    /// Ends the measurement.
    pub(super) fn finish(mut self) -> Loudness {
        if self.count > 0 {
            self.end_frame();
        }
        Loudness { frames: self.frames, samples: self.samples }
    }
}

/// Loudness of the whole audio.
#[derive(Debug)]
pub(super) struct Loudness {
    pub(super) frames: Vec<u16>,
    samples: u64,
}

impl Loudness {
    /// Length of the audio in milliseconds.
    pub(super) fn length_ms(&self) -> u64 {
        self.samples * 1_000 / RATE
    }

    /// Whether the audio is silent between these times in milliseconds.
    pub(super) fn is_silent(&self, from_ms: u64, to_ms: u64) -> bool {
        self.frames_between(from_ms, to_ms).iter().all(|&frame| frame < SILENCE)
    }

    /// The audible range between these times in milliseconds; `None` if all of it is silent.
    pub(super) fn audible_range(&self, from_ms: u64, to_ms: u64) -> Option<(u64, u64)> {
        let first = from_ms / FRAME_MS;
        let frames = self.frames_between(from_ms, to_ms);
        let is_audible = |frame: &u16| *frame >= SILENCE;
        let start = frames.iter().position(is_audible)? as u64;
        let end = frames.iter().rposition(is_audible)? as u64 + 1;
        Some((((first + start) * FRAME_MS).max(from_ms), ((first + end) * FRAME_MS).min(to_ms)))
    }

    fn frames_between(&self, from_ms: u64, to_ms: u64) -> &[u16] {
        let index = |frame: u64| usize::try_from(frame).unwrap_or(usize::MAX).min(self.frames.len());
        let (from, to) = (index(from_ms / FRAME_MS), index(to_ms.div_ceil(FRAME_MS)));
        self.frames.get(from..to.max(from)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcm(parts: &[(i16, usize)]) -> Vec<u8> {
        parts.iter().flat_map(|(sample, count)| sample.to_le_bytes().repeat(*count)).collect()
    }

    #[test]
    fn loudness_is_independent_of_chunk_size() {
        let bytes = pcm(&[(1_000, 320), (0, 320), (-300, 100)]);
        for step in [1, 3, 640, 7_777] {
            let mut meter = LoudnessMeter::default();
            bytes.chunks(step).for_each(|chunk| meter.take(chunk));
            let loudness = meter.finish();
            assert_eq!(loudness.frames, [1_000, 0, 300], "{step}");
            assert_eq!(loudness.length_ms(), 46);
        }
        let mut loud = LoudnessMeter::default();
        loud.take(&pcm(&[(i16::MIN, 320)]));
        assert_eq!(loud.finish().frames, [32_768]);
    }

    #[test]
    fn loudness_audible_range_is_found() {
        let mut meter = LoudnessMeter::default();
        meter.take(&pcm(&[(0, 3_200), (500, 3_200), (3, 3_200)]));
        let loudness = meter.finish();
        assert_eq!(loudness.audible_range(0, 600), Some((200, 400)));
        assert_eq!(loudness.audible_range(250, 300), Some((250, 300)));
        assert_eq!(loudness.audible_range(0, 200), None);
        assert_eq!(loudness.audible_range(400, 9_000), None);
        for (from, to, expect) in
            [(0, 200, true), (0, 201, false), (400, 600, true), (700, 800, true), (9, 2, true)]
        {
            assert_eq!(loudness.is_silent(from, to), expect, "{from}..{to}");
        }
    }
}
