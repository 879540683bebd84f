//! Fulfillment: grants what was paid, and revokes what was refunded, in idempotent steps.
//!
//! Every step is idempotent by an id. A decision that a retry could not recompute is stored before it is
//! carried out. The order's state is written last, so an order that is not [`OrderState::Open`] was fully
//! granted; the steps are repeated for it all the same.

use super::{
    PaymentAmounts, PaymentProgress, PaymentSnapshot, PaymentState, Payments, ProviderObject, STORE_POLICY,
    UPDATE_ATTEMPTS_MAX, WebhookOutcome, WebhookRequest, contention_error, receipt::queue_receipt,
    subscription::is_recorded,
};
use crate::{
    accounts::{Memo, Order, OrderItem, OrderState, change_account::change_account, orders::refund_prefix},
    directory::Account,
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, GrantId},
    ledger::{GrantOutcome, GrantRequest, RevokeOutcome, RevokeRequest},
    retry::retry_store,
};

/// The largest number of partial refunds of an order that revoke credits.
///
/// The return of the whole payment revokes the rest besides.
const REFUNDS_MAX: usize = 100;

impl Payments {
    /// Handles a webhook request: verifies it, reads the present state of its objects, and applies it.
    /// The outcome [`WebhookOutcome::Events`] means that all of it is applied.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if payments are not configured; the errors of stores and provider. Another call
    /// with the same request continues where this one stopped.
    pub async fn handle_webhook(&self, call: WebhookRequest) -> Result<WebhookOutcome> {
        let outcome = self.call_provider(self.provider()?.parse_webhook(call, self.now())).await?;
        if let WebhookOutcome::Events(subjects) = &outcome {
            for subject in subjects {
                self.reconcile(subject).await?;
            }
        }
        Ok(outcome)
    }

    /// Reads the present state of an object at the provider, and applies it.
    ///
    /// # Errors
    /// As [`Payments::handle_webhook`].
    pub async fn reconcile(&self, subject: &ProviderObject) -> Result<()> {
        self.coalescer.run(&subject.object, || self.reconcile_now(subject)).await
    }

