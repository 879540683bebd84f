//! Client calls of the lookup API: transcripts and keys (specification 4.1 to 4.3).

use http::{HeaderName, HeaderValue, Method};
use transcript_core::{
    body::segments,
    lookup::{AttributionTag, VideoReference},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
    wire::lookup::{CreateKeyResponse, KeyRequest, KeyStatus, TranscriptResult},
};

use super::{
    ServiceClient, ServiceError, ServiceReply,
    api::{RetrySafety, ServiceCall, TRANSCRIPT_MAX},
    rejection::single_line,
};

/// The header with the signed proof of a paid plan (specification 5).
const ENTITLEMENT: HeaderName = HeaderName::from_static("x-verbatim-entitlement");
/// Statuses of a text response without a transcript.
///
/// 404: none is available. 402: the key's allowance is used up.
const NONE: u16 = 404;
const NO_CREDITS: u16 = 402;

/// A video to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLookup {
    /// The video: a link, or a YouTube id.
    pub reference: VideoReference,
    /// The attribution tag that the server adds to the watch URL.
    pub src: Option<AttributionTag>,
}

impl ServiceLookup {
    /// Looks up the video of this link.
    pub fn url(url: impl Into<String>) -> Self {
        Self { reference: VideoReference::Url(url.into()), src: None }
    }

    /// Looks up the YouTube video with this id.
    pub fn id(id: impl Into<String>) -> Self {
        Self { reference: VideoReference::Id(id.into()), src: None }
    }

    fn query(&self, format: Option<TextFormat>) -> Vec<(&'static str, String)> {
        let value = match &self.reference {
            VideoReference::Url(value) | VideoReference::Id(value) => value.clone(),
        };
        let mut query = vec![(self.reference.parameter(), value)];
        query.extend(format.map(|format| ("format", format.as_str().to_owned())));
        query.extend(self.src.map(|src| ("src", src.as_str().to_owned())));
        query
    }
}

/// Transcript formats other than JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// `text`: plain text.
    Text,
    /// `md`: Markdown with timestamps.
    Markdown,
    /// `srt`: SRT subtitles.
    Srt,
    /// `vtt`: WebVTT subtitles.
    WebVtt,
}

impl TextFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Text, Self::Markdown, Self::Srt, Self::WebVtt];

    /// The wire value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "md",
            Self::Srt => "srt",
            Self::WebVtt => "vtt",
        }
    }
}

/// A transcript as text, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextResponse {
    /// The transcript.
    Text(String),
    /// No transcript (specification 4.1: 402 and 404).
    Missing {
        /// Whether the key's allowance is used up.
        is_allowance_spent: bool,
        /// The reason, as the server wrote it.
        message: String,
        /// Page where a person can read the transcript: the last line of the response, unchanged. Empty if the
        /// server sent none.
        watch_url: String,
    },
}

impl ServiceReply<TranscriptResult> {
    /// Moves the transcript out of a lookup response, with metadata of its headers.
    ///
    /// `None` if there is none.
    ///
    /// # Errors
    /// [`ServiceError::Unreadable`] when its video id or a timestamp is invalid.
    pub fn take_transcript(&mut self) -> Result<Option<Transcript>, ServiceError> {
        let Self { body, meta } = self;
        if !body.available {
            return Ok(None);
        }
        let platform = Platform::from_wire(&body.platform).unwrap_or(Platform::YouTube);
        let video = VideoId::new(platform, &body.video_id);
        let segments = segments::from_wire(std::mem::take(&mut body.transcript));
        let kind = if meta.is_generated == Some(true) { TrackKind::Generated } else { TrackKind::Human };
        Ok(Some(Transcript {
            video: video.map_err(|_| ServiceError::Unreadable("its video id is invalid"))?,
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(meta.language.clone().unwrap_or_else(LanguageTag::unknown), kind),
            source: body.source.clone().unwrap_or_default(),
            segments: segments.ok_or(ServiceError::Unreadable("a timestamp in it is invalid"))?,
        }))
    }
}

