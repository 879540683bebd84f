//! The service as one interface: within the process, over the user's own archive, or of a server.

#[cfg(feature = "local-service")]
mod archive;
mod connection_key;
#[cfg(feature = "local-service")]
mod jobs;
mod languages;
#[cfg(feature = "local-service")]
mod local;

#[cfg(feature = "local-service")]
pub use archive::ArchiveService;
pub use connection_key::ConnectionKey;
pub use languages::{buy_in_order, derive_idempotency_key, fetch_text_in_order, look_up_in_order};
#[cfg(feature = "local-service")]
pub use local::LocalService;
pub use transcript_core::service::{
    Caller, LookupReply, RateLimit, ResponseMeta, SERVICE_SUPPLIER, Service, ServiceError, ServiceErrorKind,
    ServiceLookup, ServiceQuestion, ServiceReply, ServiceResult, TextFormat, TextResponse, TrackList,
    v1_transcript,
};
#[cfg(feature = "service")]
pub use upstream_reqwest::service::{PeerRequestGuard, PeerRequests, ServiceClient, ServiceOptions};
