//! From a track's address to its segments.

use http::StatusCode;
use transcript_core::{
    captions::{self, CaptionErrorKind},
    transcript::Segment,
};

use super::{
    call::Call,
    clients::ClientIdentity,
    refusal::Refusal,
    request, signals,
    tracks::{Choice, Format},
};
use crate::http::Answer;

/// What one caption body turned out to be.
enum Body {
    Segments(Vec<Segment>),
    /// No captions in any form that we read: another form may do. The text says what was wrong.
    Unreadable(String),
}

impl Call<'_> {
    /// Fetches a track's captions, in the form that is safest to read; in others where that one can't be.
    pub(super) async fn captions(
        &mut self,
        client: &ClientIdentity,
        choice: &Choice,
    ) -> Result<Vec<Segment>, Refusal> {
        let mut wrong = String::new();
        for format in Format::ALL {
            self.check_cancelled()?;
            let translate_to = choice.translate_to.as_deref();
            let request = request::captions(client, &choice.address, format, translate_to)
                .ok_or_else(|| Refusal::UnreadableCaptions("their address is none".to_owned()))?;
            let answer = self.send(&request).await?;
            match read(&answer)? {
                Body::Segments(segments) => return Ok(segments),
                Body::Unreadable(what) => wrong = what,
            }
        }
        Err(Refusal::UnreadableCaptions(wrong))
    }
}

fn read(answer: &Answer) -> Result<Body, Refusal> {
    if let Some(refusal) = answer.location.as_ref().and_then(signals::detour) {
        return Err(refusal);
    }
    match answer.status {
        StatusCode::OK => {}
        StatusCode::FORBIDDEN => return Err(Refusal::Forbidden),
        status => return Err(Refusal::UnreadableCaptions(format!("YouTube answered with HTTP {status}"))),
    }
    if let Some(refusal) = signals::page(&answer.body) {
        return Err(refusal);
    }
    match captions::parse(&answer.body) {
        Ok(segments) => Ok(Body::Segments(segments)),
        Err(error) => match error.kind() {
            // A missing proof of origin shows as nothing at all, whatever the form.
            CaptionErrorKind::Empty => Err(Refusal::Gated),
            CaptionErrorKind::NoCues => Err(Refusal::NoWords),
            CaptionErrorKind::TooLarge => Err(Refusal::UnreadableCaptions(clause(&error.to_string()))),
            _ => Ok(Body::Unreadable(clause(&error.to_string()))),
        },
    }
}

/// A sentence as a part of another one.
fn clause(sentence: &str) -> String {
    sentence.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use url::Url;

    use super::*;

    fn check(status: u16, location: Option<&str>, body: &'static str) -> Result<usize, Refusal> {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            location: location.map(|to| Url::parse(to).unwrap()),
            body: Bytes::from_static(body.as_bytes()),
        };
        read(&answer).map(|body| match body {
            Body::Segments(segments) => segments.len(),
            Body::Unreadable(_) => 0,
        })
    }

    #[test]
    fn bodies_are_told_apart() {
        let words = r#"{"events":[{"tStartMs":0,"dDurationMs":900,"segs":[{"utf8":"hello"}]}]}"#;
        let captcha = r#"<html><body><div class="g-recaptcha"></div></body></html>"#;
        for (status, location, body, expect) in [
            (200, None, words, Ok(1)),
            (200, None, "", Err(Refusal::Gated)),
            (200, None, "<!DOCTYPE html><title>Error</title>", Ok(0)),
            (200, None, "no captions at all", Ok(0)),
            (200, None, captcha, Err(Refusal::Captcha)),
            (200, None, r#"<?xml version="1.0"?><transcript></transcript>"#, Err(Refusal::NoWords)),
            (403, None, "", Err(Refusal::Forbidden)),
            (302, Some("https://www.google.com/sorry/index?continue=x"), "", Err(Refusal::Captcha)),
        ] {
            assert_eq!(check(status, location, body), expect, "{status} {body}");
        }
        assert!(matches!(check(404, None, words), Err(Refusal::UnreadableCaptions(_))));
    }
}
