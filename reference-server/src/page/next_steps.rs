//! What a visitor can do next: on every page that is not what they wanted.

use maud::{Markup, html};

use super::PageContext;

/// Links to other ways to a transcript.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextSteps {
    /// Credits per month of a free account, for pages about limits.
    pub(crate) free_credits: Option<u64>,
    /// Whether the visitor is signed in to an account.
    pub(crate) is_signed_in: bool,
}

impl NextSteps {
    /// The list of links.
    pub(crate) fn render(self, context: &PageContext) -> Markup {
        let link = |path: &str, text: &str| html! { li { a href=(context.href(path)) { (text) } } };
        let site = context.site();
        html! {
            nav.steps aria-labelledby="steps" {
                h2 #steps { (context.text("next.title")) }
                ul {
                    (link("", context.text("next.paste")))
                    @if let Some(credits) = self.free_credits {
                        @if self.is_signed_in {
                            (link("account/keys", context.text("next.keys")))
                        } @else if site.has_account_pages {
                            (link("register", &context.fill("next.register", &[("count", &context.number(credits))])))
                        } @else {
                            (link("docs", context.text("next.key")))
                        }
                        (link("pricing", context.text("next.prices")))
                    }
                    @if let Some(contact) = &site.links.contact {
                        li { a href=(contact) rel="noreferrer" { (context.text("next.contact")) } }
                    }
                }
            }
        }
    }
}
