//! Plans: an account has the plan whose invoice is paid, until the paid month ends (specification 13).
//!
//! On every payment snapshot of a paid period, its credits are recomputed from all of its payments, so that a
//! refund of any of them counts at any time. While a paid period runs, only its own subscription changes it. An
//! account should have one subscription; payments for another one in the meantime are granted as credits that do
//! not expire, in a *credit order*.

use std::time::Duration;

use super::{
    CURRENCY, PaidInvoice, PaymentAmounts, Payments, STORE_POLICY, SubscriptionState, UPDATE_ATTEMPTS_MAX,
    contention_error,
    fulfillment::is_expected_amount,
    matched_invoice::{MatchedInvoice, ends_paid_period, is_current, is_first_payment},
    receipt::queue_receipt,
};
use crate::{
    accounts::{
        Order, OrderItem, OrderState, PlanPayment, apply_payments,
        orders::{CREDIT_ORDER_SUFFIX, list_all_for_account},
        paid_periods::anchor_before,
    },
    directory::{Account, PaidPeriod, Plan, UpdateOutcome},
    error::Result,
    ids::{AccountId, OrderId},
    retry::retry_store,
    time::Timestamp,
};

/// The largest lag of this server's clock.
///
/// A later month is applied when it begins, so that it does not cut the present one short.
const CLOCK_LAG_MAX: Duration = Duration::from_secs(3_600);

impl Payments {
    /// Applies a subscription snapshot to its account.
    /// If it must be repeated with a newer account, returns the id of the account to read before the provider
    /// is called again.
    ///
    /// A snapshot may be outdated when it is applied. So the account is read first, then the provider, and the
    /// account is changed only if it is still the version that was read: stored state never reverts to an older
    /// snapshot.
    pub(super) async fn settle_subscription(
        &self,
        state: &SubscriptionState,
        account: Option<&Account>,
    ) -> Result<Option<AccountId>> {
        let mut matched = self.match_invoices(state).await?;
        let Some(owner) = matched.first().map(|matched_invoice| matched_invoice.terms.account.clone()) else {
            tracing::debug!("subscription without a known paid invoice");
            return Ok(None);
        };
        let Some(account) = account.filter(|account| account.id == owner) else {
            if self.account(&owner).await?.is_some() {
                return Ok(Some(owner));
            }
            self.finish_erased_plan(&matched, state).await?;
            return Ok(None);
        };
        if !is_own_customer(account, state, &matched) {
            tracing::error!(account = %owner, "plan paid by another customer; nothing was granted");
            return Ok(None);
        }
        // If this stops after the account was changed, reconciliation finds an open order.
        for matched_invoice in matched
            .iter()
            .filter(|matched_invoice| !matched_invoice.is_first && matched_invoice.record.is_none())
        {
            self.write_renewal(matched_invoice).await?;
        }
        let now = self.now();
        matched.retain(|matched_invoice| has_begun(matched_invoice.invoice, now));
        if !self.record_refunds(&mut matched).await? {
            return Ok(Some(owner));
        }
        let is_concurrent = is_running(account, now) && !is_own_period(account, state, &matched);
        if is_concurrent {
            self.open_credit_orders(account, state, &mut matched).await?;
        }
        let changed = apply_subscription(account, state, &matched, now);
        // A credit order is granted only if it is certain that no other worker counted the payment for the plan
        // in the meantime: such a worker changed the account, and later workers find the credit order.
        if changed != *account
            || matched.iter().any(|matched_invoice| matched_invoice.has_pending_credit_order(account, state))
        {
            let change = || self.deps.directory.update_account(changed.clone());
            match retry_store(STORE_POLICY, change).await? {
                UpdateOutcome::Changed(now) => {
                    tracing::info!(account = %now.id, plan = now.plan.as_str(), "plan payment applied");
                }
                UpdateOutcome::Stale => return Ok(Some(owner)),
                UpdateOutcome::Missing => return Ok(None),
            }
        }
        // First payments precede renewals, which take an order without one for a plan change.
        matched.sort_by_key(|matched_invoice| !matched_invoice.is_first);
        for matched_invoice in &matched {
            self.finish_invoice(matched_invoice, account, state).await?;
        }
        Ok(None)
    }

