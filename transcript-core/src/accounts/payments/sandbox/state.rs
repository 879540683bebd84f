//! How far a payment in the sandbox is. It is kept in the order itself, where other providers' names for
//! payments are: `sandbox-ORDER {"step": "paid", …}`.

use serde::{Deserialize, Serialize};

use crate::{
    accounts::{
        Item, Month, Order,
        payments::{Money, PaidInvoice, PaymentState, Progress},
    },
    ids::OrderId,
    time::Timestamp,
};

/// What the sandbox's names begin with.
pub(super) const PREFIX: &str = "sandbox-";

/// The sandbox's name for what an order is paid with, and for the subscription that it begins.
pub(super) fn name_of(order: &OrderId) -> String {
    format!("{PREFIX}{order}")
}

/// The order of a name, alone or at the beginning of what is kept.
pub(super) fn order_of(name: &str) -> Option<OrderId> {
    let name = name.split(' ').next().unwrap_or_default();
    name.strip_prefix(PREFIX).map(OrderId::new)
}

/// How far a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStep {
    /// The page waits.
    Open,
    /// The money is said to be under way.
    Pending,
    /// The money is said to be there.
    Paid,
    /// It was cancelled, or the money never came.
    Ended,
}

/// What a person does on the sandbox's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxDeed {
    /// Pays at once.
    Pay,
    /// Pays with something that takes days.
    PayLater,
    /// Leaves without paying.
    Cancel,
    /// Lets the money arrive that was under way.
    Arrive,
    /// Lets that money never arrive.
    Fail,
    /// Gives so much back, in the currency's smallest unit.
    Refund(u64),
}

/// A payment in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) step: SandboxStep,
    /// When it came to this step, in milliseconds; of a plan that is paid: when its month began.
    pub(super) since: i64,
    /// How much was given back.
    pub(super) returned: u64,
    /// The subscription that a plan takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
}

impl State {
    pub(super) fn opened(now: Timestamp, replaces: Option<String>) -> Self {
        Self { step: SandboxStep::Open, since: now.as_millis(), returned: 0, replaces }
    }

    /// The state that is kept in an order; none when it is not of the sandbox.
    pub(super) fn of(order: &Order) -> Option<Self> {
        let (name, state) = order.payment.as_deref()?.split_once(' ')?;
        (order_of(name)? == order.id).then_some(())?;
        serde_json::from_str(state).ok()
    }

    /// The text to keep in an order.
    pub(super) fn kept(&self, order: &OrderId) -> String {
        // Numbers and texts always become JSON.
        format!("{} {}", name_of(order), serde_json::to_string(self).unwrap_or_default())
    }

    /// What a deed makes of it; none when nothing comes of that deed now.
    pub(super) fn after(&self, deed: SandboxDeed, amount_minor: u64, now: Timestamp) -> Option<Self> {
        use SandboxStep::{Ended, Open, Paid, Pending};
        let to = |step| Some(Self { step, since: now.as_millis(), ..self.clone() });
        match (self.step, deed) {
            (Open, SandboxDeed::Pay) | (Pending, SandboxDeed::Arrive) => to(Paid),
            (Open, SandboxDeed::PayLater) => to(Pending),
            (Open, SandboxDeed::Cancel) | (Pending, SandboxDeed::Fail) => to(Ended),
            (Paid, SandboxDeed::Refund(minor)) => {
                let returned = self.returned.checked_add(minor).filter(|sum| *sum <= amount_minor)?;
                (minor > 0).then(|| Self { returned, ..self.clone() })
            }
            _ => None,
        }
    }

    /// The month of a plan that was paid with an order; none when it is no plan, or not paid.
    pub(super) fn invoice(&self, order: &Order) -> Option<PaidInvoice> {
        let Item::Plan(plan) = order.item else { return None };
        let anchor = Timestamp::from_millis(self.since);
        let month = Month::of(anchor, anchor);
        (self.step == SandboxStep::Paid).then(|| PaidInvoice {
            invoice: name_of(&order.id),
            order: Some(order.id.clone()),
            first: true,
            plan,
            created_at: anchor,
            period_start: month.start,
            period_end: month.end,
            money: self.money(order),
        })
    }

    /// What the sandbox says of the payment of an order that is this far.
    pub(super) fn payment(&self, order: &Order) -> PaymentState {
        let progress = match self.step {
            SandboxStep::Open | SandboxStep::Pending => Progress::Pending,
            SandboxStep::Paid => Progress::Paid,
            SandboxStep::Ended => Progress::Ended,
        };
        PaymentState { order: order.id.clone(), progress, money: self.money(order) }
    }

    fn money(&self, order: &Order) -> Money {
        Money {
            amount_minor: order.amount_minor,
            currency: order.currency.clone(),
            paid_minor: if self.step == SandboxStep::Paid { order.amount_minor } else { 0 },
            returned_minor: self.returned,
            disputed: false,
        }
    }
}
