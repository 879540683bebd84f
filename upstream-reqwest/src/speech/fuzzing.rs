//! Entry points of the fuzz targets.

use http::StatusCode;
use transcript_core::transcript::Segment;

use super::{endpoint, hallucination, response, timestamps};

/// Reads the response of a service to a chunk of this length; returns its segments, if its times are valid.
pub fn transcription(body: &[u8], length_ms: u64) -> Option<Vec<Segment>> {
    let spans = match response::read(body) {
        Ok(transcription) => transcription.spans?,
        Err(failure) => {
            drop(failure.error());
            return None;
        }
    };
    let spans = hallucination::remove_invented(&spans);
    let mut segments = timestamps::to_segments(&spans, length_ms).ok()?;
    segments.retain(|segment| hallucination::has_words(&segment.text));
    Some(hallucination::remove_repetition(segments))
}

/// Classifies an error response.
pub fn error_response(status: u16, body: &[u8]) {
    if let Ok(status) = StatusCode::from_u16(status) {
        for is_timed in [true, false] {
            drop(endpoint::classify_error(status, None, body, is_timed).error());
        }
    }
}