    /// The invoices whose payment matches their order.
    async fn match_invoices<'a>(&self, state: &'a SubscriptionState) -> Result<Vec<MatchedInvoice<'a>>> {
        let mut matched = Vec::new();
        for invoice in &state.invoices {
            let sale = match &invoice.order {
                Some(id) => self.order(id).await?,
                None => None,
            };
            let is_first = sale.as_ref().is_some_and(|sale| is_first_payment(invoice, sale));
            let record = match is_first {
                true => sale.clone(),
                false => self.order(&OrderId::new(invoice.invoice.clone())).await?,
            };
            // The recorded terms of a renewal stay, whatever the present prices are.
            let terms = match record.as_ref().or(sale.as_ref()) {
                Some(order) => Some(order.clone()),
                None => self.catalog_terms(state, invoice).await?,
            };
            let Some(terms) = terms else { continue };
            if terms.item != OrderItem::Plan(invoice.plan) {
                tracing::error!(order = %terms.id, "paid plan differs from the order; nothing was granted");
            } else if is_expected_amount(&terms, &invoice.money) {
                let credit_order = self.order(&credit_order_id(invoice)).await?;
                matched.push(MatchedInvoice { invoice, is_first, terms, sale, record, credit_order });
            }
        }
        let owner = matched.first().map(|matched_invoice| matched_invoice.terms.account.clone());
        if matched.iter().any(|matched_invoice| Some(&matched_invoice.terms.account) != owner.as_ref()) {
            tracing::error!("subscription has orders of several accounts; nothing was granted");
            matched.clear();
        }
        Ok(matched)
    }

    /// The terms of an invoice without a known order: the plan was chosen at the provider.
    /// The buyer or the operator may have chosen it. `None` if the amount differs from the plan's price.
    async fn catalog_terms(&self, state: &SubscriptionState, invoice: &PaidInvoice) -> Result<Option<Order>> {
        let Some(customer) = &state.customer else { return Ok(None) };
        let Some(account) = self.account_of_customer(customer).await? else {
            tracing::debug!("plan paid by an unknown customer");
            return Ok(None);
        };
        let catalog_terms = self.deps.plans.terms(invoice.plan);
        let PaymentAmounts { amount_minor, currency, .. } = &invoice.money;
        if catalog_terms.price_cents != Some(*amount_minor) || currency != CURRENCY {
            tracing::error!(
                account = %account.id,
                invoice = %invoice.invoice,
                paid = amount_minor,
                "paid plan has no order and another price; nothing was granted"
            );
            return Ok(None);
        }
        tracing::warn!(account = %account.id, invoice = %invoice.invoice, "plan chosen at the provider was paid");
        Ok(Some(Order {
            id: OrderId::new(invoice.invoice.clone()),
            version: 1,
            account: account.id,
            item: OrderItem::Plan(invoice.plan),
            credits: catalog_terms.credits,
            amount_minor: *amount_minor,
            currency: currency.clone(),
            state: OrderState::Open,
            payment: None,
            refunded_credits: Vec::new(),
            returned_minor: 0,
            paid_minor: None,
            created_at: invoice.created_at,
            language: None,
        }))
    }

    /// Records the refunds and disputes of an erased account's payments; logs the payments to be refunded.
    async fn finish_erased_plan(
        &self,
        matched: &[MatchedInvoice<'_>],
        state: &SubscriptionState,
    ) -> Result<()> {
        for matched_invoice in matched {
            let MatchedInvoice { invoice, terms, .. } = matched_invoice;
            if matched_invoice.is_recorded() {
                self.record(&matched_invoice.record_id(), invoice).await?;
            } else if invoice.money.needs_refund() {
                let (account, subscription, invoice) =
                    (&terms.account, &state.subscription, &invoice.invoice);
                tracing::error!(%account, %subscription, %invoice, "paid plan has no account; refund required");
            }
        }
        Ok(())
    }

    /// Stores the refunds before they change the account: a refund that fails later still counts.
    /// `false` after a concurrent change of an order.
    async fn record_refunds(&self, matched: &mut [MatchedInvoice<'_>]) -> Result<bool> {
        for matched_invoice in matched {
            let money = &matched_invoice.invoice.money;
            let Some(record) = &matched_invoice.record else { continue };
            if money.returned_minor > record.returned_minor {
                let Some(recorded) = self.record_refund(record, money).await? else { return Ok(false) };
                matched_invoice.record = Some(recorded);
            }
        }
        Ok(true)
    }

    /// Writes the order of a renewal.
    async fn write_renewal(&self, matched_invoice: &MatchedInvoice<'_>) -> Result<()> {
        let renewal = matched_invoice.unpaid_order(matched_invoice.record_id());
        retry_store(STORE_POLICY, || self.deps.orders.open(renewal.clone())).await
    }

    /// Writes credit orders for payments during another subscription's paid period.
    async fn open_credit_orders(
        &self,
        account: &Account,
        state: &SubscriptionState,
        matched: &mut [MatchedInvoice<'_>],
    ) -> Result<()> {
        if account.subscription.is_some() && !is_current(account, state) && !state.is_ended {
            tracing::error!(account = %account.id, "account pays for two subscriptions; end one of them");
        }
        for matched_invoice in matched.iter_mut().filter(|matched_invoice| matched_invoice.is_new()) {
            let credit_order = matched_invoice.unpaid_order(credit_order_id(matched_invoice.invoice));
            retry_store(STORE_POLICY, || self.deps.orders.open(credit_order.clone())).await?;
            matched_invoice.credit_order = Some(credit_order);
        }
        Ok(())
    }

    /// Records the outcome of an invoice, and grants its credit order.
    async fn finish_invoice(
        &self,
        matched_invoice: &MatchedInvoice<'_>,
        account: &Account,
        state: &SubscriptionState,
    ) -> Result<()> {
        if let Some(credit_order) = &matched_invoice.credit_order {
            self.settle_credit_order(
                credit_order,
                matched_invoice,
                matched_invoice.counts_for_plan(account, state),
            )
            .await?;
        }
        if !matched_invoice.is_recorded() {
            self.record_overdue_orders(matched_invoice, account, state).await?;
        }
        let record_id = matched_invoice.record_id();
        self.record(&record_id, matched_invoice.invoice).await?;
        // A plan change that waited for the end of the month arrives with a renewal. An order with a checkout session
        // has its own first payment.
        let is_change =
            |sale: &&Order| !is_recorded(sale) && sale.payment.as_ref() == Some(&state.subscription);
        match matched_invoice.sale.as_ref().filter(is_change) {
            Some(sale) if !matched_invoice.is_first => self.record_paid_with(&sale.id, &record_id).await,
            _ => Ok(()),
        }
    }

    /// Records a payment in the other orders that opened its invoice's page, also in expired ones.
    async fn record_overdue_orders(
        &self,
        matched_invoice: &MatchedInvoice<'_>,
        account: &Account,
        state: &SubscriptionState,
    ) -> Result<()> {
        let (invoice, terms, record_id) =
            (matched_invoice.invoice, &matched_invoice.terms, matched_invoice.record_id());
        let orders = list_all_for_account(self.deps.orders.as_ref(), &account.id, STORE_POLICY).await?;
        let is_paid_by_invoice = |order: &&Order| {
            !is_recorded(order)
                && order.id != record_id
                && order.payment.as_ref() == Some(&state.subscription)
                && order.created_at >= invoice.created_at
                && (&order.item, order.amount_minor, &order.currency)
                    == (&terms.item, terms.amount_minor, &terms.currency)
        };
        for order in orders.iter().filter(is_paid_by_invoice) {
            self.record_paid_with(&order.id, &record_id).await?;
        }
        Ok(())
    }

    /// Records an unpaid order as paid by the payment that another order records.
    async fn record_paid_with(&self, id: &OrderId, record_id: &OrderId) -> Result<()> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some(order) = self.order(id).await?.filter(|order| !is_recorded(order)) else {
                return Ok(());
            };
            if self.update(&order.with_payment_of(record_id), &order).await? {
                return Ok(());
            }
        }
        Err(contention_error())
    }

    /// Grants a credit order, or expires it if the payment was already counted for the plan.
    async fn settle_credit_order(
        &self,
        credit_order: &Order,
        matched_invoice: &MatchedInvoice<'_>,
        counts_for_plan: bool,
    ) -> Result<()> {
        // A dispute is recorded in the invoice's own order.
        let money = PaymentAmounts { disputed: false, ..matched_invoice.invoice.money.clone() };
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some(credit_order) = self.order(&credit_order.id).await? else { return Ok(()) };
            let is_settled = match counts_for_plan {
                true => self.expire(&credit_order).await?,
                false => self.fulfill(&credit_order, &money).await?,
            };
            if is_settled {
                return Ok(());
            }
        }
        Err(contention_error())
    }

    /// Records the outcome of an invoice in this order.
    async fn record(&self, id: &OrderId, invoice: &PaidInvoice) -> Result<()> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some(order) = self.order(id).await? else { return Ok(()) };
            let Some(order) = self.record_refund(&order, &invoice.money).await? else { continue };
            queue_receipt(self, &order).await?;
            if self.finalize(&order, &invoice.money).await? {
                return Ok(());
            }
        }
        Err(contention_error())
    }
}

