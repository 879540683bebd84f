//! Kinds of settings of payments and entitlements.

use serde_json::Value;

use super::{layers::RawSettings, value::ParseSetting};

/// A price in US dollars, stored in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PriceSetting {
    /// The price in cents.
    pub(super) cents: u64,
}

impl ParseSetting for PriceSetting {
    const ALLOWED: &'static str = "a price in dollars such as 9 or 9.99, from 0.01 to 100000";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let (RawSettings::Text(text) | RawSettings::Bare(text)) = raw else { return Err(None) };
        let (dollars, cents) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if dollars.is_empty() || dollars.len() > 6 || cents.len() > 2 || !digits(dollars) || !digits(cents) {
            return Err(None);
        }
        // Padding reads "9.5" as 950 cents; at most eight digits fit a u64.
        let cents = format!("{dollars}{cents:0<2}").parse().map_err(|_| None)?;
        if (1..=10_000_000).contains(&cents) { Ok(Self { cents }) } else { Err(None) }
    }

    fn show(&self) -> String {
        format!("{}.{:02}", self.cents / 100, self.cents % 100)
    }
}

/// A JSON Web Key Set, inline or the path of a file that contains it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::Into)]
#[debug("JwkSet(not shown)")]
pub(super) struct JwkSet(String);

impl ParseSetting for JwkSet {
    const ALLOWED: &'static str =
        "a JSON Web Key Set such as {\"keys\": [{…}]}, or the path of a file that has one";
    // A set may contain a secret key.
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let given = String::read(raw)?;
        let json = if given.starts_with('{') {
            given
        } else {
            std::fs::read_to_string(given)
                .map_err(|error| Some(format!("the file cannot be read: {error}")))?
        };
        let set: Value = serde_json::from_str(&json).map_err(|_| Some("it is not JSON".to_owned()))?;
        let keys = set.get("keys").and_then(Value::as_array);
        match keys.is_some_and(|keys| !keys.is_empty() && keys.iter().all(Value::is_object)) {
            true => Ok(Self(json)),
            false => Err(Some("it has no keys".to_owned())),
        }
    }

    fn show(&self) -> String {
        "\"(not shown)\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_text_is_parsed_in_cents() {
        for (text, expect) in [
            ("9", Some(900)),
            ("9.99", Some(999)),
            ("9.5", Some(950)),
            ("0.01", Some(1)),
            ("100000", Some(10_000_000)),
            ("0", None),
            ("100000.01", None),
            ("9.999", None),
            ("-1", None),
            ("1e3", None),
            ("", None),
            (".", None),
        ] {
            let price = PriceSetting::read(&RawSettings::Text(text.to_owned())).ok().map(|price| price.cents);
            assert_eq!(price, expect, "{text}");
        }
    }
}