impl ServiceClient {
    /// Looks up a transcript in JSON (`GET /api/transcript`, operation getTranscript).
    ///
    /// A response without a transcript is a success: `available` is false, `failure_reason` says why, and
    /// `watch_url` is the page for a person, as the server sent it. A client without a key receives archived
    /// transcripts only. Transient errors are retried: a server fetches and charges a video once.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 when the link or id is invalid.
    pub async fn look_up(
        &self,
        request: &ServiceLookup,
    ) -> Result<ServiceReply<TranscriptResult>, ServiceError> {
        self.api.execute(&lookup(request, None)).await?.read()
    }

    /// Looks up a transcript as text, Markdown or subtitles.
    ///
    /// # Errors
    /// As [`ServiceClient::look_up`]; a missing transcript is a success.
    pub async fn look_up_text(
        &self,
        request: &ServiceLookup,
        format: TextFormat,
    ) -> Result<ServiceReply<TextResponse>, ServiceError> {
        let call = ServiceCall { answers: &[NONE, NO_CREDITS], ..lookup(request, Some(format)) };
        let response = self.api.execute(&call).await?;
        let text = std::str::from_utf8(&response.body)
            .map_err(|_| ServiceError::Unreadable("it is not UTF-8 text"))?;
        let body = match response.status.as_u16() {
            status @ (NONE | NO_CREDITS) => parse_missing(text, status == NO_CREDITS)?,
            _ => TextResponse::Text(text.to_owned()),
        };
        Ok(ServiceReply { body, meta: response.meta })
    }

    /// Creates a key of the lookup API (`POST /api/keys`, operation createApiKey).
    ///
    /// `entitlement` is the proof of a paid plan. The client's own key is not sent. The request is never retried,
    /// since each one creates a key.
    ///
    /// # Errors
    /// [`ServiceError`]; 429 when the network has created the maximum number of keys, and
    /// [`ServiceError::Invalid`] for a proof that no header can hold.
    pub async fn create_key(
        &self,
        request: &KeyRequest,
        entitlement: Option<&str>,
    ) -> Result<ServiceReply<CreateKeyResponse>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "keys"]).with_body(request)?;
        let call = ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call };
        self.api.execute(&with_entitlement(call, entitlement)?).await?.read()
    }

    /// The plan and the remaining allowance of the client's key (`GET /api/keys/me`).
    ///
    /// The operation is getKeyStatus.
    ///
    /// A proof of a paid plan renews the key's entitlement.
    ///
    /// # Errors
    /// [`ServiceError`]; 401 when the server does not know the key.
    pub async fn key_status(
        &self,
        entitlement: Option<&str>,
    ) -> Result<ServiceReply<KeyStatus>, ServiceError> {
        let call = ServiceCall::new(Method::GET, &["api", "keys", "me"]);
        self.api.execute(&with_entitlement(call, entitlement)?).await?.read()
    }
}

/// The call of a lookup.
pub(super) fn lookup(request: &ServiceLookup, format: Option<TextFormat>) -> ServiceCall {
    let call = ServiceCall::new(Method::GET, &["api", "transcript"]);
    ServiceCall { query: request.query(format), max: TRANSCRIPT_MAX, ..call }
}

fn with_entitlement(mut call: ServiceCall, entitlement: Option<&str>) -> Result<ServiceCall, ServiceError> {
    if let Some(proof) = entitlement {
        let value = HeaderValue::from_str(proof);
        let mut value =
            value.map_err(|_| ServiceError::Invalid("the entitlement is not a valid header value"))?;
        value.set_sensitive(true);
        call.headers.insert(ENTITLEMENT, value);
    }
    Ok(call)
}

/// Parses a text response without a transcript: a message, and the watch URL alone on the last line.
fn parse_missing(text: &str, is_allowance_spent: bool) -> Result<TextResponse, ServiceError> {
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let is_address = last.starts_with("https://") || last.starts_with("http://");
    // A proxy's error page is not a response of the server.
    let none = || ServiceError::Unreadable("its watch URL is missing");
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
        let request =
            ServiceLookup { src: Some(AttributionTag::McpOther), ..ServiceLookup::url("https://a/?b=c&d") };
        let query = lookup(&request, Some(TextFormat::Markdown)).query;
        let expect = [("url", "https://a/?b=c&d"), ("format", "md"), ("src", "mcp_other")];
        assert_eq!(query, expect.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(lookup(&ServiceLookup::id("x"), None).query, [("v", "x".to_owned())]);
    }
}
