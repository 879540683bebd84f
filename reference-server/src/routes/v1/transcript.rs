//! `GET /api/v1/transcript`: a transcript for credits.

use std::borrow::Cow;

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use transcript_core::{
    accounts::{PreparedTranscript, StoredHeader, StoredResponse, TranscriptParams, V1Endpoint},
    wire::v1::VideoTranscript,
};

use super::{
    V1ErrorResponse, X_CACHE, X_CREDITS_REMAINING,
    admission::{admit, finish, reject, reply},
};
use crate::routes::{AppState, query::parameter};

/// Returns the transcript of a video.
/// Credits are charged on delivery: if the transcript is ready and the caller still connected. A disconnect drops this
/// future, which releases the hold. Cached responses are sent earlier (`super::respond_cached`).
pub(crate) async fn transcript(State(app): State<AppState>, headers: HeaderMap, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    // Read before the archive, so that a concurrent change invalidates the cached body.
    let changes = app.bodies.changes().await;
    let guard = match admit(&app, V1Endpoint::Transcript, &headers, query.as_bytes().to_vec()).await {
        Ok(guard) => guard,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let params = match transcript_params(query) {
        Ok(params) => params,
        Err(denial) => return finish(rate, Err(reject(guard, denial).await)),
    };
    let outcome = match app.accounts.transcript(guard, params).await {
        Ok(ready) => {
            let reply = answer(&ready);
            if let Some(changes) = changes {
                app.ready.insert(query, &ready, changes, &reply.body);
            }
            ready.deliver(reply).await
        }
        Err(refused) => Err(refused),
    };
    finish(rate, outcome.map_err(V1ErrorResponse::from))
}

/// Parses the query; unknown parameters are ignored.
fn transcript_params(query: &str) -> Result<TranscriptParams, V1ErrorResponse> {
    Ok(TranscriptParams {
        video_id: parameter(query, "video_id")?.map(Cow::into_owned),
        url: parameter(query, "url")?.map(Cow::into_owned),
        lang: parameter(query, "lang")?.map(Cow::into_owned),
    })
}

fn answer(ready: &PreparedTranscript) -> StoredResponse {
    let mut reply = reply(StatusCode::OK, &VideoTranscript::from(ready.stored.transcript.as_ref()));
    let mut header = |name: &http::HeaderName, value: String| {
        reply.headers.push(StoredHeader { name: name.to_string(), value });
    };
    header(&X_CACHE, if ready.from_cache { "HIT" } else { "MISS" }.to_owned());
    if let Some(left) = ready.credits_remaining {
        header(&X_CREDITS_REMAINING, left.to_string());
    }
    reply
}
