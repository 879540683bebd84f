//! The HTTP transport that all suppliers share.
//!
//! Guarantees: a request goes only to a host on its list, over https, and this is checked before a proxy sees
//! it. Without a proxy, names that resolve to private addresses are refused. Redirects are not followed
//! automatically. A response is read up to a limit, and large ones share a budget of memory. Every attempt and
//! every call has a deadline. Transient errors are retried with growing, random pauses. A proxy that is blocked
//! or unreachable cools down while others are available. A platform that refuses all routes is paused. Neither
//! URL queries nor proxy credentials reach an error or the log.

mod backoff;
mod body;
mod body_budget;
mod cookies;
mod egress_pool;
mod egress_session;
mod error;
mod options;
mod page_client;
mod prefix_read;
#[cfg(feature = "ytdlp")]
mod program_egress;
mod request;
mod resolve;
mod service_client;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;

use tokio::sync::Semaphore;
use transcript_core::Result;

pub(crate) use backoff::{pause, retry_policy};
pub(crate) use body::{BodySink, read as read_body};
pub(crate) use cookies::CookieJar;
pub(crate) use egress_session::EgressSession;
#[cfg(any(feature = "chat_model", feature = "service", all(feature = "speech", unix)))]
pub(crate) use egress_session::parse_retry_after;
pub(crate) use error::HttpError;
pub use options::{HttpOptions, ProxyVariables};
pub use page_client::{PageClient, PageClientOptions, PageFetch, PageHeader, PageResponse};
#[cfg(feature = "ytdlp")]
pub(crate) use program_egress::ProgramEgress;
pub(crate) use request::{HttpRequest, HttpResponse, is_allowed, parse_constant};
#[cfg(feature = "webhooks")]
pub(crate) use service_client::build_webhook_client;
pub(crate) use service_client::{bearer, build_service_client};
use tls::TlsConfigFactory;

use body_budget::BodyBudget;
use egress_pool::EgressPool;

/// The HTTP transport: one for all suppliers of a process, since its limits apply to the process.
pub struct HttpTransport {
    options: HttpOptions,
    pool: EgressPool,
    /// One permit for each active request.
    permits: Semaphore,
    /// The memory of large response bodies.
    bodies: BodyBudget,
}

impl HttpTransport {
    /// Creates a transport. It does not read the environment.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, a proxy address is invalid, or the
    /// certificate file cannot be read. For the system's root certificates see [`HttpTransport::load_roots`].
    pub fn new(options: HttpOptions) -> Result<Self> {
        options.check()?;
        let pool = EgressPool::new(&options)?;
        let permits = Semaphore::new(options.concurrency as usize);
        Ok(Self { options, pool, permits, bodies: BodyBudget::default() })
    }

    /// Starts a thread that loads the system's root certificates.
    ///
    /// Calling it is optional: otherwise the first connection loads them, which can take tens of milliseconds. A
    /// connection that starts earlier waits for the thread.
    pub fn preload_roots(&self) {
        self.pool.tls().preload();
    }

    /// Loads the system's root certificates on this thread, or waits until another thread has.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unsupported`] when the system has no certificates and the options name none.
    /// Every connection then fails with this error.
    pub fn load_roots(&self) -> Result<()> {
        self.pool.tls().load()
    }

    /// Starts a session: requests that use one egress route until it is blocked.
    pub(crate) fn session(self: &Arc<Self>) -> EgressSession {
        EgressSession::new(Arc::clone(self))
    }

    /// How often a blocked session may be repeated over another route.
    pub(crate) fn retries(&self) -> u32 {
        self.options.retries
    }
}

transcript_core::debug_fields!(HttpTransport { options });
