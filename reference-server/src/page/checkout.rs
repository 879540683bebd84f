//! Order pages: the page to which buyers return, and the sandbox checkout without real payments.

use maud::{Markup, html};
use transcript_core::accounts::{
    Order, OrderItem, OrderState,
    payments::{BuyerStatus, CURRENCY, OrderResolution, OrderStatus, SandboxOrder, SandboxStatus},
};

use super::{
    Frame, NextSteps, PageContext, Section,
    account::{date, item, post_form, refund, state},
    query_parameter,
};

/// Who sees the page of an order, which is readable by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderViewer {
    /// A visitor who is not signed in.
    SignedOut,
    /// A signed-in visitor who is not the buyer.
    Other,
    Buyer {
        /// The remaining credits; `None` if they cannot be read.
        credits: Option<u64>,
    },
}

impl OrderViewer {
    /// Whether the page has the form that leads to the payment page.
    pub(crate) fn can_continue(self, status: &OrderStatus) -> bool {
        let is_open = status.order.state == OrderState::Open && status.buyer == BuyerStatus::Open;
        is_open && matches!(self, Self::Buyer { .. })
    }
}

pub(crate) fn order_status(context: &PageContext, status: &OrderStatus, viewer: OrderViewer) -> Markup {
    let order = &status.order;
    let text = |key| context.text(key);
    let paragraph = |key| html! { p { (context.text(key)) } };
    let (title, details) = match (order.state, status.resolution) {
        (OrderState::Open, OrderResolution::Unfulfilled { is_returned: true }) => {
            ("order.refunded", paragraph("order.unfulfilled_returned"))
        }
        // The page must not suggest another payment.
        (OrderState::Open, OrderResolution::Unfulfilled { is_returned: false }) => {
            let id = html! { code { (order.id) } };
            (
                "order.unfulfilled",
                html! { p { (context.markup("order.unfulfilled_kept", &[("order", id)])) } },
            )
        }
        (OrderState::Open, OrderResolution::StartsNextMonth { at }) => {
            let plan = match &order.item {
                OrderItem::Plan(plan) => plan.as_str(),
                OrderItem::Pack(name) => name.as_str(),
            };
            let values = [("plan", html! { (plan) }), ("date", date(at))];
            ("order.next_month", html! { p { (context.markup("order.next_month_why", &values)) } })
        }
        (OrderState::Open, _) => ("order.open", open(context, status, viewer)),
        (OrderState::Fulfilled, resolution) => ("order.paid", fulfilled(context, order, resolution)),
        (OrderState::Expired, _) => ("order.cancelled", paragraph("order.cancelled_why")),
        (OrderState::Refunded, _) => ("order.refunded", paragraph("order.refunded_why")),
        (OrderState::Disputed, _) => ("order.disputed", disputed(context, status)),
    };
    let title = text(title);
    // An order without a payment has added nothing.
    let has_added = matches!(order.state, OrderState::Fulfilled | OrderState::Refunded);
    let balance = match viewer {
        OrderViewer::Buyer { credits } if has_added => credits,
        _ => None,
    };
    frame(context, title).render(html! {
        p.kicker { (text("order.kicker")) }
        h1 { (title) }
        (details)
        @if let Some(credits) = balance {
            p { (context.fill("orders.balance", &[("credits", &context.number(credits))])) }
        }
        (order_facts(context, order))
        ul {
            li { a href=(context.href("account")) { (context.text("account.to_account")) } }
            li { a href=(context.href("account/orders")) { (context.text("orders.all")) } }
            li { a href=(context.href("docs")) { (context.text("keys.next_docs")) } }
        }
    })
}

/// An order without a payment, and the way back to its payment page, which is the buyer's only.
fn open(context: &PageContext, status: &OrderStatus, viewer: OrderViewer) -> Markup {
    let (text, order) = (|key| context.text(key), &status.order);
    html! {
        p { (text("order.open_why")) }
        p { (text("order.open_pending")) " " a href="" { (text("order.reload")) } }
        @if viewer.can_continue(status) {
            (continue_form(context, order))
        } @else if viewer == OrderViewer::SignedOut && context.site().has_account_pages {
            p {
                a href=(context.href(&format!("sign-in?next=checkout/{}", order.id))) {
                    (text("order.open_sign_in"))
                }
            }
        }
    }
}

