//! What a payment provider says of payments and subscriptions, at the moment when it was asked.

use crate::{directory::Plan, ids::OrderId, time::Timestamp};

/// One thing that the provider says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentFact {
    /// Of the payment of an order.
    Payment(PaymentState),
    /// Of a subscription.
    Subscription(SubscriptionState),
}

/// How far a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not paid yet: the page is open, or the money is under way.
    Pending,
    /// The money is there.
    Paid,
    /// It will not be paid any more.
    Ended,
}

/// How an order's payment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentState {
    /// The order, as the provider gave it back.
    pub order: OrderId,
    /// How far the payment is.
    pub progress: Progress,
    /// What was charged.
    pub money: Money,
}

/// An amount that was paid, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// What was paid for what was sold, in the currency's smallest unit.
    pub amount_minor: u64,
    /// The currency's ISO 4217 code, in lower case.
    pub currency: String,
    /// What the buyer's payment came to. It differs from the amount where credit at the provider was used.
    pub paid_minor: u64,
    /// How much of that went back, by refunds and lost disputes.
    pub returned_minor: u64,
    /// Whether the buyer's bank contests the payment, or did so with success.
    pub disputed: bool,
}

impl Money {
    /// How many credits are to be taken back in all: `floor(credits × returned ÷ paid)`.
    pub fn credits_back(&self, credits: u64) -> u64 {
        let returned = u128::from(self.returned_minor.min(self.paid_minor));
        let back = (u128::from(credits) * returned).checked_div(u128::from(self.paid_minor)).unwrap_or(0);
        // At most `credits`, since no more is returned than was paid.
        u64::try_from(back).unwrap_or(credits)
    }

    /// Whether all of it went back.
    pub fn is_returned(&self) -> bool {
        self.paid_minor > 0 && self.returned_minor >= self.paid_minor
    }
}

/// How a subscription stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionState {
    /// The provider's name for it.
    pub subscription: String,
    /// The provider's name for the buyer, where it knows buyers.
    pub customer: Option<String>,
    /// The moment by which its months are counted.
    pub anchor: Timestamp,
    /// Whether it is over: nothing will be paid for it any more.
    pub is_ended: bool,
    /// The subscription that it takes the place of, where the provider changes plans that way.
    pub replaces: Option<String>,
    /// Its paid invoices: the latest one whose money was kept, those whose periods overlap with it, all later
    /// ones, and the one that was asked about.
    pub invoices: Vec<PaidInvoice>,
}

/// One month of a plan that was paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidInvoice {
    /// The provider's name for it.
    pub invoice: String,
    /// The order under which the plan was sold; none when it was picked at the provider.
    pub order: Option<OrderId>,
    /// Whether it is that order's own payment, not a renewal.
    pub first: bool,
    /// The plan that was paid.
    pub plan: Plan,
    /// When it was made out.
    pub created_at: Timestamp,
    /// When the month that was paid began.
    pub period_start: Timestamp,
    /// When it ends.
    pub period_end: Timestamp,
    /// What was charged.
    pub money: Money,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn money(paid: u64, returned: u64) -> Money {
        Money {
            amount_minor: paid,
            currency: "usd".to_owned(),
            paid_minor: paid,
            returned_minor: returned,
            disputed: false,
        }
    }

    #[test]
    fn credits_are_taken_back_in_proportion_rounded_down() {
        for (credits, paid, returned, expect) in [
            (1_000, 1_200, 0, 0),
            (1_000, 1_200, 1, 0),
            (1_000, 1_200, 2, 1),
            (1_000, 1_200, 400, 333),
            (1_000, 1_200, 800, 666),
            (1_000, 1_200, 1_200, 1_000),
            (1_000, 1_200, 9_999, 1_000),
            (50_000, 25_000, 12_345, 24_690),
            (u64::MAX, u64::MAX, u64::MAX, u64::MAX),
            (1_000, 0, 0, 0),
            (1_000, 0, 5, 0),
        ] {
            assert_eq!(money(paid, returned).credits_back(credits), expect, "{credits} {paid} {returned}");
        }
        assert!(!money(0, 0).is_returned(), "what cost nothing was not returned");
        assert!(money(5, 5).is_returned() && !money(5, 4).is_returned());
    }

    proptest! {
        #[test]
        fn more_money_never_takes_fewer_credits(credits: u64, paid: u64, one: u64, other: u64) {
            let (less, more) = (one.min(other), one.max(other));
            let (less, more) = (money(paid, less), money(paid, more));
            prop_assert!(less.credits_back(credits) <= more.credits_back(credits));
            prop_assert!(more.credits_back(credits) <= credits);
        }
    }
}
