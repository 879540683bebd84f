//! State of a sandbox payment.
//!
//! It is stored in the order where other providers' payment ids are: `sandbox-ORDER {"step": "paid", …}`.

use serde::{Deserialize, Serialize};

use crate::{
    accounts::{
        BillingMonth, Order, OrderItem,
        orders::SANDBOX_PREFIX,
        payments::{PaidInvoice, PaymentAmounts, PaymentProgress, PaymentState},
    },
    ids::OrderId,
    time::Timestamp,
};

/// The sandbox's id of an order's payment, and of the subscription that it starts.
pub(super) fn payment_id(order: &OrderId) -> String {
    format!("{SANDBOX_PREFIX}{order}")
}

/// The order of a sandbox id, or of a stored state that begins with one.
pub(super) fn parse_order_id(name: &str) -> Option<OrderId> {
    let name = name.split(' ').next().unwrap_or_default();
    name.strip_prefix(SANDBOX_PREFIX).map(OrderId::new)
}

/// Status of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// The page is open.
    Open,
    /// The payment is in progress.
    Pending,
    /// The payment is complete.
    Paid,
    /// It was cancelled, or the payment failed.
    Ended,
}

/// An action on the sandbox's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxAction {
    /// Pay at once.
    Pay,
    /// Pay with a method that takes days.
    PayLater,
    /// Leave without paying.
    Cancel,
    /// Complete a payment in progress.
    Complete,
    /// Let a payment in progress fail.
    Fail,
    /// Refund an amount, in the currency's smallest unit.
    Refund(u64),
}

/// Stored state of a sandbox payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    #[serde(rename = "step")]
    pub(super) status: SandboxStatus,
    /// When it reached this status, in milliseconds; for a paid plan, the start of its month.
    pub(super) since: i64,
    /// The refunded amount.
    pub(super) returned: u64,
    /// The subscription that a plan replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
}

impl SandboxRecord {
    pub(super) fn new(now: Timestamp, replaces: Option<String>) -> Self {
        Self { status: SandboxStatus::Open, since: now.as_millis(), returned: 0, replaces }
    }

    /// The state stored in an order; `None` if it is not a sandbox order.
    pub(super) fn from_order(order: &Order) -> Option<Self> {
        let (name, state) = order.payment.as_deref()?.split_once(' ')?;
        (parse_order_id(name)? == order.id).then_some(())?;
        serde_json::from_str(state).ok()
    }

    /// The text that is stored in an order.
    pub(super) fn encode(&self, order: &OrderId) -> String {
        // Numbers and strings always serialize.
        format!("{} {}", payment_id(order), serde_json::to_string(self).unwrap_or_default())
    }

    /// The state after an action; `None` if the action is not possible now.
    pub(super) fn next(&self, action: SandboxAction, amount_minor: u64, now: Timestamp) -> Option<Self> {
        use SandboxStatus::{Ended, Open, Paid, Pending};
        let to = |status| Some(Self { status, since: now.as_millis(), ..self.clone() });
        match (self.status, action) {
            (Open, SandboxAction::Pay) | (Pending, SandboxAction::Complete) => to(Paid),
            (Open, SandboxAction::PayLater) => to(Pending),
            (Open, SandboxAction::Cancel) | (Pending, SandboxAction::Fail) => to(Ended),
            (Paid, SandboxAction::Refund(minor)) => {
                let returned = self.returned.checked_add(minor).filter(|sum| *sum <= amount_minor)?;
                (minor > 0).then(|| Self { returned, ..self.clone() })
            }
            _ => None,
        }
    }

    /// The paid month of an order for a plan; `None` for another item or an unpaid order.
    pub(super) fn invoice(&self, order: &Order) -> Option<PaidInvoice> {
        let OrderItem::Plan(plan) = order.item else { return None };
        let anchor = Timestamp::from_millis(self.since);
        let month = BillingMonth::new(anchor, anchor);
        (self.status == SandboxStatus::Paid).then(|| PaidInvoice {
            invoice: payment_id(&order.id),
            order: Some(order.id.clone()),
            is_first_payment: true,
            plan,
            created_at: anchor,
            period_start: month.start,
            period_end: month.end,
            money: self.money(order),
        })
    }

    /// The payment snapshot of an order in this state.
    pub(super) fn payment(&self, order: &Order) -> PaymentState {
        let progress = match self.status {
            SandboxStatus::Open | SandboxStatus::Pending => PaymentProgress::Pending,
            SandboxStatus::Paid => PaymentProgress::Paid,
            SandboxStatus::Ended => PaymentProgress::Ended,
        };
        PaymentState { order: order.id.clone(), session: None, progress, money: self.money(order) }
    }

    fn money(&self, order: &Order) -> PaymentAmounts {
        PaymentAmounts {
            amount_minor: order.amount_minor,
            currency: order.currency.clone(),
            paid_minor: if self.status == SandboxStatus::Paid { order.amount_minor } else { 0 },
            returned_minor: self.returned,
            disputed: false,
        }
    }
}
