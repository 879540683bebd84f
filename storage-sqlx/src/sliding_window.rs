//! The stored form of rate limit windows.

use transcript_core::{Result, limits::rules::SlidingWindow};

use crate::error::corrupt;

/// The end of a window is stored in whole hours, rounded up.
///
/// It is only needed to delete expired windows, and an unchanged end needs no write to the row or its index.
const END_STEP_MS: i64 = 3_600_000;

/// The end of a window in its row.
pub(crate) fn stored_end(window: &SlidingWindow) -> i64 {
    window.ends_at.saturating_add(END_STEP_MS - 1).div_euclid(END_STEP_MS).saturating_mul(END_STEP_MS)
}

/// The counts of a window in their stored form.
pub(crate) fn encode(window: &SlidingWindow) -> String {
    write(&window.taken)
}

/// Decodes a stored window.
///
/// # Errors
/// [`transcript_core::ErrorKind::Corrupt`] if it is malformed.
pub(crate) fn decode(bucket: impl Into<String>, ends_at: i64, taken: &str) -> Result<SlidingWindow> {
    let taken = read(taken).ok_or_else(|| corrupt("a stored rate limit is damaged"))?;
    Ok(SlidingWindow { bucket: bucket.into(), taken, ends_at })
}

/// Writes counts: `1795132800000 12x3 250`.
///
/// Each time after the first is the distance from the previous one, with its count unless that is one. A window
/// is read and written with every request; as JSON it took three times the space and several times the time.
fn write(taken: &[(i64, u32)]) -> String {
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

fn read(text: &str) -> Option<Vec<(i64, u32)>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_end_is_stored_in_whole_hours() {
        for (ends_at, stored) in [(0, 0), (1, 3_600_000), (3_600_000, 3_600_000), (3_600_001, 7_200_000)] {
            let window = SlidingWindow { bucket: "api/a".to_owned(), taken: Vec::new(), ends_at };
            assert_eq!(stored_end(&window), stored);
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
            assert_eq!(write(taken), stored);
            assert_eq!(read(stored).unwrap(), taken);
            assert_eq!(read(&serde_json::to_string(taken).unwrap()).unwrap(), taken);
        }
        for damaged in ["x", "1x", "1xx2", "1 x2", "1 2 three", "[[1]]", "1,2", "9223372036854775807 1"] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }
}
