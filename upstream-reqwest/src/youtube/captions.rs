//! From a track's URL to its segments.

use http::StatusCode;
use tokio::time::Instant;
use transcript_core::{
    captions::{self, CaptionErrorKind},
    transcript::Segment,
    video::VideoId,
};

use super::{
    classify,
    clients::ClientIdentity,
    failure::YouTubeFailure,
    fetch::YouTubeFetch,
    request,
    tracks::{TrackChoice, TrackFormat, is_of_other_video},
};
use crate::{
    http::{HttpError, HttpRequest, HttpResponse},
    social::missing_part,
};

/// Result of parsing one caption response.
enum CaptionBody {
    Segments(Vec<Segment>),
    /// No supported caption format, or not whole; another format may work.
    Failed(YouTubeFailure),
}

impl YouTubeFetch<'_> {
    /// Fetches a track's captions in the most reliable format; in other formats if it is unreadable.
    pub(super) async fn captions(
        &mut self,
        client: &ClientIdentity,
        choice: &TrackChoice,
    ) -> Result<Vec<Segment>, YouTubeFailure> {
        let mut first_failure = None;
        for format in TrackFormat::ALL {
            self.check_cancelled()?;
            let response = self.send(&caption_request(client, &self.request.video, choice, format)?).await;
            match read(&response.map_err(|failure| translation_failure(failure, choice))?)? {
                CaptionBody::Segments(segments) => return Ok(segments),
                // The first format is the most reliable one, and so is its failure.
                CaptionBody::Failed(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        Err(first_failure.unwrap_or(YouTubeFailure::UnreadableCaptions(String::new())))
    }

    /// Fetches a track's captions in one request, until `end`.
    pub(super) async fn fetch_captions_once(
        &mut self,
        client: &ClientIdentity,
        choice: &TrackChoice,
        end: Instant,
    ) -> Result<Vec<Segment>, YouTubeFailure> {
        self.check_cancelled()?;
        let request = caption_request(client, &self.request.video, choice, TrackFormat::Json3)?;
        match read(&self.session.send_once(&request, end).await.map_err(YouTubeFailure::Transport)?)? {
            CaptionBody::Segments(segments) => Ok(segments),
            CaptionBody::Failed(failure) => Err(failure),
        }
    }
}

fn caption_request(
    client: &ClientIdentity,
    video: &VideoId,
    choice: &TrackChoice,
    format: TrackFormat,
) -> Result<HttpRequest, YouTubeFailure> {
    if is_of_other_video(&choice.address, video) {
        return Err(YouTubeFailure::OtherVideo);
    }
    request::captions(client, &choice.address, format, choice.translate_to.as_deref())
        .ok_or_else(|| YouTubeFailure::UnreadableCaptions("their URL is invalid".to_owned()))
}

/// YouTube throttles translations separately from other requests, and much sooner.
fn translation_failure(failure: YouTubeFailure, choice: &TrackChoice) -> YouTubeFailure {
    match failure {
        YouTubeFailure::Transport(HttpError::Throttled(named)) if choice.translate_to.is_some() => {
            YouTubeFailure::TranslationsThrottled(named)
        }
        other => other,
    }
}

fn read(response: &HttpResponse) -> Result<CaptionBody, YouTubeFailure> {
    if let Some(failure) = response.location.as_ref().and_then(classify::classify_redirect) {
        return Err(failure);
    }
    match response.status {
        StatusCode::OK => {}
        StatusCode::FORBIDDEN => return Err(YouTubeFailure::Forbidden),
        status => return Err(YouTubeFailure::UnreadableCaptions(format!("YouTube returned HTTP {status}"))),
    }
    match captions::parse_with_report(&response.body) {
        Ok(parsed) => Ok(match missing_part(&response.body, &parsed) {
            Some(what) => CaptionBody::Failed(YouTubeFailure::IncompleteCaptions(what)),
            None => CaptionBody::Segments(parsed.segments),
        }),
        Err(error) => match error.kind() {
            // A missing proof-of-origin token yields an empty body in every format.
            CaptionErrorKind::Empty => Err(YouTubeFailure::Gated),
            CaptionErrorKind::NoCues => Err(YouTubeFailure::EmptyCaptions),
            CaptionErrorKind::TooLarge => Err(YouTubeFailure::UnreadableCaptions(clause(&error.to_string()))),
            // A page is returned for every format. Captions are never classified as a page, even if their text
            // mentions such pages.
            CaptionErrorKind::NotCaptions if classify::is_markup(&response.body) => {
                let unreadable = || YouTubeFailure::UnreadableCaptions(clause(&error.to_string()));
                Err(classify::page(&response.body).unwrap_or_else(unreadable))
            }
            _ => Ok(CaptionBody::Failed(YouTubeFailure::UnreadableCaptions(clause(&error.to_string())))),
        },
    }
}

/// A sentence as a part of another one: without its final stop.
fn clause(sentence: &str) -> String {
    sentence.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use url::Url;

    use super::*;

    fn check(status: u16, location: Option<&str>, body: &str) -> Result<usize, YouTubeFailure> {
        let response = HttpResponse {
            status: StatusCode::from_u16(status).unwrap(),
            location: location.map(|to| Url::parse(to).unwrap()),
            cookies: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        read(&response).map(|body| match body {
            CaptionBody::Segments(segments) => segments.len(),
            CaptionBody::Failed(_) => 0,
        })
    }

    #[test]
    fn caption_response_is_classified() {
        let words = r#"{"events":[{"tStartMs":0,"dDurationMs":900,"segs":[{"utf8":"hello"}]}]}"#;
        let captcha = r#"<html><body><div class="g-recaptcha"></div></body></html>"#;
        let consent = r#"<form action="https://consent.youtube.com/s">"#;
        let about_pages = ["g-recaptcha", "consent.youtube.com"].join(" and ");
        let about_pages = format!(r#"<transcript><text start="0" dur="1">{about_pages}</text></transcript>"#);
        for (status, location, body, expect) in [
            (200, None, words, Ok(1)),
            (200, None, "", Err(YouTubeFailure::Gated)),
            (200, None, &about_pages, Ok(1)),
            (200, None, "<transcript><text start=\"0\">g-recaptcha", Ok(0)),
            (
                200,
                None,
                &words.replace("]}]}", "]},{\"tStartMs\":{},\"segs\":[{\"utf8\":\"lost\"}]}]}"),
                Ok(0),
            ),
            (200, None, consent, Err(YouTubeFailure::Consent)),
            (200, None, "no captions at all", Ok(0)),
            (200, None, captcha, Err(YouTubeFailure::Captcha)),
            (
                200,
                None,
                r#"<?xml version="1.0"?><transcript></transcript>"#,
                Err(YouTubeFailure::EmptyCaptions),
            ),
            (403, None, "", Err(YouTubeFailure::Forbidden)),
            (302, Some("https://www.google.com/sorry/index?continue=x"), "", Err(YouTubeFailure::Captcha)),
        ] {
            assert_eq!(check(status, location, body), expect, "{status} {body}");
        }
        for (status, body) in [(404, words), (200, "<!DOCTYPE html><title>Error</title>")] {
            assert!(
                matches!(check(status, None, body), Err(YouTubeFailure::UnreadableCaptions(_))),
                "{body}"
            );
        }
    }
}
