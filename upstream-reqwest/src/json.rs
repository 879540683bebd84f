//! Access to untrusted JSON: a field that is missing or of another type counts as absent.

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};
use transcript_core::{text::replace_lone_surrogates, time::Timestamp};

/// Maximum length of a description in characters, if the platform has no lower limit.
pub(crate) const DESCRIPTION_MAX: usize = 10_000;
/// Maximum length of a URL in metadata, in characters.
pub(crate) const ADDRESS_MAX: usize = 2_048;

/// Parses JSON with texts of a platform, a program or a service.
///
/// Of a response that is mostly skipped, the parts are borrowed as raw JSON, and parsed with [`part`]. Characters of
/// which only a half arrived are U+FFFD: a title that was cut inside an emoji costs nothing else.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(&replace_lone_surrogates(&String::from_utf8_lossy(body)))
}

/// A field of an object; null if it is absent or the value is not an object.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The value at a path of nested fields; null if one is absent.
pub(crate) fn path<'a>(value: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().fold(value, |value, name| field(value, name))
}

/// The items of an array field, at most `max`; empty if it is not an array.
pub(crate) fn items<'a>(
    value: &'a Value,
    name: &str,
    max: usize,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    field(value, name).as_array().into_iter().flatten().take(max)
}

/// A trimmed text, at most `max` characters of it; `None` if empty.
pub(crate) fn text(value: &Value, max: usize) -> Option<String> {
    let text: String = value.as_str()?.trim().chars().take(max).collect();
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The URL of a channel or profile: `prefix`, then its name; `None` if the name needs escapes in a URL.
///
/// It needs none if it has only letters and digits of ASCII, and `marks`.
pub(crate) fn profile_url(prefix: &str, name: Option<&str>, marks: &str) -> Option<String> {
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c));
    name.filter(is_plain).map(|name| format!("{prefix}{name}"))
}

/// A whole number, or one in a string: the platforms use both for the same field.
pub(crate) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A duration in seconds as milliseconds; `None` if zero or longer than two days.
pub(crate) fn seconds_as_ms(value: &Value) -> Option<u64> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    // The value is bounded, so the cast is exact enough.
    (seconds > 0.0 && seconds <= 172_800.0).then(|| (seconds * 1_000.0).round() as u64)
}

/// A time in seconds since 1970 UTC; `None` if it is zero or before.
pub(crate) fn timestamp(value: &Value) -> Option<Timestamp> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    // The value is bounded, so the cast is exact enough.
    (seconds > 0.0 && seconds < 1e11).then(|| Timestamp::from_millis((seconds * 1_000.0).round() as i64))
}

/// Parses a part of a larger text; `None` if it is longer than `max` bytes or too deeply nested.
pub(crate) fn part(text: &RawValue, max: usize) -> Option<Value> {
    (text.get().len() <= max).then(|| parse(text.get().as_bytes()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_half_of_character_is_replaced() {
        let read = |body: &[u8]| parse::<Value>(body).unwrap();
        assert_eq!(read(br#"{"a":"x\ud83d","b":"\ud83d\ude00"}"#), json!({"a": "x\u{FFFD}", "b": "😀"}));
        assert_eq!(read(b"[\"\xF0\x9F\"]"), json!(["\u{FFFD}"]));
        assert!(parse::<Value>(b"{").is_err());
        let raw: &RawValue = serde_json::from_str(r#"["\ude00"]"#).unwrap();
        assert_eq!(part(raw, 99), Some(json!(["\u{FFFD}"])));
    }

    #[test]
    fn json_field_of_odd_type_is_absent() {
        let value = json!({"a": {"b": [1, "2"]}, "n": "17", "t": "  words  ", "s": "31.5", "z": 0});
        assert_eq!(path(&value, &["a", "b", "c"]), &Value::Null);
        assert_eq!(items(field(&value, "a"), "b", 1).count(), 1);
        assert_eq!(items(&value, "n", 9).count(), 0);
        assert_eq!((number(&value["n"]), number(&value["t"])), (Some(17), None));
        assert_eq!(text(&value["t"], 3).as_deref(), Some("wor"));
        assert_eq!(text(&json!(" "), 3), None);
        assert_eq!(seconds_as_ms(&value["s"]), Some(31_500));
        for none in [&value["z"], &json!(-1), &json!(1e300), &json!("NaN"), &json!(null)] {
            assert_eq!(seconds_as_ms(none), None, "{none}");
            assert_eq!(timestamp(none), None, "{none}");
        }
        assert_eq!(timestamp(&json!("1400000000")), Some(Timestamp::from_millis(1_400_000_000_000)));
    }
}
