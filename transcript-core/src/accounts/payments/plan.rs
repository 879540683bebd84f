//! Plans: an account has the plan whose invoice is paid, until the paid month ends (design 4, Payments).

use super::{PATIENCE, PaidInvoice, Payments, ROUNDS_MAX, SubscriptionState, contended, fulfil::is_as_sold};
use crate::{
    accounts::{Item, Order, OrderState, PlanPayment, after_payments},
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
        let changed = after(account, state, &sold, self.now());
        if changed != *account {
            let change = || self.parts.directory.change_account(changed.clone());
            match persistently(PATIENCE, change).await? {
                Changed::Changed(now) => {
                    tracing::info!(account = %now.id, plan = now.plan.as_str(), "an account's plan was paid");
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
    async fn sold<'a>(&self, state: &'a SubscriptionState) -> Result<Vec<Sold<'a>>> {
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

/// An invoice that is paid as it was sold, and the order under which it was.
type Sold<'a> = (&'a PaidInvoice, Order);

/// The account as it is once a subscription is known to stand like this.
fn after(account: &Account, state: &SubscriptionState, sold: &[Sold<'_>], now: Timestamp) -> Account {
    let kept: Vec<PlanPayment> =
        sold.iter().filter(|(invoice, _)| !invoice.money.is_returned()).map(payment).collect();
    let end = kept.iter().map(|payment| payment.through).max();
    let is_returned = rests_on_returned(account, state, sold);
    if !is_returned && !decides(account, state, end, now) {
        return account.clone();
    }
    // A subscription that is another one's successor by the provider's own doing goes on with what that gave.
    let goes_on = account.subscription.is_none()
        || account.subscription.as_ref() == Some(&state.subscription)
        || account.subscription == state.replaces;
    let base = match is_returned || !goes_on {
        true => Account { plan: Plan::Free, paid: None, ..account.clone() },
        false => account.clone(),
    };
    let paid = after_payments(&base, &kept, now);
    Account {
        anchor: if end.is_some() { state.anchor } else { paid.anchor },
        subscription: (!state.is_ended).then(|| state.subscription.clone()),
        customer: state.customer.clone().or_else(|| account.customer.clone()),
        ..paid
    }
}

fn payment((invoice, order): &Sold<'_>) -> PlanPayment {
    PlanPayment {
        plan: invoice.plan,
        credits: order.credits,
        credits_back: invoice.money.credits_back(order.credits),
        from: invoice.period_start,
        through: invoice.period_end,
    }
}

/// Whether the money for the month that the account's plan rests on went back: then the plan ends at once.
fn rests_on_returned(account: &Account, state: &SubscriptionState, sold: &[Sold<'_>]) -> bool {
    let is_own = account.subscription.as_ref().is_none_or(|present| *present == state.subscription);
    let end = account.paid.map(|paid| paid.through);
    is_own
        && sold.iter().any(|(invoice, _)| invoice.money.is_returned() && Some(invoice.period_end) == end)
        // Another payment may reach as far.
        && !sold.iter().any(|(invoice, _)| !invoice.money.is_returned() && Some(invoice.period_end) == end)
}

/// Whether a subscription that is paid until `end` decides about the account's plan.
///
/// Nobody should have two. Should two be paid all the same, the one that began later does, whichever is
/// heard of first.
fn decides(account: &Account, state: &SubscriptionState, end: Option<Timestamp>, now: Timestamp) -> bool {
    let present = account.subscription.as_ref();
    let is_own = present == Some(&state.subscription);
    let Some(end) = end else { return is_own };
    // Old news never shorten what was paid.
    let reaches = account.paid.is_none_or(|paid| end >= paid.through);
    let Some(other) = present.filter(|_| !is_own && present != state.replaces.as_ref()) else {
        return reaches;
    };
    if account.paid.is_none_or(|paid| paid.through <= now) {
        return reaches;
    }
    if end <= now {
        return false;
    }
    tracing::error!(account = %account.id, "an account pays for two subscriptions at once: end one of them");
    (state.anchor, &state.subscription) > (account.anchor, other)
}

#[cfg(test)]
mod tests {
    use Plan::{Free, Pro, Starter};

    use super::*;
    use crate::{accounts::payments::Money, directory::PaidPeriod, ids::WalletId};

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * 86_400_000)
    }

    fn free() -> Account {
        Account {
            id: AccountId::new("a"),
            version: 1,
            email: "ann@example.org".to_owned(),
            wallet: WalletId::new("w"),
            plan: Free,
            anchor: day(0),
            paid: None,
            customer: Some("cus_1".to_owned()),
            subscription: None,
            blocked: false,
        }
    }

    /// A paid month: plan, start, end, and how much of the 900 cents went back.
    type Month = (Plan, i64, i64, u64);

    fn credits(plan: Plan) -> u64 {
        if plan == Pro { 10_000 } else { 2_000 }
    }

    fn invoice((plan, start, end, returned_minor): Month) -> PaidInvoice {
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

    fn order(plan: Plan) -> Order {
        Order {
            id: OrderId::new("o"),
            version: 1,
            account: AccountId::new("a"),
            item: Item::Plan(plan),
            credits: credits(plan),
            amount_minor: 900,
            currency: "usd".to_owned(),
            state: OrderState::Open,
            payment: None,
            taken_back: Vec::new(),
            created_at: day(0),
        }
    }

    fn subscription(name: &str, anchor: i64, months: &[Month]) -> SubscriptionState {
        SubscriptionState {
            subscription: name.to_owned(),
            customer: Some("cus_1".to_owned()),
            anchor: day(anchor),
            is_ended: false,
            replaces: None,
            invoices: months.iter().copied().map(invoice).collect(),
        }
    }

    fn heard(account: &Account, state: &SubscriptionState, now: i64) -> Account {
        let sold: Vec<Sold<'_>> =
            state.invoices.iter().map(|invoice| (invoice, order(invoice.plan))).collect();
        after(account, state, &sold, day(now))
    }

    fn check(account: &Account, plan: Plan, paid: Option<(i64, i64, u64)>, anchor: i64) {
        let found = account.paid.map(|PaidPeriod { from, through, credits, .. }| (from, through, credits));
        let paid = paid.map(|(from, through, credits)| (day(from), day(through), credits));
        assert_eq!((account.plan, found, account.anchor), (plan, paid, day(anchor)));
    }

    #[test]
    fn a_paid_month_starts_the_plan_and_the_next_one_goes_on() {
        let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
        check(&account, Starter, Some((10, 40, 2_000)), 10);
        assert_eq!(account.subscription.as_deref(), Some("sub_1"));
        let next = subscription("sub_1", 10, &[(Starter, 40, 70, 0), (Starter, 10, 40, 0)]);
        let account = heard(&account, &next, 40);
        check(&account, Starter, Some((40, 70, 2_000)), 10);
        assert_eq!(heard(&account, &next, 41), account, "told again");
    }

    #[test]
    fn old_news_never_shorten_what_is_paid() {
        let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 40, 70, 0)]), 41);
        for name in ["sub_1", "sub_0"] {
            for returned in [0, 900] {
                let old = subscription(name, 10, &[(Starter, 10, 40, returned)]);
                assert_eq!(heard(&account, &old, 75), account, "{name} {returned}");
            }
        }
    }

    #[test]
    fn an_ended_subscription_is_paid_until_its_month_ends_and_then_no_more() {
        let mut state = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
        let account = heard(&free(), &state, 11);
        state.is_ended = true;
        let account = heard(&account, &state, 20);
        check(&account, Starter, Some((10, 40, 2_000)), 10);
        assert_eq!(account.subscription, None, "there is no grace for what will not be paid");
        assert_eq!(heard(&account, &state, 41), account);
        // Its money goes back as well, in whichever order it is heard.
        let returned = SubscriptionState { invoices: vec![invoice((Starter, 10, 40, 900))], ..state.clone() };
        let ended = heard(&account, &returned, 21);
        check(&ended, Free, None, 10);
        assert_eq!(heard(&ended, &returned, 21), ended);
    }

    #[test]
    fn an_upgrade_counts_months_anew_and_forgets_nothing_that_was_used() {
        let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
        let months = [(Starter, 10, 40, 0), (Pro, 25, 55, 0)];
        let upgraded = heard(&account, &subscription("sub_1", 25, &months), 25);
        check(&upgraded, Pro, Some((10, 55, 11_000)), 25);
        assert_eq!(
            heard(&free(), &subscription("sub_1", 25, &months), 25).paid,
            upgraded.paid,
            "heard at once"
        );
    }

    #[test]
    fn a_refund_takes_back_in_proportion_and_ends_the_plan_when_it_is_whole() {
        let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
        let part = subscription("sub_1", 10, &[(Starter, 10, 40, 300)]);
        let account = heard(&account, &part, 12);
        check(&account, Starter, Some((10, 40, 1_334)), 10);
        assert_eq!(heard(&account, &part, 13), account, "told again");
        let whole = subscription("sub_1", 10, &[(Starter, 10, 40, 900)]);
        let ended = heard(&account, &whole, 12);
        check(&ended, Free, None, 10);
        assert_eq!(heard(&ended, &whole, 12), ended, "told again");
        // An upgrade whose money went back leaves the month below it.
        let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 0)];
        let account = heard(&free(), &subscription("sub_1", 20, &months), 21);
        let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 900)];
        check(&heard(&account, &subscription("sub_1", 20, &months), 21), Starter, Some((10, 40, 2_000)), 20);
    }

    #[test]
    fn of_two_subscriptions_the_later_one_decides_whichever_is_heard_of_first() {
        let one = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
        let two = subscription("sub_2", 12, &[(Pro, 12, 42, 0)]);
        for [first, second] in [[&one, &two], [&two, &one]] {
            let account = heard(&heard(&free(), first, 13), second, 13);
            check(&account, Pro, Some((12, 42, 10_000)), 12);
            assert_eq!(account.subscription.as_deref(), Some("sub_2"));
        }
        // Once it has run out, the other one counts.
        let later = subscription("sub_1", 10, &[(Starter, 40, 70, 0)]);
        check(&heard(&heard(&free(), &two, 13), &later, 43), Starter, Some((40, 70, 2_000)), 10);
        // A successor is no second one.
        let successor = SubscriptionState { replaces: Some("sub_1".to_owned()), ..two };
        let account = heard(&heard(&free(), &one, 13), &successor, 13);
        assert_eq!((account.plan, account.paid.map(|paid| paid.from)), (Pro, Some(day(10))));
    }
}
