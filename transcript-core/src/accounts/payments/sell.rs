//! Selling: an order is written, then the buyer is sent to pay.

use std::time::Duration;

use super::{CURRENCY, CheckoutPage, PATIENCE, Pack, Payments, ROUNDS_MAX, Sale, Subject, contended};
use crate::{
    accounts::{Item, Order, OrderState},
    directory::{Account, Changed, Plan},
    engine::retry::{bounded, persistently},
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, OrderId},
    limits::{Take, Taken},
};

/// How many pages an account may open in any 24 hours: each open order is asked about for weeks.
const ORDERS_PER_DAY: u32 = 50;
const DAY_MS: u64 = 24 * 3_600 * 1_000;
/// For how long the same id is the same request: a little less than replies are kept, and providers know their
/// idempotency keys.
const REPEATED_FOR: Duration = Duration::from_secs(23 * 3_600);
/// How often one id may have been used in all.
const REPEATS_MAX: u32 = 1_000;

/// An order that waits to be paid.
#[derive(Clone, PartialEq, Eq)]
pub struct Sold {
    /// The order.
    pub order: OrderId,
    /// The address of the page on which it is paid. Whoever has it may act for the buyer.
    pub checkout_url: String,
    /// Whether the page is there as long as a reply is repeated. Where it is not, the same order asks for another
    /// one: an address that was told before leads nowhere.
    pub is_lasting: bool,
}

impl std::fmt::Debug for Sold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sold").field("order", &self.order).finish_non_exhaustive()
    }
}

/// What came of wanting a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuyOutcome {
    /// A page waits.
    Opened(Sold),
    /// The account opened as many pages as it may in a day.
    Limited {
        /// After how many milliseconds there is room for one more.
        retry_after_ms: u64,
    },
}

/// What came of wanting a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscribeOutcome {
    /// A page waits: of a new subscription, or one that changes the present subscription.
    Opened(Sold),
    /// The account has this plan, and it is paid.
    HasIt,
    /// The operator gave this plan no price.
    NotSold,
    /// The account opened as many pages as it may in a day.
    Limited {
        /// After how many milliseconds there is room for one more.
        retry_after_ms: u64,
    },
}

impl Payments {
    /// Sells a pack (specification 4, buy-credits).
    ///
    /// `id` names the order: the same id gives the same order and page, for almost a day. No other kind of
    /// order may have it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when payments are not configured; [`ErrorKind::Conflict`] when the order of
    /// this id is paid, or is another one; the faults of stores and provider.
    pub async fn buy(&self, buyer: &Account, pack: Pack, id: OrderId) -> Result<BuyOutcome> {
        let item = Item::Pack(pack.name.to_owned());
        self.sell(buyer, item, pack.credits, pack.price_minor(), id).await
    }

    /// Sells a plan (specification 4, subscribe).
    ///
    /// `id` is as in [`Payments::buy`].
    ///
    /// # Errors
    /// As [`Payments::buy`].
    pub async fn subscribe(&self, buyer: &Account, plan: Plan, id: OrderId) -> Result<SubscribeOutcome> {
        self.checkout()?;
        let terms = self.parts.plans.of(plan);
        let Some(price_minor) = terms.price_cents.filter(|_| plan != Plan::Free) else {
            return Ok(SubscribeOutcome::NotSold);
        };
        // One after the other: of two pages for plans that are opened at once, both could be paid.
        self.turns
            .alone(&format!("plans of {}", buyer.id), || self.sell_plan(buyer, plan, price_minor, id))
            .await
    }

    async fn sell_plan(
        &self,
        buyer: &Account,
        plan: Plan,
        price_minor: u64,
        id: OrderId,
    ) -> Result<SubscribeOutcome> {
        // It may have waited for another page, which was paid meanwhile.
        let buyer = &self.account(&buyer.id).await?.ok_or_else(gone)?;
        // One that will not be renewed can be had again.
        let goes_on = buyer.subscription.is_some();
        if goes_on && buyer.plan == plan && buyer.paid.is_some_and(|paid| paid.through > self.now()) {
            return Ok(SubscribeOutcome::HasIt);
        }
        let credits = self.parts.plans.of(plan).credits;
        Ok(match self.sell(buyer, Item::Plan(plan), credits, price_minor, id).await? {
            BuyOutcome::Opened(sold) => SubscribeOutcome::Opened(sold),
            BuyOutcome::Limited { retry_after_ms } => SubscribeOutcome::Limited { retry_after_ms },
        })
    }

