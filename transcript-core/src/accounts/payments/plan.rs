//! Plans: an account has the plan whose invoice is paid, until the paid month ends (design 4, Payments).

use super::{PATIENCE, PaidInvoice, Payments, ROUNDS_MAX, SubscriptionState, contended, fulfil::is_as_sold};
use crate::{
    accounts::{Item, Order, OrderState},
    directory::{Account, Changed, Plan},
    engine::retry::persistently,
    error::Result,
    ids::{AccountId, OrderId},
    time::Timestamp,
};

impl Payments {
    /// Brings an account to where its subscription is. Returns whose account has to be read before the
    /// provider is asked once more, if that must be.
    ///
    /// What the provider says may be old when it is used. So the account is read first, then the provider is
    /// asked, and then the account is changed only when nobody else did meanwhile: what is stored never goes
    /// back behind what somebody else has seen.
    pub(super) async fn settle_subscription(
        &self,
        state: &SubscriptionState,
        account: Option<&Account>,
    ) -> Result<Option<AccountId>> {
        let sold = self.sold(state).await?;
        let Some(owner) = sold.first().map(|(_, order)| order.account.clone()) else {
            tracing::debug!("a subscription has no paid invoice for an order of ours");
            return Ok(None);
        };
        let Some(account) = account.filter(|account| account.id == owner) else {
            if self.account(&owner).await?.is_some() {
                return Ok(Some(owner));
            }
            tracing::error!(account = %owner, "a plan was paid whose account is gone: refund it");
            return Ok(None);
        };
        if let (Some(known), Some(payer)) = (&account.customer, &state.customer)
            && known != payer
        {
            tracing::error!(account = %owner, "a plan was paid by another customer: nothing was given");
            return Ok(None);
        }
        // Should this break off after the account was changed, the sweep finds an open order.
        for (invoice, order) in sold.iter().filter(|(invoice, _)| !invoice.first) {
            self.write_renewal(invoice, order).await?;
        }
        let changed = after(account, state, sold.iter().map(|(invoice, _)| *invoice), self.now());
        if changed != *account {
            let change = || self.parts.directory.change_account(changed.clone());
            match persistently(PATIENCE, change).await? {
                Changed::Changed(now) => {
                    tracing::info!(account = %now.id, plan = now.plan.as_str(), "an account's plan has changed");
                }
                Changed::Stale => return Ok(Some(owner)),
                Changed::Missing => return Ok(None),
            }
        }
        for (invoice, _) in sold {
            self.record(invoice).await?;
        }
        Ok(None)
    }

    /// The invoices that are paid as they were sold, each with the order under which it was.
    async fn sold<'a>(&self, state: &'a SubscriptionState) -> Result<Vec<(&'a PaidInvoice, Order)>> {
        let mut sold = Vec::new();
        for invoice in &state.invoices {
            let Some(order) = self.order(&invoice.order).await? else { continue };
            if order.item != Item::Plan(invoice.plan) {
                tracing::error!(order = %order.id, "another plan was paid than was sold: nothing was given");
            } else if is_as_sold(&order, &invoice.money) {
                sold.push((invoice, order));
            }
        }
        let owner = sold.first().map(|(_, order)| order.account.clone());
        if sold.iter().any(|(_, order)| Some(&order.account) != owner.as_ref()) {
            tracing::error!("a subscription has orders of several accounts: nothing was given");
            sold.clear();
        }
        Ok(sold)
    }

    /// Gives a renewal an order of its own.
    async fn write_renewal(&self, invoice: &PaidInvoice, sold: &Order) -> Result<()> {
        let renewal = Order {
            id: record_of(invoice),
            version: 1,
            state: OrderState::Open,
            payment: Some(invoice.invoice.clone()),
            taken_back: Vec::new(),
            created_at: invoice.created_at,
            ..sold.clone()
        };
        persistently(PATIENCE, || self.parts.orders.open(renewal.clone())).await
    }

    /// Keeps what became of an invoice, in its order.
    async fn record(&self, invoice: &PaidInvoice) -> Result<()> {
        let id = record_of(invoice);
        for _ in 0..ROUNDS_MAX {
            let Some(order) = self.order(&id).await? else { return Ok(()) };
            let Some(order) = self.plan_taking_back(&order, &invoice.money).await? else { continue };
            if self.conclude(&order, &invoice.money).await? {
                return Ok(());
            }
        }
        Err(contended())
    }
}

/// The order in which it is kept what became of an invoice.
fn record_of(invoice: &PaidInvoice) -> OrderId {
    match invoice.first {
        true => invoice.order.clone(),
        false => OrderId::new(invoice.invoice.clone()),
    }
}

/// The account as it is once these invoices of a subscription are known.
fn after<'a>(
    account: &Account,
    state: &SubscriptionState,
    invoices: impl Iterator<Item = &'a PaidInvoice> + Clone,
    now: Timestamp,
) -> Account {
    let live = invoices.clone().filter(|invoice| invoice.period_end > now && !invoice.money.is_returned());
    if let Some(best) = live.max_by_key(|invoice| (invoice.period_end, invoice.plan)) {
        if !takes_over(account, state, now) {
            return account.clone();
        }
        return Account {
            plan: best.plan,
            anchor: state.anchor,
            paid_through: Some(best.period_end),
            subscription: Some(state.subscription.clone()),
            customer: state.customer.clone().or_else(|| account.customer.clone()),
            ..account.clone()
        };
    }
    // Nothing is paid any more: the plan ends at once when the month that it rests on was refunded, and by
    // itself when the month is over.
    let rests_on = |invoice: &PaidInvoice| {
        account.subscription.as_ref() == Some(&state.subscription)
            && account.paid_through == Some(invoice.period_end)
    };
    match invoices.into_iter().any(|invoice| rests_on(invoice) && invoice.money.is_returned()) {
        true => Account { plan: Plan::Free, paid_through: None, ..account.clone() },
        false => account.clone(),
    }
}

