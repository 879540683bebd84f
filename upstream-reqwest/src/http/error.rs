//! Errors of the HTTP transport.

use std::{error::Error as StdError, time::Duration};

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use super::{egress_pool::PAUSE_MAX, resolve::PrivateAddressError};

const BUSY_MESSAGE: &str = "This server is reading too many large responses. Try again in a moment.";

/// A transport error. It holds no URL, so none can leak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpError {
    /// The URL's host is not one of the platform's hosts; nothing was sent.
    DisallowedHost,
    /// The host's name resolves to non-public addresses; nothing was sent.
    PrivateAddress,
    /// The attempt or the whole call exceeded its time limit.
    Timeout,
    /// The connection failed; the text names the step.
    Unreachable(&'static str),
    /// The proxy rejected the credentials.
    ProxyCredentials,
    /// Status 429, with its `Retry-After`.
    Throttled(Option<Duration>),
    /// The platform recently throttled or blocked every egress route and is paused; nothing was sent.
    CoolingDown {
        /// Time until the platform may be called again.
        left: Duration,
        /// Whether the same session had sent a request before.
        attempted: bool,
    },
    /// The request limit of one lookup is reached; nothing was sent.
    BudgetExhausted,
    /// Status 408 or 5xx, with its `Retry-After`.
    Status(u16, Option<Duration>),
    /// The large responses of this process leave no memory for this one.
    Busy,
    /// The response exceeds its size limit.
    TooLarge,
    /// The response has a content encoding that was not requested.
    Encoded,
    /// The response ended early, or its compressed data is damaged.
    CutOff,
    /// The download could not be written to disk.
    DiskFull,
}

