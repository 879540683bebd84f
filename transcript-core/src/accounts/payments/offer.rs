//! Selling to a call of Surface B that was let in (specification 4, "subscribe" and "buy-credits").

use super::{BuyOutcome, Pack, Payments, Sold, SubscribeOutcome};
use crate::{
    accounts::{Refused, Reply, Visit},
    directory::Plan,
    error::{Error, ErrorKind},
    ids::OrderId,
};

/// A page to pay on, for a visitor who is still to be told of it.
#[derive(Debug)]
pub struct Offer {
    /// The order, and its page.
    pub sold: Sold,
    visit: Visit,
}

impl Offer {
    /// Tells the visitor, as [`Visit::deliver`] does. A page that is good for minutes only is not kept for repeats:
    /// whoever asks again gets another page of the same order.
    ///
    /// # Errors
    /// As [`Visit::deliver`]. The order stays; nobody has to pay it.
    pub async fn deliver(self, reply: Reply) -> Result<Reply, Refused> {
        match self.sold.is_lasting {
            true => self.visit.deliver(reply).await,
            false => Ok(self.visit.deliver_once(reply).await),
        }
    }
}

impl Payments {
    /// Sells the pack with this name to a visitor (specification 4, buy-credits).
    ///
    /// The visit's work names the order: a request that is repeated with its idempotency key opens no second one.
    ///
    /// # Errors
    /// [`Refused::BadRequest`] for a pack that there is not; [`Refused::Conflict`] when the idempotency key
    /// was used for another order; [`Refused::RateLimited`] when the account opened too many pages;
    /// [`Refused::Internal`] when payments are not configured, or the page cannot
    /// be opened now.
    pub async fn offer_pack(&self, visit: Visit, name: &str) -> Result<(Pack, Offer), Refused> {
        let Some(pack) = Pack::from_wire(name) else {
            let names = Pack::ALL.map(|pack| pack.name).join(", ");
            return Err(visit.refuse(bad(format!("pack: it must be one of {names}"))).await);
        };
        if !self.is_configured() {
            return Err(visit.refuse(not_configured()).await);
        }
        let refused = match self.buy(&visit.caller().account, pack, OrderId::new(visit.work_id())).await {
            Ok(BuyOutcome::Opened(sold)) => return Ok((pack, Offer { sold, visit })),
            Ok(BuyOutcome::Limited { retry_after_ms }) => too_many(retry_after_ms),
            Err(error) => refused(&error),
        };
        Err(visit.refuse(refused).await)
    }

    /// Sells the plan with this name to a visitor (specification 4, subscribe), as [`Payments::offer_pack`]
    /// does a pack.
    ///
    /// # Errors
    /// As [`Payments::offer_pack`]; [`Refused::BadRequest`] also for the plan that the account has, and for
    /// one without a price.
    pub async fn offer_plan(&self, visit: Visit, name: &str) -> Result<Offer, Refused> {
        let Some(plan) = Plan::from_wire(name).filter(|plan| *plan != Plan::Free) else {
            let refused = bad("plan: it must be one of starter, pro, scale".to_owned());
            return Err(visit.refuse(refused).await);
        };
        if !self.is_configured() {
            return Err(visit.refuse(not_configured()).await);
        }
        let refused = match self.subscribe(&visit.caller().account, plan, OrderId::new(visit.work_id())).await
        {
            Ok(SubscribeOutcome::Opened(sold)) => return Ok(Offer { sold, visit }),
            Ok(SubscribeOutcome::HasIt) => bad(format!("plan: this account has the plan {name} already")),
            Ok(SubscribeOutcome::NotSold) => bad(format!("plan: {name} is not for sale here")),
            Ok(SubscribeOutcome::Limited { retry_after_ms }) => too_many(retry_after_ms),
            Err(error) => refused(&error),
        };
        Err(visit.refuse(refused).await)
    }
}

fn bad(message: String) -> Refused {
    Refused::BadRequest(message)
}

fn too_many(retry_after_ms: u64) -> Refused {
    Refused::too_many("This account opened as many payment pages as it may in a day", retry_after_ms)
}

fn not_configured() -> Refused {
    Refused::Internal("Nothing can be bought here: payments are not configured.".to_owned())
}

/// Why a page was not opened. Details are for the log.
fn refused(error: &Error) -> Refused {
    match error.kind() {
        ErrorKind::Conflict => Refused::Conflict(
            "The order of this Idempotency-Key is paid, is being paid, or is another one: take a new key for a new order."
                .to_owned(),
        ),
        ErrorKind::NotFound => Refused::Unauthorized("The account of this API key is gone.".to_owned()),
        _ => {
            tracing::error!(%error, "a payment page could not be opened");
            Refused::Internal(
                "The payment page could not be opened: nothing was charged, please try again in a moment."
                    .to_owned(),
            )
        }
    }
}
