//! Purchases: write an order, then open a checkout session.

use super::{
    CURRENCY, CheckoutRequest, CheckoutSession, Pack, Payments, ProviderObject, STORE_POLICY,
    UPDATE_ATTEMPTS_MAX, contention_error,
};
use crate::{
    accounts::{
        Order, OrderItem, OrderState, change_account::change_account, idempotency_lease::REPEAT_WINDOW,
        sessions::form_id,
    },
    debug_fields,
    directory::{Account, Plan},
    error::{Error, Result},
    ids::{AccountId, OrderId},
    limits::{self, DAY_MS, LimitRequest},
    retry::retry_store,
    time::Timestamp,
};

/// The largest number of orders per account in 24 hours: each open order is reconciled for weeks.
const ORDERS_PER_DAY: u32 = 50;
/// The largest number of orders for one id.
const ORDERS_PER_ID_MAX: u32 = 1_000;

/// An order with an open payment page.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenedCheckout {
    /// The order.
    pub order: OrderId,
    /// The URL of the payment page. It lets its holder act for the buyer.
    pub checkout_url: String,
    /// Whether the page stays open as long as a response is replayed.
    /// Otherwise a repeat opens another page for the same order, because the earlier URL has expired.
    pub is_lasting: bool,
}

debug_fields!(OpenedCheckout { order });

/// What a purchase calls its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRequest {
    /// The id of the order.
    pub id: OrderId,
    /// Tag of the language of the receipt; `None`: the service's first language.
    pub language: Option<String>,
    /// Whether the id is that of a stored order, whose page is opened again, however old it is.
    pub is_existing: bool,
}

impl From<OrderId> for OrderRequest {
    fn from(id: OrderId) -> Self {
        Self { id, language: None, is_existing: false }
    }
}

/// Outcome of the purchase of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuyOutcome {
    /// A payment page is open.
    Opened(OpenedCheckout),
    /// The account reached its daily limit of payment pages.
    Limited {
        /// Milliseconds until another page may be opened.
        retry_after_ms: u64,
    },
}

/// Outcome of the purchase of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscribeOutcome {
    /// A payment page is open: for a new subscription, or for a change of the present one.
    Opened(OpenedCheckout),
    /// The account has this plan, and it is paid.
    AlreadySubscribed,
    /// The plan has no price.
    NotForSale,
    /// The account reached its daily limit of payment pages.
    Limited {
        /// Milliseconds until another page may be opened.
        retry_after_ms: u64,
    },
}

impl Payments {
    /// Opens a checkout for a pack (specification 4.11).
    ///
    /// `request` names the order: the same id returns the same order and page for almost a day. It must not be the id
    /// of any other kind of order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if payments are not configured; [`crate::ErrorKind::Conflict`] if the order of
    /// this id is paid or is another one; the errors of stores and provider.
    pub async fn buy(
        &self,
        buyer: &Account,
        pack: Pack,
        request: impl Into<OrderRequest>,
    ) -> Result<BuyOutcome> {
        let item = OrderItem::Pack(pack.name.to_owned());
        self.sell(buyer, item, pack.credits, pack.price_minor(), request.into()).await
    }

    /// Opens a checkout for a plan (specification 4.10).
    ///
    /// `request` is as in [`Payments::buy`].
    ///
    /// # Errors
    /// As [`Payments::buy`].
    pub async fn subscribe(
        &self,
        buyer: &Account,
        plan: Plan,
        request: impl Into<OrderRequest>,
    ) -> Result<SubscribeOutcome> {
        self.provider()?;
        let request = request.into();
        let terms = self.deps.plans.terms(plan);
        let Some(price_minor) = terms.price_cents.filter(|_| plan != Plan::Free) else {
            return Ok(SubscribeOutcome::NotForSale);
        };
        // Serialized: of two pages for plans that are opened at once, both could be paid.
        self.coalescer
            .run_exclusive(&format!("plans of {}", buyer.id), || {
                self.sell_plan(buyer, plan, price_minor, request)
            })
            .await
    }

    /// The id of the order that one submission of a form makes: a second submission of it opens no second order.
    ///
    /// `token` is random text of the form.
    pub fn form_order_id(buyer: &AccountId, token: &str) -> OrderId {
        OrderId::new(form_id("order", buyer, token))
    }

    async fn sell_plan(
        &self,
        buyer: &Account,
        plan: Plan,
        price_minor: u64,
        request: OrderRequest,
    ) -> Result<SubscribeOutcome> {
        // While this call waited, another page may have been paid.
        let buyer = &self.account(&buyer.id).await?.ok_or_else(account_deleted)?;
        // A plan that will not be renewed can be bought again.
        let has_subscription = buyer.subscription.is_some();
        if has_subscription && buyer.plan == plan && buyer.paid.is_some_and(|paid| paid.through > self.now())
        {
            return Ok(SubscribeOutcome::AlreadySubscribed);
        }
        let credits = self.deps.plans.terms(plan).credits;
        Ok(match self.sell(buyer, OrderItem::Plan(plan), credits, price_minor, request).await? {
            BuyOutcome::Opened(sold) => SubscribeOutcome::Opened(sold),
            BuyOutcome::Limited { retry_after_ms } => SubscribeOutcome::Limited { retry_after_ms },
        })
    }

