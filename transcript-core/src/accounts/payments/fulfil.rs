//! Giving what was paid for, and taking back what was refunded: steps that are safe to repeat.
//!
//! Every step is idempotent by an id, and what is to be done is written down before it is done where a
//! repeat could not work it out again. The order's state is written last, so an order that is not
//! [`OrderState::Open`] was given in full; whoever finds it so repeats the steps all the same.

use super::{
    Heard, Money, PATIENCE, PaymentFact, PaymentState, Payments, Progress, ROUNDS_MAX, Subject, WebhookCall,
    contended,
};
use crate::{
    accounts::{Item, Order, OrderState},
    directory::{Account, Changed},
    engine::retry::persistently,
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, GrantId},
    ledger::{Grant, GrantOutcome, Revoke, RevokeOutcome},
};

/// The most partial refunds of one order that are followed.
const REFUNDS_MAX: usize = 100;

impl Payments {
    /// Takes a call of the provider: verifies it, asks how the things stand that it is about, and does what
    /// follows from that. The outcome [`Heard::About`] means that all of it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when payments are not configured; the faults of stores and provider: the same
    /// call again goes on where this one broke off.
    pub async fn hear(&self, call: WebhookCall) -> Result<Heard> {
        let heard = self.asked(self.checkout()?.hear(call, self.now())).await?;
        if let Heard::About(subjects) = &heard {
            for subject in subjects {
                self.follow(subject).await?;
            }
        }
        Ok(heard)
    }

    /// Asks the provider how something stands, and does what follows from that.
    ///
    /// # Errors
    /// As [`Payments::hear`].
    pub async fn follow(&self, subject: &Subject) -> Result<()> {
        self.turns.take(&subject.object, || self.look(subject)).await
    }

    async fn look(&self, subject: &Subject) -> Result<()> {
        let checkout = self.checkout()?;
        // Read before the provider is asked: see `settle_subscription`.
        let mut account = match &subject.customer {
            Some(customer) => self.account_of_customer(customer).await?,
            None => None,
        };
        for _ in 0..ROUNDS_MAX {
            let mut again = None;
            for fact in self.asked(checkout.facts(subject)).await? {
                match fact {
                    PaymentFact::Payment(payment) => self.settle_payment(&payment).await?,
                    PaymentFact::Subscription(state) => {
                        if let Some(id) = self.settle_subscription(&state, account.as_ref()).await? {
                            again = Some(id);
                        }
                    }
                }
            }
            let Some(id) = again else { return Ok(()) };
            account = self.account(&id).await?;
        }
        Err(contended())
    }

