//! Other Verbatim servers: a typed client of both surfaces, and a server as a supplier.
//!
//! [`ServiceClient`] asks one server, which its user or operator chose, and no other: no redirect is followed, no
//! proxy of the platforms' or of the environment's stands between, and the key is in the `Authorization` header and
//! nowhere else. Answers are read up to a limit and within a time; what failed in passing is asked again where that
//! cannot be charged or done twice. The bodies are those of the core ([`transcript_core::wire`]), so that both sides
//! have the same fields.
//!
//! [`ServiceSupplier`] makes such a server a source of transcripts, as `verbatim-service`. Servers that ask each
//! other in a circle are told apart by a header, [`HOP`]: see [`AskedByServers`].

mod api;
mod asked;
mod facts;
mod judgement;
mod lookup;
mod options;
mod rate;
mod refusal;
mod repeats;
mod supplier;
mod v1;

use transcript_core::Result;

pub use asked::{AskedByServers, AskedGuard, HOP};
pub use facts::Facts;
pub use lookup::{LookupRequest, TextAnswer, TextFormat};
pub use options::ServiceOptions;
pub use rate::RateLimit;
pub use refusal::{Refusal, RefusalKind, ServiceError};
pub use repeats::IdempotencyKey;
pub use supplier::{SERVICE_SUPPLIER, ServiceSupplier};

use api::Api;

/// An answer, and what its headers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The body.
    pub body: T,
    /// What the headers say.
    pub facts: Facts,
}

/// A client of one Verbatim server, with the key of one caller or none. A clone is a handle to the same
/// connections.
///
/// ```no_run
/// use upstream_reqwest::service::{LookupRequest, ServiceClient, ServiceOptions};
///
/// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ServiceClient::new(&ServiceOptions::new("https://verbatim.example"))?;
/// let answer = client.look_up(&LookupRequest::url("https://youtu.be/dQw4w9WgXcQ")).await?.body;
/// match answer.available {
///     true => answer.transcript.iter().for_each(|segment| println!("{}", segment.text)),
///     // For a person, as the server sent it.
///     false => println!("{}", answer.watch_url),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ServiceClient {
    api: Api,
}

impl ServiceClient {
    /// A client with these options. Nobody is asked yet.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the option that is wrong.
    pub fn new(options: &ServiceOptions) -> Result<Self> {
        Ok(Self { api: Api::new(options)? })
    }

    /// The same client with another key, over the same connections.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the text is no key.
    pub fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Self { api: self.api.with_key(key)? })
    }
}
