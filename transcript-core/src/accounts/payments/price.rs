//! The items for sale and their prices.

/// The currency of every price.
pub const CURRENCY: &str = "usd";

/// A pack of credits (specification 2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    /// The name on the wire.
    pub name: &'static str,
    /// The number of credits.
    pub credits: u64,
    /// The price in whole US dollars.
    pub price_usd: u64,
}

impl Pack {
    /// All packs, smallest first.
    pub const ALL: [Self; 6] = [
        Self { name: "1k", credits: 1_000, price_usd: 12 },
        Self { name: "2k", credits: 2_000, price_usd: 20 },
        Self { name: "5k", credits: 5_000, price_usd: 40 },
        Self { name: "10k", credits: 10_000, price_usd: 70 },
        Self { name: "25k", credits: 25_000, price_usd: 150 },
        Self { name: "50k", credits: 50_000, price_usd: 250 },
    ];

    /// The pack with this name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pack| pack.name == name)
    }

    /// The price in cents.
    pub fn price_minor(&self) -> u64 {
        self.price_usd * 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of specification 2.8: name, credits, dollars, dollars per thousand credits.
    #[test]
    fn packs_match_specification() {
        let expect = [
            ("1k", 1_000, 12, "12.00"),
            ("2k", 2_000, 20, "10.00"),
            ("5k", 5_000, 40, "8.00"),
            ("10k", 10_000, 70, "7.00"),
            ("25k", 25_000, 150, "6.00"),
            ("50k", 50_000, 250, "5.00"),
        ];
        let packs = Pack::ALL.map(|pack| {
            let each = pack.price_minor() as f64 / pack.credits as f64 * 10.0;
            (pack.name, pack.credits, pack.price_usd, format!("{each:.2}"))
        });
        assert_eq!(packs, expect.map(|(name, credits, usd, each)| (name, credits, usd, each.to_owned())));
        assert_eq!(Pack::from_wire("5k"), Some(Pack::ALL[2]));
        for unknown in ["", "5K", " 5k", "3k", "5000"] {
            assert_eq!(Pack::from_wire(unknown), None, "{unknown}");
        }
    }
}
