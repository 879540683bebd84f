//! `GET /api/v1/transcript`: a transcript for credits.

use std::borrow::Cow;

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use transcript_core::{
    accounts::{Header, Reply, Route, TranscriptAsk, TranscriptReady},
    wire::v1::VideoTranscript,
};

use super::{
    Denial, X_CACHE, X_CREDITS_REMAINING,
    door::{enter, out, reply, turn_away},
};
use crate::routes::{App, query::parameter};

/// The transcript of a video, charged when it is delivered: when it is there and the caller still is. A caller who
/// leaves takes this future along, and what it held is returned. What is ready to be sent as it is was sent before
/// (`super::charged`).
pub(crate) async fn transcript(State(app): State<App>, headers: HeaderMap, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    // Read before the archive is, so that a change in between shows.
    let changes = app.bodies.changes().await;
    let visit = match enter(&app, Route::Transcript, &headers, query.as_bytes().to_vec()).await {
        Ok(visit) => visit,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let ask = match ask(query) {
        Ok(ask) => ask,
        Err(denial) => return out(rate, Err(turn_away(visit, denial).await)),
    };
    let outcome = match app.accounts.transcript(visit, ask).await {
        Ok(ready) => {
            let reply = answer(&ready);
            if let Some(changes) = changes {
                app.ready.remember(query, &ready, changes, &reply.body);
            }
            ready.deliver(reply).await
        }
        Err(refused) => Err(refused),
    };
    out(rate, outcome.map_err(Denial::from))
}

/// What a query asks for; parameters that it does not know are ignored.
fn ask(query: &str) -> Result<TranscriptAsk, Denial> {
    Ok(TranscriptAsk {
        video_id: parameter(query, "video_id")?.map(Cow::into_owned),
        url: parameter(query, "url")?.map(Cow::into_owned),
        lang: parameter(query, "lang")?.map(Cow::into_owned),
    })
}

fn answer(ready: &TranscriptReady) -> Reply {
    let mut reply = reply(StatusCode::OK, &VideoTranscript::from(ready.stored.transcript.as_ref()));
    let mut header = |name: &http::HeaderName, value: String| {
        reply.headers.push(Header { name: name.to_string(), value });
    };
    header(&X_CACHE, if ready.from_cache { "HIT" } else { "MISS" }.to_owned());
    if let Some(left) = ready.credits_remaining {
        header(&X_CREDITS_REMAINING, left.to_string());
    }
    reply
}
