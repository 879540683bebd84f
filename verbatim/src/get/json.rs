//! The JSON of a missing transcript.

use serde::{Serialize, Serializer};
use transcript_core::{time::ceil_seconds, wire::LanguageObject};

use super::UnavailableTranscript;

/// Response of the lookup API without a transcript, and what that API has in headers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnavailableObject<'a> {
    platform: &'static str,
    video_id: &'a str,
    available: bool,
    from_cache: bool,
    #[cfg(feature = "lookup")]
    watch_url: &'a str,
    failure_reason: &'static str,
    failure_message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    attempted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    languages: Vec<LanguageObject>,
    transcript: [(); 0],
}

impl Serialize for UnavailableTranscript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = UnavailableObject {
            platform: self.platform.as_str(),
            video_id: &self.video_id,
            available: false,
            from_cache: false,
            #[cfg(feature = "lookup")]
            watch_url: &self.watch_url,
            failure_reason: self.reason.as_str(),
            failure_message: &self.message,
            failure_detail: self.detail.as_deref(),
            retry_after_seconds: self.retry_after.map(ceil_seconds),
            attempted: self.attempted,
            languages: self.languages.iter().map(LanguageObject::from).collect(),
            transcript: [],
        };
        object.serialize(serializer)
    }
}

#[cfg(all(test, feature = "lookup"))]
mod tests {
    use std::time::Duration;

    use transcript_core::{
        ErrorCause,
        engine::FailureReason,
        transcript::{LanguageTag, TrackInfo, TrackKind},
        video::Platform,
        wire::lookup::TranscriptResult,
    };

    use super::*;

    #[test]
    fn unavailable_transcript_json_is_lookup_response() {
        let missing = UnavailableTranscript {
            platform: Platform::YouTube,
            video_id: "dQw4w9WgXcQ".to_owned(),
            reason: FailureReason::NoCaptions,
            detail: Some("no_language".to_owned()),
            message: "There are no German captions.".to_owned(),
            retry_after: Some(Duration::from_millis(1_500)),
            languages: vec![TrackInfo::new(LanguageTag::english(), TrackKind::Generated)],
            attempted: true,
            cause: Some(ErrorCause::new(std::io::Error::other("a secret"))),
            watch_url: "https://v.example/watch/x".to_owned(),
        };
        let json = serde_json::to_string(&missing).unwrap();
        assert_eq!(
            json,
            concat!(
                r#"{"platform":"video_site","videoId":"dQw4w9WgXcQ","available":false,"fromCache":false,"#,
                r#""watchUrl":"https://v.example/watch/x","failureReason":"no_captions","#,
                r#""failureMessage":"There are no German captions.","failureDetail":"no_language","#,
                r#""retryAfterSeconds":2,"attempted":true,"#,
                r#""languages":[{"tag":"en","name":"English","kind":"auto","original":false}],"transcript":[]}"#
            )
        );
        let result: TranscriptResult = serde_json::from_str(&json).unwrap();
        assert_eq!((result.available, result.failure_reason.as_deref()), (false, Some("no_captions")));

        let missing = UnavailableTranscript {
            reason: FailureReason::ConfigError,
            detail: None,
            retry_after: None,
            languages: Vec::new(),
            attempted: false,
            ..missing
        };
        assert_eq!(
            serde_json::to_string(&missing).unwrap(),
            concat!(
                r#"{"platform":"video_site","videoId":"dQw4w9WgXcQ","available":false,"fromCache":false,"#,
                r#""watchUrl":"https://v.example/watch/x","failureReason":"config_error","#,
                r#""failureMessage":"There are no German captions.","attempted":false,"transcript":[]}"#
            )
        );
    }
}
