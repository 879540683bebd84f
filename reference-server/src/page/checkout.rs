//! The pages of an order: where buyers come back to, and the sandbox, in which nobody pays.

use maud::{Markup, html};
use transcript_core::accounts::{
    Item, Order, OrderState,
    payments::{BuyerSeen, OrderFate, OrderSeen, SandboxOrder, SandboxStep},
};

use super::{Page, document};

/// The way up from the page of an order.
pub(crate) const ORDER_ROOT: &str = "../";
/// The way up from the sandbox's page of an order.
pub(crate) const SANDBOX_ROOT: &str = "../../";

/// How an order stands.
pub(crate) fn back(seen: &OrderSeen) -> Markup {
    let order = &seen.order;
    let (title, said) = match (order.state, seen.fate) {
        (OrderState::Open, OrderFate::InVain { is_returned }) => in_vain(order, is_returned),
        (OrderState::Open, _) => (
            "Not paid yet",
            html! {
                p {
                    "Nothing has been charged as far as we know. If you left the payment page, you can go back to \
                     it, or order again."
                }
                p { "If you have just paid, the money may be under way: " a href="" { "look again" } "." }
            },
        ),
        (OrderState::Fulfilled, fate) => ("Paid", given(order, fate)),
        (OrderState::Expired, _) => {
            ("Cancelled", html! { p { "Nothing was paid, and nothing will be: this order is closed." } })
        }
        (OrderState::Refunded, _) => ("Refunded", html! { p { (TAKEN_BACK) } }),
        (OrderState::Disputed, _) => ("Disputed", contested(seen)),
    };
    document(
        Page::plain(title, ORDER_ROOT),
        html! {
            p.kicker { "Your order" }
            h1 { (title) }
            (said)
            (facts(order))
            p.about { "You can close this page." }
        },
    )
}

/// What follows when money went back.
const TAKEN_BACK: &str = "Money went back, and the credits that it paid for were taken back in proportion.";

/// Money came, and nothing was given for it: whoever pays again loses more.
fn in_vain(order: &Order, is_returned: bool) -> (&'static str, Markup) {
    if is_returned {
        return (
            "Refunded",
            html! { p { "Nothing was given for this payment, and all of the money went back." } },
        );
    }
    (
        "Paid, but nothing was given",
        html! {
            p {
                "Money came in for this order, but not what was ordered, or its account is gone: nothing was given. \
                 Please do not pay again. Write to the operator of this service and name the order "
                code { (order.id) } "."
            }
        },
    )
}

/// What became of a payment that the buyer's bank contests, or contested.
fn contested(seen: &OrderSeen) -> Markup {
    html! {
        p { "The payment was contested with the payer's bank." }
        @if !seen.order.taken_back.is_empty() { p { (TAKEN_BACK) } }
        p {
            @match seen.buyer {
                BuyerSeen::Open => "The account is open."
                BuyerSeen::Blocked => "The account is blocked until the operator of this service decides."
                BuyerSeen::Gone => "The account is gone."
            }
        }
    }
}

/// What a buyer has who paid.
fn given(order: &Order, fate: OrderFate) -> Markup {
    let credits = grouped(order.credits);
    match (&order.item, fate) {
        (Item::Pack(_), _) => html! {
            p { (credits) " credits were added to your account. They do not expire." }
        },
        (Item::Plan(plan), OrderFate::Present) => html! {
            p { "Your account has the plan " (plan.as_str()) " now, with " (credits) " credits a month." }
        },
        (Item::Plan(plan), OrderFate::Beside) => html! {
            p {
                "Your account had another paid plan, which goes on. For the month of " (plan.as_str())
                " that was paid here, " (credits) " credits were added instead. They do not expire."
            }
        },
        (Item::Plan(plan), _) => html! {
            p {
                "The plan " (plan.as_str()) ", with " (credits) " credits a month, was bought with this order."
            }
        },
    }
}

/// The sandbox's page of an order. `token` is the secret of its address.
pub(crate) fn sandbox(shown: &SandboxOrder, token: &str) -> Markup {
    let order = &shown.order;
    let left = order.amount_minor.saturating_sub(shown.returned_minor);
    document(
        Page::plain("Test checkout", SANDBOX_ROOT),
        html! {
            p.notice role="note" {
                strong { "This is a test." }
                " Nobody pays anything here, no card is asked for, and no money moves."
            }
            h1 { "Test checkout" }
            (facts(order))
            @match shown.step {
                SandboxStep::Open => {
                    (form(token, html! {
                        (button("pay", &format!("Pretend to pay {}", dollars(order.amount_minor))))
                        (other("pay-later", "Pretend to pay by a slow transfer"))
                        (other("cancel", "Cancel"))
                    }))
                }
                SandboxStep::Pending => {
                    p { "The money is said to be under way. Nothing was given yet." }
                    (form(token, html! {
                        (button("arrive", "Let the money arrive"))
                        (other("fail", "Let it never arrive"))
                    }))
                }
                SandboxStep::Paid => {
                    p { "This is said to be paid, and what was ordered was given." }
                    @if left > 0 {
                        (form(token, html! {
                            label for="cents" { "Pretend to give back, in US cents:" }
                            input id="cents" name="cents" type="number" required min="1" max=(left) value=(left);
                            (other("refund", "Refund"))
                        }))
                    }
                    @if shown.returned_minor > 0 {
                        p { (dollars(shown.returned_minor)) " were given back." }
                    }
                }
                SandboxStep::Ended => {
                    p { "This was cancelled: nothing was paid, and nothing was given." }
                }
            }
            @if shown.step != SandboxStep::Open {
                p { a href=(format!("../{}", order.id)) { "What the buyer sees" } }
            }
        },
    )
}

