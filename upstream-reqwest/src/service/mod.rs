//! Client and supplier for other Verbatim servers, with both APIs.
//!
//! [`ServiceClient`] calls one server, which its user or operator chose, and no other. It follows no redirect and
//! uses no proxy of the platforms or of the environment. The key is sent in the `Authorization` header only.
//! Responses are bounded in size and time. Transient errors are retried where the request cannot be charged or
//! executed twice. The bodies are those of the core ([`transcript_core::wire`]), so that client and server have the
//! same fields.
//!
//! [`ServiceSupplier`] uses such a server as a supplier named `verbatim-service`. A header ([`HOP`]) prevents request
//! loops between servers: see [`PeerRequests`].

mod api;
mod classify;
mod idempotency_key;
mod lookup;
mod options;
mod peer_requests;
mod rate;
mod rejection;
mod response_meta;
mod supplier;
mod v1;

use transcript_core::Result;

pub use idempotency_key::IdempotencyKey;
pub use lookup::{ServiceLookup, TextFormat, TextResponse};
pub use options::ServiceOptions;
pub use peer_requests::{HOP, PeerRequestGuard, PeerRequests};
pub use rate::RateLimit;
pub use rejection::{RejectionKind, ServiceError, ServiceRejection};
pub use response_meta::ResponseMeta;
pub use supplier::{SERVICE_SUPPLIER, ServiceSupplier};

use api::ServiceConnection;

/// A response body with the metadata of its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReply<T> {
    /// The body.
    pub body: T,
    /// Metadata of the headers.
    pub meta: ResponseMeta,
}

/// A client of one Verbatim server, with one key or none. Clones share its connections.
///
/// ```no_run
/// use upstream_reqwest::service::{ServiceClient, ServiceLookup, ServiceOptions};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ServiceClient::new(&ServiceOptions::new("https://verbatim.example"))?;
/// let answer = client.look_up(&ServiceLookup::url("https://youtu.be/dQw4w9WgXcQ")).await?.body;
/// match answer.available {
///     true => answer.transcript.iter().for_each(|segment| println!("{}", segment.text)),
///     // The page for a person, as the server sent it.
///     false => println!("{}", answer.watch_url),
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

    /// A client with another key that shares the connections.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the text is not a key.
    pub fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Self { api: self.api.with_key(key)? })
    }
}
