//! Client and supplier for other Verbatim servers, with both APIs.
//!
//! [`ServiceClient`] calls one server, which its user or operator chose, and no other. It follows no redirect and
//! uses no proxy of the platforms or of the environment. The key is sent in the `Authorization` header only.
//! Responses are bounded in size and time. Transient errors are retried where the request cannot be charged or
//! executed twice. The bodies are those of the core ([`transcript_core::wire`]), so that client and server have the
//! same fields.
//!
//! [`ServiceSupplier`] uses such a server as a supplier named `verbatim-service`. A header prevents request loops
//! between servers: see [`PeerRequests`].

mod api;
mod call_error;
mod classify;
mod client;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod idempotency_key;
mod lookup;
mod options;
mod peer_requests;
mod rate;
mod response_meta;
mod retries;
mod supplier;

use transcript_core::Result;

pub use options::ServiceOptions;
pub use peer_requests::{PeerRequestGuard, PeerRequests};
pub use supplier::ServiceSupplier;

use api::ServiceConnection;
use idempotency_key::IdempotencyKey;

/// The [`Service`](transcript_core::service::Service) of one Verbatim server. Clones share its connections.
///
/// A caller without a key calls with the key of the options, if there is one.
///
/// ```no_run
/// use transcript_core::service::{Caller, Service, ServiceLookup};
/// use upstream_reqwest::service::{ServiceClient, ServiceOptions};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ServiceClient::new(&ServiceOptions::new("https://verbatim.example"))?;
/// let lookup = ServiceLookup::url("https://youtu.be/dQw4w9WgXcQ");
/// let reply = client.look_up(&Caller::default(), lookup).await?.body;
/// match reply.transcript {
///     Some(stored) => stored.transcript.segments.iter().for_each(|segment| println!("{}", segment.text)),
///     // The page for a person, as the server sent it.
///     None => println!("{}", reply.result.watch_url),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ServiceClient {
    api: ServiceConnection,
}

impl ServiceClient {
    /// Creates a client with these options; sends no request.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the option that is wrong.
    pub fn new(options: &ServiceOptions) -> Result<Self> {
        Ok(Self { api: ServiceConnection::new(options)? })
    }
}