    async fn sell(
        &self,
        buyer: &Account,
        item: Item,
        credits: u64,
        amount_minor: u64,
        id: OrderId,
    ) -> Result<BuyOutcome> {
        let checkout = self.checkout()?;
        let wanted = Order {
            id,
            version: 1,
            account: buyer.id.clone(),
            item,
            credits,
            amount_minor,
            currency: CURRENCY.to_owned(),
            state: OrderState::Open,
            payment: None,
            taken_back: Vec::new(),
            created_at: self.now(),
        };
        let order = match self.write(wanted).await? {
            Ok(order) => order,
            Err(retry_after_ms) => return Ok(BuyOutcome::Limited { retry_after_ms }),
        };
        let order = self.asked_about(order).await?;
        let known = |name: &Option<String>| name.clone().filter(|name| checkout.knows(name));
        let sale = Sale {
            order: order.clone(),
            email: buyer.email.clone(),
            customer: known(&buyer.customer),
            subscription: known(&buyer.subscription),
        };
        let page = self.asked(checkout.open(sale)).await?;
        // Before the buyer can pay: what is paid is found by these.
        if let Some(customer) = &page.customer {
            self.note_customer(&buyer.id, customer).await?;
        }
        self.note_page(&order, &page).await?;
        Ok(BuyOutcome::Opened(Sold { order: order.id, checkout_url: page.url, is_lasting: page.is_lasting }))
    }

    /// An order whose page was opened before, once it is known what became of that: it may be paid without
    /// anybody having heard.
    async fn asked_about(&self, order: Order) -> Result<Order> {
        let checkout = self.checkout()?;
        let Some(payment) = order.payment.as_ref().filter(|name| checkout.knows(name)) else {
            return Ok(order);
        };
        self.follow(&Subject::new(payment.clone())).await?;
        let order = self.order(&order.id).await?;
        order.filter(|order| order.state == OrderState::Open).ok_or_else(completed)
    }

    /// Writes the order, or finds the one that was written when the same request came before; or tells how
    /// long it takes until there is room for one more.
    ///
    /// A request is not repeated for longer than replies are kept. So an order that is older was another
    /// request's, whatever its id, and this one gets the next id.
    async fn write(&self, mut wanted: Order) -> Result<std::result::Result<Order, u64>> {
        let name = wanted.id.clone();
        for number in 1..=REPEATS_MAX {
            let Some(written) = self.order(&wanted.id).await? else {
                if let Some(retry_after_ms) = self.full(&wanted).await? {
                    return Ok(Err(retry_after_ms));
                }
                persistently(PATIENCE, || self.parts.orders.open(wanted.clone())).await?;
                return Ok(Ok(wanted));
            };
            if wanted.created_at.since(written.created_at) < REPEATED_FOR {
                let same = written.account == wanted.account && written.item == wanted.item;
                return match same && written.state == OrderState::Open {
                    true => Ok(Ok(written)),
                    false => Err(completed()),
                };
            }
            wanted.id = OrderId::new(format!("{name}-{}", number + 1));
        }
        Err(completed())
    }

    /// Counts a new order of an account; when it has as many as it may, returns after how many milliseconds
    /// there is room for one more.
    async fn full(&self, order: &Order) -> Result<Option<u64>> {
        let take = Take {
            bucket: format!("orders/{}", order.account),
            count: ORDERS_PER_DAY,
            per_ms: DAY_MS,
            cost: 1,
        };
        let taken = bounded(PATIENCE.attempt, self.parts.limiter.take(vec![take], order.created_at)).await?;
        Ok(match taken {
            Taken::Allowed { .. } => None,
            Taken::Limited { retry_after_ms, .. } => Some(retry_after_ms),
        })
    }

    /// Keeps the provider's name for the buyer.
    async fn note_customer(&self, id: &AccountId, customer: &str) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let Some(account) = self.account(id).await? else {
                return Err(gone());
            };
            if account.customer.as_deref() == Some(customer) {
                return Ok(());
            }
            let named = Account { customer: Some(customer.to_owned()), ..account };
            let change = || self.parts.directory.change_account(named.clone());
            if let Changed::Changed(_) = persistently(PATIENCE, change).await? {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Keeps the provider's name for the payment.
    async fn note_page(&self, order: &Order, page: &CheckoutPage) -> Result<()> {
        let Some(payment) = &page.payment else { return Ok(()) };
        let mut read = order.clone();
        for _ in 0..ROUNDS_MAX {
            // Somebody else noted it, or the payment has gone on already.
            let is_noted = read.payment.as_deref() == Some(payment) || read.payment != order.payment;
            if is_noted || read.state != OrderState::Open {
                return Ok(());
            }
            let named = Order { payment: Some(payment.clone()), ..read.clone() };
            if self.update(&named, &read).await? {
                return Ok(());
            }
            let stored = self.order(&read.id).await?;
            read = stored.ok_or_else(|| Error::unexpected("an order that was written is gone"))?;
        }
        Err(contended())
    }
}

#[cold]
fn gone() -> Error {
    Error::new(ErrorKind::NotFound, Retry::Never, "the account is gone")
}

#[cold]
fn completed() -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, "this order was completed already, or is another one")
}