pub(super) fn credit_order_id(invoice: &PaidInvoice) -> OrderId {
    OrderId::new(format!("{}{CREDIT_ORDER_SUFFIX}", invoice.invoice))
}

pub(super) fn is_recorded(order: &Order) -> bool {
    !matches!(order.state, OrderState::Open | OrderState::Expired)
}

/// Whether an invoice's month has begun; later months are applied when they begin.
pub(super) fn has_begun(invoice: &PaidInvoice, now: Timestamp) -> bool {
    invoice.period_start <= now.plus(CLOCK_LAG_MAX)
}

/// Whether a paid period runs now.
pub(super) fn is_running(account: &Account, now: Timestamp) -> bool {
    account.plan != Plan::Free && account.paid.is_some_and(|paid| now < paid.through)
}

/// Whether the account's buyer at the provider pays for the subscription.
///
/// If that customer was deleted there, the account has another one; its own orders then prove whose payments these are.
fn is_own_customer(account: &Account, state: &SubscriptionState, matched: &[MatchedInvoice<'_>]) -> bool {
    let (Some(known), Some(payer)) = (&account.customer, &state.customer) else { return true };
    let is_known = account.subscription.as_ref() == Some(&state.subscription)
        || matched.iter().any(MatchedInvoice::is_recorded);
    known == payer || is_known
}

/// Whether the account's paid period belongs to this subscription.
///
/// The account may have another subscription by now, or none: the period belongs to the subscription whose
/// recorded invoice ends with it.
fn is_own_period(account: &Account, state: &SubscriptionState, matched: &[MatchedInvoice<'_>]) -> bool {
    let is_current = is_current(account, state);
    matched.iter().filter(|matched_invoice| matched_invoice.counts_for_plan(account, state)).any(
        |matched_invoice| {
            let is_linked = is_current || matched_invoice.is_recorded();
            // The snapshot of the next month may arrive a moment before that month begins.
            let is_next = is_current
                && account.paid.is_some_and(|paid| matched_invoice.invoice.period_start == paid.through);
            is_next || is_linked && ends_paid_period(account, matched_invoice.invoice)
        },
    )
}

/// The account after a subscription snapshot.
fn apply_subscription(
    account: &Account,
    state: &SubscriptionState,
    matched: &[MatchedInvoice<'_>],
    now: Timestamp,
) -> Account {
    let paid_period = paid_period(account, state, matched, now);
    let is_current = is_current(account, state);
    let subscription = match (state.is_ended, &account.subscription) {
        (true, present) => present.clone().filter(|_| !is_current),
        (false, Some(present)) if paid_period.is_none() && !is_current => Some(present.clone()),
        (false, _) => Some(state.subscription.clone()),
    };
    let mut changed = Account {
        subscription,
        customer: account.customer.clone().or_else(|| state.customer.clone()),
        ..account.clone()
    };
    if let Some((plan, paid)) = paid_period {
        (changed.plan, changed.paid) = (plan, paid);
        match (&mut changed.paid, account.paid) {
            (Some(paid), _) => {
                paid.anchor_before = anchor_before(account, paid);
                changed.anchor = state.anchor;
            }
            // A full refund leaves no payment: the month before the period continues, with its used credits. After
            // the end of the period, months were already counted from it.
            (None, Some(known)) if now < known.through => changed.anchor = known.anchor_before,
            (None, _) => {}
        }
    }
    changed
}

/// The plan and paid period that the subscription's payments result in; `None` if they decide nothing.
fn paid_period(
    account: &Account,
    state: &SubscriptionState,
    matched: &[MatchedInvoice<'_>],
    now: Timestamp,
) -> Option<(Plan, Option<PaidPeriod>)> {
    let plan_invoices =
        || matched.iter().filter(|matched_invoice| matched_invoice.counts_for_plan(account, state));
    let is_own_period = is_own_period(account, state, matched);
    let plan_payments = counted_payments(plan_invoices());
    // Recomputed from the payments alone: stored credits are never increased.
    let unpaid_account = Account { plan: Plan::Free, paid: None, ..account.clone() };
    let computed = apply_payments(&unpaid_account, &plan_payments, now);
    match (account.paid, computed.paid) {
        (_, Some(_)) if !is_own_period && is_running(account, now) => None,
        // All payments were refunded.
        (Some(_), None) => is_own_period.then_some((Plan::Free, None)),
        // An outdated snapshot never shortens a paid period, unless its payment was refunded.
        (Some(known), Some(paid)) if paid.through < known.through => {
            let is_returned = |matched_invoice: &MatchedInvoice<'_>| {
                matched_invoice.is_returned() && ends_paid_period(account, matched_invoice.invoice)
            };
            (is_own_period && plan_invoices().any(is_returned)).then_some((computed.plan, computed.paid))
        }
        (Some(known), Some(paid)) if is_own_period && known.from < paid.from && paid.from < known.through => {
            tracing::error!(account = %account.id, "plan payments are incomplete; the plan is unchanged");
            None
        }
        (_, Some(_)) => Some((computed.plan, computed.paid)),
        (None, None) => None,
    }
}

/// The payments that count, in order of time.
///
/// These are unrefunded ones, and refunded ones that a later month overlaps.
fn counted_payments<'a, 'b: 'a>(
    plan_invoices: impl Iterator<Item = &'a MatchedInvoice<'b>>,
) -> Vec<PlanPayment> {
    let mut latest_first: Vec<&MatchedInvoice<'_>> = plan_invoices.collect();
    latest_first.sort_unstable_by_key(|matched_invoice| {
        std::cmp::Reverse((matched_invoice.invoice.period_start, matched_invoice.invoice.period_end))
    });
    let (mut counted, mut next_start): (Vec<PlanPayment>, Option<Timestamp>) = (Vec::new(), None);
    for matched_invoice in latest_first {
        let invoice = matched_invoice.invoice;
        let is_followed = next_start.is_some_and(|next_start| invoice.period_end > next_start);
        if matched_invoice.is_returned() && !is_followed {
            continue;
        }
        next_start = Some(invoice.period_start);
        counted.push(plan_payment(matched_invoice));
    }
    counted.reverse();
    counted
}

fn plan_payment(matched_invoice: &MatchedInvoice<'_>) -> PlanPayment {
    let MatchedInvoice { invoice, terms, .. } = matched_invoice;
    PlanPayment {
        plan: invoice.plan,
        credits: terms.credits,
        refunded_credits: matched_invoice.refunded_credits(),
        from: invoice.period_start,
        through: invoice.period_end,
    }
}

#[cfg(test)]
mod tests;
