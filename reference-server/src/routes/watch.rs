//! `GET /watch/{platform}/{id}`: the page on which a person reads a transcript.
//!
//! The page is whole without scripts, and shows only what is archived: it never fetches anything.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::StatusCode;
use maud::Markup;
use transcript_core::{
    archive::{Found, StoredTranscript, Wish},
    supplier::Resolved,
    video::{Platform, ShortLink, VideoId, VideoLink},
};

use super::{App, html::Form};
use crate::page;

/// Shows the archived transcript, or says that there is none.
pub(crate) async fn page(
    State(app): State<App>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    let named = path.ok().and_then(|Path((platform, id))| named(&platform, &id));
    match named {
        None => html(StatusCode::NOT_FOUND, page::unknown()),
        Some(VideoLink::Video(video)) => page_of(&app, &video).await,
        Some(VideoLink::Short(link)) => match app.lookup.transcripts().resolve(&link, false).await {
            Ok(Some(Resolved::Video(video))) => page_of(&app, &video).await,
            // Nobody is asked here; only a look-up follows short links.
            Ok(_) => html(StatusCode::OK, page::short(&link)),
            Err(_) => html(StatusCode::SERVICE_UNAVAILABLE, page::short_away(&link)),
        },
    }
}

/// The video or short link of an address.
fn named(platform: &str, id: &str) -> Option<VideoLink> {
    let platform = Platform::from_wire(platform)?;
    let video = VideoId::new(platform, id).ok().map(VideoLink::Video);
    video.or_else(|| ShortLink::from_name(platform, id).map(VideoLink::Short))
}

/// The page of a video.
async fn page_of(app: &App, video: &VideoId) -> Response {
    match archived(app, video).await {
        Ok(Found::Transcript(stored)) => {
            html(StatusCode::OK, page::transcript(&stored.transcript, &app.lookup.options().base_url))
        }
        Ok(Found::Withdrawn) => {
            let why = "This transcript was withdrawn by the operator of the service.";
            html(StatusCode::OK, page::missing(video, why))
        }
        Ok(Found::Absent(_) | Found::Nothing) => {
            html(StatusCode::OK, page::missing(video, "This video has not been transcribed here yet."))
        }
        Err(error) => {
            tracing::error!(%error, "a watch page failed in a store");
            html(StatusCode::SERVICE_UNAVAILABLE, page::away(video))
        }
    }
}

/// The default transcript, or else the best of what there is.
async fn archived(app: &App, video: &VideoId) -> transcript_core::Result<Found> {
    let transcripts = app.lookup.transcripts();
    match transcripts.find(video, &Wish::Default).await? {
        found @ (Found::Transcript(StoredTranscript { .. }) | Found::Withdrawn) => Ok(found),
        Found::Absent(_) | Found::Nothing => transcripts.find_any(video).await,
    }
}

fn html(status: StatusCode, page: Markup) -> Response {
    super::html::html(status, page, Form::None)
}
