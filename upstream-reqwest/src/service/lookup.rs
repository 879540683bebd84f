//! Calls of the lookup API, and its responses (specification 4.1 to 4.3).

use std::sync::Arc;

use http::{HeaderValue, Method};
use transcript_core::{
    archive::StoredTranscript,
    body::segments,
    headers::X_VERBATIM_ENTITLEMENT,
    lookup::{AttributionTag, VideoReference},
    service::{
        Caller, LookupReply, ResponseMeta, ServiceLookup, ServiceReply, TextFormat, TextResponse, unarchived,
    },
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, VideoDetails},
    video::{Platform, VideoId},
    wire::lookup::TranscriptResult,
};

use super::{
    api::{ServiceCall, ServiceResponse, TRANSCRIPT_MAX},
    call_error::{CallError, single_line},
};

/// Status of a text response with a transcript.
const OK: u16 = 200;
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
    query.extend(request.language.as_ref().map(|tag| ("lang", tag.as_str().to_owned())));
    let is_json = format.is_none();
    let flags = [
        ("translated", request.translated),
        ("words", request.words && is_json),
        ("description", request.description && is_json),
    ];
    query.extend(flags.into_iter().filter(|(_, value)| *value).map(|(name, _)| (name, "true".to_owned())));
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
        call.headers.insert(X_VERBATIM_ENTITLEMENT, value);
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
    // The interface without the field has YouTube videos only.
    let platform = match result.platform.as_str() {
        "" => Some(Platform::YouTube),
        name => Platform::from_wire(name),
    };
    let platform = platform.ok_or(CallError::Unreadable("its platform is unknown to this version"))?;
    let video = VideoId::new(platform, &result.video_id);
    let segments = segments::from_wire(segments);
    let (details, metadata) = (result.details(), result.metadata.clone().unwrap_or_default());
    let transcript = Transcript {
        video: video.map_err(|_| CallError::Unreadable("its video id is invalid"))?,
        duration_ms: metadata.duration_ms(),
        title: metadata.clean_title(),
        author: metadata.clean_author(),
        track: track(&meta, &result, &details, TrackKind::Human),
        source: result.source.clone().unwrap_or_default(),
        segments: segments.ok_or(CallError::Unreadable("a timestamp in it is invalid"))?,
    };
    let transcript = Some(StoredTranscript { details: Arc::new(details), ..unarchived(transcript) });
    Ok(ServiceReply { body: LookupReply { result, transcript }, meta })
}

/// The track of a transcript: the only one of the video in its language and of its origin, as far as these are known.
///
/// Its kind is `unstated` if nothing states it.
pub(super) fn track(
    meta: &ResponseMeta,
    result: &TranscriptResult,
    details: &VideoDetails,
    unstated: TrackKind,
) -> TrackInfo {
    let language = meta.language.clone();
    let named = || LanguageTag::parse(result.language.as_deref()?).ok();
    let language = language.or_else(named).unwrap_or_else(LanguageTag::unknown);
    let mut matching = details.tracks.iter().filter(|track| {
        track.language == language && meta.is_generated.is_none_or(|known| known == track.is_generated())
    });
    match (matching.next(), matching.next()) {
        (Some(track), None) => track.clone(),
        _ => {
            let kind = meta.is_generated.map_or(unstated, |is_generated| match is_generated {
                true => TrackKind::Generated,
                false => TrackKind::Human,
            });
            TrackInfo::new(language, kind)
        }
    }
}

/// The reply of a lookup response in a text format.
pub(super) fn text_reply(
    response: ServiceResponse,
    format: TextFormat,
) -> Result<ServiceReply<TextResponse>, CallError> {
    let is_text = response.media_type.as_deref() == format.media_type().split(';').next();
    let text =
        std::str::from_utf8(&response.body).map_err(|_| CallError::Unreadable("it is not UTF-8 text"))?;
    let body = match response.status.as_u16() {
        status @ (NONE | NO_CREDITS) => parse_missing(text, status == NO_CREDITS)?,
        OK if is_text => TextResponse::Text(text.to_owned()),
        // Such as the login page of a network.
        _ => return Err(CallError::Unreadable("it is not text in this format")),
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
    use transcript_core::{
        time::Timestamp,
        transcript::{Chapter, LiveStatus},
    };

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
    fn lookup_reply_keeps_details_of_video() {
        let body = |change: serde_json::Value| {
            let mut json = serde_json::json!({
                "platform": "video_site", "videoId": "dQw4w9WgXcQ", "available": true, "language": "de",
                "languages": [
                    { "tag": "en", "name": "English", "kind": "manual", "original": false },
                    { "tag": "de", "name": "CC", "kind": "translated", "original": false },
                    { "tag": "de", "name": "German", "kind": "robot", "original": true },
                ],
                "metadata": {
                    "title": "A day", "author": "Ann", "durationSeconds": 9.5, "live": "was_live",
                    "authorUrl": "javascript:alert(1)", "publishedAt": "2023-11-14T22:13:20Z",
                },
                "chapters": [{ "title": "One", "start": 0.5 }, { "title": "Late", "start": 10.0 }],
                "transcript": [{ "text": "Ja", "start": 0.0, "duration": 1.0 }],
            });
            json.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            serde_json::from_value::<TranscriptResult>(json).unwrap()
        };
        let reply = |body, meta| lookup_reply(ServiceReply { body, meta }).unwrap().body.transcript.unwrap();
        let stored = reply(body(serde_json::json!({})), ResponseMeta::default());
        let transcript = &stored.transcript;
        assert_eq!((transcript.title.as_deref(), transcript.author.as_deref()), (Some("A day"), Some("Ann")));
        assert_eq!(transcript.duration_ms, Some(9_500));
        assert_eq!(
            (transcript.track.kind, transcript.track.name.as_deref()),
            (TrackKind::Translated, Some("CC"))
        );
        let VideoDetails { metadata, tracks } = &*stored.details;
        assert_eq!(tracks.iter().map(|track| track.name.as_deref()).collect::<Vec<_>>(), [None, Some("CC")]);
        assert_eq!((metadata.live, metadata.author_url.as_deref()), (Some(LiveStatus::WasLive), None));
        assert_eq!(metadata.published_at, Some(Timestamp::from_millis(1_700_000_000_000)));
        assert_eq!(metadata.chapters, [Chapter { title: "One".to_owned(), start_ms: 500 }]);
        let human = ResponseMeta { is_generated: Some(false), ..ResponseMeta::default() };
        assert_eq!(reply(body(serde_json::json!({})), human).transcript.track.kind, TrackKind::Human);
        let older =
            body(serde_json::json!({ "metadata": null, "languages": [], "chapters": [], "platform": "" }));
        let older = reply(older, ResponseMeta::default());
        assert_eq!(*older.details, VideoDetails::default());
        assert_eq!(older.transcript.video.platform(), Platform::YouTube);
        let newer = body(serde_json::json!({ "platform": "clips" }));
        assert!(lookup_reply(ServiceReply { body: newer, meta: ResponseMeta::default() }).is_err());
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
