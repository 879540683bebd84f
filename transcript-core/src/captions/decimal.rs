//! Exact parsing of decimal numbers, without floats.

/// Substitute for a number too large for any time: far above every limit, far below overflow.
pub(super) const HUGE: i64 = i64::MAX / 4;

/// Parses a decimal number, times ten to the power of `power`, rounded half away from zero.
///
/// `None` if the text is not a decimal number ("NaN", "1.2.3", ""). Numbers that are too large become ±[`HUGE`].
pub(super) fn parse_scaled(text: &str, power: i64) -> Option<i64> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let magnitude = shift_point(whole, fraction, i64::from(exponent).saturating_add(power));
    Some(if negative { -magnitude } else { magnitude })
}

/// The digits of `whole` and `fraction` with the point moved `power` digits to the right, rounded.
fn shift_point(whole: &str, fraction: &str, power: i64) -> i64 {
    let digits = || whole.bytes().chain(fraction.bytes()).map(|c| i64::from(c - b'0'));
    let point = i64::try_from(whole.len()).unwrap_or(HUGE).saturating_add(power);
    let mut value: i64 = 0;
    let mut index: i64 = 0;
    for digit in digits() {
        if index == point {
            return if digit >= 5 { value + 1 } else { value };
        }
        if index > point {
            // The digit at the rounding position is a zero that is not written.
            return 0;
        }
        value = value.saturating_mul(10).saturating_add(digit).min(HUGE);
        index += 1;
    }
    while index < point && value != 0 && value < HUGE {
        value = value.saturating_mul(10).min(HUGE);
        index += 1;
    }
    value
}

/// Parses decimal seconds as milliseconds.
pub(super) fn seconds_as_ms(text: &str) -> Option<i64> {
    parse_scaled(text, 3)
}

/// Parses decimal milliseconds.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    parse_scaled(text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_seconds_are_exact() {
        for (text, expect) in [
            ("1.54", Some(1_540)),
            ("0", Some(0)),
            ("4", Some(4_000)),
            (".5", Some(500)),
            ("5.", Some(5_000)),
            (" 3.2 ", Some(3_200)),
            ("+1", Some(1_000)),
            ("-0.5", Some(-500)),
            ("0.1235", Some(124)),
            ("0.12349999", Some(123)),
            ("0.0004", Some(0)),
            ("0.0005", Some(1)),
            ("4503599627370.497", Some(4_503_599_627_370_497)),
            ("1e3", Some(1_000_000)),
            ("1.5E-2", Some(15)),
            ("1e-3", Some(1)),
            ("5e-4", Some(1)),
            ("5e-5", Some(0)),
            ("0e999999999", Some(0)),
            ("1e400", Some(HUGE)),
            ("-1e400", Some(-HUGE)),
            ("99999999999999999999999999", Some(HUGE)),
            ("NaN", None),
            ("inf", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("1e99999999999", None),
            ("1.2.3", None),
            ("1,5", None),
            ("0x10", None),
            ("١", None),
        ] {
            assert_eq!(seconds_as_ms(text), expect, "{text:?}");
        }
        assert_eq!(milliseconds("2990"), Some(2_990));
        assert_eq!(milliseconds("2990.5"), Some(2_991));
    }
}
