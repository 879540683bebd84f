//! What became of an order, as its page tells its buyer.

use super::{PaidInvoice, PaymentFact, Payments, Progress, Subject, plan};
use crate::{
    accounts::{Item, Order, OrderState},
    directory::Account,
    error::Result,
    ids::OrderId,
};

/// An order as its buyer is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderSeen {
    /// The order, as far along as it is.
    pub order: Order,
    /// What became of it beyond its state.
    pub fate: OrderFate,
    /// How its account stands.
    pub buyer: BuyerSeen,
}

/// What became of an order beyond what its state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderFate {
    /// What its state says, as far as is known.
    AsStored,
    /// The account has the plan that was ordered, and it is paid now.
    Present,
    /// The plan was given as credits that do not expire, beside another one that was paid.
    Beside,
    /// Money came and nothing was given: it was not what was sold, or the account is gone.
    InVain {
        /// Whether all of the money went back.
        is_returned: bool,
    },
}

/// How the account of an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuyerSeen {
    /// It can be used.
    Open,
    /// The operator, or a dispute, closed it.
    Blocked,
    /// It is not there any more.
    Gone,
}

impl OrderSeen {
    fn new(order: Order, account: Option<&Account>, fate: OrderFate) -> Self {
        let buyer = match account {
            Some(account) if account.blocked => BuyerSeen::Blocked,
            Some(_) => BuyerSeen::Open,
            None => BuyerSeen::Gone,
        };
        Self { order, fate, buyer }
    }

    /// Whether the provider may know more of it than is stored.
    pub fn is_worth_asking(&self) -> bool {
        let is_plan = matches!(self.order.item, Item::Plan(_));
        let is_telling = match self.order.state {
            OrderState::Open => true,
            OrderState::Fulfilled => is_plan,
            OrderState::Expired | OrderState::Refunded | OrderState::Disputed => false,
        };
        is_telling && self.order.payment.is_some()
    }
}

impl Payments {
    /// An order as it is stored; nobody is asked.
    ///
    /// # Errors
    /// The faults of the stores.
    pub async fn known(&self, id: &OrderId) -> Result<Option<OrderSeen>> {
        let Some(order) = self.order(id).await? else { return Ok(None) };
        let account = self.account(&order.account).await?;
        Ok(Some(OrderSeen::new(order, account.as_ref(), OrderFate::AsStored)))
    }

    /// An order, after the provider was asked about its payment and what follows from that was done.
    ///
    /// # Errors
    /// The faults of stores and provider.
    pub async fn seen(&self, id: &OrderId) -> Result<Option<OrderSeen>> {
        let Some(known) = self.known(id).await? else { return Ok(None) };
        let payment = known.order.payment.clone().filter(|name| known.is_worth_asking() && self.knows(name));
        let Some(payment) = payment else { return Ok(Some(known)) };
        let subject = Subject::new(payment);
        // Asked before it is followed: what was paid then is given after that, unless it cannot be.
        let facts = self.asked(self.checkout()?.facts(&subject)).await?;
        if known.order.state == OrderState::Open {
            self.follow(&subject).await?;
        }
        let Some(order) = self.order(id).await? else { return Ok(None) };
        let account = self.account(&order.account).await?;
        let fate = self.fate(&order, account.as_ref(), &facts).await?;
        Ok(Some(OrderSeen::new(order, account.as_ref(), fate)))
    }

    async fn fate(
        &self,
        order: &Order,
        account: Option<&Account>,
        facts: &[PaymentFact],
    ) -> Result<OrderFate> {
        let own = own_invoice(order, facts);
        let money = match (&order.item, own) {
            (Item::Plan(_), own) => own.filter(|own| plan::has_begun(own, self.now())).map(|own| &own.money),
            (Item::Pack(_), _) => facts.iter().find_map(|fact| match fact {
                PaymentFact::Payment(paid) if paid.order == order.id && paid.progress == Progress::Paid => {
                    Some(&paid.money)
                }
                _ => None,
            }),
        };
        Ok(match (order.state, &order.item, money, own) {
            (OrderState::Open, _, Some(money), _) => OrderFate::InVain { is_returned: money.is_returned() },
            (OrderState::Fulfilled, Item::Plan(ordered), _, Some(own)) => {
                let aside = self.order(&plan::aside_of(own)).await?;
                let has_it = |one: &Account| one.plan == *ordered && plan::is_running(one, self.now());
                match aside.is_some_and(|aside| plan::is_recorded(&aside)) {
                    true => OrderFate::Beside,
                    false if account.is_some_and(has_it) => OrderFate::Present,
                    false => OrderFate::AsStored,
                }
            }
            _ => OrderFate::AsStored,
        })
    }
}

/// The invoice that paid for an order itself, not a renewal.
fn own_invoice<'a>(order: &Order, facts: &'a [PaymentFact]) -> Option<&'a PaidInvoice> {
    facts
        .iter()
        .filter_map(|fact| match fact {
            PaymentFact::Subscription(state) => Some(&state.invoices),
            PaymentFact::Payment(_) => None,
        })
        .flatten()
        .find(|invoice| invoice.first && invoice.order.as_ref() == Some(&order.id))
}
