//! Plans: an account has the plan whose invoice is paid, until the paid month ends (design 4, Payments).
//!
//! What a stretch of a plan gives is worked out anew from all payments that it is made of, each time that
//! something is heard of one: so a refund of any of them counts, whenever it comes. As long as a stretch runs,
//! only the subscription that it is of changes it. Nobody should have two; what is paid for another one
//! meanwhile is given beside it, as credits that do not expire.

use std::time::Duration;

use super::{
    CURRENCY, Money, PATIENCE, PaidInvoice, Payments, ROUNDS_MAX, SubscriptionState, contended,
    fulfil::is_as_sold,
};
use crate::{
    accounts::{Item, Order, OrderState, PlanPayment, after_payments, plans::anchor_before},
    directory::{Account, Changed, PaidPeriod, Plan},
    engine::retry::persistently,
    error::Result,
    ids::{AccountId, OrderId},
    time::Timestamp,
};

/// A month that begins later than this is given when it begins, so that nothing of the present one is cut short.
const CLOCKS_APART: Duration = Duration::from_secs(3_600);

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
        let mut sold = self.sold(state).await?;
        let Some(owner) = sold.first().map(|one| one.terms.account.clone()) else {
            tracing::debug!("a subscription has no paid invoice of ours");
            return Ok(None);
        };
        let Some(account) = account.filter(|account| account.id == owner) else {
            if self.account(&owner).await?.is_some() {
                return Ok(Some(owner));
            }
            let (subscription, invoice) =
                (&state.subscription, state.invoices.last().map(|one| one.invoice.as_str()));
            tracing::error!(account = %owner, %subscription, invoice, "a plan was paid whose account is gone: refund it");
            return Ok(None);
        };
        if let (Some(known), Some(payer)) = (&account.customer, &state.customer)
            && known != payer
        {
            tracing::error!(account = %owner, "a plan was paid by another customer: nothing was given");
            return Ok(None);
        }
        // Should this break off after the account was changed, the sweep finds an open order.
        for one in sold.iter().filter(|one| !one.is_first && one.record.is_none()) {
            self.write_renewal(one).await?;
        }
        let now = self.now();
        sold.retain(|one| has_begun(one.invoice, now));
        let is_beside = is_running(account, now) && !is_own(account, state, &sold);
        if is_beside {
            self.set_aside(account, state, &mut sold).await?;
        }
        let changed = after(account, state, &sold, now);
        // What was set aside is given only when it is sure that nobody gave it to the plan meanwhile: whoever
        // did changed the account, and whoever comes later finds it set aside.
        if changed != *account || sold.iter().any(|one| one.waits_aside(account, state)) {
            let change = || self.parts.directory.change_account(changed.clone());
            match persistently(PATIENCE, change).await? {
                Changed::Changed(now) => {
                    tracing::info!(account = %now.id, plan = now.plan.as_str(), "an account's plan was paid");
                }
                Changed::Stale => return Ok(Some(owner)),
                Changed::Missing => return Ok(None),
            }
        }
        for one in &sold {
            self.keep(one, account, state).await?;
        }
        Ok(None)
    }

    /// The invoices that are paid as they were sold.
    async fn sold<'a>(&self, state: &'a SubscriptionState) -> Result<Vec<Sold<'a>>> {
        let mut sold = Vec::new();
        for invoice in &state.invoices {
            let sale = match &invoice.order {
                Some(id) => self.order(id).await?,
                None => None,
            };
            let is_first = invoice.first && sale.is_some();
            let record = match is_first {
                true => sale.clone(),
                false => self.order(&OrderId::new(invoice.invoice.clone())).await?,
            };
            // What a renewal was recorded with stays, whatever is sold by now.
            let terms = match record.as_ref().or(sale.as_ref()) {
                Some(order) => Some(order.clone()),
                None => self.listed(state, invoice).await?,
            };
            let Some(terms) = terms else { continue };
            if terms.item != Item::Plan(invoice.plan) {
                tracing::error!(order = %terms.id, "another plan was paid than was sold: nothing was given");
            } else if is_as_sold(&terms, &invoice.money) {
                let aside = self.order(&aside_of(invoice)).await?;
                sold.push(Sold { invoice, is_first, terms, sale, record, aside });
            }
        }
        let owner = sold.first().map(|one| one.terms.account.clone());
        if sold.iter().any(|one| Some(&one.terms.account) != owner.as_ref()) {
            tracing::error!("a subscription has orders of several accounts: nothing was given");
            sold.clear();
        }
        Ok(sold)
    }

    /// What an invoice would have been sold as that names no order of ours: the plan was picked at the provider,
    /// by the buyer or the operator. None when that is not what it costs.
    async fn listed(&self, state: &SubscriptionState, invoice: &PaidInvoice) -> Result<Option<Order>> {
        let Some(customer) = &state.customer else { return Ok(None) };
        let Some(account) = self.account_of_customer(customer).await? else {
            tracing::debug!("a plan was paid by nobody that is known here");
            return Ok(None);
        };
        let listed = self.parts.plans.of(invoice.plan);
        let Money { amount_minor, currency, .. } = &invoice.money;
        if listed.price_cents != Some(*amount_minor) || currency != CURRENCY {
            tracing::error!(
                account = %account.id,
                invoice = %invoice.invoice,
                paid = amount_minor,
                "a plan was paid that nobody ordered, and not with what it costs: nothing was given"
            );
            return Ok(None);
        }
        tracing::warn!(account = %account.id, invoice = %invoice.invoice, "a plan was paid that was picked at the provider");
        Ok(Some(Order {
            id: OrderId::new(invoice.invoice.clone()),
            version: 1,
            account: account.id,
            item: Item::Plan(invoice.plan),
            credits: listed.credits,
            amount_minor: *amount_minor,
            currency: currency.clone(),
            state: OrderState::Open,
            payment: None,
            taken_back: Vec::new(),
            created_at: invoice.created_at,
        }))
    }

    /// Gives a renewal an order of its own.
    async fn write_renewal(&self, one: &Sold<'_>) -> Result<()> {
        let renewal = one.copy(one.record_id());
        persistently(PATIENCE, || self.parts.orders.open(renewal.clone())).await
    }

    /// Sets aside what was paid beside the plan that runs, so that it is given as credits.
    async fn set_aside(
        &self,
        account: &Account,
        state: &SubscriptionState,
        sold: &mut [Sold<'_>],
    ) -> Result<()> {
        if account.subscription.is_some() && !follows(account, state) && !state.is_ended {
            tracing::error!(account = %account.id, "an account pays for two subscriptions at once: end one of them");
        }
        for one in sold.iter_mut().filter(|one| one.is_new()) {
            let aside = one.copy(aside_of(one.invoice));
            persistently(PATIENCE, || self.parts.orders.open(aside.clone())).await?;
            one.aside = Some(aside);
        }
        Ok(())
    }

    /// Keeps what became of an invoice, and gives what was set aside.
    async fn keep(&self, one: &Sold<'_>, account: &Account, state: &SubscriptionState) -> Result<()> {
        if let Some(aside) = &one.aside {
            self.settle_aside(aside, one, one.is_of_plan(account, state)).await?;
        }
        self.record(&one.record_id(), one.invoice).await?;
        // A change that waited for the month's end comes with a renewal.
        let waited = one.sale.as_ref().filter(|sale| !one.is_first && !is_recorded(sale));
        match waited {
            Some(sale) => self.record(&sale.id, one.invoice).await,
            None => Ok(()),
        }
    }

    /// Gives what was set aside, or ends that when somebody else gave it to the plan before it was set aside.
    async fn settle_aside(&self, aside: &Order, one: &Sold<'_>, is_of_plan: bool) -> Result<()> {
        // It is the invoice's own order that a dispute is told of.
        let money = Money { disputed: false, ..one.invoice.money.clone() };
        for _ in 0..ROUNDS_MAX {
            let Some(aside) = self.order(&aside.id).await? else { return Ok(()) };
            let is_settled = match is_of_plan {
                true => self.end(&aside).await?,
                false => self.give(&aside, &money).await?,
            };
            if is_settled {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Keeps what became of an invoice, in this order.
    async fn record(&self, id: &OrderId, invoice: &PaidInvoice) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let Some(order) = self.order(id).await? else { return Ok(()) };
            let Some(order) = self.plan_taking_back(&order, &invoice.money).await? else { continue };
            if self.conclude(&order, &invoice.money).await? {
                return Ok(());
            }
        }
        Err(contended())
    }
}

/// The order under which an invoice is given as credits.
pub(super) fn aside_of(invoice: &PaidInvoice) -> OrderId {
    OrderId::new(format!("{}-beside", invoice.invoice))
}

pub(super) fn is_recorded(order: &Order) -> bool {
    !matches!(order.state, OrderState::Open | OrderState::Expired)
}

/// An invoice that is paid as it was sold.
struct Sold<'a> {
    invoice: &'a PaidInvoice,
    /// Whether it is the own payment of the order that it names.
    is_first: bool,
    /// What was sold with it, as an order.
    terms: Order,
    /// The order that it names.
    sale: Option<Order>,
    /// The order in which it is kept what became of it.
    record: Option<Order>,
    /// The order under which it is given as credits, where it is.
    aside: Option<Order>,
}

