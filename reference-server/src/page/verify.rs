//! Pages of the verification link.

use maud::{Markup, html};
use transcript_core::wire::v1::VerifyResponse;

use super::{HtmlPage, document};

/// Relative path to the root of the service.
const ROOT: &str = "../../../";

/// Page with the button that redeems the token. Mail scanners open links, but press no buttons.
pub(crate) fn confirm(token: &str) -> Markup {
    document(
        HtmlPage::plain("Get your API key", ROOT),
        html! {
            h1 { "Get your API key" }
            p {
                "The button shows your new API key. It is shown only once: have a safe place for it ready. If this \
                 address already has an API key, the old key stops working; your credits stay."
            }
            // The action is relative to the page, so that it works under any base path.
            form method="post" action="verify" {
                input type="hidden" name="token" value=(token);
                button type="submit" { "Show my API key" }
            }
        },
    )
}

/// Shows a new key, once.
pub(crate) fn issued(verified: &VerifyResponse) -> Markup {
    let VerifyResponse { api_key, plan, credits, notice, .. } = verified;
    document(
        HtmlPage::plain("Your API key", ROOT),
        html! {
            h1 { "Your API key" }
            p { code.key { (api_key) } }
            p {
                "Copy it now: it is not shown again. Store it like a password, and send it only in the header "
                code { "Authorization: Bearer …" } "."
            }
            p { "Your plan is " (plan) "; you have " (credits) " credits." }
            @if let Some(notice) = notice {
                p { (notice) " Until then the API key does not work." }
            }
        },
    )
}

/// Error page without a key.
pub(crate) fn refused(why: &str) -> Markup {
    document(
        HtmlPage::plain("No API key", ROOT),
        html! {
            h1 { "No API key" }
            p { (why) }
        },
    )
}
