//! Checkout for an admitted v1 request (specification 4.10, 4.11).

use super::{BuyOutcome, OpenedCheckout, Pack, Payments, SubscribeOutcome};
use crate::{
    accounts::{RequestGuard, StoredResponse, V1Error},
    directory::Plan,
    error::{Error, ErrorKind},
    ids::OrderId,
};

/// A checkout session whose response is still to be sent.
#[derive(Debug)]
pub struct PreparedCheckout {
    /// The order and its page.
    pub checkout: OpenedCheckout,
    guard: RequestGuard,
}

impl PreparedCheckout {
    /// Opens a checkout for the pack with this name (specification 4.11).
    ///
    /// The work id of the request names the order: a repeat with the same idempotency key opens no second order.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for an unknown pack; [`V1Error::Conflict`] if the idempotency key was used for
    /// another order; [`V1Error::RateLimited`] if the account opened too many pages; [`V1Error::Internal`] if
    /// payments are not configured or the page cannot be opened.
    pub async fn for_pack(
        payments: &Payments,
        guard: RequestGuard,
        name: &str,
    ) -> Result<(Pack, Self), V1Error> {
        let Some(pack) = Pack::from_wire(name) else {
            let names = Pack::ALL.map(|pack| pack.name).join(", ");
            return Err(guard.reject(bad_request(format!("pack: it must be one of {names}"))).await);
        };
        if !payments.is_configured() {
            return Err(guard.reject(not_configured()).await);
        }
        let error = match payments.buy(&guard.caller().account, pack, OrderId::new(guard.work_id())).await {
            Ok(BuyOutcome::Opened(sold)) => return Ok((pack, Self { checkout: sold, guard })),
            Ok(BuyOutcome::Limited { retry_after_ms }) => too_many_pages(retry_after_ms),
            Err(error) => checkout_error(&error),
        };
        Err(guard.reject(error).await)
    }

    /// Opens a checkout for the plan with this name (specification 4.10).
    /// Works as [`PreparedCheckout::for_pack`].
    ///
    /// # Errors
    /// As [`PreparedCheckout::for_pack`]; [`V1Error::BadRequest`] also for the account's present plan, and for a plan
    /// without a price.
    pub async fn for_plan(payments: &Payments, guard: RequestGuard, name: &str) -> Result<Self, V1Error> {
        let Some(plan) = Plan::from_wire(name).filter(|plan| *plan != Plan::Free) else {
            let error = bad_request("plan: it must be one of starter, pro, scale".to_owned());
            return Err(guard.reject(error).await);
        };
        if !payments.is_configured() {
            return Err(guard.reject(not_configured()).await);
        }
        let order = OrderId::new(guard.work_id());
        let error = match payments.subscribe(&guard.caller().account, plan, order).await {
            Ok(SubscribeOutcome::Opened(sold)) => return Ok(Self { checkout: sold, guard }),
            Ok(SubscribeOutcome::AlreadySubscribed) => {
                bad_request(format!("plan: this account has the plan {name} already"))
            }
            Ok(SubscribeOutcome::NotForSale) => bad_request(format!("plan: {name} is not for sale here")),
            Ok(SubscribeOutcome::Limited { retry_after_ms }) => too_many_pages(retry_after_ms),
            Err(error) => checkout_error(&error),
        };
        Err(guard.reject(error).await)
    }

    /// Delivers the response, as [`RequestGuard::deliver`].
    /// The response is not stored for a page that is valid for only a few minutes: a repeat gets another page
    /// of the same order.
    ///
    /// # Errors
    /// As [`RequestGuard::deliver`]. The order stays; it need not be paid.
    pub async fn deliver(self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        match self.checkout.is_lasting {
            true => self.guard.deliver(response).await,
            false => Ok(self.guard.deliver_unstored(response).await),
        }
    }
}

fn bad_request(message: String) -> V1Error {
    V1Error::BadRequest(message)
}

fn too_many_pages(retry_after_ms: u64) -> V1Error {
    V1Error::rate_limited("This account reached its daily limit of payment pages", retry_after_ms)
}

fn not_configured() -> V1Error {
    V1Error::Internal("This server sells nothing: payments are not configured.".to_owned())
}

/// Maps an error of a checkout to the caller's error and logs its details.
fn checkout_error(error: &Error) -> V1Error {
    match error.kind() {
        ErrorKind::Conflict => V1Error::Conflict(
            "The order of this Idempotency-Key is paid, in payment, or a different one. Use a new key for a new order."
                .to_owned(),
        ),
        ErrorKind::NotFound => V1Error::Unauthorized("The account of this API key was deleted.".to_owned()),
        _ => {
            tracing::error!(%error, "checkout failed");
            V1Error::Internal(
                "The payment page could not be opened: nothing was charged, please try again in a moment."
                    .to_owned(),
            )
        }
    }
}
