//! Why a platform did not say where a short link leads. None of it says anything about the link, so none
//! of it is remembered.

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use crate::http::HttpFault;

/// Why it did not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It wants visitors to log in first, as it does after too many requests from one address.
    Login,
    /// It wants a proof that we are human.
    Captcha,
    /// HTTP 401 or 403: the address that we ask from is not welcome.
    Forbidden(u16),
    /// A page instead of a redirect: a puzzle, a consent, or a script that goes on.
    Page,
    /// A redirect without an address, or with none that can be read.
    NoAddress,
    /// The request itself was refused.
    BadRequest(u16),
    /// No answer came.
    Fault(HttpFault),
}

impl Refusal {
    /// Whether it is due to the address that we ask from, so that another proxy may fare better.
    pub(super) fn is_distrust(&self) -> bool {
        matches!(self, Self::Login | Self::Captcha | Self::Forbidden(_))
    }

    /// The failure to report. A wall before a short link is a refusal of ours, never the video's state: the
    /// video is not even known.
    pub(super) fn error(&self, platform: Platform) -> SupplyError {
        let name = platform.name();
        let otherwise = "give the link of the video itself";
        let operator = "the operator can set upstream.proxy";
        let (reason, message) = match self {
            Self::Login => (
                SupplyReason::Throttled(None),
                format!(
                    "{name} wants a log-in before it says where this short link leads, as it does when many \
                     requests come from one address. Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Captcha => (
                SupplyReason::BotCheck,
                format!(
                    "{name} wants a proof that no bot is asking before it says where this short link leads. \
                     Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Forbidden(status) => (
                SupplyReason::Throttled(None),
                format!(
                    "{name} refuses to tell this server's address where this short link leads (HTTP {status}). \
                     Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Page => (
                SupplyReason::Unreadable,
                format!(
                    "{name} showed a page instead of saying where this short link leads. Try again in a \
                     moment, or {otherwise}."
                ),
            ),
            Self::NoAddress => (
                SupplyReason::Unreadable,
                format!(
                    "{name} answered without a readable address for this short link. Try again in a moment, \
                     or {otherwise}."
                ),
            ),
            Self::BadRequest(status) => (
                SupplyReason::PlatformFault,
                format!(
                    "{name} refused the question where this short link leads (HTTP {status}). Try again \
                     later, or {otherwise}."
                ),
            ),
            Self::Fault(fault) => return fault.supply_error(platform),
        };
        SupplyError::new(reason, message)
    }
}
