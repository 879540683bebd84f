//! Calls of the lookup API, and its responses (specification 4.1 to 4.3).

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use transcript_core::{
    archive::StoredTranscript,
    body::segments,
    lookup::{AttributionTag, VideoReference},
    service::{
        Caller, LookupReply, ResponseMeta, ServiceLookup, ServiceReply, TextFormat, TextResponse, unarchived,
    },
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, remove_unfit_words},
    video::{Platform, VideoId},
    wire::lookup::TranscriptResult,
};

use super::{
    api::{ServiceCall, ServiceResponse, TRANSCRIPT_MAX},
    call_error::{CallError, single_line},
};

/// The header with the signed proof of a paid plan (specification 5).
const ENTITLEMENT: HeaderName = HeaderName::from_static("x-verbatim-entitlement");
/// Statuses of a text response without a transcript.
///
/// 404: none is available. 402: the key's allowance is used up.
const NONE: u16 = 404;
const NO_CREDITS: u16 = 402;

/// The call of a lookup. Without its key a caller receives archived transcripts only.
pub(super) fn lookup(
    request: &ServiceLookup,
    src: Option<AttributionTag>,
    format: Option<TextFormat>,
) -> ServiceCall {
    let value = match &request.reference {
        VideoReference::Url(value) | VideoReference::Id(value) => value.clone(),
    };
    let mut query = vec![(request.reference.parameter(), value)];
    query.extend(format.map(|format| ("format", format.as_str().to_owned())));
    query.extend(src.map(|src| ("src", src.as_str().to_owned())));
    let answers: &[u16] = if format.is_some() { &[NONE, NO_CREDITS] } else { &[] };
    let call = ServiceCall::new(Method::GET, &["api", "transcript"]);
    ServiceCall { query, answers, is_keyed: request.may_fetch, max: TRANSCRIPT_MAX, ..call }
}

/// Adds the caller's proof of a paid plan to a call.
pub(super) fn with_proof(mut call: ServiceCall, caller: &Caller) -> Result<ServiceCall, CallError> {
    if let Some(proof) = &caller.proof {
        let value = HeaderValue::from_str(proof.reveal());
        let mut value =
            value.map_err(|_| CallError::Invalid("the entitlement is not a valid header value"))?;
        value.set_sensitive(true);
        call.headers.insert(ENTITLEMENT, value);
    }
    Ok(call)
}

/// The reply of a lookup response in JSON.
pub(super) fn lookup_reply(
    response: ServiceReply<TranscriptResult>,
) -> Result<ServiceReply<LookupReply>, CallError> {
    let ServiceReply { body: mut result, meta } = response;
    let segments = std::mem::take(&mut result.transcript);
    if !result.available {
        return Ok(ServiceReply { body: LookupReply { result, transcript: None }, meta });
    }
    let platform = Platform::from_wire(&result.platform).unwrap_or(Platform::YouTube);
    let video = VideoId::new(platform, &result.video_id);
    let segments = segments::from_wire(segments);
    let mut transcript = Transcript {
        video: video.map_err(|_| CallError::Unreadable("its video id is invalid"))?,
        title: None,
        author: None,
        duration_ms: None,
        track: track(&meta),
        source: result.source.clone().unwrap_or_default(),
        segments: segments.ok_or(CallError::Unreadable("a timestamp in it is invalid"))?,
    };
    remove_unfit_words(&mut transcript.segments);
    let details = Arc::new(result.read_details(&mut transcript));
    let transcript = Some(StoredTranscript { details, ..unarchived(transcript) });
    Ok(ServiceReply { body: LookupReply { result, transcript }, meta })
}

fn track(meta: &ResponseMeta) -> TrackInfo {
    let kind = if meta.is_generated == Some(true) { TrackKind::Generated } else { TrackKind::Human };
    TrackInfo::new(meta.language.clone().unwrap_or_else(LanguageTag::unknown), kind)
}

/// The reply of a lookup response in a text format.
pub(super) fn text_reply(response: ServiceResponse) -> Result<ServiceReply<TextResponse>, CallError> {
    let text =
        std::str::from_utf8(&response.body).map_err(|_| CallError::Unreadable("it is not UTF-8 text"))?;
    let body = match response.status.as_u16() {
        status @ (NONE | NO_CREDITS) => parse_missing(text, status == NO_CREDITS)?,
        _ => TextResponse::Text(text.to_owned()),
    };
    Ok(ServiceReply { body, meta: response.meta })
}

/// Parses a text response without a transcript: a message, and the watch URL alone on the last line.
fn parse_missing(text: &str, is_allowance_spent: bool) -> Result<TextResponse, CallError> {
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let is_address = last.starts_with("https://") || last.starts_with("http://");
    // A proxy's error page is not a response of the server.
    let none = || CallError::Unreadable("its watch URL is missing");
    if !is_address {
        return Err(none());
    }
    let message = single_line(before).ok_or_else(none)?;
    Ok(TextResponse::Missing { is_allowance_spent, message, watch_url: last.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_text_has_message_and_watch_url() {
        let address = "https://a.example/watch/video_site/x?src=mcp_other";
        let read = parse_missing(&format!("There are no captions.\n{address}\n"), false).unwrap();
        let expect = TextResponse::Missing {
            is_allowance_spent: false,
            message: "There are no captions.".to_owned(),
            watch_url: address.to_owned(),
        };
        assert_eq!(read, expect);
        for page in ["", "Not Found", "<html>\n</html>", address, "\n"] {
            assert!(parse_missing(page, true).is_err(), "{page}");
        }
    }

    #[test]
    fn lookup_query_has_api_parameters() {
        let (request, src) = (ServiceLookup::url("https://a/?b=c&d"), Some(AttributionTag::McpOther));
        let query = lookup(&request, src, Some(TextFormat::Markdown)).query;
        let expect = [("url", "https://a/?b=c&d"), ("format", "md"), ("src", "mcp_other")];
        assert_eq!(query, expect.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(lookup(&ServiceLookup::id("x"), None, None).query, [("v", "x".to_owned())]);
    }
}
