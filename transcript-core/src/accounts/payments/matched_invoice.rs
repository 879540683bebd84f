//! A paid invoice with the orders that it belongs to.

use super::{
    PaidInvoice, PaymentAmounts, SubscriptionState, reconciliation::ORDER_AGE_MAX, subscription::is_recorded,
};
use crate::{
    accounts::{Order, OrderState},
    directory::Account,
    ids::OrderId,
};

/// A paid invoice whose amount and plan match its order.
pub(super) struct MatchedInvoice<'a> {
    pub(super) invoice: &'a PaidInvoice,
    /// Whether it is the first payment of the order that it names.
    pub(super) is_first: bool,
    /// The terms of the sale, as an order.
    pub(super) terms: Order,
    /// The order that the invoice names.
    pub(super) sale: Option<Order>,
    /// The order that records the invoice's outcome.
    pub(super) record: Option<Order>,
    /// The credit order, if there is one.
    pub(super) credit_order: Option<Order>,
}

impl MatchedInvoice<'_> {
    /// The id of the order that records the outcome: of the first payment, or of the renewal.
    pub(super) fn record_id(&self) -> OrderId {
        match self.sale.as_ref().filter(|_| self.is_first) {
            Some(sale) => sale.id.clone(),
            None => OrderId::new(self.invoice.invoice.clone()),
        }
    }

    /// Whether the invoice counts for the account's plan, rather than as credits.
    pub(super) fn counts_for_plan(&self, account: &Account, state: &SubscriptionState) -> bool {
        match self.credit_order.as_ref().map(|credit_order| credit_order.state) {
            None | Some(OrderState::Expired) => true,
            // Written by a worker that had not yet read the account's new plan.
            Some(OrderState::Open) => is_current(account, state) && ends_paid_period(account, self.invoice),
            Some(_) => false,
        }
    }

    pub(super) fn has_pending_credit_order(&self, account: &Account, state: &SubscriptionState) -> bool {
        let is_open =
            self.credit_order.as_ref().is_some_and(|credit_order| credit_order.state == OrderState::Open);
        is_open && !self.counts_for_plan(account, state)
    }

    /// Whether the invoice is not recorded yet and still has something to grant.
    pub(super) fn is_new(&self) -> bool {
        self.credit_order.is_none() && !self.is_recorded() && !self.is_returned()
    }

    /// Whether its outcome was recorded before.
    pub(super) fn is_recorded(&self) -> bool {
        self.record.as_ref().is_some_and(is_recorded)
    }

    /// Whether the whole payment was returned. A return that failed later counts as one: its credits stay revoked.
    pub(super) fn is_returned(&self) -> bool {
        let recorded = self.record.as_ref().map_or(0, |record| record.returned_minor);
        let returned_minor = self.invoice.money.returned_minor.max(recorded);
        let money = PaymentAmounts { returned_minor, ..self.invoice.money.clone() };
        // Of older orders only the revoked credits are recorded.
        money.is_returned() || self.terms.credits > 0 && self.refunded_credits() >= self.terms.credits
    }

    /// The total of credits to revoke. It never decreases: see `record_refund`.
    pub(super) fn refunded_credits(&self) -> u64 {
        let recorded = self.record.as_ref().and_then(|record| record.refunded_credits.last().copied());
        self.invoice.money.refundable_credits(self.terms.credits).max(recorded.unwrap_or(0))
    }

    /// An unpaid order with another id and the same terms.
    pub(super) fn unpaid_order(&self, id: OrderId) -> Order {
        Order {
            id,
            version: 1,
            state: OrderState::Open,
            payment: Some(self.invoice.invoice.clone()),
            refunded_credits: Vec::new(),
            returned_minor: 0,
            paid_minor: None,
            created_at: self.invoice.created_at,
            ..self.terms.clone()
        }
    }
}

/// Whether an invoice is an order's first payment, not a renewal.
///
/// The subscription's metadata still names the order when the same plan is chosen again later. Such an invoice has
/// another record: refunds of the first payment do not count for it.
pub(super) fn is_first_payment(invoice: &PaidInvoice, order: &Order) -> bool {
    invoice.is_first_payment
        && invoice.order.as_ref() == Some(&order.id)
        && invoice.created_at.since(order.created_at) <= ORDER_AGE_MAX
}

/// Whether a subscription is the account's, or its replacement.
pub(super) fn is_current(account: &Account, state: &SubscriptionState) -> bool {
    let present = account.subscription.as_ref();
    present.is_some_and(|present| *present == state.subscription || Some(present) == state.replaces.as_ref())
}

pub(super) fn ends_paid_period(account: &Account, invoice: &PaidInvoice) -> bool {
    account.paid.is_some_and(|paid| invoice.period_end == paid.through)
}
