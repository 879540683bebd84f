//! Entry points of the fuzz targets.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use transcript_core::{
    archive::KNOWN_TRACKS_MAX, captions::TextFormat, supplier::SupplyRequest, time::Timestamp,
    wire::lookup::TranscriptResult,
};

use super::{
    api::{ServiceResponse, location, media_type},
    call_error::rejection,
    classify::{SupplyDecision, classify_response},
    lookup::{lookup_reply, text_reply},
    response_meta,
};

/// Reads a response of another server: as a client, and as a supplier of this request.
pub fn response(
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    request: &SupplyRequest,
    now: Timestamp,
) {
    let Ok(status) = StatusCode::from_u16(status) else { return };
    let headers: HeaderMap = headers
        .iter()
        .filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        })
        .collect();
    let response = || ServiceResponse {
        status,
        media_type: media_type(&headers),
        meta: response_meta::from_headers(&headers),
        location: location(&headers),
        body: Bytes::copy_from_slice(body),
    };
    assert!(!rejection(status, response().meta, body).message.is_empty());
    for format in TextFormat::ALL {
        drop(text_reply(response(), format));
    }
    if let Ok(reply) = response().read::<TranscriptResult>() {
        drop(lookup_reply(reply));
    }
    let Ok(reply) = response().read::<TranscriptResult>() else { return };
    match classify_response(reply, request, now) {
        SupplyDecision::Supplied(output) => {
            assert!(output.transcripts.iter().all(|transcript| transcript.video == request.video));
            assert!(output.metadata.check().is_ok(), "{:?}", output.metadata);
            assert!(output.known_tracks.len() <= KNOWN_TRACKS_MAX);
        }
        SupplyDecision::Later(_, error) | SupplyDecision::Failed(error) => {
            assert!(!error.message().is_empty())
        }
    }
}
