//! Payment snapshots: the provider's state of payments and subscriptions at the time of the query.

use crate::{directory::Plan, ids::OrderId, time::Timestamp};

/// A snapshot of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentSnapshot {
    /// The payment of an order.
    Payment(PaymentState),
    /// A subscription.
    Subscription(SubscriptionState),
}

/// Progress of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentProgress {
    /// Not paid yet: the page is open, or the payment is in progress.
    Pending,
    /// Paid.
    Paid,
    /// It will not be paid any more.
    Ended,
}

/// State of an order's payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentState {
    /// The order, as the provider returned it.
    pub order: OrderId,
    /// The provider's id of the checkout session that was paid. It must be the one that the order stores.
    /// `None` if the provider reads the payment from the order itself.
    pub session: Option<String>,
    /// The progress of the payment.
    pub progress: PaymentProgress,
    /// The charged and refunded amounts.
    pub money: PaymentAmounts,
}

/// The amounts of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentAmounts {
    /// The amount paid for the item, in the currency's smallest unit.
    pub amount_minor: u64,
    /// The currency's ISO 4217 code, in lower case.
    pub currency: String,
    /// The amount that the buyer paid. It differs from `amount_minor` if provider credit was used.
    pub paid_minor: u64,
    /// The part of it that was returned, by refunds and lost disputes.
    pub returned_minor: u64,
    /// Whether the buyer's bank disputes the payment, or has won a dispute.
    pub disputed: bool,
}

impl PaymentAmounts {
    /// The total of credits to revoke: `floor(credits × returned ÷ paid)`.
    pub fn refundable_credits(&self, credits: u64) -> u64 {
        let returned = u128::from(self.returned_minor.min(self.paid_minor));
        let back = (u128::from(credits) * returned).checked_div(u128::from(self.paid_minor)).unwrap_or(0);
        // At most `credits`, because no more is returned than was paid.
        u64::try_from(back).unwrap_or(credits)
    }

    /// Whether the whole payment was returned.
    pub fn is_returned(&self) -> bool {
        self.paid_minor > 0 && self.returned_minor >= self.paid_minor
    }

    /// Whether a payment that cannot be granted is still to be returned.
    pub(super) fn needs_refund(&self) -> bool {
        !self.is_returned() && !self.disputed
    }
}

/// State of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionState {
    /// The provider's id of the subscription.
    pub subscription: String,
    /// The provider's id of the buyer, if the provider has such ids.
    pub customer: Option<String>,
    /// The time from which its months are counted.
    pub anchor: Timestamp,
    /// Whether it has ended: it will not be charged again.
    pub is_ended: bool,
    /// The subscription that it replaces, for providers that change plans by replacement.
    pub replaces: Option<String>,
    /// The paid invoices that matter now.
    /// The latest one that was not fully refunded, those whose periods overlap with it, all later ones, and the
    /// one that was queried.
    pub invoices: Vec<PaidInvoice>,
}

/// A paid invoice: one month of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidInvoice {
    /// The provider's id of the invoice.
    pub invoice: String,
    /// The order that sold the plan; `None` if the plan was chosen at the provider.
    pub order: Option<OrderId>,
    /// Whether it is that order's first payment, not a renewal.
    pub is_first_payment: bool,
    /// The plan that was paid.
    pub plan: Plan,
    /// When the invoice was created.
    pub created_at: Timestamp,
    /// The start of the paid month.
    pub period_start: Timestamp,
    /// The end of the paid month.
    pub period_end: Timestamp,
    /// The charged and refunded amounts.
    pub money: PaymentAmounts,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn money(paid: u64, returned: u64) -> PaymentAmounts {
        PaymentAmounts {
            amount_minor: paid,
            currency: "usd".to_owned(),
            paid_minor: paid,
            returned_minor: returned,
            disputed: false,
        }
    }

    #[test]
    fn refundable_credits_are_proportional_rounded_down() {
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
            assert_eq!(
                money(paid, returned).refundable_credits(credits),
                expect,
                "{credits} {paid} {returned}"
            );
        }
        assert!(!money(0, 0).is_returned(), "a free item cannot be returned");
        assert!(money(5, 5).is_returned() && !money(5, 4).is_returned());
    }

    #[test]
    fn payment_needs_refund_until_it_is_returned_or_disputed() {
        assert!(money(5, 0).needs_refund() && money(5, 4).needs_refund());
        assert!(!money(5, 5).needs_refund(), "it was refunded");
        let disputed = PaymentAmounts { disputed: true, ..money(5, 0) };
        assert!(!disputed.needs_refund(), "the bank has withdrawn it");
    }

    proptest! {
        #[test]
        fn refundable_credits_grow_with_refund(credits: u64, paid: u64, one: u64, other: u64) {
            let (less, more) = (one.min(other), one.max(other));
            let (less, more) = (money(paid, less), money(paid, more));
            prop_assert!(less.refundable_credits(credits) <= more.refundable_credits(credits));
            prop_assert!(more.refundable_credits(credits) <= credits);
        }
    }
}
