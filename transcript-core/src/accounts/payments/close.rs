//! Closing open payment pages before an account is erased, so that no payment arrives without an owner.

use super::{PaidInvoice, PaymentSnapshot, Payments, ProviderObject, STORE_POLICY};
use crate::{
    accounts::{
        OrderItem, OrderState,
        orders::{Order, list_all_for_account},
    },
    directory::{Account, AccountRef, Plan, UpdateOutcome},
    error::Result,
    retry::retry_store,
};

/// Implements [`Payments::close`].
pub(super) async fn close_pages(payments: &Payments, account: &Account) -> Result<Account> {
    let orders = list_all_for_account(payments.deps.orders.as_ref(), &account.id, STORE_POLICY).await?;
    for order in orders.iter().filter(|order| order.state == OrderState::Open) {
        close_order_page(payments, order).await?;
    }
    // A payment that was granted here has changed the account.
    let id = AccountRef::Id(account.id.clone());
    let stored = retry_store(STORE_POLICY, || payments.deps.directory.account(&id)).await?;
    cancel_refunded(payments, stored.as_ref().unwrap_or(account)).await
}

async fn close_order_page(payments: &Payments, order: &Order) -> Result<()> {
    let Some(payment) = order.payment.as_ref().filter(|name| payments.owns(name)) else { return Ok(()) };
    payments.call_provider(payments.provider()?.expire_checkout(payment)).await?;
    payments.reconcile(&ProviderObject::new(payment.clone())).await?;
    expire_unconfirmed(payments, order, payment).await
}

/// Expires an open plan order whose subscription ended before it was confirmed.
///
/// Only an invoice that is still open can be paid then; its payment fulfills the expired order.
pub(super) async fn expire_unconfirmed(payments: &Payments, order: &Order, payment: &str) -> Result<()> {
    let OrderItem::Plan(_) = order.item else { return Ok(()) };
    let stored = payments.order(&order.id).await?;
    let Some(order) = stored.filter(|order| order.state == OrderState::Open) else { return Ok(()) };
    let subject = ProviderObject::new(payment);
    let snapshots = payments.call_provider(payments.provider()?.snapshots(&subject)).await?;
    // A paid invoice that names the order and was not granted: its page says so.
    let is_unpaid = |invoice: &PaidInvoice| invoice.order.as_ref() != Some(&order.id);
    let has_ended = snapshots.iter().any(|snapshot| match snapshot {
        PaymentSnapshot::Subscription(state) => {
            state.is_ended && state.subscription == payment && state.invoices.iter().all(is_unpaid)
        }
        PaymentSnapshot::Payment(_) => false,
    });
    if has_ended {
        // After a concurrent change there is something to grant after all.
        payments.expire(&order).await?;
    }
    Ok(())
}

/// Cancels the subscription of an account whose payments were all refunded.
async fn cancel_refunded(payments: &Payments, account: &Account) -> Result<Account> {
    let is_returned = account.plan == Plan::Free && account.paid.is_none();
    let subscription_to_cancel =
        account.subscription.as_ref().filter(|name| is_returned && payments.owns(name));
    let Some(subscription) = subscription_to_cancel else { return Ok(account.clone()) };
    payments.call_provider(payments.provider()?.cancel_at_period_end(subscription)).await?;
    let ended = Account { subscription: None, ..account.clone() };
    match retry_store(STORE_POLICY, || payments.deps.directory.update_account(ended.clone())).await? {
        UpdateOutcome::Changed(account) => Ok(account),
        // The erasure of the account detects the change.
        UpdateOutcome::Stale | UpdateOutcome::Missing => Ok(account.clone()),
    }
}
