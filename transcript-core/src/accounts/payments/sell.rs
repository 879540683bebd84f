//! Selling: an order is written, then the buyer is sent to pay.

use super::{CURRENCY, CheckoutPage, PATIENCE, Pack, Payments, ROUNDS_MAX, Sale, contended};
use crate::{
    accounts::{Item, Order, OrderState},
    directory::{Account, Changed, Plan},
    engine::retry::persistently,
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, OrderId},
};

/// An order that waits to be paid.
#[derive(Clone, PartialEq, Eq)]
pub struct Sold {
    /// The order.
    pub order: OrderId,
    /// The address of the page on which it is paid. Whoever has it may act for the buyer.
    pub checkout_url: String,
}

impl std::fmt::Debug for Sold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sold").field("order", &self.order).finish_non_exhaustive()
    }
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
}

impl Payments {
    /// Sells a pack (specification 4, buy-credits).
    ///
    /// `id` names the order: the same id gives the same order and page. No other order may have it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when payments are not configured; [`ErrorKind::Conflict`] when the order of
    /// this id is paid, or is another one; the faults of stores and provider.
    pub async fn buy(&self, buyer: &Account, pack: Pack, id: OrderId) -> Result<Sold> {
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
        if buyer.plan == plan && buyer.paid.is_some_and(|paid| paid.through > self.now()) {
            return Ok(SubscribeOutcome::HasIt);
        }
        let sold = self.sell(buyer, Item::Plan(plan), terms.credits, price_minor, id).await?;
        Ok(SubscribeOutcome::Opened(sold))
    }

    async fn sell(
        &self,
        buyer: &Account,
        item: Item,
        credits: u64,
        amount_minor: u64,
        id: OrderId,
    ) -> Result<Sold> {
        let checkout = self.checkout()?;
        let order = self.write(buyer, item, credits, amount_minor, id).await?;
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
        Ok(Sold { order: order.id, checkout_url: page.url })
    }

    /// Writes the order, or finds the one that was written when the same request came before.
    async fn write(
        &self,
        buyer: &Account,
        item: Item,
        credits: u64,
        amount_minor: u64,
        id: OrderId,
    ) -> Result<Order> {
        if let Some(written) = self.order(&id).await? {
            let same = written.account == buyer.id && written.item == item;
            return match same && written.state == OrderState::Open {
                true => Ok(written),
                false => Err(Error::new(
                    ErrorKind::Conflict,
                    Retry::Never,
                    "this order was completed already, or is another one",
                )),
            };
        }
        let order = Order {
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
        persistently(PATIENCE, || self.parts.orders.open(order.clone())).await?;
        Ok(order)
    }

    /// Keeps the provider's name for the buyer.
    async fn note_customer(&self, id: &AccountId, customer: &str) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let Some(account) = self.account(id).await? else {
                return Err(Error::new(ErrorKind::NotFound, Retry::Never, "the account is gone"));
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
