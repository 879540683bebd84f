//! The account: plan, credits, usage, and what can be bought.

use maud::{Markup, html};
use transcript_core::{
    Timestamp,
    accounts::{AccountView, DailyUsage, PlanState},
};

use super::{AccountPage, Shop, account_page, date, orders, post_form};
use crate::page::PageContext;

/// Size of the chart in its coordinates.
const CHART_WIDTH: u64 = 600;
const CHART_HEIGHT: u64 = 120;

/// Page of the account.
pub(crate) fn overview(
    context: &PageContext,
    view: &AccountView,
    usage: &DailyUsage,
    shop: &Shop<'_>,
) -> Markup {
    let text = |key| context.text(key);
    let account = &view.account;
    account_page(
        context,
        AccountPage::Overview,
        "account.title",
        html! {
            p.about { (account.email) }
            @if account.blocked { p.note role="status" { (text("account.blocked")) } }
            (facts(context, view))
            h2 { (text("account.usage")) }
            (chart(context, usage))
            @if usage.is_partial { p.hint { (text("account.usage_partial")) } }
            (orders::manage(context, shop, account))
            @if !account.blocked { (orders::shop(context, shop)) }
            h2 { (text("account.more")) }
            ul {
                li { a href=(context.href("account/export")) { (text("privacy.export")) } }
                li { a href=(context.href("account/delete")) { (text("privacy.delete_title")) } }
            }
            (post_form(context, "sign-out", html! {
                button.other type="submit" { (text("account.sign_out")) }
            }))
        },
    )
}

fn facts(context: &PageContext, view: &AccountView) -> Markup {
    let text = |key| context.text(key);
    let (credits, plan) = (&view.credits, &view.effective_plan);
    html! {
        dl.facts {
            dt { (text("account.plan")) }
            dd {
                (plan.plan.as_str())
                @if plan.state == PlanState::Grace { " (" (text("account.overdue")) ")" }
            }
            dt { (text("account.credits")) }
            dd {
                (context.fill("account.credits_left", &[
                    ("remaining", &context.number(credits.remaining)),
                    ("total", &context.number(credits.total)),
                ]))
            }
            dt { (text("account.resets")) }
            dd { (date(credits.resets_at)) }
            dt { (text("account.speed")) }
            dd { (context.fill("account.per_minute", &[("count", &context.number(plan.requests_per_minute.into()))])) }
        }
    }
}

/// Bars of the credits per day, and the same as a table.
fn chart(context: &PageContext, usage: &DailyUsage) -> Markup {
    let most = usage.days.iter().map(|(_, credits)| *credits).max().unwrap_or(0);
    let total = usage.days.iter().fold(0_u64, |sum, (_, credits)| sum.saturating_add(*credits));
    let label = context.fill("account.usage_total", &[("credits", &context.number(total))]);
    let width = CHART_WIDTH / u64::try_from(usage.days.len()).unwrap_or(1).max(1);
    let bars = (0..).zip(&usage.days).filter(|(_, (_, credits))| *credits > 0);
    html! {
        p { (label) }
        @if most > 0 {
            p.axis aria-hidden="true" { (context.number(most)) }
            svg.chart viewBox=(format!("0 0 {CHART_WIDTH} {CHART_HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                @for (index, (day, credits)) in bars {
                    @let height = bar_height(*credits, most);
                    rect x=(index * width + 1) y=(CHART_HEIGHT - height) width=(width - 2) height=(height) {
                        title { (day_label(*day)) ": " (context.number(*credits)) }
                    }
                }
            }
            p.axis aria-hidden="true" {
                @for (day, _) in usage.days.first().into_iter().chain(usage.days.last()) { (date(*day)) }
            }
            details {
                summary { (context.text("account.usage_table")) }
                table {
                    thead {
                        tr {
                            th scope="col" { (context.text("account.day")) }
                            th.number scope="col" { (context.text("account.credits")) }
                        }
                    }
                    tbody {
                        @for (day, credits) in usage.days.iter().rev().filter(|(_, credits)| *credits > 0) {
                            tr { td { (date(*day)) } td.number { (context.number(*credits)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Height of a bar: in proportion, and at least visible.
fn bar_height(credits: u64, most: u64) -> u64 {
    let height = u128::from(credits) * u128::from(CHART_HEIGHT) / u128::from(most.max(1));
    u64::try_from(height).unwrap_or(CHART_HEIGHT).clamp(2, CHART_HEIGHT)
}

fn day_label(day: Timestamp) -> String {
    day.to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_chart_shows_maximum_and_first_and_last_day() {
        let day = |number: i64| Timestamp::from_millis(number * 86_400_000);
        let usage = DailyUsage { days: vec![(day(0), 0), (day(1), 1_200), (day(2), 5)], is_partial: false };
        let chart = chart(&PageContext::for_test("/account"), &usage).into_string();
        let (scale, rest) = chart.split_once("<svg").unwrap();
        assert!(scale.ends_with("<p class=\"axis\" aria-hidden=\"true\">1,200</p>"), "{scale}");
        let days = rest.split("</svg>").nth(1).unwrap().split("</p>").next().unwrap();
        assert!(days.contains(">1970-01-01</time>") && days.contains(">1970-01-03</time>"), "{days}");
        assert!(!days.contains("1970-01-02"), "{days}");
    }
}
