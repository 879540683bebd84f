//! The pages behind the link of a verification mail.

use maud::{Markup, html};
use transcript_core::wire::v1::Verified;

use super::{Page, document};

/// The way up from the page.
const ROOT: &str = "../../../";

/// Asks for the click that redeems a token. Programs that open every link of a mail press no buttons.
pub(crate) fn ask(token: &str) -> Markup {
    document(
        Page::plain("Get your API key", ROOT),
        html! {
            h1 { "Get your API key" }
            p {
                "The button shows your new API key. It is shown once: have a safe place for it ready. If you \
                 have a key for this address already, that one stops working; your credits stay."
            }
            // The address is the page's own: wherever the service lies, the form finds it.
            form method="post" action="verify" {
                input type="hidden" name="token" value=(token);
                button type="submit" { "Show my API key" }
            }
        },
    )
}

/// Shows a new key, this once.
pub(crate) fn issued(verified: &Verified) -> Markup {
    let Verified { api_key, plan, credits, notice, .. } = verified;
    document(
        Page::plain("Your API key", ROOT),
        html! {
            h1 { "Your API key" }
            p { code.key { (api_key) } }
            p {
                "Copy it now: it is not shown again. Keep it like a password, and send it only in the header "
                code { "Authorization: Bearer …" } "."
            }
            p { "Your plan is " (plan) "; you have " (credits) " credits." }
            @if let Some(notice) = notice {
                p { (notice) " Until then the key opens nothing." }
            }
        },
    )
}

/// Says why there is no key.
pub(crate) fn refused(why: &str) -> Markup {
    document(
        Page::plain("No API key", ROOT),
        html! {
            h1 { "No API key" }
            p { (why) }
        },
    )
}