/// The form that opens the payment page of an order again.
fn continue_form(context: &PageContext, order: &Order) -> Markup {
    let (path, field, value) = match &order.item {
        OrderItem::Pack(name) => ("account/buy", "pack", name.as_str()),
        OrderItem::Plan(plan) => ("account/subscribe", "plan", plan.as_str()),
    };
    post_form(
        context,
        path,
        html! {
            input type="hidden" name="order" value=(order.id);
            button type="submit" name=(field) value=(value) { (context.text("order.continue")) }
        },
    )
}

/// State of a disputed payment.
fn disputed(context: &PageContext, status: &OrderStatus) -> Markup {
    let account = match status.buyer {
        BuyerStatus::Open => "order.account_open",
        BuyerStatus::Blocked => "order.account_blocked",
        BuyerStatus::Deleted => "order.account_deleted",
    };
    html! {
        p { (context.text("order.disputed_why")) }
        @if !status.order.refunded_credits.is_empty() { p { (context.text("order.refunded_why")) } }
        p { (context.text(account)) }
    }
}

/// Result of a fulfilled order.
fn fulfilled(context: &PageContext, order: &Order, resolution: OrderResolution) -> Markup {
    let credits = context.number(order.credits);
    let (message, plan) = match (&order.item, resolution) {
        (OrderItem::Pack(_), _) => ("order.paid_pack", ""),
        (OrderItem::Plan(plan), OrderResolution::Active) => ("order.paid_plan", plan.as_str()),
        (OrderItem::Plan(plan), OrderResolution::GrantedAsCredits) => {
            ("order.paid_as_credits", plan.as_str())
        }
        (OrderItem::Plan(plan), _) => ("order.paid_plan_earlier", plan.as_str()),
    };
    html! { p { (context.fill(message, &[("credits", &credits), ("plan", plan)])) } }
}

/// Sandbox page of an order. `token` is the secret of its address.
pub(crate) fn sandbox(context: &PageContext, sandbox_order: &SandboxOrder, token: &str) -> Markup {
    let order = &sandbox_order.order;
    let (text, query) = (|key| context.text(key), query_parameter("token", token));
    frame(context, text("sandbox.title")).query(&query).render(html! {
        p.notice role="note" { strong { (text("sandbox.notice")) } " " (text("sandbox.notice_why")) }
        h1 { (text("sandbox.title")) }
        (order_facts(context, order))
        @match sandbox_order.status {
            SandboxStatus::Open => {
                @let price = context.price(order.amount_minor, CURRENCY);
                (form(context, token, html! {
                    (button("pay", &context.fill("sandbox.pay", &[("price", &price)])))
                    (secondary_button("pay-later", text("sandbox.pay_later")))
                    (secondary_button("cancel", text("sandbox.cancel")))
                }))
            }
            SandboxStatus::Pending => {
                p { (text("sandbox.pending")) }
                (form(context, token, html! {
                    (button("arrive", text("sandbox.arrive")))
                    (secondary_button("fail", text("sandbox.fail")))
                }))
            }
            SandboxStatus::Paid => {
                p { (text("sandbox.paid")) }
                (sandbox_refund(context, sandbox_order, token))
            }
            SandboxStatus::Ended => p { (text("sandbox.ended")) }
        }
        @if sandbox_order.status != SandboxStatus::Open {
            p { a href={ "../" (order.id) (context.with_language("")) } { (text("sandbox.buyer")) } }
        }
    })
}

/// The form for a refund of what is left of a payment, and what was refunded.
fn sandbox_refund(context: &PageContext, sandbox_order: &SandboxOrder, token: &str) -> Markup {
    let returned = sandbox_order.returned_minor;
    let left = sandbox_order.order.amount_minor.saturating_sub(returned);
    html! {
        @if left > 0 {
            (form(context, token, html! {
                label for="cents" { (context.text("sandbox.refund_amount")) }
                input id="cents" name="cents" type="number" required min="1" max=(left) value=(left);
                (secondary_button("refund", context.text("sandbox.refund")))
            }))
        }
        @if returned > 0 {
            p { (context.fill("sandbox.refunded", &[("amount", &context.price(returned, CURRENCY))])) }
        }
    }
}

/// Page for an unknown order and for a wrong secret: both look the same.
pub(crate) fn missing(context: &PageContext) -> Markup {
    let title = context.text("order.missing");
    frame(context, title).render(html! {
        h1 { (title) }
        p { (context.text("order.missing_why")) }
        p { a href=(context.href("account/orders")) { (context.text("orders.all")) } }
        (NextSteps::default().render(context))
    })
}

