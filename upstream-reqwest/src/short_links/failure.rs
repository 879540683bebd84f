//! Failures to resolve a short link. None of them is a property of the link, so none is cached.

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use crate::http::HttpError;

/// Why a link was not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShortLinkFailure {
    /// A login wall, as after too many requests from one address.
    Login,
    /// A bot check.
    Captcha,
    /// HTTP 401 or 403: the egress address is blocked.
    Forbidden(u16),
    /// A page instead of a redirect: a challenge, a consent page, or a script redirect.
    Page,
    /// A redirect without a readable target.
    NoAddress,
    /// The request itself was rejected.
    BadRequest(u16),
    /// No response.
    Transport(HttpError),
}

impl ShortLinkFailure {
    /// Whether the egress address is the cause, so that another proxy may succeed.
    pub(super) fn is_route_blocked(&self) -> bool {
        matches!(self, Self::Login | Self::Captcha | Self::Forbidden(_))
    }

    /// The supply error to report.
    ///
    /// A wall in front of a short link is a failure of the request, never a property of the video, which is not even
    /// known.
    pub(super) fn error(&self, platform: Platform) -> SupplyError {
        let name = platform.name();
        let otherwise = "use the link of the video itself";
        let operator = "the operator can set upstream.proxy";
        let (reason, message) = match self {
            Self::Login => (
                SupplyReason::Throttled(None),
                format!(
                    "{name} requires a login to resolve this short link, as it does when many \
                     requests come from one address. Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Captcha => (
                SupplyReason::BotCheck,
                format!(
                    "{name} requires a bot check to resolve this short link. \
                     Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Forbidden(status) => (
                SupplyReason::Throttled(None),
                format!(
                    "{name} rejects this short link for this server's address (HTTP {status}). \
                     Try again later, or {otherwise}; {operator}."
                ),
            ),
            Self::Page => (
                SupplyReason::Unreadable,
                format!(
                    "{name} returned a page instead of the target of this short link. Try again in a \
                     moment, or {otherwise}."
                ),
            ),
            Self::NoAddress => (
                SupplyReason::Unreadable,
                format!(
                    "{name} returned no readable target for this short link. Try again in a moment, \
                     or {otherwise}."
                ),
            ),
            Self::BadRequest(status) => (
                SupplyReason::PlatformFault,
                format!(
                    "{name} rejected the request for this short link (HTTP {status}). Try again \
                     later, or {otherwise}."
                ),
            ),
            Self::Transport(fault) => return fault.supply_error(platform),
        };
        SupplyError::new(reason, message)
    }
}