    /// Brings an order to where its payment is.
    async fn settle_payment(&self, fact: &PaymentState) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let Some(order) = self.order(&fact.order).await? else {
                tracing::debug!("a payment is of no order of ours");
                return Ok(());
            };
            let is_settled = match (fact.progress, &order.item) {
                (Progress::Pending, _) => true,
                (Progress::Ended, _) => self.end(&order).await?,
                // A plan is given for its invoices.
                (Progress::Paid, Item::Plan(_)) => true,
                (Progress::Paid, Item::Pack(_)) => self.give(&order, &fact.money).await?,
            };
            if is_settled {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Closes an order that will not be paid. False when somebody else changed it meanwhile.
    pub(super) async fn end(&self, order: &Order) -> Result<bool> {
        if order.state != OrderState::Open {
            return Ok(true);
        }
        self.update(&Order { state: OrderState::Expired, ..order.clone() }, order).await
    }

    /// Gives a pack that was paid, and takes back what was refunded of it. False when somebody else changed
    /// the order meanwhile.
    pub(super) async fn give(&self, order: &Order, money: &Money) -> Result<bool> {
        if !is_as_sold(order, money) {
            return Ok(true);
        }
        let Some(account) = self.account(&order.account).await? else {
            let payment = order.payment.as_deref();
            tracing::error!(order = %order.id, payment, "an order was paid whose account is gone: refund it");
            return Ok(true);
        };
        let grant = Grant {
            id: GrantId::new(order.id.as_str()),
            wallet: account.wallet,
            amount: order.credits,
            now: self.now(),
            memo: what(&order.item),
        };
        match persistently(PATIENCE, || self.parts.ledger.grant(grant.clone())).await? {
            GrantOutcome::Granted { .. } => {
                tracing::info!(order = %order.id, credits = order.credits, "an order was paid and given");
            }
            GrantOutcome::Known => {}
            GrantOutcome::Conflict => return Err(clash()),
        }
        let Some(order) = self.plan_taking_back(order, money).await? else { return Ok(false) };
        self.take_back(&order).await?;
        self.conclude(&order, money).await
    }

    /// Writes down how many credits are to be taken back in all, before any are. None when somebody else
    /// changed the order meanwhile.
    ///
    /// The figure never falls: money whose refund failed is with the seller, who has to return it another
    /// way, and not for the buyer to have again as credits.
    pub(super) async fn plan_taking_back(&self, order: &Order, money: &Money) -> Result<Option<Order>> {
        let wanted = money.credits_back(order.credits);
        let planned = order.taken_back.last().copied().unwrap_or(0);
        if wanted < planned {
            tracing::warn!(order = %order.id, "a refund or a dispute was undone; its credits stay taken back");
        }
        if wanted <= planned {
            return Ok(Some(order.clone()));
        }
        if order.taken_back.len() >= REFUNDS_MAX {
            tracing::error!(order = %order.id, "an order was refunded in more parts than are followed");
            return Ok(Some(order.clone()));
        }
        let mut changed = order.clone();
        changed.taken_back.push(wanted);
        if !self.update(&changed, order).await? {
            return Ok(None);
        }
        changed.version = order.version + 1;
        Ok(Some(changed))
    }

    /// Takes back what is planned, each part once.
    async fn take_back(&self, order: &Order) -> Result<()> {
        for (id, amount) in parts_back(order) {
            let revoke = Revoke {
                id: GrantId::new(id),
                grant: GrantId::new(order.id.as_str()),
                amount,
                now: self.now(),
                memo: format!("refund of {}", what(&order.item)),
            };
            match persistently(PATIENCE, || self.parts.ledger.revoke(revoke.clone())).await? {
                RevokeOutcome::Revoked { taken, shortfall } => {
                    tracing::info!(order = %order.id, taken, shortfall, "credits were taken back");
                }
                RevokeOutcome::Known { .. } => {}
                RevokeOutcome::UnknownGrant | RevokeOutcome::Conflict => return Err(clash()),
            }
        }
        Ok(())
    }

    /// The last step: what an order has come to. False when somebody else changed it meanwhile.
    ///
    /// A dispute blocks the account when it is first seen. From then on the operator decides, so an order
    /// that is [`OrderState::Disputed`] blocks no more, and stays so.
    pub(super) async fn conclude(&self, order: &Order, money: &Money) -> Result<bool> {
        let reached = match (money.disputed, order.taken_back.is_empty() && money.returned_minor == 0) {
            (true, _) => OrderState::Disputed,
            (false, false) => OrderState::Refunded,
            (false, true) => OrderState::Fulfilled,
        };
        if rank(reached) <= rank(order.state) {
            return Ok(true);
        }
        if reached == OrderState::Disputed {
            self.block(&order.account).await?;
            tracing::warn!(order = %order.id, account = %order.account, "a payment is disputed: the account is blocked");
        }
        self.update(&Order { state: reached, ..order.clone() }, order).await
    }

    /// Blocks an account. The next sweep lets its subscription end: nobody pays for what they cannot use.
    async fn block(&self, id: &AccountId) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let Some(account) = self.account(id).await? else { return Ok(()) };
            if account.blocked {
                return Ok(());
            }
            let blocked = Account { blocked: true, ..account };
            let change = || self.parts.directory.change_account(blocked.clone());
            if let Changed::Changed(_) = persistently(PATIENCE, change).await? {
                return Ok(());
            }
        }
        Err(contended())
    }
}

/// Whether what was paid is what was sold. If not, nothing is given, and the operator is told.
pub(super) fn is_as_sold(order: &Order, money: &Money) -> bool {
    let same = order.amount_minor == money.amount_minor && order.currency == money.currency;
    if !same {
        tracing::error!(
            order = %order.id,
            sold = order.amount_minor,
            paid = money.amount_minor,
            "another amount was paid than was sold: nothing was given"
        );
    }
    same
}

/// Each part that is to be taken back: its id, and how many credits.
pub(super) fn parts_back(order: &Order) -> impl Iterator<Item = (String, u64)> {
    let before = std::iter::once(0).chain(order.taken_back.iter().copied());
    order.taken_back.iter().zip(before).enumerate().filter_map(|(place, (after, before))| {
        let amount = after.saturating_sub(before);
        (amount > 0).then(|| (format!("{}-back-{}", order.id, place + 1), amount))
    })
}

/// What was sold, for statements.
pub(super) fn what(item: &Item) -> String {
    match item {
        Item::Pack(name) => format!("pack {name}"),
        Item::Plan(plan) => format!("plan {}", plan.as_str()),
    }
}

/// An order only goes on: whoever reads late does not bring it back.
fn rank(state: OrderState) -> u8 {
    match state {
        OrderState::Open => 0,
        OrderState::Expired => 1,
        OrderState::Fulfilled => 2,
        OrderState::Refunded => 3,
        OrderState::Disputed => 4,
    }
}

#[cold]
fn clash() -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, "the ledger has something else under an order's id")
}
