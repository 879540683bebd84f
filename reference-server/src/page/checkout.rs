//! Order pages: the page to which buyers return, and the sandbox checkout without real payments.

use maud::{Markup, html};
use transcript_core::accounts::{
    Order, OrderItem, OrderState,
    payments::{BuyerStatus, OrderResolution, OrderStatus, SandboxOrder, SandboxStatus},
};

use super::{HtmlPage, document};

/// Relative path from an order page to the root of the service.
pub(crate) const ORDER_ROOT: &str = "../";
/// Relative path from a sandbox page to the root of the service.
pub(crate) const SANDBOX_ROOT: &str = "../../";

/// Page with the status of an order.
pub(crate) fn order_status(status: &OrderStatus) -> Markup {
    let order = &status.order;
    let (title, details) = match (order.state, status.resolution) {
        (OrderState::Open, OrderResolution::Unfulfilled { is_returned }) => unfulfilled(order, is_returned),
        (OrderState::Open, _) => (
            "Not paid yet",
            html! {
                p {
                    "No payment has arrived. If you left the payment page, you can go back to it, or place a new \
                     order."
                }
                p { "If you have just paid, the payment may still be pending: " a href="" { "reload this page" } "." }
            },
        ),
        (OrderState::Fulfilled, resolution) => ("Paid", fulfilled(order, resolution)),
        (OrderState::Expired, _) => {
            ("Cancelled", html! { p { "This order is closed. Nothing was charged, and nothing will be." } })
        }
        (OrderState::Refunded, _) => ("Refunded", html! { p { (REFUND_NOTE) } }),
        (OrderState::Disputed, _) => ("Disputed", disputed(status)),
    };
    document(
        HtmlPage::plain(title, ORDER_ROOT),
        html! {
            p.kicker { "Your order" }
            h1 { (title) }
            (details)
            (facts(order))
            p.about { "You can close this page." }
        },
    )
}

/// Consequence of a refund.
const REFUND_NOTE: &str = "The payment was refunded, and its credits were removed in proportion.";

/// Paid order without credits or plan. The page must not suggest another payment.
fn unfulfilled(order: &Order, is_returned: bool) -> (&'static str, Markup) {
    if is_returned {
        return (
            "Refunded",
            html! { p { "This order was not fulfilled, and the payment was refunded in full." } },
        );
    }
    (
        "Paid, but not fulfilled",
        html! {
            p {
                "A payment arrived for this order, but it does not match the order, or the account was deleted. \
                 Please do not pay again. Contact the operator of this service with the order id "
                code { (order.id) } "."
            }
        },
    )
}

/// State of a disputed payment.
fn disputed(status: &OrderStatus) -> Markup {
    html! {
        p { "The payment was disputed with the payer's bank." }
        @if !status.order.refunded_credits.is_empty() { p { (REFUND_NOTE) } }
        p {
            @match status.buyer {
                BuyerStatus::Open => "The account is open."
                BuyerStatus::Blocked => "The account is blocked until the operator of this service decides."
                BuyerStatus::Deleted => "The account was deleted."
            }
        }
    }
}

/// Result of a fulfilled order.
fn fulfilled(order: &Order, resolution: OrderResolution) -> Markup {
    let credits = grouped(order.credits);
    match (&order.item, resolution) {
        (OrderItem::Pack(_), _) => html! {
            p { (credits) " credits were added to your account. They do not expire." }
        },
        (OrderItem::Plan(plan), OrderResolution::Active) => html! {
            p { "Your account now has the plan " (plan.as_str()) ", with " (credits) " credits a month." }
        },
        (OrderItem::Plan(plan), OrderResolution::GrantedAsCredits) => html! {
            p {
                "Your account has another paid plan, which continues. For the month of " (plan.as_str())
                " that was paid here, " (credits) " credits were added instead. They do not expire."
            }
        },
        (OrderItem::Plan(plan), _) => html! {
            p {
                "The plan " (plan.as_str()) ", with " (credits) " credits a month, was bought with this order."
            }
        },
    }
}

