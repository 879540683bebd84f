//! Entry points of the fuzz targets.

use http::{Response, StatusCode};

use super::{
    StreamState, classify_error, read_complete, read_stream, stream::SseParser, wire::ServiceQuirks,
};

/// Reads an answer as a stream of events, and as one JSON body; returns the texts.
pub async fn answer(body: &[u8]) -> [Option<String>; 2] {
    let mut texts = [None, None];
    for (is_stream, text) in [true, false].into_iter().zip(&mut texts) {
        let mut state = StreamState::new(None);
        let response = Response::new(body.to_vec()).into();
        let result = match is_stream {
            true => read_stream(response, &mut state).await,
            false => read_complete(response, &mut state).await,
        };
        match result {
            Ok(()) => {
                state.end();
                *text = Some(state.text);
            }
            Err(failure) => drop(failure.error()),
        }
    }
    texts
}

/// The events of a stream that arrives in pieces of this many bytes; `None` if it is not a stream.
pub fn events(body: &[u8], step: usize) -> Option<Vec<String>> {
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    for piece in body.chunks(step.max(1)) {
        parser.take(piece);
        while let Some(event) = parser.next_event().ok()? {
            events.push(event);
        }
    }
    while let Some(event) = parser.last().ok()? {
        events.push(event);
    }
    Some(events)
}

/// Classifies an error response.
pub fn error_response(status: u16, body: &[u8]) {
    if let Ok(status) = StatusCode::from_u16(status) {
        drop(classify_error(status, None, body, ServiceQuirks::default()).error());
    }
}