/// Whether a subscription that is paid decides about the account's plan.
///
/// Nobody should have two. Should two be paid all the same, the one that began later does, whichever is
/// heard of first.
fn takes_over(account: &Account, state: &SubscriptionState, now: Timestamp) -> bool {
    let Some(present) = &account.subscription else { return true };
    let is_paid = account.paid_through.is_some_and(|end| end > now);
    if *present == state.subscription || !is_paid || state.replaces.as_ref() == Some(present) {
        return true;
    }
    tracing::error!(account = %account.id, "an account pays for two subscriptions at once: end one of them");
    (state.anchor, &state.subscription) > (account.anchor, present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{accounts::payments::Money, ids::WalletId};

    const DAY: i64 = 86_400_000;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * DAY)
    }

    fn free() -> Account {
        Account {
            id: AccountId::new("a"),
            version: 1,
            email: "ann@example.org".to_owned(),
            wallet: WalletId::new("w"),
            plan: Plan::Free,
            anchor: day(0),
            paid_through: None,
            customer: Some("cus_1".to_owned()),
            subscription: None,
            blocked: false,
        }
    }

    fn invoice(plan: Plan, start: i64, end: i64, returned_minor: u64) -> PaidInvoice {
        PaidInvoice {
            invoice: format!("in_{start}"),
            order: OrderId::new("o"),
            first: true,
            plan,
            created_at: day(start),
            period_start: day(start),
            period_end: day(end),
            money: Money {
                amount_minor: 900,
                currency: "usd".to_owned(),
                paid_minor: 900,
                returned_minor,
                disputed: false,
            },
        }
    }

    fn subscription(name: &str, anchor: i64, invoices: Vec<PaidInvoice>) -> SubscriptionState {
        SubscriptionState {
            subscription: name.to_owned(),
            customer: Some("cus_1".to_owned()),
            anchor: day(anchor),
            replaces: None,
            invoices,
        }
    }

    fn check(
        account: Account,
        state: &SubscriptionState,
        now: i64,
        expect: (Plan, Option<i64>, i64),
    ) -> Account {
        let found = after(&account, state, state.invoices.iter(), day(now));
        let (plan, paid_through, anchor) = expect;
        let shape = (found.plan, found.paid_through, found.anchor);
        assert_eq!(shape, (plan, paid_through.map(day), day(anchor)));
        found
    }

    #[test]
    fn a_paid_month_starts_the_plan_and_the_next_one_extends_it() {
        let state = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 0)]);
        let account = check(free(), &state, 11, (Plan::Starter, Some(40), 10));
        assert_eq!(account.subscription.as_deref(), Some("sub_1"));
        let both = vec![invoice(Plan::Starter, 40, 70, 0), invoice(Plan::Starter, 10, 40, 0)];
        check(account, &subscription("sub_1", 10, both), 39, (Plan::Starter, Some(70), 10));
    }

    #[test]
    fn a_month_that_is_over_changes_nothing() {
        let state = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 0)]);
        check(free(), &state, 40, (Plan::Free, None, 0));
    }

    #[test]
    fn an_upgrade_counts_months_anew() {
        let one = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 0)]);
        let account = check(free(), &one, 11, (Plan::Starter, Some(40), 10));
        let invoices = vec![invoice(Plan::Starter, 10, 40, 0), invoice(Plan::Pro, 20, 50, 0)];
        check(account, &subscription("sub_1", 20, invoices), 21, (Plan::Pro, Some(50), 20));
    }

    #[test]
    fn a_refunded_month_ends_the_plan_or_leaves_the_one_below_it() {
        let paid = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 0)]);
        let account = check(free(), &paid, 11, (Plan::Starter, Some(40), 10));
        let part = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 899)]);
        let account = check(account, &part, 12, (Plan::Starter, Some(40), 10));
        let refunded = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 900)]);
        let ended = check(account, &refunded, 12, (Plan::Free, None, 10));
        check(ended, &refunded, 12, (Plan::Free, None, 10));
        // An upgrade whose money went back leaves the month below it.
        let invoices = vec![invoice(Plan::Starter, 10, 40, 0), invoice(Plan::Pro, 20, 50, 900)];
        check(free(), &subscription("sub_1", 20, invoices), 21, (Plan::Starter, Some(40), 20));
    }

    #[test]
    fn an_old_months_refund_leaves_the_present_one() {
        let invoices = vec![invoice(Plan::Starter, 40, 70, 0)];
        let account = check(free(), &subscription("sub_1", 10, invoices), 41, (Plan::Starter, Some(70), 10));
        let old = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 900)]);
        check(account, &old, 41, (Plan::Starter, Some(70), 10));
    }

    #[test]
    fn of_two_subscriptions_the_later_one_decides_whichever_is_heard_of_first() {
        let one = subscription("sub_1", 10, vec![invoice(Plan::Starter, 10, 40, 0)]);
        let two = subscription("sub_2", 12, vec![invoice(Plan::Pro, 12, 42, 0)]);
        for order in [[&one, &two], [&two, &one]] {
            let account = order
                .iter()
                .fold(free(), |account, state| after(&account, state, state.invoices.iter(), day(13)));
            assert_eq!((account.plan, account.subscription.as_deref()), (Plan::Pro, Some("sub_2")));
        }
        // Once it has run out, the other one counts.
        let account = after(&free(), &two, two.invoices.iter(), day(13));
        let later = subscription("sub_1", 10, vec![invoice(Plan::Starter, 40, 70, 0)]);
        check(account, &later, 43, (Plan::Starter, Some(70), 10));
    }
}
