//! Plans and prices of the v1 API.

use transcript_core::directory::Plan;

use super::{layers::RawSettings, reader::SettingsReader, value::ParseSetting};

/// `plans.*` and `credits.*`
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The plans, in the order of [`Plan::ALL`].
    pub plans: Vec<PlanTermSettings>,
    /// `credits.per_transcript`: credits per transcript.
    pub per_transcript: u64,
    /// `credits.per_message`: credits per answered question.
    pub per_message: u64,
}

/// `plans.{name}.*`
#[derive(Clone, Debug)]
pub struct PlanTermSettings {
    /// The plan.
    pub plan: Plan,
    /// Credits per month.
    pub credits: u64,
    /// Requests per minute.
    pub requests_per_minute: u32,
    /// Price per month. The free plan has none; a plan without a price is not for sale.
    pub price: Option<PriceSetting>,
}

impl PlanSettings {
    /// Reads both sections.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        Self {
            plans: Plan::ALL.into_iter().map(|plan| PlanTermSettings::read(reader, plan)).collect(),
            per_transcript: reader.number("credits.per_transcript", 1, 0..=1_000),
            per_message: reader.number("credits.per_message", 1, 0..=1_000),
        }
    }
}

impl PlanTermSettings {
    fn read(reader: &mut SettingsReader<'_>, plan: Plan) -> Self {
        let (credits, requests) = match plan {
            Plan::Free => (200, 10),
            Plan::Starter => (2_000, 100),
            Plan::Pro => (10_000, 100),
            Plan::Scale => (50_000, 100),
        };
        let name = format!("plans.{}", plan.as_str());
        Self {
            plan,
            credits: reader.number(&format!("{name}.credits"), credits, 0..=1_000_000_000),
            requests_per_minute: reader.small(
                &format!("{name}.requests_per_minute"),
                requests,
                1..=transcript_core::limits::LIMIT_MAX,
            ),
            price: (plan != Plan::Free).then(|| reader.optional(&format!("{name}.price_usd"))).flatten(),
        }
    }
}

/// A price in US dollars, stored in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceSetting {
    /// The price in cents.
    pub cents: u64,
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
