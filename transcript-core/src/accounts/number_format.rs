//! How a language writes numbers and amounts of money.

/// How a language writes numbers and amounts of money. The default is English.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct NumberFormat {
    /// The separator between thousands.
    #[default(",")]
    pub thousands: String,
    /// The separator before decimals.
    #[default(".")]
    pub decimal: String,
    /// An amount in US dollars, with `{amount}`.
    #[default("${amount}")]
    pub dollars: String,
}

impl NumberFormat {
    /// A whole number.
    pub fn number(&self, number: u64) -> String {
        let digits = number.to_string();
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push_str(&self.thousands);
            }
            grouped.push(digit);
        }
        grouped
    }

    /// An amount in the smallest unit of a currency, a hundredth.
    pub fn price(&self, minor: u64, currency: &str) -> String {
        let amount = format!("{}{}{:02}", self.number(minor / 100), self.decimal, minor % 100);
        match currency {
            "usd" => self.dollars.replace("{amount}", &amount),
            other => format!("{amount} {}", other.to_ascii_uppercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_currency_and_separators_of_language() {
        let german = NumberFormat {
            thousands: ".".to_owned(),
            decimal: ",".to_owned(),
            dollars: "{amount}\u{a0}$".to_owned(),
        };
        for (minor, currency, english, in_german) in [
            (0, "usd", "$0.00", "0,00\u{a0}$"),
            (5, "usd", "$0.05", "0,05\u{a0}$"),
            (99_999, "usd", "$999.99", "999,99\u{a0}$"),
            (123_405, "usd", "$1,234.05", "1.234,05\u{a0}$"),
            (123_456_789, "eur", "1,234,567.89 EUR", "1.234.567,89 EUR"),
        ] {
            assert_eq!(NumberFormat::default().price(minor, currency), english);
            assert_eq!(german.price(minor, currency), in_german);
        }
    }
}
