//! The key of an account.

use maud::{Markup, html};
use transcript_core::{
    Timestamp,
    directory::{Account, AccountKey},
};

use super::{AccountPage, account_page, date, post_form};
use crate::page::{Frame, PageContext, PageWidth, Section, assets::COPY_SCRIPT};

/// Page with the live keys, of which there is at most one.
pub(crate) fn keys(
    context: &PageContext,
    account: &Account,
    keys: &[AccountKey],
    last_used_at: Option<Timestamp>,
) -> Markup {
    let text = |key| context.text(key);
    let current = keys.last().map_or("", |key| key.id.as_str());
    let (submit, hint) = match keys.is_empty() {
        true => ("keys.create", "keys.create_hint"),
        false => ("keys.rotate", "keys.rotate_hint"),
    };
    account_page(
        context,
        AccountPage::Keys,
        "account.keys",
        html! {
            @if keys.is_empty() { p { (text("keys.none")) } }
            @for key in keys {
                dl.facts {
                    dt { (text("keys.name")) }
                    dd { (text("keys.default_name")) " " code { (key.hint) "…" } }
                    dt { (text("keys.created")) }
                    dd { (date(key.created_at)) }
                    dt { (text("keys.last_used")) }
                    dd {
                        @match last_used_at {
                            Some(at) => (date(at)),
                            None => (text("keys.never_used")),
                        }
                    }
                }
            }
            @if account.blocked {
                p.note role="status" { (text("account.blocked")) }
            } @else {
                p { (text(hint)) }
                (post_form(context, "account/keys/rotate", html! {
                    input type="hidden" name="key" value=(current);
                    button type="submit" { (text(submit)) }
                }))
            }
            @if !keys.is_empty() {
                h2 { (text("keys.revoke_title")) }
                p { (text("keys.revoke_hint")) }
                (post_form(context, "account/keys/revoke", html! {
                    input type="hidden" name="key" value=(current);
                    button.other type="submit" { (text("keys.revoke")) }
                }))
            }
        },
    )
}

/// Page with a new key, which is shown once.
pub(crate) fn new_key(context: &PageContext, key: &str, base_url: &str) -> Markup {
    Frame::new(context, context.text("keys.new_title"))
        .section(Section::Account)
        .width(PageWidth::Reading)
        .with_script(&COPY_SCRIPT)
        .render(html! {
            h1 { (context.text("keys.new_title")) }
            (issued_key(context, key, base_url))
        })
}

/// A new key, a request that is ready to run, and the next steps.
pub(crate) fn issued_key(context: &PageContext, key: &str, base_url: &str) -> Markup {
    let text = |key| context.text(key);
    let base_url = base_url.trim_end_matches('/');
    let example = format!(
        "curl -H 'Authorization: Bearer {key}' '{base_url}/api/v1/transcript?url=https://youtu.be/jNQXAC9IVRw'"
    );
    html! {
        p { (text("keys.shown_once")) }
        p.copy { code.key #key { (key) } (copy_button(context, "key")) }
        h2 { (text("keys.try")) }
        p { (text("keys.try_hint")) }
        p.copy { code.key #example { (example) } (copy_button(context, "example")) }
        h2 { (text("keys.next")) }
        ul {
            li { a href=(context.href("account")) { (text("keys.next_account")) } }
            li { a href=(context.href("docs")) { (text("keys.next_docs")) } }
            li { a href=(context.href("pricing")) { (text("keys.next_pricing")) } }
        }
    }
}

/// Button that the script shows: without a script, the text is selected by hand.
fn copy_button(context: &PageContext, id: &str) -> Markup {
    html! {
        button.quiet type="button" hidden data-copy=(id) data-done=(context.text("keys.copied")) {
            (context.text("keys.copy"))
        }
    }
}
