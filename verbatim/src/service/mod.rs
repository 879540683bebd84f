//! The service as one interface: within the process, over the user's own archive, or of a server.

#[cfg(feature = "local-service")]
mod archive;
#[cfg(feature = "local-service")]
mod jobs;
#[cfg(feature = "local-service")]
mod local;

#[cfg(feature = "local-service")]
pub use archive::ArchiveService;
#[cfg(feature = "local-service")]
pub use local::LocalService;
pub use transcript_core::service::{
    Caller, LookupReply, RateLimit, ResponseMeta, SERVICE_SUPPLIER, Service, ServiceError, ServiceErrorKind,
    ServiceLookup, ServiceQuestion, ServiceReply, ServiceResult, TextFormat, TextResponse, TrackList,
    v1_transcript,
};
#[cfg(feature = "service")]
pub use upstream_reqwest::service::{PeerRequestGuard, PeerRequests, ServiceClient, ServiceOptions};
