//! The keys of an account.

use maud::{Markup, html};
use transcript_core::{
    accounts::AccountKeys,
    directory::{Account, AccountKey},
};

use super::{AccountPage, account_page, date, date_and_time, frame, post_form, tabs};
use crate::page::{PageContext, assets::COPY_SCRIPT};

/// The forms that create and replace keys.
#[derive(Debug)]
pub(crate) struct KeyForm<'a> {
    /// Random text of the forms: sent twice, a form makes one key.
    pub(crate) token: String,
    /// A name of a new key that was not accepted.
    pub(crate) rejected: Option<&'a str>,
}

/// Page with the live keys.
pub(crate) fn keys(
    context: &PageContext,
    account: &Account,
    keys: &[AccountKey],
    form: &KeyForm<'_>,
) -> Markup {
    let text = |key| context.text(key);
    let is_full = keys.len() >= AccountKeys::LIVE_MAX as usize;
    account_page(
        context,
        AccountPage::Keys,
        "account.keys",
        html! {
            p { (text("keys.lead")) }
            @if account.blocked { p.note role="status" { (text("account.blocked")) } }
            @if keys.is_empty() { p { (text("keys.none")) } }
            @for key in keys { (live_key(context, account, key, form, keys.len() == 1)) }
            @if is_full {
                h2 { (text("keys.create_title")) }
                p.note { (context.fill("keys.full", &[("count", &keys.len().to_string())])) }
            } @else if !account.blocked {
                h2 { (text(if keys.is_empty() { "keys.create" } else { "keys.create_title" })) }
                p { (text("keys.create_hint")) }
                (create_form(context, form))
            }
        },
    )
}

/// A live key, and the forms that replace and revoke it.
fn live_key(
    context: &PageContext,
    account: &Account,
    key: &AccountKey,
    form: &KeyForm<'_>,
    is_last: bool,
) -> Markup {
    let text = |key| context.text(key);
    let id = key.key.id.as_str();
    let revoke_hint = if is_last { "keys.revoke_last_hint" } else { "keys.revoke_hint" };
    html! {
        section.live {
            h2 id=(id) { bdi { (key.name.as_deref().unwrap_or_else(|| text("keys.default_name"))) } }
            dl.facts {
                dt { (text("keys.key")) }
                dd { code dir="ltr" { (key.key.hint) "…" } }
                dt { (text("keys.created")) }
                dd { (date(key.key.now)) }
                dt { (text("keys.last_used")) }
                dd {
                    @match key.last_used_at {
                        Some(at) => (date_and_time(at)),
                        None => (text("keys.never_used")),
                    }
                }
            }
            @if !account.blocked {
                (key_action(context, id, Some(form), "account/keys/rotate", ["keys.rotate", "keys.rotate_hint"]))
            }
            (key_action(context, id, None, "account/keys/revoke", ["keys.revoke", revoke_hint]))
        }
    }
}

/// A form that changes a key, folded so that one click does nothing. `label` and `hint` are messages.
fn key_action(
    context: &PageContext,
    id: &str,
    form: Option<&KeyForm<'_>>,
    path: &str,
    [label, hint]: [&str; 2],
) -> Markup {
    html! {
        details {
            summary { (context.text(label)) }
            p { (context.text(hint)) }
            (post_form(context, path, html! {
                input type="hidden" name="key" value=(id);
                @if let Some(form) = form { input type="hidden" name="token" value=(form.token); }
                button.other type="submit" aria-describedby=(id) { (context.text(label)) }
            }))
        }
    }
}

fn create_form(context: &PageContext, form: &KeyForm<'_>) -> Markup {
    let text = |key| context.text(key);
    let max = AccountKeys::NAME_LENGTH_MAX.to_string();
    let is_rejected = form.rejected.is_some();
    let description = if is_rejected { "name-error name-hint" } else { "name-hint" };
    post_form(
        context,
        "account/keys/create",
        html! {
            input type="hidden" name="token" value=(form.token);
            label for="name" { (text("keys.name")) }
            @if is_rejected { p.error #name-error { (context.fill("keys.bad_name", &[("count", &max)])) } }
            div.row {
                input #name type="text" name="name" required maxlength=(max) autocomplete="off" dir="auto"
                    value=(form.rejected.unwrap_or_default()) aria-invalid=[is_rejected.then_some("true")]
                    autofocus[is_rejected] aria-describedby=(description);
                button type="submit" { (text("keys.create")) }
            }
            p.hint #name-hint { (context.fill("keys.name_hint", &[("count", &max)])) }
        },
    )
}

/// Page with a new key, which is shown once. `name` is that of the key.
pub(crate) fn new_key(context: &PageContext, name: Option<&str>, key: &str, base_url: &str) -> Markup {
    frame(context, "keys.new_title").with_script(&COPY_SCRIPT).render(html! {
        (tabs(context, AccountPage::Keys))
        h1 {
            @match name {
                Some(name) => (context.markup("keys.new_named", &[("name", html! { bdi { (name) } })])),
                None => (context.text("keys.new_title")),
            }
        }
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
        p.copy { code.key #key dir="ltr" { (key) } (copy_button(context, "key")) }
        h2 { (text("keys.try")) }
        p { (text("keys.try_hint")) }
        p.copy { code.key #example dir="ltr" { (example) } (copy_button(context, "example")) }
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