/// Error page. `why` is a message.
pub(crate) fn error(context: &PageContext, why: &str) -> Markup {
    let title = context.text("problem.other");
    frame(context, title).render(html! {
        h1 { (title) }
        p { (context.text(why)) }
        (NextSteps::default().render(context))
    })
}

fn frame<'a>(context: &'a PageContext, title: &'a str) -> Frame<'a> {
    Frame::new(context, title).section(Section::Account)
}

/// What was ordered, when, for how much, and what was returned.
fn order_facts(context: &PageContext, order: &Order) -> Markup {
    let text = |key| context.text(key);
    html! {
        dl.facts {
            dt { (text("orders.item")) }
            dd { (item(context, order)) }
            @if order.paid_with().is_some() {
                dt { (text("orders.state")) }
                dd { (state(context, order, None)) }
            } @else {
                dt { (text("orders.price")) }
                dd { (context.price(order.charged_minor(), &order.currency)) }
            }
            dt { (text("orders.date")) }
            dd { (date(order.created_at)) }
            (refund(context, order))
            dt { (text("orders.order")) }
            dd { code { (order.id) } }
        }
    }
}

/// Form of the sandbox. Its action is relative to the page, so that it works under any base path.
fn form(context: &PageContext, token: &str, inside: Markup) -> Markup {
    html! {
        form method="post" action={ "sandbox" (context.with_language("")) } {
            input type="hidden" name="token" value=(token);
            (inside)
        }
    }
}

fn button(action: &str, text: &str) -> Markup {
    html! { button type="submit" name="deed" value=(action) { (text) } }
}

