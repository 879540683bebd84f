//! From a track's address to its segments.

use http::StatusCode;
use tokio::time::Instant;
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
use crate::http::{Answer, HttpFault, Request};

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
            let answer = self.send(&question(client, choice, format)?).await;
            match read(&answer.map_err(|refusal| of_translation(refusal, choice))?)? {
                Body::Segments(segments) => return Ok(segments),
                Body::Unreadable(what) => wrong = what,
            }
        }
        Err(Refusal::UnreadableCaptions(wrong))
    }

    /// Fetches a track's captions in one request, before this moment.
    pub(super) async fn captions_at_once(
        &mut self,
        client: &ClientIdentity,
        choice: &Choice,
        end: Instant,
    ) -> Result<Vec<Segment>, Refusal> {
        self.check_cancelled()?;
        let request = question(client, choice, Format::Json3)?;
        match read(&self.visit.send_once(&request, end).await.map_err(Refusal::Fault)?)? {
            Body::Segments(segments) => Ok(segments),
            Body::Unreadable(what) => Err(Refusal::UnreadableCaptions(what)),
        }
    }
}

fn question(client: &ClientIdentity, choice: &Choice, format: Format) -> Result<Request, Refusal> {
    request::captions(client, &choice.address, format, choice.translate_to.as_deref())
        .ok_or_else(|| Refusal::UnreadableCaptions("their address is none".to_owned()))
}

/// YouTube throttles translations apart from all else, and much sooner.
fn of_translation(refusal: Refusal, choice: &Choice) -> Refusal {
    match refusal {
        Refusal::Fault(HttpFault::Throttled(named)) if choice.translate_to.is_some() => {
            Refusal::TranslationsThrottled(named)
        }
        other => other,
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
    match captions::parse(&answer.body) {
        Ok(segments) => Ok(Body::Segments(segments)),
        Err(error) => match error.kind() {
            // A missing proof of origin shows as nothing at all, whatever the form.
            CaptionErrorKind::Empty => Err(Refusal::Gated),
            CaptionErrorKind::NoCues => Err(Refusal::NoWords),
            CaptionErrorKind::TooLarge => Err(Refusal::UnreadableCaptions(clause(&error.to_string()))),
            // A page comes whatever the form. Captions are never taken for one, even where they are about
            // such pages.
            CaptionErrorKind::NotCaptions if signals::is_markup(&answer.body) => {
                let unreadable = || Refusal::UnreadableCaptions(clause(&error.to_string()));
                Err(signals::page(&answer.body).unwrap_or_else(unreadable))
            }
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

    fn check(status: u16, location: Option<&str>, body: &str) -> Result<usize, Refusal> {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            location: location.map(|to| Url::parse(to).unwrap()),
            cookies: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
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
        let consent = r#"<form action="https://consent.youtube.com/s">"#;
        let about_pages = ["g-recaptcha", "consent.youtube.com"].join(" and ");
        let about_pages = format!(r#"<transcript><text start="0" dur="1">{about_pages}</text></transcript>"#);
        for (status, location, body, expect) in [
            (200, None, words, Ok(1)),
            (200, None, "", Err(Refusal::Gated)),
            (200, None, &about_pages, Ok(1)),
            (200, None, "<transcript><text start=\"0\">g-recaptcha", Ok(0)),
            (200, None, consent, Err(Refusal::Consent)),
            (200, None, "no captions at all", Ok(0)),
            (200, None, captcha, Err(Refusal::Captcha)),
            (200, None, r#"<?xml version="1.0"?><transcript></transcript>"#, Err(Refusal::NoWords)),
            (403, None, "", Err(Refusal::Forbidden)),
            (302, Some("https://www.google.com/sorry/index?continue=x"), "", Err(Refusal::Captcha)),
        ] {
            assert_eq!(check(status, location, body), expect, "{status} {body}");
        }
        for (status, body) in [(404, words), (200, "<!DOCTYPE html><title>Error</title>")] {
            assert!(matches!(check(status, None, body), Err(Refusal::UnreadableCaptions(_))), "{body}");
        }
    }
}