impl Sold<'_> {
    /// The order in which it is kept what became of it: the one that was paid with it, or one of its own.
    fn record_id(&self) -> OrderId {
        match self.sale.as_ref().filter(|_| self.is_first) {
            Some(sale) => sale.id.clone(),
            None => OrderId::new(self.invoice.invoice.clone()),
        }
    }

    /// Whether it counts for the account's plan, rather than being given beside it.
    fn is_of_plan(&self, account: &Account, state: &SubscriptionState) -> bool {
        match self.aside.as_ref().map(|aside| aside.state) {
            None | Some(OrderState::Expired) => true,
            // Set aside by somebody who did not know yet that the plan had it already.
            Some(OrderState::Open) => follows(account, state) && ends_with(account, self.invoice),
            Some(_) => false,
        }
    }

    fn waits_aside(&self, account: &Account, state: &SubscriptionState) -> bool {
        let is_open = self.aside.as_ref().is_some_and(|aside| aside.state == OrderState::Open);
        is_open && !self.is_of_plan(account, state)
    }

    /// Whether nothing was given for it yet that is still to be given.
    fn is_new(&self) -> bool {
        self.aside.is_none()
            && !self.record.as_ref().is_some_and(is_recorded)
            && !self.invoice.money.is_returned()
    }

    /// The same sale under another id, which is not paid yet.
    fn copy(&self, id: OrderId) -> Order {
        Order {
            id,
            version: 1,
            state: OrderState::Open,
            payment: Some(self.invoice.invoice.clone()),
            taken_back: Vec::new(),
            created_at: self.invoice.created_at,
            ..self.terms.clone()
        }
    }
}

