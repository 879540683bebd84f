//! Pages of registration, sign-in and accounts.

mod jobs;
mod keys;
mod orders;
mod overview;
mod privacy;
mod sign_in;
mod statement;

use maud::{Markup, html};
use transcript_core::Timestamp;

pub(crate) use jobs::{job, jobs};
pub(crate) use keys::{KeyForm, issued_key, keys, new_key};
pub(crate) use orders::{Shop, orders, receipt};
pub(super) use orders::{item, refund, state};
pub(crate) use overview::overview;
pub(crate) use privacy::{delete, sessions};
pub(super) use sign_in::with_next;
pub(crate) use sign_in::{MailForm, MailFormMessage, confirm_sign_in, link_invalid, mail_form, mail_sent};
pub(crate) use statement::{CSV_HEADER, VideoTitles, csv_field, csv_row, statement};

use super::{Frame, PageContext, PageWidth, Section};

/// Longest path of [`own_path`], in bytes.
const PATH_MAX: usize = 200;

/// Page of the account, for the links between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccountPage {
    Overview,
    Keys,
    Statement,
    Orders,
    Jobs,
    Sessions,
}

/// A path of this service's own pages that a form may lead to; `None` for anything else.
///
/// It is relative to the root, so that it never names another host.
pub(crate) fn own_path(path: &str) -> Option<&str> {
    const PAGES: [&str; 4] = ["account", "checkout", "pricing", "search"];
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_');
    let first = path.split('/').next().unwrap_or_default();
    let is_own = path.len() <= PATH_MAX
        && PAGES.contains(&first)
        && path.bytes().all(is_allowed)
        && !path.contains("..");
    is_own.then_some(path)
}

/// Page with one sentence and the next steps. `title` and `text` are messages.
pub(crate) fn notice(context: &PageContext, title: &str, text: &str) -> Markup {
    filled_notice(context, title, context.text(text))
}

/// Page beyond a rate limit, with the wait in seconds.
pub(crate) fn too_many(context: &PageContext, retry_after_s: u64) -> Markup {
    filled_notice(context, "account.too_many_title", &too_many_text(context, retry_after_s))
}

/// The sentence about a rate limit, with the wait in minutes: the limits are per minute and per hour.
pub(super) fn too_many_text(context: &PageContext, retry_after_s: u64) -> String {
    context.fill("account.too_many", &[("minutes", &context.number(retry_after_s.div_ceil(60)))])
}

/// As [`notice`], with the sentence itself.
fn filled_notice(context: &PageContext, title: &str, text: &str) -> Markup {
    Frame::new(context, context.text(title)).section(Section::Account).render(html! {
        h1 { (context.text(title)) }
        p { (text) }
        p { a href=(context.href("account")) { (context.text("account.to_account")) } }
        p { a href=(context.href("")) { (context.text("account.to_front")) } }
    })
}

/// Body of a redirect, which browsers do not show.
pub(crate) fn redirect(context: &PageContext) -> Markup {
    Frame::new(context, context.text("account.moved"))
        .render(html! { h1 { (context.text("account.moved")) } })
}

/// A page of the account, with links to the others. `title` is a message.
fn account_page(context: &PageContext, page: AccountPage, title: &str, body: Markup) -> Markup {
    account_page_with_query(context, page, title, "", body)
}

/// As [`account_page`], with the parameters that select its content.
fn account_page_with_query(
    context: &PageContext,
    page: AccountPage,
    title: &str,
    query: &str,
    body: Markup,
) -> Markup {
    frame(context, title).query(query).render(html! {
        (tabs(context, page))
        h1 { (context.text(title)) }
        (body)
    })
}

fn frame<'a>(context: &'a PageContext, title: &'a str) -> Frame<'a> {
    Frame::new(context, context.text(title)).section(Section::Account).width(PageWidth::Reading)
}

/// Links between the pages of the account.
fn tabs(context: &PageContext, page: AccountPage) -> Markup {
    let pages = [
        (AccountPage::Overview, "account", "account.overview"),
        (AccountPage::Keys, "account/keys", "account.keys"),
        (AccountPage::Statement, "account/statement", "account.statement"),
        (AccountPage::Orders, "account/orders", "account.orders"),
        (AccountPage::Jobs, "account/jobs", "account.jobs"),
        (AccountPage::Sessions, "account/sessions", "account.sessions"),
    ];
    html! {
        nav.tabs aria-label=(context.text("account.navigation")) {
            ul {
                @for (other, path, label) in pages {
                    @let current = (other == page).then_some("page");
                    li { a href=(context.href(path)) aria-current=[current] { (context.text(label)) } }
                }
            }
        }
    }
}

/// Form that is sent to a path of this service.
pub(super) fn post_form(context: &PageContext, path: &str, inside: Markup) -> Markup {
    html! { form method="post" action=(context.href(path)) { (inside) } }
}

/// A day, as in every page of the account.
pub(super) fn date(at: Timestamp) -> Markup {
    let text = at.to_string();
    html! { time datetime=(text) dir="ltr" { (text.get(..10).unwrap_or(&text)) } }
}

/// A day and minute in UTC.
fn date_and_time(at: Timestamp) -> Markup {
    let text = at.to_string();
    let (day, minute) = (text.get(..10).unwrap_or(&text), text.get(11..16).unwrap_or_default());
    html! { time datetime=(text) dir="ltr" { (day) " " (minute) " UTC" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_path_never_leads_to_another_host() {
        for path in ["account", "account/orders", "account/orders/order-7", "pricing", "checkout/order-7"] {
            assert_eq!(own_path(path), Some(path));
        }
        for path in [
            "",
            "/account",
            "//evil.example",
            "https://evil.example",
            "account:80",
            "account@evil.example",
            "account/../../evil",
            "account\\evil",
            "account?next=x",
            "account\r\nset-cookie: a=b",
            "accounts",
            "evil.example/account",
            "javascript:alert(1)",
        ] {
            assert_eq!(own_path(path), None, "{path}");
        }
        assert_eq!(own_path(&format!("account/{}", "a".repeat(PATH_MAX))), None);
    }
}