    async fn sell(
        &self,
        buyer: &Account,
        item: OrderItem,
        credits: u64,
        amount_minor: u64,
        request: OrderRequest,
    ) -> Result<BuyOutcome> {
        let provider = self.provider()?;
        let new_order = Order {
            id: request.id,
            version: 1,
            account: buyer.id.clone(),
            item,
            credits,
            amount_minor,
            currency: CURRENCY.to_owned(),
            state: OrderState::Open,
            payment: None,
            refunded_credits: Vec::new(),
            returned_minor: 0,
            paid_minor: None,
            created_at: self.now(),
            language: request.language,
        };
        let order = match self.write_order(new_order, request.is_existing).await? {
            Ok(order) => order,
            Err(retry_after_ms) => return Ok(BuyOutcome::Limited { retry_after_ms }),
        };
        let order = self.recheck_order(order).await?;
        let owned_id = |name: &Option<String>| name.clone().filter(|name| provider.owns(name));
        let request = CheckoutRequest {
            order: order.clone(),
            email: buyer.email.clone(),
            customer: owned_id(&buyer.customer),
            subscription: owned_id(&buyer.subscription),
        };
        let session = self.call_provider(provider.create_checkout(request)).await?;
        // Stored before the buyer can pay: payments are found by these ids.
        if let Some(customer) = &session.customer {
            self.store_customer(&buyer.id, customer).await?;
        }
        self.store_session(&order, &session).await?;
        Ok(BuyOutcome::Opened(OpenedCheckout {
            order: order.id,
            checkout_url: session.url,
            is_lasting: session.is_lasting,
        }))
    }

    /// Reconciles an order whose page was opened before; its payment may have arrived without an event.
    async fn recheck_order(&self, order: Order) -> Result<Order> {
        let provider = self.provider()?;
        let Some(payment) = order.payment.as_ref().filter(|name| provider.owns(name)) else {
            return Ok(order);
        };
        self.reconcile(&ProviderObject::new(payment.clone())).await?;
        let order = self.order(&order.id).await?;
        order.filter(|order| order.state == OrderState::Open).ok_or_else(order_completed)
    }

    /// Writes the order, or returns the one of an earlier identical request.
    ///
    /// The inner `Err` is the wait in milliseconds until another order may be opened.
    ///
    /// A request is not repeated for longer than responses are stored. So an older order belongs to another
    /// request even if it has the same id, and this request gets the next id, unless the order `is_existing` for it.
    async fn write_order(
        &self,
        mut new_order: Order,
        is_existing: bool,
    ) -> Result<std::result::Result<Order, u64>> {
        let name = new_order.id.clone();
        for number in 1..=ORDERS_PER_ID_MAX {
            let Some(existing) = self.order(&new_order.id).await? else {
                let (account, now) = (&new_order.account, new_order.created_at);
                if let Some(retry_after_ms) = self.check_page_limit("orders", account, now).await? {
                    return Ok(Err(retry_after_ms));
                }
                retry_store(STORE_POLICY, || self.deps.orders.open(new_order.clone())).await?;
                return Ok(Ok(new_order));
            };
            if is_existing || new_order.created_at.since(existing.created_at) < REPEAT_WINDOW {
                let price = |order: &Order| (order.amount_minor, order.credits);
                let is_same_sale = existing.account == new_order.account
                    && existing.item == new_order.item
                    && (!is_existing || price(&existing) == price(&new_order));
                return match is_same_sale && existing.state == OrderState::Open {
                    true => Ok(Ok(existing)),
                    false => Err(order_completed()),
                };
            }
            new_order.id = OrderId::new(format!("{name}-{}", number + 1));
        }
        Err(order_completed())
    }

    /// Counts a new order of an account, or another page of the provider.
    /// At the limit, returns the milliseconds until another one may be opened.
    pub(super) async fn check_page_limit(
        &self,
        kind: &str,
        account: &AccountId,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        let request = LimitRequest::one(format!("{kind}/{account}"), ORDERS_PER_DAY, DAY_MS);
        limits::acquire_all(self.deps.limiter.as_ref(), vec![request], now, STORE_POLICY.attempt).await
    }

    /// Stores the provider's id of the buyer.
    async fn store_customer(&self, id: &AccountId, customer: &str) -> Result<()> {
        let name = |account: &Account| Account { customer: Some(customer.to_owned()), ..account.clone() };
        let changed = change_account(self.deps.directory.as_ref(), STORE_POLICY, id, name).await?;
        changed.map(|_| ()).ok_or_else(account_deleted)
    }

    /// Stores the provider's id of the payment.
    async fn store_session(&self, order: &Order, session: &CheckoutSession) -> Result<()> {
        let Some(payment) = &session.payment else { return Ok(()) };
        let mut current = order.clone();
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            // Another call stored it, or the payment has already progressed.
            let is_stored = current.payment.as_deref() == Some(payment) || current.payment != order.payment;
            if is_stored || current.state != OrderState::Open {
                return Ok(());
            }
            let changed = Order { payment: Some(payment.clone()), ..current.clone() };
            if self.update(&changed, &current).await? {
                return Ok(());
            }
            let stored = self.order(&current.id).await?;
            current = stored.ok_or_else(|| Error::unexpected("a written order is missing"))?;
        }
        Err(contention_error())
    }
}

#[cold]
fn account_deleted() -> Error {
    Error::not_found("the account was deleted")
}

#[cold]
fn order_completed() -> Error {
    Error::conflict("this order is completed, or is another one")
}
