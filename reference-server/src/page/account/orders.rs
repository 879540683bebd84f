//! Orders, receipts, and what can be bought.

use maud::{Markup, html};
use transcript_core::{
    Timestamp,
    accounts::{
        EffectivePlan, Order, OrderItem, OrderState, PlanState,
        payments::{CURRENCY, Pack, Payments},
    },
    directory::{Account, Plan},
};

use super::{AccountPage, account_page, date, post_form};
use crate::page::PageContext;

/// What can be bought.
#[derive(Debug)]
pub(crate) struct Shop<'a> {
    payments: &'a Payments,
    account: &'a Account,
    /// The plan that the account has and need not buy.
    plan: Option<Plan>,
    /// Token of each form: a second click opens no second order.
    tokens: Vec<String>,
}

impl<'a> Shop<'a> {
    /// The packs and plans that an account with this plan can buy; `token` makes the token of a form.
    pub(crate) fn new(
        payments: &'a Payments,
        account: &'a Account,
        plan: &EffectivePlan,
        token: impl Fn() -> String,
    ) -> Self {
        let forms = Pack::ALL.len() + Plan::ALL.len();
        // A plan that is not renewed can be bought again, and an overdue one can be paid.
        let is_kept = account.subscription.is_some() && plan.state == PlanState::Paid;
        let plan = is_kept.then_some(plan.plan);
        Self { payments, account, plan, tokens: (0..forms).map(|_| token()).collect() }
    }

    fn token(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", String::as_str)
    }
}

/// Page with all orders, newest first.
pub(crate) fn orders(context: &PageContext, account: &Account, orders: &[Order], shop: &Shop<'_>) -> Markup {
    let text = |key| context.text(key);
    account_page(
        context,
        AccountPage::Orders,
        "account.orders",
        html! {
            @if account.blocked { p.note role="status" { (text("account.blocked")) } }
            @if orders.is_empty() {
                p { (text("orders.empty")) }
            } @else {
                div.scroll tabindex="0" role="region" aria-label=(text("account.orders")) {
                    table {
                        thead {
                            tr {
                                th scope="col" { (text("orders.date")) }
                                th scope="col" { (text("orders.item")) }
                                th.number scope="col" { (text("orders.price")) }
                                th scope="col" { (text("orders.state")) }
                            }
                        }
                        tbody {
                            @for order in orders {
                                (row(context, order, shop.payments.next_month_start(order, account)))
                            }
                        }
                    }
                }
            }
            @if !account.blocked { (self::shop(context, shop)) }
        },
    )
}

/// An order in the list. `start` is that of [`Payments::next_month_start`].
fn row(context: &PageContext, order: &Order, start: Option<Timestamp>) -> Markup {
    let other = order.paid_with();
    let receipt = format!("account/orders/{}", other.as_ref().unwrap_or(&order.id));
    html! {
        tr {
            td { (date(order.created_at)) }
            td { a href=(context.href(&receipt)) { (item(context, order)) } }
            // One payment is one amount.
            td.number { @if other.is_none() { (context.price(order.charged_minor(), &order.currency)) } }
            td { (state(context, order, start)) }
        }
    }
}

/// The forms that buy packs and plans; nothing if nothing is sold.
pub(super) fn shop(context: &PageContext, shop: &Shop<'_>) -> Markup {
    let text = |key| context.text(key);
    if !shop.payments.is_configured() {
        return Markup::default();
    }
    let plans = Plan::ALL.into_iter().filter_map(|plan| {
        let terms = shop.payments.plans().terms(plan);
        terms.price_cents.filter(|_| plan != Plan::Free).map(|cents| (plan, terms.credits, cents))
    });
    html! {
        h2 #buy { (text("orders.buy_title")) }
        p {
            (text("orders.buy_hint"))
            @if shop.payments.has_subscription(shop.account) { " " (text("orders.change_hint")) }
        }
        ul.shop {
            @for (index, pack) in Pack::ALL.into_iter().enumerate() {
                li {
                    span { (credits(context, pack.credits)) }
                    span.number { (context.price(pack.price_minor(), CURRENCY)) }
                    (buy_form(context, "account/buy", "pack", pack.name, shop.token(index),
                        &context.fill("orders.buy", &[("item", &credits(context, pack.credits))])))
                }
            }
        }
        ul.shop {
            @for (index, (plan, plan_credits, cents)) in plans.enumerate() {
                li {
                    span {
                        (context.fill("orders.plan_offer", &[
                            ("plan", plan.as_str()),
                            ("credits", &context.number(plan_credits)),
                        ]))
                    }
                    span.number { (context.fill("orders.per_month", &[("price", &context.price(cents, CURRENCY))])) }
                    @if shop.plan == Some(plan) {
                        strong { (text("orders.your_plan")) }
                    } @else {
                        (buy_form(context, "account/subscribe", "plan", plan.as_str(),
                            shop.token(Pack::ALL.len() + index),
                            &context.fill("orders.subscribe", &[("plan", plan.as_str())])))
                    }
                }
            }
        }
    }
}