/// Whether an invoice's month has begun: what is paid for later is given then.
pub(super) fn has_begun(invoice: &PaidInvoice, now: Timestamp) -> bool {
    invoice.period_start <= now.plus(CLOCKS_APART)
}

/// Whether a stretch of a plan that is paid runs now.
pub(super) fn is_running(account: &Account, now: Timestamp) -> bool {
    account.plan != Plan::Free && account.paid.is_some_and(|paid| now < paid.through)
}

/// Whether a subscription is the account's, or takes its place.
fn follows(account: &Account, state: &SubscriptionState) -> bool {
    let present = account.subscription.as_ref();
    present.is_some_and(|present| *present == state.subscription || Some(present) == state.replaces.as_ref())
}

fn ends_with(account: &Account, invoice: &PaidInvoice) -> bool {
    account.paid.is_some_and(|paid| invoice.period_end == paid.through)
}

/// Whether the account's paid stretch is of this subscription.
///
/// The account's subscription may be another one by now, or none: the stretch is of the one whose invoice ends
/// with it, and was given.
fn is_own(account: &Account, state: &SubscriptionState, sold: &[Sold<'_>]) -> bool {
    let follows = follows(account, state);
    sold.iter().filter(|one| one.is_of_plan(account, state)).any(|one| {
        let is_given = follows || one.record.as_ref().is_some_and(is_recorded);
        // Its next month may be heard of a moment before it begins.
        let is_next = follows && account.paid.is_some_and(|paid| one.invoice.period_start == paid.through);
        is_next || is_given && ends_with(account, one.invoice)
    })
}

/// The account as it is once a subscription is known to stand like this.
fn after(account: &Account, state: &SubscriptionState, sold: &[Sold<'_>], now: Timestamp) -> Account {
    let stretch = stretch(account, state, sold, now);
    let follows = follows(account, state);
    let subscription = match (state.is_ended, &account.subscription) {
        (true, present) => present.clone().filter(|_| !follows),
        (false, Some(present)) if stretch.is_none() && !follows => Some(present.clone()),
        (false, _) => Some(state.subscription.clone()),
    };
    let mut changed = Account {
        subscription,
        customer: account.customer.clone().or_else(|| state.customer.clone()),
        ..account.clone()
    };
    if let Some((plan, paid)) = stretch {
        (changed.plan, changed.paid) = (plan, paid);
        match (&mut changed.paid, account.paid) {
            (Some(paid), _) => {
                paid.anchor_before = anchor_before(account, paid);
                changed.anchor = state.anchor;
            }
            // What went back whole is no payment: the month before it goes on, and what was used in it stays
            // used. Once the stretch is over, months were counted from it.
            (None, Some(known)) if now < known.through => changed.anchor = known.anchor_before,
            (None, _) => {}
        }
    }
    changed
}

/// The plan and the paid stretch that a subscription's payments make, where it is for them to decide.
fn stretch(
    account: &Account,
    state: &SubscriptionState,
    sold: &[Sold<'_>],
    now: Timestamp,
) -> Option<(Plan, Option<PaidPeriod>)> {
    let of_plan = || sold.iter().filter(|one| one.is_of_plan(account, state));
    let is_own = is_own(account, state, sold);
    let kept = payments(of_plan());
    // Worked out from nothing but what was paid: what is stored is never added to.
    let nothing = Account { plan: Plan::Free, paid: None, ..account.clone() };
    let made = after_payments(&nothing, &kept, now);
    match (account.paid, made.paid) {
        (_, Some(_)) if !is_own && is_running(account, now) => None,
        // Everything went back.
        (Some(_), None) => is_own.then_some((Plan::Free, None)),
        // Old news never shorten what was paid, unless its money went back.
        (Some(known), Some(paid)) if paid.through < known.through => {
            let is_returned =
                |one: &Sold<'_>| one.invoice.money.is_returned() && ends_with(account, one.invoice);
            (is_own && of_plan().any(is_returned)).then_some((made.plan, made.paid))
        }
        (Some(known), Some(paid)) if is_own && known.from < paid.from && paid.from < known.through => {
            tracing::error!(account = %account.id, "not all payments of a plan are told: it stays as it is");
            None
        }
        (_, Some(_)) => Some((made.plan, made.paid)),
        (None, None) => None,
    }
}

/// The payments that count, in the order of time: what was kept, and what went back of the beginning of that.
fn payments<'a, 'b: 'a>(of_plan: impl Iterator<Item = &'a Sold<'b>>) -> Vec<PlanPayment> {
    let mut latest_first: Vec<&Sold<'_>> = of_plan.collect();
    latest_first
        .sort_unstable_by_key(|one| std::cmp::Reverse((one.invoice.period_start, one.invoice.period_end)));
    let (mut counted, mut begun): (Vec<PlanPayment>, Option<Timestamp>) = (Vec::new(), None);
    for one in latest_first {
        let invoice = one.invoice;
        let is_followed = begun.is_some_and(|begun| invoice.period_end > begun);
        if invoice.money.is_returned() && !is_followed {
            continue;
        }
        begun = Some(invoice.period_start);
        counted.push(payment(one));
    }
    counted.reverse();
    counted
}

fn payment(Sold { invoice, terms, .. }: &Sold<'_>) -> PlanPayment {
    PlanPayment {
        plan: invoice.plan,
        credits: terms.credits,
        credits_back: invoice.money.credits_back(terms.credits),
        from: invoice.period_start,
        through: invoice.period_end,
    }
}

#[cfg(test)]
mod tests;
