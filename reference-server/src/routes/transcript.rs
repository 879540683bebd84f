//! `GET /api/transcript` (specification 4; failures as text: design 3).

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_TYPE, VARY},
};
use transcript_core::{
    lookup::{Availability, BadReference, FailureReason, LookupAnswer, LookupAsk},
    transcript::{markdown, prose, srt, webvtt},
    wire::lookup::TranscriptResult,
};

use super::{
    App,
    bearer::{bearer, proof},
    query::{Format, LookupQuery},
};
use crate::http::{ClientAddress, Refusal, json};

const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const SRT: &str = "application/x-subrip; charset=utf-8";
const WEBVTT: &str = "text/vtt; charset=utf-8";

/// Looks a transcript up, and has it made when the key allows.
pub(crate) async fn look_up(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (ask, format) = ask(&uri, &headers, client)?;
    let keyed = ask.key.is_some();
    let answer = app.lookup.look_up(ask).await.map_err(bad)?;
    Ok(reply(&answer, format, keyed))
}

/// HEAD: as [`look_up`], but from the archive only. It never fetches, holds or charges.
pub(crate) async fn peek(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (ask, format) = ask(&uri, &headers, client)?;
    let keyed = ask.key.is_some();
    let answer = app.lookup.peek(ask).await.map_err(bad)?;
    Ok(reply(&answer, format, keyed))
}

fn ask(uri: &Uri, headers: &HeaderMap, client: ClientAddress) -> Result<(LookupAsk, Format), Refusal> {
    let query = LookupQuery::read(uri.query().unwrap_or_default())?;
    let ask = LookupAsk {
        reference: query.reference,
        src: query.src,
        key: bearer(headers),
        proof: proof(headers),
        client: Some(client.0),
    };
    Ok((ask, query.format))
}

fn bad(reference: BadReference) -> Refusal {
    Refusal::bad(reference.parameter, reference.message)
}

/// The answer in its format. Whoever sends a key gets figures of that key: no cache may keep them.
fn reply(answer: &LookupAnswer, format: Format, keyed: bool) -> Response {
    let text = |status, kind, body: String| {
        (status, [(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
    };
    let mut response = match (format, &answer.availability) {
        (Format::Json, _) => json(StatusCode::OK, &TranscriptResult::from(answer)),
        (Format::Text, Availability::Available { stored, .. }) => {
            text(StatusCode::OK, PLAIN, prose(&stored.transcript.segments))
        }
        (Format::Markdown, Availability::Available { stored, .. }) => {
            text(StatusCode::OK, MARKDOWN, markdown(&stored.transcript))
        }
        (Format::Srt, Availability::Available { stored, .. }) => {
            text(StatusCode::OK, SRT, srt(&stored.transcript.segments))
        }
        (Format::WebVtt, Availability::Available { stored, .. }) => {
            text(StatusCode::OK, WEBVTT, webvtt(&stored.transcript.segments))
        }
        (_, Availability::Unavailable { reason, message }) => {
            let status = match reason {
                FailureReason::KeyAllowance => StatusCode::PAYMENT_REQUIRED,
                _ => StatusCode::NOT_FOUND,
            };
            // The message comes from platforms too: it stays one line, so that the last is the address.
            let sentence = message.split_whitespace().collect::<Vec<_>>().join(" ");
            text(status, PLAIN, format!("{sentence}\n{}\n", answer.watch_url))
        }
    };
    let cache = match (keyed, &answer.availability) {
        (false, Availability::Available { .. }) => "no-cache",
        _ => "no-store",
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    response
}
