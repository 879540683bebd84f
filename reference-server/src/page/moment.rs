//! Moments of a video in addresses.

use url::Url;

/// The latest moment, in seconds: a transcript has no later time.
const MOMENT_MAX_S: u64 = 3_600_000;

/// Parses a moment as video platforms write it: `61`, `61s`, `1m1s`, `1h2m3s`, `1:01` or `1:02:03`. In milliseconds.
///
/// ```text
/// parse_moment("1m1s") == Some(61_000)
/// ```
pub(crate) fn parse_moment(text: &str) -> Option<u64> {
    let seconds = match text.contains(':') {
        true => colon_seconds(text)?,
        false => unit_seconds(text)?,
    };
    (seconds <= MOMENT_MAX_S).then_some(seconds * 1000)
}

/// The moment of a link to a video, in milliseconds: its parameter `t` or `start`, or `t` in its fragment.
pub(crate) fn moment_of_link(link: &str) -> Option<u64> {
    let url = Url::parse(link).or_else(|_| Url::parse(&format!("https://{link}"))).ok()?;
    let is_moment = |name: &str| matches!(name, "t" | "start");
    let parameter = url.query_pairs().find(|(name, _)| is_moment(name)).map(|(_, value)| value.into_owned());
    let fragment = || url.fragment()?.strip_prefix("t=").map(str::to_owned);
    parse_moment(&parameter.or_else(fragment)?)
}

fn colon_seconds(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    parts.iter().try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(number(part)?))
}

fn unit_seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    for (unit, seconds) in [('h', 3_600), ('m', 60), ('s', 1)] {
        if let Some((count, after)) = rest.split_once(unit) {
            sum = sum.checked_add(number(count)?.checked_mul(seconds)?)?;
            rest = after;
        }
    }
    match rest {
        "" if text.is_empty() => None,
        "" => Some(sum),
        // A number without a unit counts seconds.
        rest => sum.checked_add(number(rest)?),
    }
}

/// A number of a moment. Fractions of a second are dropped.
fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(whole) && is_digits(fraction) { whole.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_forms_of_platforms_are_seconds() {
        for (text, seconds) in [
            ("61", 61),
            ("61s", 61),
            ("61.9", 61),
            ("1m1s", 61),
            ("1m", 60),
            ("1h2m3s", 3_723),
            ("1h3", 3_603),
            ("1:01", 61),
            ("1:02:03", 3_723),
            ("0", 0),
        ] {
            assert_eq!(parse_moment(text), Some(seconds * 1000), "{text}");
        }
        let long = "9".repeat(30);
        for text in ["", "s", "x", "-1", "1:", ":1", "1:2:3:4", "1e3", "3600001", &long, "1s1m", "1..5", "²"]
        {
            assert_eq!(parse_moment(text), None, "{text}");
        }
    }

    #[test]
    fn link_moment_is_found() {
        for (link, seconds) in [
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=43s", Some(43)),
            ("youtu.be/dQw4w9WgXcQ?t=1m", Some(60)),
            ("https://www.youtube.com/embed/dQw4w9WgXcQ?start=5", Some(5)),
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ#t=10", Some(10)),
            ("https://youtu.be/dQw4w9WgXcQ", None),
            ("https://youtu.be/dQw4w9WgXcQ?t=later", None),
            ("not a link", None),
        ] {
            assert_eq!(moment_of_link(link), seconds.map(|seconds| seconds * 1000), "{link}");
        }
    }
}
