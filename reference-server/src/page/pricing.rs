//! Prices: what is free, packs, plans, and what costs a credit.

use maud::{Markup, html};
use transcript_core::{
    accounts::{
        AccountsOptions, PlanTable,
        payments::{CURRENCY, Pack},
    },
    directory::Plan,
    lookup::LookupOptions,
};

use super::{Frame, PageContext, PageWidth, Section};
use crate::config::PageIndex;

/// What the page shows, from the settings in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriceList<'a> {
    /// Limits of visitors and keys.
    pub(crate) lookup: &'a LookupOptions,
    /// Credits of operations.
    pub(crate) accounts: &'a AccountsOptions,
    /// The plans as they are sold: the test checkout has prices without settings, too.
    pub(crate) plans: &'a PlanTable,
    /// Whether packs and plans can be bought.
    pub(crate) is_sold: bool,
    /// Whether visitors can request transcripts.
    pub(crate) has_visitors: bool,
}

/// The page `/pricing`.
pub(crate) fn pricing(context: &PageContext, prices: &PriceList<'_>) -> Markup {
    let body = html! {
        h1.display { (context.text("pricing.title")) }
        p.lead { (context.text("pricing.lead")) }
        (free(context, prices))
        (packs(context, prices))
        (plans(context, prices))
        (credits(context, prices))
        @if context.site().has_account_pages {
            p { a.button href=(context.href("register")) { (context.text("pricing.register")) } }
        } @else {
            p { a href=(context.href("docs")) { (context.text("pricing.docs")) } }
        }
    };
    let title = format!("{} – Verbatim", context.text("pricing.title"));
    let frame = Frame::new(context, &title).section(Section::Pricing).width(PageWidth::Wide);
    frame.described("pricing", context.text("pricing.lead")).indexed_with(PageIndex::Site).render(body)
}

/// What needs no payment.
fn free(context: &PageContext, prices: &PriceList<'_>) -> Markup {
    let count = |key: &str, count: u64| context.fill(key, &[("count", &context.number(count))]);
    html! {
        section {
            h2 #free { (context.text("pricing.free")) }
            ul {
                li { (context.text("pricing.free_archived")) }
                @if prices.has_visitors {
                    li { (count("pricing.free_visitor", prices.lookup.visitor_per_day)) }
                }
                li { (count("pricing.free_key", prices.lookup.free_per_month)) }
                li { (count("pricing.free_account", prices.plans.free.credits)) }
                li { (context.text("pricing.free_failed")) }
            }
        }
    }
}

/// Price of a thousand credits; empty for none.
fn per_thousand(context: &PageContext, cents: u64, credits: u64) -> String {
    match credits {
        0 => String::new(),
        credits => {
            let cents = u128::from(cents) * 1_000 / u128::from(credits);
            context.price(u64::try_from(cents).unwrap_or(u64::MAX), CURRENCY)
        }
    }
}

/// Packs of credits, which do not expire.
fn packs(context: &PageContext, prices: &PriceList<'_>) -> Markup {
    let columns = ["pricing.credits", "pricing.price", "pricing.per_thousand"];
    html! {
        section {
            h2 #packs { (context.text("pricing.packs")) }
            @if prices.is_sold {
                p { (context.text("pricing.packs_about")) }
                div.scrolled tabindex="0" role="region" aria-labelledby="packs" {
                    table.prices {
                        thead { tr { @for column in columns { th scope="col" { (context.text(column)) } } } }
                        tbody {
                            @for pack in Pack::ALL {
                                tr {
                                    th scope="row" { (context.number(pack.credits)) }
                                    td { (context.price(pack.price_minor(), CURRENCY)) }
                                    td { (per_thousand(context, pack.price_minor(), pack.credits)) }
                                }
                            }
                        }
                    }
                }
                // Without a session this leads to the sign-in page, and from there back.
                @if context.site().has_account_pages {
                    p { a.button href=(context.href("account/orders")) { (context.text("pricing.buy")) } }
                }
            } @else {
                p { (context.text("pricing.not_sold")) }
            }
        }
    }
}