fn secondary_button(action: &str, text: &str) -> Markup {
    html! { button.other type="submit" name="deed" value=(action) { (text) } }
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        Timestamp,
        directory::Plan,
        ids::{AccountId, OrderId},
    };

    use super::*;

    fn order(state: OrderState, refunded_credits: &[u64]) -> Order {
        Order {
            id: OrderId::new("order-7"),
            version: 1,
            account: AccountId::new("ann"),
            item: OrderItem::Plan(Plan::Pro),
            credits: 10_000,
            amount_minor: 2_900,
            currency: "usd".to_owned(),
            state,
            payment: None,
            refunded_credits: refunded_credits.to_vec(),
            returned_minor: 0,
            paid_minor: None,
            language: None,
            created_at: Timestamp::from_millis(0),
        }
    }

    fn page(
        state: OrderState,
        refunded_credits: &[u64],
        resolution: OrderResolution,
        buyer: BuyerStatus,
    ) -> String {
        page_of(order(state, refunded_credits), resolution, buyer)
    }

    fn page_of(order: Order, resolution: OrderResolution, buyer: BuyerStatus) -> String {
        let context = PageContext::for_test("/checkout/order-7");
        order_status(&context, &OrderStatus { order, resolution, buyer }, OrderViewer::SignedOut)
            .into_string()
    }

    #[test]
    fn order_page_shows_balance_only_after_payment() {
        let context = PageContext::for_test("/checkout/order-7");
        for (state, is_shown) in [
            (OrderState::Open, false),
            (OrderState::Expired, false),
            (OrderState::Fulfilled, true),
            (OrderState::Refunded, true),
        ] {
            let (order, resolution) = (order(state, &[]), OrderResolution::Unchanged);
            let status = OrderStatus { order, resolution, buyer: BuyerStatus::Open };
            let viewer = OrderViewer::Buyer { credits: Some(2_200) };
            let page = order_status(&context, &status, viewer).into_string();
            assert_eq!(page.contains("You now have 2,200 credits."), is_shown, "{page}");
        }
    }

    #[test]
    fn order_page_leads_only_its_buyer_back_to_payment() {
        let context = PageContext::for_test("/checkout/order-7");
        let page = |viewer, buyer| {
            let (order, resolution) = (order(OrderState::Open, &[]), OrderResolution::Unchanged);
            order_status(&context, &OrderStatus { order, resolution, buyer }, viewer).into_string()
        };
        let buyer_with = |credits| OrderViewer::Buyer { credits };
        for (viewer, buyer, has_form, has_link) in [
            (buyer_with(Some(200)), BuyerStatus::Open, true, false),
            (buyer_with(None), BuyerStatus::Open, true, false),
            (buyer_with(Some(200)), BuyerStatus::Blocked, false, false),
            (OrderViewer::Other, BuyerStatus::Open, false, false),
            (OrderViewer::SignedOut, BuyerStatus::Open, false, true),
        ] {
            let page = page(viewer, buyer);
            let form = ["action=\"../account/subscribe\"", "name=\"order\" value=\"order-7\""];
            assert_eq!(form.map(|part| page.contains(part)), [has_form; 2], "{page}");
            assert_eq!(page.contains("href=\"../sign-in?next=checkout/order-7\""), has_link, "{page}");
        }
    }

    #[test]
    fn order_page_unfulfilled_payment_does_not_suggest_new_order() {
        let page = |is_returned| {
            page(OrderState::Open, &[], OrderResolution::Unfulfilled { is_returned }, BuyerStatus::Deleted)
        };
        let kept = page(false);
        assert!(kept.contains("Paid, but not fulfilled") && kept.contains("do not pay again"), "{kept}");
        assert!(kept.contains("with the order id <code>order-7</code>"), "{kept}");
        assert!(!kept.contains("new order") && !kept.contains("No payment has arrived"), "{kept}");
        assert!(page(true).contains("refunded in full"));
    }

    #[test]
    fn order_page_shows_paid_amount_in_place_of_price() {
        let paid = Order { paid_minor: Some(2_450), ..order(OrderState::Refunded, &[10_000]) };
        for returned_minor in [0, 2_450] {
            let order = Order { returned_minor, ..paid.clone() };
            let page = page_of(order, OrderResolution::Unchanged, BuyerStatus::Open);
            assert!(page.contains("24.50") && !page.contains("29.00"), "{page}");
        }
    }

    #[test]
    fn order_page_of_next_month_asks_for_no_payment() {
        let at = Timestamp::from_millis(1_795_132_800_000);
        let resolution = OrderResolution::StartsNextMonth { at };
        let page = page(OrderState::Open, &[], resolution, BuyerStatus::Open);
        for part in ["the plan pro begins with the next month", "2026-11-20"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("new order") && !page.contains("Not paid"), "{page}");
    }

    #[test]
    fn order_page_paid_with_other_order_links_to_it() {
        let (payment, paid_minor) = (Some("in_1".to_owned()), Some(0));
        let order = Order { payment, paid_minor, ..order(OrderState::Fulfilled, &[]) };
        let page = page_of(order, OrderResolution::Unchanged, BuyerStatus::Open);
        assert!(page.contains("Paid with <a href=\"../account/orders/in_1\">"), "{page}");
        assert!(!page.contains("29.00") && !page.contains("$0.00"), "{page}");
    }

    #[test]
    fn order_page_fulfilled_plan_shows_resolution() {
        let page = |resolution| page(OrderState::Fulfilled, &[], resolution, BuyerStatus::Open);
        assert!(page(OrderResolution::Active).contains("Your account now has the plan pro"));
        for (resolution, sentence) in [
            (OrderResolution::GrantedAsCredits, "10,000 credits were added instead. They do not expire."),
            (OrderResolution::Unchanged, "was bought with this order"),
        ] {
            let page = page(resolution);
            assert!(page.contains(sentence) && !page.contains("now has the plan pro"), "{page}");
        }
    }

    #[test]
    fn order_page_dispute_shows_account_state() {
        let page = |back: &[u64], buyer| page(OrderState::Disputed, back, OrderResolution::Unchanged, buyer);
        let blocked = page(&[], BuyerStatus::Blocked);
        assert!(
            blocked.contains("is blocked until the operator") && !blocked.contains("refunded"),
            "{blocked}"
        );
        let lost = page(&[10_000], BuyerStatus::Open);
        assert!(lost.contains("The payment was refunded") && lost.contains("The account is open."), "{lost}");
        assert!(!lost.contains("blocked"), "{lost}");
        assert!(page(&[], BuyerStatus::Deleted).contains("The account was deleted."));
    }

    #[test]
    fn amounts_have_thousands_separators() {
        let german = ["0,00\u{a0}$", "0,05\u{a0}$", "12,00\u{a0}$", "999,99\u{a0}$", "1.234.567,89\u{a0}$"];
        for (address, prices, expected) in [
            (
                "/",
                ["$0.00", "$0.05", "$12.00", "$999.99", "$1,234,567.89"],
                ["0", "999", "1,000", "50,000", "1,000,000"],
            ),
            ("/?hl=de", german, ["0", "999", "1.000", "50.000", "1.000.000"]),
        ] {
            let context = PageContext::for_test(address);
            let shown = [0, 5, 1_200, 99_999, 123_456_789].map(|cents| context.price(cents, CURRENCY));
            assert_eq!(shown, prices);
            assert_eq!([0, 999, 1_000, 50_000, 1_000_000].map(|number| context.number(number)), expected);
        }
    }
}