    async fn reconcile_now(&self, subject: &ProviderObject) -> Result<()> {
        let provider = self.provider()?;
        // Read before the provider is called: see `settle_subscription`.
        let mut account = match &subject.customer {
            Some(customer) => self.account_of_customer(customer).await?,
            None => None,
        };
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let mut account_to_reread = None;
            for snapshot in self.call_provider(provider.snapshots(subject)).await? {
                match snapshot {
                    PaymentSnapshot::Payment(payment) => self.settle_payment(&payment).await?,
                    PaymentSnapshot::Subscription(state) => {
                        if let Some(id) = self.settle_subscription(&state, account.as_ref()).await? {
                            account_to_reread = Some(id);
                        }
                    }
                }
            }
            let Some(id) = account_to_reread else { return Ok(()) };
            account = self.account(&id).await?;
        }
        Err(contention_error())
    }

    /// Applies a payment snapshot to its order.
    async fn settle_payment(&self, snapshot: &PaymentState) -> Result<()> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some(order) = self.order(&snapshot.order).await? else {
                tracing::debug!("payment without an order");
                return Ok(());
            };
            if !is_session_of(&order, snapshot) {
                return Ok(());
            }
            let is_settled = match (snapshot.progress, &order.item) {
                (PaymentProgress::Pending, _) => true,
                (PaymentProgress::Ended, _) => self.expire(&order).await?,
                // A plan is granted by its invoices.
                (PaymentProgress::Paid, OrderItem::Plan(_)) => true,
                (PaymentProgress::Paid, OrderItem::Pack(_)) => self.fulfill(&order, &snapshot.money).await?,
            };
            if is_settled {
                return Ok(());
            }
        }
        Err(contention_error())
    }

    /// Expires an order that will not be paid. `false` after a concurrent change.
    pub(super) async fn expire(&self, order: &Order) -> Result<bool> {
        if order.state != OrderState::Open {
            return Ok(true);
        }
        self.update(&Order { state: OrderState::Expired, ..order.clone() }, order).await
    }

    /// Grants a paid pack, and revokes its refunded credits.
    /// `false` after a concurrent change of the order.
    pub(super) async fn fulfill(&self, order: &Order, money: &PaymentAmounts) -> Result<bool> {
        if !is_expected_amount(order, money) {
            return Ok(true);
        }
        let Some(account) = self.account(&order.account).await? else {
            return self.finish_erased(order, money).await;
        };
        let grant = GrantRequest {
            id: GrantId::new(order.id.as_str()),
            wallet: account.wallet,
            amount: order.credits,
            now: self.now(),
            memo: Memo::Sale(order.item.clone()).to_string(),
        };
        match retry_store(STORE_POLICY, || self.deps.ledger.grant(grant.clone())).await? {
            GrantOutcome::Granted { .. } => {
                tracing::info!(order = %order.id, credits = order.credits, "order fulfilled");
            }
            GrantOutcome::Exists => {}
            GrantOutcome::Conflict => return Err(ledger_conflict()),
        }
        let Some(order) = self.record_refund(order, money).await? else { return Ok(false) };
        self.revoke_refunded(&order).await?;
        queue_receipt(self, &order).await?;
        self.finalize(&order, money).await
    }

    /// Records the refund or dispute of an erased account's order; logs a payment that is to be refunded.
    async fn finish_erased(&self, order: &Order, money: &PaymentAmounts) -> Result<bool> {
        if is_recorded(order) {
            let Some(order) = self.record_refund(order, money).await? else { return Ok(false) };
            return self.finalize(&order, money).await;
        }
        if money.needs_refund() {
            let payment = order.payment.as_deref();
            tracing::error!(order = %order.id, payment, "paid order has no account; refund required");
        }
        Ok(true)
    }

    /// Stores the paid and returned amounts and the total of credits to revoke, before any are revoked.
    /// `None` after a concurrent change of the order.
    ///
    /// The total never decreases: after a failed refund the seller has the money and must return it in another
    /// way, so the buyer does not get the credits again.
    pub(super) async fn record_refund(&self, order: &Order, money: &PaymentAmounts) -> Result<Option<Order>> {
        let target = money.refundable_credits(order.credits);
        let recorded = order.refunded_credits.last().copied().unwrap_or(0);
        if target < recorded {
            tracing::warn!(order = %order.id, "refund or dispute reversed; its credits stay revoked");
        }
        // The amounts of a failed refund stay recorded as its credits do.
        let returned_minor = money.returned_minor.max(order.returned_minor);
        // An invoice may be paid without a payment at the provider.
        let is_other_amount = money.paid_minor > 0 && money.paid_minor != order.amount_minor;
        let paid_minor = is_other_amount.then_some(money.paid_minor);
        let is_same = returned_minor == order.returned_minor && paid_minor == order.paid_minor;
        let has_room = order.refunded_credits.len() < REFUNDS_MAX || target == order.credits;
        let is_revoked = target > recorded && has_room;
        if !is_revoked && is_same {
            return Ok(Some(order.clone()));
        }
        let mut changed = Order { returned_minor, paid_minor, ..order.clone() };
        if is_revoked {
            changed.refunded_credits.push(target);
        } else if target > recorded {
            tracing::error!(order = %order.id, "too many partial refunds; credits of the last one not revoked");
        }
        if !self.update(&changed, order).await? {
            return Ok(None);
        }
        changed.version = order.version + 1;
        Ok(Some(changed))
    }

    /// Revokes the stored totals, each part once.
    async fn revoke_refunded(&self, order: &Order) -> Result<()> {
        for (id, amount) in refund_parts(order) {
            let revoke = RevokeRequest {
                id: GrantId::new(id),
                grant: GrantId::new(order.id.as_str()),
                amount,
                now: self.now(),
                memo: Memo::Refund(order.item.clone()).to_string(),
            };
            match retry_store(STORE_POLICY, || self.deps.ledger.revoke(revoke.clone())).await? {
                RevokeOutcome::Revoked { taken, shortfall } => {
                    tracing::info!(order = %order.id, taken, shortfall, "credits revoked");
                }
                RevokeOutcome::Exists { .. } => {}
                RevokeOutcome::GrantNotFound | RevokeOutcome::Conflict => return Err(ledger_conflict()),
            }
        }
        Ok(())
    }

    /// The last step: stores the final state of an order. `false` after a concurrent change.
    ///
    /// The first snapshot with a dispute blocks the account. After that the operator decides, so an order that is
    /// [`OrderState::Disputed`] does not block again and keeps its state.
    pub(super) async fn finalize(&self, order: &Order, money: &PaymentAmounts) -> Result<bool> {
        let new_state = match (money.disputed, order.refunded_credits.is_empty() && money.returned_minor == 0)
        {
            (true, _) => OrderState::Disputed,
            (false, false) => OrderState::Refunded,
            (false, true) => OrderState::Fulfilled,
        };
        if state_rank(new_state) <= state_rank(order.state) {
            return Ok(true);
        }
        if new_state == OrderState::Disputed {
            self.block_account(&order.account).await?;
            tracing::warn!(order = %order.id, account = %order.account, "payment disputed, account blocked");
        }
        self.update(&Order { state: new_state, ..order.clone() }, order).await
    }

    /// Blocks an account. The next reconciliation cancels its subscription, which it can no longer use.
    async fn block_account(&self, id: &AccountId) -> Result<()> {
        let block = |account: &Account| Account { blocked: true, ..account.clone() };
        change_account(self.deps.directory.as_ref(), STORE_POLICY, id, block).await.map(|_| ())
    }
}

