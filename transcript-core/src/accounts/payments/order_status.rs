//! The status of an order for its page.

use super::{
    PaidInvoice, PaymentProgress, PaymentSnapshot, Payments, ProviderObject,
    matched_invoice::is_first_payment, subscription,
};
use crate::{
    accounts::{Order, OrderItem, OrderState},
    directory::Account,
    error::Result,
    ids::OrderId,
    limits::{LimitOutcome, LimitRequest, MINUTE_MS},
    time::Timestamp,
};

/// Refreshes of an order's status per minute.
const REFRESHES_PER_MINUTE: u32 = 20;

/// An order with the details that its page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// The stored order.
    pub order: Order,
    /// Details beyond its state.
    pub resolution: OrderResolution,
    /// The state of the buyer's account.
    pub buyer: BuyerStatus,
}

/// Details of an order beyond its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderResolution {
    /// None: the stored state is all that is known.
    Unchanged,
    /// The account has the ordered plan, and it is paid now.
    Active,
    /// The plan was granted as credits that do not expire, because another plan was paid at the same time.
    GrantedAsCredits,
    /// The plan is cheaper than the running one, and begins with the next month.
    ///
    /// The buyer may not have confirmed the change.
    StartsNextMonth {
        /// When that month begins.
        at: Timestamp,
    },
    /// A payment arrived and nothing was granted: the amount was wrong, or the account was deleted.
    Unfulfilled {
        /// Whether the whole payment was returned.
        is_returned: bool,
    },
}

/// State of the buyer's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuyerStatus {
    /// It can be used.
    Open,
    /// Blocked by the operator or a dispute.
    Blocked,
    /// It was deleted.
    Deleted,
}

impl OrderStatus {
    fn new(order: Order, account: Option<&Account>, resolution: OrderResolution) -> Self {
        let buyer = match account {
            Some(account) if account.blocked => BuyerStatus::Blocked,
            Some(_) => BuyerStatus::Open,
            None => BuyerStatus::Deleted,
        };
        Self { order, resolution, buyer }
    }

    /// Whether the provider may have more recent information than the stored order.
    pub fn needs_refresh(&self) -> bool {
        let is_plan = matches!(self.order.item, OrderItem::Plan(_));
        let may_change = match self.order.state {
            OrderState::Open => true,
            OrderState::Fulfilled => is_plan,
            OrderState::Expired | OrderState::Refunded | OrderState::Disputed => false,
        };
        may_change && self.order.payment.is_some() && self.order.paid_with().is_none()
    }
}

impl Payments {
    /// The stored status of an order, without a provider call.
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn stored_status(&self, id: &OrderId) -> Result<Option<OrderStatus>> {
        let Some(order) = self.order(id).await? else { return Ok(None) };
        let account = self.account(&order.account).await?;
        let resolution = self.stored_resolution(&order, account.as_ref());
        Ok(Some(OrderStatus::new(order, account.as_ref(), resolution)))
    }

    /// When the plan of an open order begins that replaces a dearer one with the next month.
    ///
    /// `None` for any other order. The buyer may not have confirmed the change.
    pub fn next_month_start(&self, order: &Order, account: &Account) -> Option<Timestamp> {
        let is_plan_change = matches!(order.item, OrderItem::Plan(_))
            && order.state == OrderState::Open
            && order.payment.is_some()
            && order.payment == account.subscription
            && subscription::is_running(account, self.now());
        let present_price = self.deps.plans.terms(account.plan).price_cents;
        let is_cheaper = present_price.is_some_and(|price| order.amount_minor < price);
        account.paid.filter(|_| is_plan_change && is_cheaper).map(|paid| paid.through)
    }

    fn stored_resolution(&self, order: &Order, account: Option<&Account>) -> OrderResolution {
        let start = account.and_then(|account| self.next_month_start(order, account));
        start.map_or(OrderResolution::Unchanged, |at| OrderResolution::StartsNextMonth { at })
    }

    /// Counts a refresh of an order's status; returns whether the limit admits it.
    ///
    /// So reloading a page cannot cause unlimited provider calls.
    ///
    /// # Errors
    /// The errors of the rate limiter.
    pub async fn count_refresh(&self, id: &OrderId) -> Result<bool> {
        let request = LimitRequest::one(format!("checkout/{id}"), REFRESHES_PER_MINUTE, MINUTE_MS);
        let outcome = self.deps.limiter.acquire(vec![request], self.now()).await?;
        Ok(matches!(outcome, LimitOutcome::Allowed { .. }))
    }

    /// The status of an order after its present state at the provider was read and applied.
    ///
    /// # Errors
    /// The errors of stores and provider.
    pub async fn refreshed_status(&self, id: &OrderId) -> Result<Option<OrderStatus>> {
        let Some(stored) = self.stored_status(id).await? else { return Ok(None) };
        let payment = stored.order.payment.clone().filter(|name| stored.needs_refresh() && self.owns(name));
        let Some(payment) = payment else { return Ok(Some(stored)) };
        let subject = ProviderObject::new(payment);
        // Read before it is applied: what was paid then is granted afterwards, unless it cannot be.
        let snapshots = self.call_provider(self.provider()?.snapshots(&subject)).await?;
        if stored.order.state == OrderState::Open {
            self.reconcile(&subject).await?;
        }
        let Some(order) = self.order(id).await? else { return Ok(None) };
        let account = self.account(&order.account).await?;
        let resolution = self.resolution(&order, account.as_ref(), &snapshots).await?;
        Ok(Some(OrderStatus::new(order, account.as_ref(), resolution)))
    }

    async fn resolution(
        &self,
        order: &Order,
        account: Option<&Account>,
        snapshots: &[PaymentSnapshot],
    ) -> Result<OrderResolution> {
        let invoice = first_invoice(order, snapshots);
        let money = match (&order.item, invoice) {
            (OrderItem::Plan(_), invoice) => invoice
                .filter(|invoice| subscription::has_begun(invoice, self.now()))
                .map(|invoice| &invoice.money),
            (OrderItem::Pack(_), _) => snapshots.iter().find_map(|snapshot| match snapshot {
                PaymentSnapshot::Payment(paid)
                    if paid.order == order.id && paid.progress == PaymentProgress::Paid =>
                {
                    Some(&paid.money)
                }
                _ => None,
            }),
        };
        Ok(match (order.state, &order.item, money, invoice) {
            (OrderState::Open, _, Some(money), _) => {
                OrderResolution::Unfulfilled { is_returned: money.is_returned() }
            }
            (OrderState::Fulfilled, OrderItem::Plan(ordered), _, Some(invoice)) => {
                let credit_order = self.order(&subscription::credit_order_id(invoice)).await?;
                let has_plan = |account: &Account| {
                    account.plan == *ordered && subscription::is_running(account, self.now())
                };
                match credit_order.is_some_and(|credit_order| subscription::is_recorded(&credit_order)) {
                    true => OrderResolution::GrantedAsCredits,
                    false if account.is_some_and(has_plan) => OrderResolution::Active,
                    false => OrderResolution::Unchanged,
                }
            }
            _ => self.stored_resolution(order, account),
        })
    }
}

/// The invoice of an order's first payment, not of a renewal.
fn first_invoice<'a>(order: &Order, snapshots: &'a [PaymentSnapshot]) -> Option<&'a PaidInvoice> {
    snapshots
        .iter()
        .filter_map(|snapshot| match snapshot {
            PaymentSnapshot::Subscription(state) => Some(&state.invoices),
            PaymentSnapshot::Payment(_) => None,
        })
        .flatten()
        .find(|invoice| is_first_payment(invoice, order))
}
