//! Surface A: look-ups and their keys (specification 4, "Surface A").

use http::{HeaderName, HeaderValue, Method};
use transcript_core::{
    lookup::{Reference, SourceTag},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
    wire::{
        lookup::{KeyCreated, KeyRequest, KeyStatus, TranscriptResult},
        segments,
    },
};

use super::{
    Answered, ServiceClient, ServiceError,
    api::{Call, Repeat, TRANSCRIPT_MAX},
    refusal::line,
};

/// The header with the proof of a paid plan (specification 3).
const ENTITLEMENT: HeaderName = HeaderName::from_static("x-verbatim-entitlement");
/// No transcript, and no transcript since the key's allowance is spent: answers, where text is asked for.
const NONE: u16 = 404;
const SPENT: u16 = 402;

/// What is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupRequest {
    /// The video: a link, or an id on the long-form site.
    pub reference: Reference,
    /// The attribution tag that the server puts into the watch address.
    pub src: Option<SourceTag>,
}

impl LookupRequest {
    /// The video that this link means.
    pub fn url(url: impl Into<String>) -> Self {
        Self { reference: Reference::Url(url.into()), src: None }
    }

    /// The video with this id on the long-form site.
    pub fn id(id: impl Into<String>) -> Self {
        Self { reference: Reference::Id(id.into()), src: None }
    }

    fn query(&self, format: Option<TextFormat>) -> Vec<(&'static str, String)> {
        let value = match &self.reference {
            Reference::Url(value) | Reference::Id(value) => value.clone(),
        };
        let mut query = vec![(self.reference.parameter(), value)];
        query.extend(format.map(|format| ("format", format.as_str().to_owned())));
        query.extend(self.src.map(|src| ("src", src.as_str().to_owned())));
        query
    }
}

/// The forms of a transcript beside JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// `text`: plain prose.
    Text,
    /// `md`: Markdown with times.
    Markdown,
    /// `srt`: SRT subtitles.
    Srt,
    /// `vtt`: WebVTT subtitles.
    WebVtt,
}

impl TextFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Text, Self::Markdown, Self::Srt, Self::WebVtt];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "md",
            Self::Srt => "srt",
            Self::WebVtt => "vtt",
        }
    }
}

/// A transcript as text, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextAnswer {
    /// The transcript.
    Text(String),
    /// There is none (specification 4: 402 and 404).
    Missing {
        /// Whether the key's allowance is spent.
        is_allowance_spent: bool,
        /// Why, in the server's own sentence.
        message: String,
        /// Where a person can read the transcript: the server's last line as it came. Empty where the server
        /// tells none.
        watch_url: String,
    },
}

impl Answered<TranscriptResult> {
    /// Takes the transcript out of a look-up's answer, with what its headers say of it; none where there is none.
    ///
    /// # Errors
    /// [`ServiceError::Unreadable`] when its video or a time is none.
    pub fn take_transcript(&mut self) -> Result<Option<Transcript>, ServiceError> {
        let Self { body, facts } = self;
        if !body.available {
            return Ok(None);
        }
        let platform = Platform::from_wire(&body.platform).unwrap_or(Platform::VideoSite);
        let video = VideoId::new(platform, &body.video_id);
        let segments = segments::timed(std::mem::take(&mut body.transcript));
        let kind = if facts.is_generated == Some(true) { TrackKind::Generated } else { TrackKind::Human };
        Ok(Some(Transcript {
            video: video.map_err(|_| ServiceError::Unreadable("its video is none"))?,
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(facts.language.clone().unwrap_or_else(LanguageTag::unknown), kind),
            source: body.source.clone().unwrap_or_default(),
            segments: segments.ok_or(ServiceError::Unreadable("a time in it is none"))?,
        }))
    }
}

impl ServiceClient {
    /// Looks a transcript up in JSON (`GET /api/transcript`, operation getTranscript).
    ///
    /// Without a transcript it is an answer all the same: `available` is false, `failure_reason` says why, and
    /// `watch_url` is the address for a person, as the server sent it. Without a key of the client's only what is
    /// archived can be had. It is sent again after passing faults: a server fetches and charges a video once.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 when the link or id is none.
    pub async fn look_up(&self, request: &LookupRequest) -> Result<Answered<TranscriptResult>, ServiceError> {
        self.api.ask(&lookup(request, None)).await?.read()
    }