/// For an order that there is not, and for a page whose secret is another's: both alike.
pub(crate) fn missing(root: &str) -> Markup {
    document(
        Page::plain("No such order", root),
        html! {
            h1 { "No such order" }
            p {
                "There is no order at this address, or its page is closed. Check that the address was copied \
                 whole, or order again."
            }
        },
    )
}

/// Says what went wrong.
pub(crate) fn wrong(why: &str, root: &str) -> Markup {
    document(
        Page::plain("That did not work", root),
        html! {
            h1 { "That did not work" }
            p { (why) }
        },
    )
}

/// What nobody sees: the browser goes on.
pub(crate) fn onward() -> Markup {
    document(Page::plain("Done", SANDBOX_ROOT), html! { h1 { "Done" } })
}

fn facts(order: &Order) -> Markup {
    html! {
        dl.facts {
            dt { "Ordered" }
            dd {
                @match &order.item {
                    Item::Pack(name) => { (grouped(order.credits)) " credits (pack " (name) ")" }
                    Item::Plan(plan) => {
                        "plan " (plan.as_str()) ", " (grouped(order.credits)) " credits a month"
                    }
                }
            }
            dt { "Price" }
            dd {
                (dollars(order.amount_minor))
                @if matches!(order.item, Item::Plan(_)) { " a month" }
            }
            dt { "Order" }
            dd { code { (order.id) } }
        }
    }
}

/// The address is the page's own: wherever the service lies, the form finds it.
fn form(token: &str, inside: Markup) -> Markup {
    html! {
        form method="post" action="sandbox" {
            input type="hidden" name="token" value=(token);
            (inside)
        }
    }
}

fn button(deed: &str, text: &str) -> Markup {
    html! { button type="submit" name="deed" value=(deed) { (text) } }
}

fn other(deed: &str, text: &str) -> Markup {
    html! { button.other type="submit" name="deed" value=(deed) { (text) } }
}

/// An amount in US cents as people write it.
fn dollars(cents: u64) -> String {
    format!("${}.{:02}", grouped(cents / 100), cents % 100)
}

/// A number with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
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

    fn page(state: OrderState, taken_back: &[u64], fate: OrderFate, buyer: BuyerSeen) -> String {
        let order = Order {
            id: OrderId::new("order-7"),
            version: 1,
            account: AccountId::new("ann"),
            item: Item::Plan(Plan::Pro),
            credits: 10_000,
            amount_minor: 2_900,
            currency: "usd".to_owned(),
            state,
            payment: None,
            taken_back: taken_back.to_vec(),
            created_at: Timestamp::from_millis(0),
        };
        back(&OrderSeen { order, fate, buyer }).into_string()
    }

    #[test]
    fn who_paid_in_vain_is_not_told_to_order_again() {
        let page =
            |is_returned| page(OrderState::Open, &[], OrderFate::InVain { is_returned }, BuyerSeen::Gone);
        let kept = page(false);
        assert!(kept.contains("Paid, but nothing was given") && kept.contains("do not pay again"), "{kept}");
        assert!(kept.contains("name the order <code>order-7</code>"), "{kept}");
        assert!(!kept.contains("order again") && !kept.contains("Nothing has been charged"), "{kept}");
        assert!(page(true).contains("all of the money went back"));
    }

    #[test]
    fn what_became_of_a_plan_is_told() {
        let page = |fate| page(OrderState::Fulfilled, &[], fate, BuyerSeen::Open);
        assert!(page(OrderFate::Present).contains("Your account has the plan pro now"));
        for (fate, said) in [
            (OrderFate::Beside, "10,000 credits were added instead. They do not expire."),
            (OrderFate::AsStored, "was bought with this order"),
        ] {
            let page = page(fate);
            assert!(page.contains(said) && !page.contains("has the plan pro now"), "{page}");
        }
    }

    #[test]
    fn a_dispute_is_told_as_it_stands() {
        let page = |back: &[u64], buyer| page(OrderState::Disputed, back, OrderFate::AsStored, buyer);
        let blocked = page(&[], BuyerSeen::Blocked);
        assert!(
            blocked.contains("is blocked until the operator") && !blocked.contains("went back"),
            "{blocked}"
        );
        let lost = page(&[10_000], BuyerSeen::Open);
        assert!(lost.contains("Money went back") && lost.contains("The account is open."), "{lost}");
        assert!(!lost.contains("blocked"), "{lost}");
        assert!(page(&[], BuyerSeen::Gone).contains("The account is gone."));
    }

    #[test]
    fn amounts_are_as_people_write_them() {
        let shown = [0, 5, 1_200, 99_999, 123_456_789].map(dollars);
        assert_eq!(shown, ["$0.00", "$0.05", "$12.00", "$999.99", "$1,234,567.89"]);
        assert_eq!(
            [0, 999, 1_000, 50_000, 1_000_000].map(grouped),
            ["0", "999", "1,000", "50,000", "1,000,000"]
        );
    }
}
