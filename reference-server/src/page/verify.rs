//! Pages of the verification link.

use http::StatusCode;
use maud::{Markup, html};
use transcript_core::wire::v1::VerifyResponse;

use super::{Frame, PageContext, PageWidth, Section, account, assets::COPY_SCRIPT, query_parameter};

/// Page with the button that redeems the token. Mail scanners open links, but press no buttons.
///
/// `form` is random text: sent twice, it issues one key.
pub(crate) fn confirm(context: &PageContext, token: &str, form: &str) -> Markup {
    let (text, query) = (|key| context.text(key), query_parameter("token", token));
    frame(context, "verify.title").query(&query).render(html! {
        h1 { (text("verify.title")) }
        p { (text("verify.lead")) }
        // The action is relative to the page, so that it works under any base path.
        form method="post" action={ "verify" (context.with_language("")) } {
            input type="hidden" name="token" value=(token);
            input type="hidden" name="form" value=(form);
            button type="submit" { (text("verify.submit")) }
        }
    })
}

/// Shows a new key, once. `next` is the page that the visitor wanted to see.
pub(crate) fn issued(
    context: &PageContext,
    verified: &VerifyResponse,
    base_url: &str,
    next: Option<&str>,
) -> Markup {
    let VerifyResponse { api_key, plan, credits, notice, .. } = verified;
    let text = |key| context.text(key);
    frame(context, "keys.new_title").width(PageWidth::Reading).with_script(&COPY_SCRIPT).render(html! {
        h1 { (text("keys.new_title")) }
        @if notice.is_some() { p.note role="status" { (text("account.blocked")) } }
        p { (context.fill("verify.credits", &[("plan", plan), ("credits", &context.number(*credits))])) }
        (account::issued_key(context, api_key, base_url))
        @if let Some(next) = next { p { a href=(context.href(next)) { (text("verify.next")) } } }
    })
}

/// Page without a key. Status and wait are those of the response.
///
/// Its link leads to the form for a new link, and then to `next`.
pub(crate) fn refused(
    context: &PageContext,
    (status, retry_after_s): (StatusCode, Option<u64>),
    next: Option<&str>,
) -> Markup {
    let text = |key| context.text(key);
    let why = match (status, retry_after_s) {
        (StatusCode::TOO_MANY_REQUESTS, Some(wait)) => account::too_many_text(context, wait),
        (status, _) if status.is_server_error() => text("account.unavailable").to_owned(),
        _ => text("verify.invalid").to_owned(),
    };
    frame(context, "verify.refused_title").render(html! {
        h1 { (text("verify.refused_title")) }
        p { (why) }
        p { a href=(context.href(&account::with_next("register", next))) { (text("sign_in.again")) } }
        p { a href=(context.href("account")) { (text("account.to_account")) } }
    })
}

fn frame<'a>(context: &'a PageContext, title: &'a str) -> Frame<'a> {
    Frame::new(context, context.text(title)).section(Section::Account)
}