    /// The same as text, Markdown or subtitles.
    ///
    /// # Errors
    /// As [`ServiceClient::look_up`]; that there is no transcript is an answer.
    pub async fn look_up_text(
        &self,
        request: &LookupRequest,
        format: TextFormat,
    ) -> Result<Answered<TextAnswer>, ServiceError> {
        let call = Call { answers: &[NONE, SPENT], ..lookup(request, Some(format)) };
        let answer = self.api.ask(&call).await?;
        let text =
            std::str::from_utf8(&answer.body).map_err(|_| ServiceError::Unreadable("it is no text"))?;
        let body = match answer.status.as_u16() {
            status @ (NONE | SPENT) => missing(text, status == SPENT)?,
            _ => TextAnswer::Text(text.to_owned()),
        };
        Ok(Answered { body, facts: answer.facts })
    }

    /// Makes a key for look-ups (`POST /api/keys`, operation createApiKey); `entitlement` is the proof of a paid
    /// plan. The client's own key is not sent. It is never sent again by itself, since each one makes a key.
    ///
    /// # Errors
    /// [`ServiceError`]; 429 when the network has made as many keys as it may, and [`ServiceError::Invalid`] for a
    /// proof that no header can hold.
    pub async fn create_key(
        &self,
        request: &KeyRequest,
        entitlement: Option<&str>,
    ) -> Result<Answered<KeyCreated>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "keys"]).with_body(request)?;
        let call = Call { is_keyed: false, repeat: Repeat::Never, ..call };
        self.api.ask(&proven(call, entitlement)?).await?.read()
    }

    /// The plan and the remaining allowance of the client's key (`GET /api/keys/me`, operation getKeyStatus); a
    /// proof of a paid plan renews it.
    ///
    /// # Errors
    /// [`ServiceError`]; 401 when the server does not know the key.
    pub async fn key_status(&self, entitlement: Option<&str>) -> Result<Answered<KeyStatus>, ServiceError> {
        let call = Call::new(Method::GET, &["api", "keys", "me"]);
        self.api.ask(&proven(call, entitlement)?).await?.read()
    }
}

/// The call that looks something up.
pub(super) fn lookup(request: &LookupRequest, format: Option<TextFormat>) -> Call {
    let call = Call::new(Method::GET, &["api", "transcript"]);
    Call { query: request.query(format), max: TRANSCRIPT_MAX, ..call }
}

fn proven(mut call: Call, entitlement: Option<&str>) -> Result<Call, ServiceError> {
    if let Some(proof) = entitlement {
        let value = HeaderValue::from_str(proof);
        let mut value = value.map_err(|_| ServiceError::Invalid("its entitlement is no token"))?;
        value.set_sensitive(true);
        call.headers.insert(ENTITLEMENT, value);
    }
    Ok(call)
}

/// A sentence, and alone on the last line the watch address.
fn missing(text: &str, is_allowance_spent: bool) -> Result<TextAnswer, ServiceError> {
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let is_address = last.starts_with("https://") || last.starts_with("http://");
    // A proxy's own page is no answer of the server's.
    let none = || ServiceError::Unreadable("its watch address is missing");
    if !is_address {
        return Err(none());
    }
    let message = line(before).ok_or_else(none)?;
    Ok(TextAnswer::Missing { is_allowance_spent, message, watch_url: last.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_has_its_sentence_and_the_address_as_it_was_sent() {
        let address = "https://a.example/watch/video_site/x?src=mcp_other";
        let read = missing(&format!("There are no captions.\n{address}\n"), false).unwrap();
        let expect = TextAnswer::Missing {
            is_allowance_spent: false,
            message: "There are no captions.".to_owned(),
            watch_url: address.to_owned(),
        };
        assert_eq!(read, expect);
        for page in ["", "Not Found", "<html>\n</html>", address, "\n"] {
            assert!(missing(page, true).is_err(), "{page}");
        }
    }

    #[test]
    fn a_request_has_the_parameters_of_the_interface() {
        let request =
            LookupRequest { src: Some(SourceTag::McpOther), ..LookupRequest::url("https://a/?b=c&d") };
        let query = lookup(&request, Some(TextFormat::Markdown)).query;
        let expect = [("url", "https://a/?b=c&d"), ("format", "md"), ("src", "mcp_other")];
        assert_eq!(query, expect.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(lookup(&LookupRequest::id("x"), None).query, [("v", "x".to_owned())]);
    }
}
