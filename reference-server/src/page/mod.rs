//! HTML pages for people: complete without scripts, one style sheet, one script.
//!
//! The templates escape all outside text. Transcript text carries its language, and its direction is detected. Links
//! within the service are relative, so that they work under any base path.

pub(crate) mod account;
pub(crate) mod assets;
mod card;
pub(crate) mod checkout;
pub(crate) mod context;
#[cfg(feature = "documents")]
mod document;
pub(crate) mod failure_text;
pub(crate) mod frame;
pub(crate) mod home;
pub(crate) mod moment;
mod next_steps;
pub(crate) mod no_transcript;
#[cfg(feature = "documents")]
pub(crate) mod pdf;
pub(crate) mod pricing;
pub(crate) mod problem;
pub(crate) mod question;
pub(crate) mod search;
pub(crate) mod site;
pub(crate) mod sitemap;
pub(crate) mod transcript;
pub(crate) mod verify;
#[cfg(feature = "documents")]
pub(crate) mod word;

pub(crate) use context::{PageContext, WholeUri};
pub(crate) use frame::{Frame, PageWidth, Section};
pub(crate) use next_steps::NextSteps;

use http::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What a page may do besides loading its own style sheet and icon.
/// Nothing external and nothing inline is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PagePolicy {
    /// Nothing else.
    Static,
    /// Submit its own form to this service.
    Form,
    /// Run the script, which only calls this service, and submit a form.
    Script,
    /// As [`PagePolicy::Script`], and show YouTube's player after a click.
    Player,
    /// Submit a form that leads to the page of a payment provider. Browsers apply `form-action` to redirects.
    Purchase,
}

pub(crate) fn content_security_policy(policy: PagePolicy) -> HeaderValue {
    HeaderValue::from_static(match policy {
        PagePolicy::Static => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        }
        PagePolicy::Form => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
             frame-ancestors 'none'"
        }
        PagePolicy::Purchase => {
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self' https:; \
             frame-ancestors 'none'"
        }
        PagePolicy::Script => {
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; worker-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        }
        PagePolicy::Player => {
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; worker-src 'self'; \
             connect-src 'self'; frame-src https://www.youtube-nocookie.com; base-uri 'none'; form-action 'self'; \
             frame-ancestors 'none'"
        }
    })
}

/// Relative path from a path to the root of the service: one step per slash, except the first.
pub(crate) fn root_of(path: &str) -> String {
    "../".repeat(path.matches('/').count().saturating_sub(1))
}

/// Query of a page whose address has this parameter, for [`Frame::query`].
fn query_parameter(name: &str, value: &str) -> String {
    format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests;