/// Whether a payment was made on the checkout session of its order. If not, nothing changes, and an error is logged.
///
/// The id of an order is in links, so a session of another program on the provider's account may name it too. The id
/// of the session is stored before the buyer receives the page. An order without one is of a process that ended in
/// between: then only the provider vouches for the session.
fn is_session_of(order: &Order, snapshot: &PaymentState) -> bool {
    let (Some(stored), Some(session)) = (&order.payment, &snapshot.session) else { return true };
    let is_same = stored == session;
    // A plan order that changes a subscription stores that one; its unused session is closed and changes nothing.
    if !is_same && snapshot.progress == PaymentProgress::Paid {
        tracing::error!(order = %order.id, "payment of another checkout session; nothing was granted");
    }
    is_same
}

/// Whether the paid amount is the order's price. If not, nothing is granted, and an error is logged.
pub(super) fn is_expected_amount(order: &Order, money: &PaymentAmounts) -> bool {
    let is_same = order.amount_minor == money.amount_minor && order.currency == money.currency;
    if !is_same {
        tracing::error!(
            order = %order.id,
            sold = order.amount_minor,
            paid = money.amount_minor,
            "paid amount differs from the price; nothing was granted"
        );
    }
    is_same
}

/// The parts to revoke: id and number of credits.
pub(super) fn refund_parts(order: &Order) -> impl Iterator<Item = (String, u64)> {
    let before = std::iter::once(0).chain(order.refunded_credits.iter().copied());
    order.refunded_credits.iter().zip(before).enumerate().filter_map(|(index, (after, before))| {
        let amount = after.saturating_sub(before);
        (amount > 0).then(|| (format!("{}{}", refund_prefix(order.id.as_str()), index + 1), amount))
    })
}

/// The order's states in the order of progress: a late reader never moves an order back.
fn state_rank(state: OrderState) -> u8 {
    match state {
        OrderState::Open => 0,
        OrderState::Expired => 1,
        OrderState::Fulfilled => 2,
        OrderState::Refunded => 3,
        OrderState::Disputed => 4,
    }
}

#[cold]
fn ledger_conflict() -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, "the ledger has another entry under the order's id")
}
