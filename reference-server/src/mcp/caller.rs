//! The caller of a tool.

use http::request::Parts;
use rmcp::model::Extensions;
use transcript_core::lookup::AttributionTag;
use verbatim::service::Caller;

use crate::api::{ClientAddress, bearer, idempotency_key, proof};

/// The caller with the idempotency key of a call, if it has one.
///
/// The header of a client's configuration is the same for all its calls.
pub(super) fn with_idempotency_key(caller: &Caller, key: Option<String>) -> Caller {
    let key = key.or_else(|| caller.idempotency_key.clone());
    Caller { idempotency_key: key, ..caller.clone() }
}

/// Reads the caller from the HTTP request of a message; on standard input and output there is none.
pub(super) fn caller(extensions: &Extensions) -> Caller {
    let src = Some(AttributionTag::McpOther);
    let Some(parts) = extensions.get::<Parts>() else { return Caller { src, ..Caller::default() } };
    Caller {
        key: bearer(&parts.headers),
        proof: proof(&parts.headers),
        idempotency_key: idempotency_key(&parts.headers),
        client: parts.extensions.get::<ClientAddress>().map(|address| address.0),
        src,
    }
}
