//! Receipts: a mail for each payment, queued once.

use super::{Payments, STORE_POLICY, subscription};
use crate::{
    accounts::{MailIntent, MailKind, Order, outbox::RECEIPT_PREFIX},
    error::Result,
    retry::retry_store,
};

/// Queues the receipt of an order that is about to be recorded as paid.
///
/// The id of the mail is that of the order, so a repeat before the state is stored queues no second one. Once
/// the state is stored, no call comes here again.
pub(super) async fn queue_receipt(payments: &Payments, order: &Order) -> Result<()> {
    // A credit order is the second order of a payment, whose receipt names the first.
    if subscription::is_recorded(order) || order.is_credit_order() {
        return Ok(());
    }
    let Some(account) = payments.account(&order.account).await? else { return Ok(()) };
    // An account that an operator created has a name and no address.
    if !account.email.contains('@') {
        return Ok(());
    }
    let intent = MailIntent {
        id: format!("{RECEIPT_PREFIX}{}", order.id),
        kind: MailKind::Receipt.as_str().to_owned(),
        to: account.email,
        attempts: 0,
        language: order.language.clone(),
    };
    retry_store(STORE_POLICY, || payments.deps.outbox.queue(intent.clone(), payments.now())).await
}
