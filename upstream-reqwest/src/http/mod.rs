//! The transport that all suppliers share.
//!
//! What it guarantees, so that no supplier has to: a request leaves only for a host of its own list, over
//! https, checked before any proxy is asked; names that lead to private addresses are not followed where
//! we resolve them ourselves; redirects are never followed by themselves; an answer is read up to a limit;
//! every attempt and the whole have an end; passing faults are tried again with growing, random pauses;
//! a proxy that is blocked or down rests while others are there, and a platform that refuses all of them is
//! left alone for a while. Neither addresses with their queries nor proxy credentials reach an error or the
//! log.

mod backoff;
mod beginning;
mod body;
mod cookies;
#[cfg(feature = "ytdlp")]
mod egress;
mod exits;
mod fault;
mod options;
mod own;
mod pages;
mod request;
mod resolve;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tls;
mod visit;

use std::{fmt, sync::Arc};

use tokio::sync::Semaphore;
use transcript_core::Result;

pub(crate) use backoff::pause;
pub(crate) use body::{Sink, read as read_body};
pub(crate) use cookies::Cookies;
#[cfg(feature = "ytdlp")]
pub(crate) use egress::Egress;
pub(crate) use fault::HttpFault;
pub use options::HttpOptions;
pub(crate) use own::{bearer, own_client};
pub use pages::{Page, PageAsk, PageHeader, Pages, PagesOptions};
pub(crate) use request::{Answer, Request, is_allowed};
use tls::Trust;
pub(crate) use visit::Visit;
#[cfg(any(feature = "chat_model", feature = "service", all(feature = "speech", unix)))]
pub(crate) use visit::named_wait;

use exits::Exits;

/// The transport: one for all suppliers of a process, since its limits are the process's.
pub struct Http {
    options: HttpOptions,
    exits: Exits,
    /// One permit for each request under way.
    permits: Semaphore,
}

impl Http {
    /// A transport with these options. The environment's proxy variables are not looked at.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, a proxy address is none, or the
    /// certificate file cannot be read. For the system's root certificates see [`Http::wait_for_roots`].
    pub fn new(options: HttpOptions) -> Result<Self> {
        options.check()?;
        let exits = Exits::new(&options)?;
        let permits = Semaphore::new(options.concurrency as usize);
        Ok(Self { options, exits, permits })
    }

    /// Waits until the system's root certificates are read, which begins with the transport. Nobody need
    /// wait: a connection that comes earlier waits by itself.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unsupported`] when the system has none and none were given. Every
    /// connection then fails, and says so.
    pub fn wait_for_roots(&self) -> Result<()> {
        self.exits.trust().wait()
    }

    /// Begins a series of requests that belong together: they leave through the same proxy as long as it
    /// is not blocked.
    pub(crate) fn visit(self: &Arc<Self>) -> Visit {
        Visit::new(Arc::clone(self))
    }

    /// How often a blocked series may begin anew.
    pub(crate) fn retries(&self) -> u32 {
        self.options.retries
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("options", &self.options).finish_non_exhaustive()
    }
}