/// The form that opens the provider's page of a plan; nothing if the account has no subscription there.
pub(super) fn manage(context: &PageContext, shop: &Shop<'_>, account: &Account) -> Markup {
    let text = |key| context.text(key);
    if !shop.payments.has_subscription(account) {
        return Markup::default();
    }
    html! {
        h2 #plan { (text("account.plan")) }
        p { (text("orders.manage_hint")) }
        (post_form(context, "account/subscription", html! {
            button.other type="submit" { (text("orders.manage")) }
        }))
    }
}

fn buy_form(context: &PageContext, path: &str, field: &str, value: &str, token: &str, label: &str) -> Markup {
    post_form(
        context,
        path,
        html! {
            input type="hidden" name="token" value=(token);
            button.quiet type="submit" name=(field) value=(value) aria-label=(label) {
                (context.text(if field == "plan" { "orders.subscribe_short" } else { "orders.buy_short" }))
            }
        },
    )
}

/// Receipt of an order, for printing; of one that was not paid, its facts.
///
/// `start` is that of [`Payments::next_month_start`].
pub(crate) fn receipt(
    context: &PageContext,
    account: &Account,
    order: &Order,
    start: Option<Timestamp>,
) -> Markup {
    let text = |key| context.text(key);
    let is_paid = !matches!(order.state, OrderState::Open | OrderState::Expired);
    account_page(
        context,
        AccountPage::Orders,
        if is_paid { "orders.receipt" } else { "orders.order" },
        html! {
            dl.facts {
                dt { (text("orders.order")) }
                dd { code { (order.id) } }
                dt { (text("orders.date")) }
                dd { (date(order.created_at)) }
                dt { (text("orders.seller")) }
                dd {
                    "Verbatim, " bdi dir="ltr" { (context.site().base_url) }
                    @if let Some(imprint) = &context.site().links.imprint {
                        br;
                        a href=(imprint) rel="noreferrer" { bdi dir="ltr" { (imprint) } }
                    }
                }
                dt { (text("orders.buyer")) }
                dd { (account.email) }
                dt { (text("orders.item")) }
                dd { (item(context, order)) }
                dt { (text("orders.price")) }
                dd {
                    (context.price(order.charged_minor(), &order.currency))
                    " (" (order.currency.to_ascii_uppercase()) ")"
                }
                dt { (text("orders.state")) }
                dd { (state(context, order, start)) }
                (refund(context, order))
            }
            @if order.state == OrderState::Open && start.is_none() {
                p.unprinted {
                    a href=(context.href(&format!("checkout/{}", order.id))) { (text("orders.check")) }
                }
            }
            p.unprinted { a href=(context.href("account/orders")) { (text("orders.all")) } }
        },
    )
}

/// What was returned of a payment, in rows of a list of facts.
pub(in crate::page) fn refund(context: &PageContext, order: &Order) -> Markup {
    let text = |key| context.text(key);
    html! {
        @if order.returned_minor > 0 {
            dt { (text("orders.refunded_amount")) }
            dd {
                (context.fill("orders.refunded_of", &[
                    ("returned", &context.price(order.returned_minor, &order.currency)),
                    ("price", &context.price(order.charged_minor(), &order.currency)),
                ]))
            }
        }
        @if let Some(credits) = order.refunded_credits.last() {
            dt { (text("orders.refunded_credits")) }
            dd { (context.number(*credits)) }
        }
    }
}

/// The item of an order in words.
pub(in crate::page) fn item(context: &PageContext, order: &Order) -> String {
    match &order.item {
        OrderItem::Pack(_) => credits(context, order.credits),
        OrderItem::Plan(plan) => context.fill(
            "orders.plan_offer",
            &[("plan", plan.as_str()), ("credits", &context.number(order.credits))],
        ),
    }
}

fn credits(context: &PageContext, count: u64) -> String {
    context.fill("orders.credits", &[("count", &context.number(count))])
}

/// The state of an order in words. `start` is that of [`Payments::next_month_start`].
pub(in crate::page) fn state(context: &PageContext, order: &Order, start: Option<Timestamp>) -> Markup {
    match (order.paid_with(), start) {
        (Some(other), _) => {
            let receipt = context.href(&format!("account/orders/{other}"));
            let link = html! { a href=(receipt) { code { (other) } } };
            context.markup("orders.state_paid_with", &[("order", link)])
        }
        (None, Some(at)) => context.markup("orders.state_next_month", &[("date", date(at))]),
        (None, None) => html! { (context.text(state_message(order.state))) },
    }
}

fn state_message(state: OrderState) -> &'static str {
    match state {
        OrderState::Open => "orders.state_open",
        OrderState::Fulfilled => "orders.state_paid",
        OrderState::Expired => "orders.state_closed",
        OrderState::Refunded => "orders.state_refunded",
        OrderState::Disputed => "orders.state_disputed",
    }
}
