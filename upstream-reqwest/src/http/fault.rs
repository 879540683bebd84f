//! What can go wrong between a request and its answer.

use std::{error::Error as StdError, time::Duration};

use transcript_core::{
    supplier::{SupplyError, SupplyReason},
    video::Platform,
};

use super::resolve::NotPublic;

/// A fault of the transport. It holds no address, so none can leak from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpFault {
    /// The address is not one of the platform's own; nothing was sent.
    ForeignAddress,
    /// The host's name leads to addresses that are not public; nothing was sent.
    PrivateAddress,
    /// The time for the request, or for the whole, was over.
    Timeout,
    /// No connection came about; the text says how far it got.
    Unreachable(&'static str),
    /// The proxy wants other credentials.
    ProxyCredentials,
    /// 429, with the wait that the platform named.
    Throttled(Option<Duration>),
    /// The platform throttled or distrusted every exit a moment ago and is left alone for this time: nothing was sent.
    Resting {
        /// How long it still is left alone.
        left: Duration,
        /// Whether the same series of requests had sent something before.
        asked: bool,
    },
    /// As many requests as one look-up may make were made; nothing was sent.
    Spent,
    /// 408 or 5xx, with the wait that the platform named.
    Status(u16, Option<Duration>),
    /// The answer is longer than it may be.
    TooLarge,
    /// The answer is compressed in a way that was not asked for.
    Encoded,
    /// The answer broke off, or its compression is damaged.
    CutOff,
    /// What came could not be put down here.
    NoRoom,
}

impl HttpFault {
    /// The fault behind an error of the HTTP library.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        if chain(error).any(|cause| cause.is::<NotPublic>()) {
            Self::PrivateAddress
        } else if error.is_connect() && error.is_timeout() {
            Self::Unreachable("no connection came about in time")
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_dns() {
            Self::Unreachable("its name could not be resolved")
        } else if chain(error).any(is_certificate_fault) {
            Self::Unreachable("no certificate of it is trusted; a company's own goes into upstream.ca_file")
        } else if chain(error).any(|cause| cause.to_string().contains("proxy authorization required")) {
            Self::ProxyCredentials
        } else if error.is_connect() {
            Self::Unreachable("no connection came about")
        } else {
            Self::CutOff
        }
    }

    /// Whether the same request may succeed when it is sent again.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::Throttled(_) | Self::Status(..) | Self::CutOff => {
                true
            }
            // Another proxy may accept us.
            Self::ProxyCredentials => true,
            Self::ForeignAddress
            | Self::PrivateAddress
            | Self::TooLarge
            | Self::Encoded
            | Self::Resting { .. }
            | Self::NoRoom
            | Self::Spent => false,
        }
    }

    /// The failure to report for this fault.
    pub(crate) fn supply_error(&self, platform: Platform) -> SupplyError {
        let name = platform.name();
        let (reason, message) = match self {
            Self::ForeignAddress => (
                SupplyReason::Unreadable,
                format!("{name} answered with an address that is not its own; it was not followed."),
            ),
            Self::PrivateAddress => (
                SupplyReason::Unreachable,
                format!(
                    "{name} could not be reached: its name leads to a private address here, which is never \
                     followed. The operator can check the name server, or set upstream.proxy."
                ),
            ),
            Self::Timeout => {
                (SupplyReason::Timeout, format!("{name} took too long to answer. Try again in a moment."))
            }
            Self::Unreachable(how) => {
                (SupplyReason::Unreachable, format!("{name} could not be reached: {how}."))
            }
            Self::ProxyCredentials => (
                SupplyReason::Misconfigured,
                "The proxy does not accept our credentials. The operator can correct upstream.proxy."
                    .to_owned(),
            ),
            Self::Throttled(wait) => (SupplyReason::Throttled(*wait), throttled(name, *wait)),
            Self::Resting { left, .. } => (
                SupplyReason::Throttled(Some(*left)),
                format!(
                    "{name} refused this server's address a short while ago, so it is not asked for now. Try \
                     again in {} s; the operator can set upstream.proxy.",
                    left.as_secs() + 1
                ),
            ),
            Self::Spent => (
                SupplyReason::PlatformFault,
                format!("{name} gave nothing in as many requests as one look-up may make. Try again later."),
            ),
            Self::Status(status, _) => (
                SupplyReason::PlatformFault,
                format!("{name} has a fault of its own (HTTP {status}). Try again in a moment."),
            ),
            Self::TooLarge => {
                (SupplyReason::Unreadable, format!("{name}'s answer is larger than any that is read."))
            }
            Self::Encoded => (
                SupplyReason::Unreadable,
                format!("{name}'s answer is compressed in a way that is not understood here."),
            ),
            Self::CutOff => {
                (SupplyReason::Unreadable, format!("{name}'s answer broke off. Try again in a moment."))
            }
            Self::NoRoom => (
                SupplyReason::Misconfigured,
                "The sound of the video could not be put down. The operator can look after the room in the folder \
                 for temporary files."
                    .to_owned(),
            ),
        };
        match self {
            Self::Resting { asked: false, .. } => SupplyError::unasked(reason, message),
            _ => SupplyError::new(reason, message),
        }
    }
}

fn throttled(name: &str, wait: Option<Duration>) -> String {
    let when = match wait {
        Some(wait) => format!("Try again in {} s", wait.as_secs().max(1)),
        None => "Try again later".to_owned(),
    };
    format!(
        "{name} gets too many requests from this server's address (HTTP 429). {when}; the operator can set \
         upstream.proxy."
    )
}

/// An error with all its causes. What an I/O error wraps is not among its own causes, but counts.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        wrapped.map_or_else(|| error.source(), |inner| Some(inner as &(dyn StdError + 'static)))
    })
}

fn is_certificate_fault(cause: &(dyn StdError + 'static)) -> bool {
    matches!(cause.downcast_ref::<rustls::Error>(), Some(rustls::Error::InvalidCertificate(_)))
}