impl HttpError {
    /// Classifies an error of the HTTP library.
    pub(crate) fn from_reqwest(error: &reqwest::Error) -> Self {
        if chain(error).any(|cause| cause.is::<PrivateAddressError>()) {
            Self::PrivateAddress
        } else if chain(error).any(is_proxy_fault) {
            // Without its address: users of a server read the message, too.
            Self::Unreachable(if error.is_dns() {
                "the host name of the proxy could not be resolved"
            } else if chain(error).any(is_certificate_fault) {
                "the certificate of the proxy is not trusted; add a private root to upstream.ca_file"
            } else {
                "the connection to the proxy failed"
            })
        } else if error.is_connect() && error.is_timeout() {
            Self::Unreachable("the connection timed out")
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_dns() {
            Self::Unreachable("the host name could not be resolved")
        } else if chain(error).any(is_certificate_fault) {
            Self::Unreachable("its certificate is not trusted; add a private root to upstream.ca_file")
        } else if chain(error).any(|cause| cause.to_string().contains("proxy authorization required")) {
            Self::ProxyCredentials
        } else if error.is_connect() {
            Self::Unreachable("the connection failed")
        } else {
            Self::CutOff
        }
    }

    /// Whether a retry of the same request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Timeout
            | Self::Unreachable(_)
            | Self::Throttled(_)
            | Self::Status(..)
            | Self::Busy
            | Self::CutOff => true,
            // Another proxy may accept the credentials.
            Self::ProxyCredentials => true,
            Self::DisallowedHost
            | Self::PrivateAddress
            | Self::TooLarge
            | Self::Encoded
            | Self::CoolingDown { .. }
            | Self::DiskFull
            | Self::BudgetExhausted => false,
        }
    }

    /// The supply error to report for this error.
    pub(crate) fn supply_error(&self, platform: Platform) -> SupplyError {
        let name = platform.name();
        let (reason, message) = match self {
            Self::DisallowedHost => (
                SupplyReason::Unreadable,
                format!("{name} returned a URL of another host; it was not followed."),
            ),
            Self::PrivateAddress => (
                SupplyReason::Unreachable,
                format!(
                    "{name} could not be reached: its name resolves to a private address, which is not \
                     allowed. The operator can check the name server, or set upstream.proxy."
                ),
            ),
            Self::Timeout => {
                (SupplyReason::Timeout, format!("{name} took too long to respond. Try again in a moment."))
            }
            Self::Unreachable(how) => {
                (SupplyReason::Unreachable, format!("{name} could not be reached: {how}."))
            }
            Self::ProxyCredentials => (
                SupplyReason::Misconfigured,
                "The proxy rejected the credentials. The operator can correct upstream.proxy."
                    .to_owned(),
            ),
            Self::Throttled(wait) => {
                // As long as the platform is paused: callers during the pause get the same.
                let wait = wait.map(|wait| wait.min(PAUSE_MAX));
                (SupplyReason::Throttled(wait), throttled(name, wait))
            }
            Self::CoolingDown { left, .. } => (
                SupplyReason::Throttled(Some(*left)),
                format!(
                    "{name} recently rejected requests from this server's address, so requests to it are paused. \
                     Try again in {} s; the operator can set upstream.proxy.",
                    left.as_secs() + 1
                ),
            ),
            Self::BudgetExhausted => (
                SupplyReason::PlatformFault,
                format!("{name} returned no transcript within the request limit of one lookup. Try again later."),
            ),
            Self::Status(status, wait) => internal_error(name, *status, *wait),
            Self::Busy => (SupplyReason::Timeout, BUSY_MESSAGE.to_owned()),
            Self::TooLarge => {
                (SupplyReason::Unreadable, format!("The response of {name} is too large."))
            }
            Self::Encoded => (
                SupplyReason::Unreadable,
                format!("The response of {name} is compressed in an unsupported way."),
            ),
            Self::CutOff => {
                (SupplyReason::Unreadable, format!("The response of {name} ended early. Try again in a moment."))
            }
            Self::DiskFull => (
                SupplyReason::Misconfigured,
                "The audio of the video could not be written to disk. The operator can free space in the folder \
                 for temporary files."
                    .to_owned(),
            ),
        };
        match self {
            // The memory of this process is no failure of the platform: it counts as no attempt.
            Self::Busy | Self::CoolingDown { attempted: false, .. } => {
                SupplyError::before_request(reason, message)
            }
            _ => SupplyError::new(reason, message),
        }
    }
}

fn throttled(name: &str, wait: Option<Duration>) -> String {
    let when = match wait {
        Some(wait) => in_seconds(wait),
        None => "later".to_owned(),
    };
    format!(
        "{name} receives too many requests from this server's address (HTTP 429). Try again {when}; the operator can \
         set upstream.proxy."
    )
}

/// A named wait is kept as that of a throttling platform.
fn internal_error(name: &str, status: u16, wait: Option<Duration>) -> (SupplyReason, String) {
    let wait = wait.map(|wait| wait.min(PAUSE_MAX));
    let reason = wait.map_or(SupplyReason::PlatformFault, |wait| SupplyReason::Throttled(Some(wait)));
    let when = wait.map_or_else(|| "in a moment".to_owned(), in_seconds);
    (reason, format!("{name} failed with an internal error (HTTP {status}). Try again {when}."))
}

fn in_seconds(wait: Duration) -> String {
    format!("in {} s", wait.as_secs().max(1))
}

/// An error with all its causes, including the error inside an I/O error, which `source` skips.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        wrapped.map_or_else(|| error.source(), |inner| Some(inner as &(dyn StdError + 'static)))
    })
}

/// Whether the connection to the proxy itself failed: the text of the tunnel and SOCKS errors of the HTTP library.
fn is_proxy_fault(cause: &(dyn StdError + 'static)) -> bool {
    cause.to_string().ends_with("failed to create underlying connection")
}

fn is_certificate_fault(cause: &(dyn StdError + 'static)) -> bool {
    matches!(cause.downcast_ref::<rustls::Error>(), Some(rustls::Error::InvalidCertificate(_)))
}
