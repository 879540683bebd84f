//! Sessions, and the deletion of an account.

use maud::{Markup, html};
use transcript_core::{accounts::Session, directory::Account, ids::SessionId};

use super::{AccountPage, account_page, date, frame, post_form};
use crate::page::PageContext;

/// Page with the sessions of the account.
pub(crate) fn sessions(context: &PageContext, sessions: &[Session], present: &SessionId) -> Markup {
    let text = |key| context.text(key);
    account_page(
        context,
        AccountPage::Sessions,
        "account.sessions",
        html! {
            p { (text("privacy.sessions")) }
            ul.shop {
                @for session in sessions {
                    li {
                        span {
                            (if session.device.is_empty() { text("privacy.unknown_device") } else { &session.device })
                            @if session.id == *present { " (" (text("privacy.this_device")) ")" }
                        }
                        span {
                            (context.markup("privacy.seen", &[
                                ("since", date(session.created_at)),
                                ("last", date(session.last_seen_at)),
                            ]))
                        }
                        @if session.id != *present {
                            (post_form(context, "account/sessions/revoke", html! {
                                input type="hidden" name="session" value=(session.id);
                                button.quiet type="submit" { (text("privacy.end_session")) }
                            }))
                        }
                    }
                }
            }
            @if sessions.len() > 1 {
                (post_form(context, "account/sessions/revoke", html! {
                    button.other type="submit" { (text("privacy.end_others")) }
                }))
            }
            (post_form(context, "sign-out", html! {
                button.other type="submit" { (text("account.sign_out")) }
            }))
        },
    )
}

/// Page that explains the deletion. `error` is a message about the last attempt.
///
/// With a subscription it leads to the page that ends it.
pub(crate) fn delete(
    context: &PageContext,
    account: &Account,
    has_subscription: bool,
    error: Option<&str>,
) -> Markup {
    let text = |key| context.text(key);
    frame(context, "privacy.delete_title").render(html! {
        h1 { (text("privacy.delete_title")) }
        p { (text("privacy.delete")) }
        @if has_subscription {
            p.note {
                (text("privacy.delete_plan")) " "
                a href={ (context.href("account")) "#plan" } { (text("orders.manage")) }
            }
        }
        p { a href=(context.href("account/export")) { (text("privacy.export")) } }
        (post_form(context, "account/delete", html! {
            label for="email" {
                (context.markup("privacy.delete_label", &[("email", html! { code { (account.email) } })]))
            }
            @if let Some(error) = error { p.error #email-error role="alert" { (text(error)) } }
            div.row {
                input id="email" name="email" type="text" required maxlength="254" autocomplete="off"
                    aria-invalid=[error.map(|_| "true")] aria-describedby=[error.map(|_| "email-error")]
                    autofocus[error.is_some()];
                button type="submit" { (text("privacy.delete_submit")) }
            }
        }))
        p { a href=(context.href("account")) { (text("account.to_account")) } }
    })
}