/// Sandbox page of an order. `token` is the secret of its address.
pub(crate) fn sandbox(sandbox_order: &SandboxOrder, token: &str) -> Markup {
    let order = &sandbox_order.order;
    let left = order.amount_minor.saturating_sub(sandbox_order.returned_minor);
    document(
        HtmlPage::plain("Test checkout", SANDBOX_ROOT),
        html! {
            p.notice role="note" {
                strong { "This is a test." }
                " No real payment is made, and no card is needed."
            }
            h1 { "Test checkout" }
            (facts(order))
            @match sandbox_order.status {
                SandboxStatus::Open => {
                    (form(token, html! {
                        (button("pay", &format!("Pretend to pay {}", dollars(order.amount_minor))))
                        (secondary_button("pay-later", "Pretend to pay by a slow transfer"))
                        (secondary_button("cancel", "Cancel"))
                    }))
                }
                SandboxStatus::Pending => {
                    p { "The payment is pending. Nothing has been credited yet." }
                    (form(token, html! {
                        (button("arrive", "Simulate a completed payment"))
                        (secondary_button("fail", "Simulate a failed payment"))
                    }))
                }
                SandboxStatus::Paid => {
                    p { "The payment is complete, and the order is fulfilled." }
                    @if left > 0 {
                        (form(token, html! {
                            label for="cents" { "Amount of the simulated refund, in US cents:" }
                            input id="cents" name="cents" type="number" required min="1" max=(left) value=(left);
                            (secondary_button("refund", "Refund"))
                        }))
                    }
                    @if sandbox_order.returned_minor > 0 {
                        p { "Refunded: " (dollars(sandbox_order.returned_minor)) "." }
                    }
                }
                SandboxStatus::Ended => {
                    p { "The order was cancelled. Nothing was charged, and nothing was credited." }
                }
            }
            @if sandbox_order.status != SandboxStatus::Open {
                p { a href=(format!("../{}", order.id)) { "Show the buyer's page" } }
            }
        },
    )
}

/// Page for an unknown order and for a wrong secret: both look the same.
pub(crate) fn missing(root: &str) -> Markup {
    document(
        HtmlPage::plain("No such order", root),
        html! {
            h1 { "No such order" }
            p {
                "There is no order at this address, or its page is closed. Check that the address was copied \
                 completely, or place a new order."
            }
        },
    )
}

/// Error page.
pub(crate) fn error(why: &str, root: &str) -> Markup {
    document(
        HtmlPage::plain("That did not work", root),
        html! {
            h1 { "That did not work" }
            p { (why) }
        },
    )
}

/// Body of a redirect, which browsers do not show.
pub(crate) fn redirect() -> Markup {
    document(HtmlPage::plain("Done", SANDBOX_ROOT), html! { h1 { "Done" } })
}

fn facts(order: &Order) -> Markup {
    html! {
        dl.facts {
            dt { "Ordered" }
            dd {
                @match &order.item {
                    OrderItem::Pack(name) => { (grouped(order.credits)) " credits (pack " (name) ")" }
                    OrderItem::Plan(plan) => {
                        "plan " (plan.as_str()) ", " (grouped(order.credits)) " credits a month"
                    }
                }
            }
            dt { "Price" }
            dd {
                (dollars(order.amount_minor))
                @if matches!(order.item, OrderItem::Plan(_)) { " a month" }
            }
            dt { "Order" }
            dd { code { (order.id) } }
        }
    }
}

/// Form of the sandbox. Its action is relative to the page, so that it works under any base path.
fn form(token: &str, inside: Markup) -> Markup {
    html! {
        form method="post" action="sandbox" {
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

/// Amount in US cents as dollars.
fn dollars(cents: u64) -> String {
    format!("${}.{:02}", grouped(cents / 100), cents % 100)
}

/// Number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        Timestamp,
        directory::Plan,
        ids::{AccountId, OrderId},
    };

    use super::*;

    fn page(
        state: OrderState,
        refunded_credits: &[u64],
        resolution: OrderResolution,
        buyer: BuyerStatus,
    ) -> String {
        let order = Order {
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
            created_at: Timestamp::from_millis(0),
        };
        order_status(&OrderStatus { order, resolution, buyer }).into_string()
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
        let shown = [0, 5, 1_200, 99_999, 123_456_789].map(dollars);
        assert_eq!(shown, ["$0.00", "$0.05", "$12.00", "$999.99", "$1,234,567.89"]);
        assert_eq!(
            [0, 999, 1_000, 50_000, 1_000_000].map(grouped),
            ["0", "999", "1,000", "50,000", "1,000,000"]
        );
    }
}