/// Monthly plans. One without a price is not for sale.
fn plans(context: &PageContext, prices: &PriceList<'_>) -> Markup {
    let columns = [
        "pricing.plan",
        "pricing.credits_per_month",
        "pricing.price_per_month",
        "pricing.per_thousand",
        "pricing.requests",
    ];
    let terms = |plan| prices.plans.terms(plan);
    let is_shown = |plan| plan == Plan::Free || (prices.is_sold && terms(plan).price_cents.is_some());
    let shown =
        [Plan::Free, Plan::Starter, Plan::Pro, Plan::Scale].into_iter().filter(|plan| is_shown(*plan));
    html! {
        section {
            h2 #plans { (context.text("pricing.plans")) }
            div.scrolled tabindex="0" role="region" aria-labelledby="plans" {
                table.prices {
                    thead { tr { @for column in columns { th scope="col" { (context.text(column)) } } } }
                    tbody {
                        @for plan in shown {
                            @let terms = terms(plan);
                            @let cents = terms.price_cents.filter(|_| plan != Plan::Free);
                            tr {
                                th scope="row" { (plan.as_str()) }
                                td { (context.number(terms.credits)) }
                                td {
                                    @match cents {
                                        Some(cents) => (context.price(cents, CURRENCY)),
                                        None => (context.text("pricing.no_price")),
                                    }
                                }
                                td { @if let Some(cents) = cents { (per_thousand(context, cents, terms.credits)) } }
                                td { (context.number(terms.requests_per_minute.into())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What costs a credit.
fn credits(context: &PageContext, prices: &PriceList<'_>) -> Markup {
    let count = |key: &str, count: u64| context.fill(key, &[("count", &context.number(count))]);
    html! {
        section {
            h2 #credits { (context.text("pricing.costs")) }
            ul {
                li { (count("pricing.cost_transcript", prices.accounts.credits_per_transcript)) }
                li { (count("pricing.cost_message", prices.accounts.credits_per_message)) }
                li { (context.text("pricing.cost_nothing")) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lookup: &LookupOptions, accounts: &AccountsOptions, is_sold: bool) -> String {
        let prices = PriceList { lookup, accounts, plans: &accounts.plans, is_sold, has_visitors: true };
        pricing(&PageContext::for_test("/pricing"), &prices).into_string()
    }

    #[test]
    fn pricing_shows_settings_in_force() {
        let lookup = LookupOptions { visitor_per_day: 7, ..LookupOptions::default() };
        let mut accounts = AccountsOptions { credits_per_transcript: 3, ..AccountsOptions::default() };
        accounts.plans.pro.price_cents = Some(2_900);
        let sold = page(&lookup, &accounts, true);
        for part in [
            "<td>$250.00</td><td>$5.00</td>",
            "<th scope=\"row\">pro</th><td>10,000</td><td>$29.00</td><td>$2.90</td><td>100</td>",
            "without an account: 7<",
            "transcript: 3",
        ] {
            assert!(sold.contains(part), "{part}: {sold}");
        }
        assert!(!sold.contains("starter") && sold.contains("aria-current=\"true\">Pricing"), "{sold}");
        let unsold = page(&lookup, &accounts, false);
        assert!(!unsold.contains("$250.00") && !unsold.contains("$29.00"), "{unsold}");
        for (page, is_sold) in [(&sold, true), (&unsold, false)] {
            assert_eq!(page.contains("href=\"account/orders\">Buy credits or a plan"), is_sold, "{page}");
        }
        assert!(unsold.contains("<th scope=\"row\">free</th>"), "{unsold}");
    }

    #[test]
    fn price_per_thousand_is_rounded_down() {
        let context = PageContext::for_test("/pricing");
        let shown = [(900, 2_000), (100, 3_000), (5, 0), (u64::MAX, 1)]
            .map(|(cents, credits)| per_thousand(&context, cents, credits));
        assert_eq!(&shown[..3], ["$4.50", "$0.33", ""]);
        assert!(shown[3].starts_with('$'));
    }
}
