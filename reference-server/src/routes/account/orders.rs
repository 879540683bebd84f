//! `/account/orders`: orders, receipts, and the forms that buy packs and plans.

use axum::{extract::State, response::Response};
use http::StatusCode;
use transcript_core::{
    Error, ErrorKind, Result,
    accounts::payments::{
        BuyOutcome, OpenedCheckout, OrderRequest, Pack, Payments, PortalOutcome, SubscribeOutcome,
    },
    directory::{Account, Plan},
    ids::OrderId,
};

use super::{
    SentForm, missing, respond, respond_with,
    session::{OwnForm, SignedIn, redirect, see_other},
    store_failure,
};
use crate::{
    api::{PathName, path_name},
    page::{PageContext, PagePolicy, account as page},
    state::AppState,
};

/// Length of the token of a form, in hexadecimal digits.
const TOKEN_LENGTH: usize = 32;

/// What a form to buy something leads to.
enum PurchaseOutcome {
    /// A payment page is open.
    Opened(OpenedCheckout),
    /// The account has this plan.
    HasPlan,
    /// Too many payment pages were opened.
    Limited,
    /// There is no such pack or plan for sale.
    NotForSale,
}

/// Page with all orders, and what can be bought.
pub(in crate::routes) async fn list(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    match app.accounts.admin.recent_orders(&principal.account).await {
        Ok(orders) => {
            let sessions = &app.accounts.sessions;
            let plan = sessions.effective_plan(&principal.account);
            let shop = page::Shop::new(&app.payments, &principal.account, &plan, || sessions.form_token());
            let page = page::orders(&context, &principal.account, &orders, &shop);
            respond_with(StatusCode::OK, page, PagePolicy::Purchase)
        }
        Err(error) => store_failure(&context, &error),
    }
}

/// Receipt of an order, or that of the order whose payment paid it, too.
pub(in crate::routes) async fn receipt(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
    path: PathName,
) -> Response {
    match app.accounts.admin.order_of(&principal.account, &OrderId::new(path_name(path))).await {
        Ok(Some(order)) => match order.paid_with() {
            Some(other) => see_other(&context, &format!("account/orders/{other}")),
            None => {
                let start = app.payments.next_month_start(&order, &principal.account);
                respond(StatusCode::OK, page::receipt(&context, &principal.account, &order, start))
            }
        },
        Ok(None) => missing(&context),
        Err(error) => store_failure(&context, &error),
    }
}

/// Opens the payment page of a pack.
pub(in crate::routes) async fn buy(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let account = &principal.account;
    let outcome = async {
        let request = order_request(&app, &context, account, &sent).await?;
        let (Some(pack), Some(request)) = (Pack::from_wire(&sent.field("pack")), request) else {
            return Ok(PurchaseOutcome::NotForSale);
        };
        check_open(account)?;
        Ok(match app.payments.buy(account, pack, request).await? {
            BuyOutcome::Opened(opened) => PurchaseOutcome::Opened(opened),
            BuyOutcome::Limited { .. } => PurchaseOutcome::Limited,
        })
    };
    answer(&context, outcome.await)
}

/// Opens the payment page of a plan.
pub(in crate::routes) async fn subscribe(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let account = &principal.account;
    let outcome = async {
        let plan = Plan::from_wire(&sent.field("plan")).filter(|plan| *plan != Plan::Free);
        let request = order_request(&app, &context, account, &sent).await?;
        let (Some(plan), Some(request)) = (plan, request) else {
            return Ok(PurchaseOutcome::NotForSale);
        };
        check_open(account)?;
        Ok(match app.payments.subscribe(account, plan, request).await? {
            SubscribeOutcome::Opened(opened) => PurchaseOutcome::Opened(opened),
            SubscribeOutcome::AlreadySubscribed => PurchaseOutcome::HasPlan,
            SubscribeOutcome::NotForSale => PurchaseOutcome::NotForSale,
            SubscribeOutcome::Limited { .. } => PurchaseOutcome::Limited,
        })
    };
    answer(&context, outcome.await)
}

/// Opens the provider's page on which a plan is managed and ended. The holder of a blocked account may end it, too.
pub(in crate::routes) async fn manage(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    let base_url = app.lookup.options().base_url.trim_end_matches('/');
    let return_url = format!("{base_url}/account{}", context.with_language(""));
    match app.payments.open_portal(&principal.account, &return_url).await {
        Ok(PortalOutcome::Opened(page)) => redirect(&context, &page.url),
        Ok(PortalOutcome::NoPage) => see_other(&context, "account"),
        Ok(PortalOutcome::Limited) => answer(&context, Ok(PurchaseOutcome::Limited)),
        Err(error) => answer(&context, Err(error)),
    }
}

/// The order of the form: a second click opens no second order. The page of an open order sends the order's id.
async fn order_request(
    app: &AppState,
    context: &PageContext,
    account: &Account,
    sent: &SentForm,
) -> Result<Option<OrderRequest>> {
    let (token, order) = (sent.field("token"), sent.field("order"));
    let is_token = token.len() == TOKEN_LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_existing = !order.is_empty();
    let id = if is_existing {
        app.accounts.admin.order_of(account, &OrderId::new(order)).await?.map(|order| order.id)
    } else {
        is_token.then(|| Payments::form_order_id(&account.id, &token))
    };
    Ok(id.map(|id| OrderRequest { id, language: context.tag().map(str::to_owned), is_existing }))
}

/// A blocked account buys nothing: its key does not work.
fn check_open(account: &Account) -> Result<()> {
    match account.blocked {
        true => Err(Error::unsupported("the account is blocked")),
        false => Ok(()),
    }
}

fn answer(context: &PageContext, outcome: Result<PurchaseOutcome>) -> Response {
    let notice = |status, title, text| respond(status, page::notice(context, title, text));
    match outcome {
        Ok(PurchaseOutcome::Opened(opened)) => redirect(context, &opened.checkout_url),
        Ok(PurchaseOutcome::HasPlan) => {
            notice(StatusCode::CONFLICT, "orders.has_plan_title", "orders.has_plan")
        }
        Ok(PurchaseOutcome::Limited) => {
            notice(StatusCode::TOO_MANY_REQUESTS, "account.too_many_title", "orders.too_many")
        }
        Ok(PurchaseOutcome::NotForSale) => {
            notice(StatusCode::BAD_REQUEST, "orders.not_for_sale_title", "orders.not_for_sale")
        }
        // The order of this form is paid or closed.
        Err(error) if error.kind() == ErrorKind::Conflict => see_other(context, "account/orders"),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            notice(StatusCode::FORBIDDEN, "account.blocked_title", "account.blocked")
        }
        Err(error) => {
            tracing::error!(%error, "checkout failed");
            notice(StatusCode::SERVICE_UNAVAILABLE, "orders.unavailable_title", "orders.unavailable")
        }
    }
}
