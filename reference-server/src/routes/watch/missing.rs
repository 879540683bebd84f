//! Watch pages of videos without a transcript.

use axum::response::Response;
use http::StatusCode;
use transcript_core::{
    engine::NoTranscript,
    lookup::{Availability, FailureReason, LookupResponse},
    transcript::{LanguageTag, TrackInfo, TrackKind, TrackSelector, best_track},
    video::{ShortLink, VideoId, VideoLink},
};

use super::{PageOptions, WatchRequest, html, transcribe::VISITOR_COOKIE};
use crate::{
    api::cookie,
    page::{
        PagePolicy,
        no_transcript::{self, MissingReason, TranscribeOffer},
        transcript::own_address,
    },
    routes::account::session,
    state::AppState,
};

/// Page of a path that names no video.
pub(super) fn unknown(request: &WatchRequest) -> Response {
    html(StatusCode::NOT_FOUND, no_transcript::unknown(&request.context), PagePolicy::Static)
}

/// Page of a short link whose video is unknown. `is_open`: whether it was not resolved yet.
pub(super) async fn short_link(
    app: &AppState,
    link: &ShortLink,
    is_open: bool,
    request: &WatchRequest,
) -> Response {
    let offer = match is_open {
        true => offer(app, &VideoLink::Short(link.clone()), request).await,
        false => None,
    };
    let query = request.options.whole_parameters();
    let page = no_transcript::short_link(&request.context, link, &query, offer.as_ref());
    html(StatusCode::OK, page, no_transcript::policy(offer.as_ref()))
}

/// Page of a short link for an unavailable archive.
pub(super) fn short_link_unavailable(link: &ShortLink, request: &WatchRequest) -> Response {
    let query = request.options.whole_parameters();
    let page = no_transcript::short_link_unavailable(&request.context, link, &query);
    html(StatusCode::SERVICE_UNAVAILABLE, page, PagePolicy::Static)
}

/// Page of a video without a transcript.
pub(super) async fn video(
    app: &AppState,
    video: &VideoId,
    answer: &LookupResponse,
    request: &WatchRequest,
) -> Response {
    let (context, query) = (&request.context, request.options.whole_parameters());
    let page_for = |status, reason: &MissingReason| {
        html(status, no_transcript::video(context, video, &query, reason, None), PagePolicy::Static)
    };
    let instead = || {
        let page = no_transcript::other_languages(context, video, &query, &answer.languages);
        html(StatusCode::OK, page, PagePolicy::Static)
    };
    match &answer.availability {
        Availability::Unavailable(none) if none.lacks_language() => instead(),
        Availability::Unavailable(NoTranscript { reason, detail, .. }) => match (detail.as_deref(), reason) {
            (Some("withdrawn"), _) => page_for(StatusCode::OK, &MissingReason::Withdrawn),
            // The button fetches captions, never a translation.
            (_, FailureReason::NeedsVerification) if request.options.translated => {
                match &request.options.language {
                    Some(language) if has_others(&answer.languages, language) => instead(),
                    _ => {
                        let options = PageOptions { translated: false, ..request.options.clone() };
                        not_yet(app, video, &WatchRequest { options, ..request.clone() }).await
                    }
                }
            }
            (_, FailureReason::NeedsVerification) => not_yet(app, video, request).await,
            _ => page_for(StatusCode::SERVICE_UNAVAILABLE, &MissingReason::Unavailable),
        },
        Availability::Available { .. } => page_for(StatusCode::OK, &MissingReason::Unavailable),
    }
}

/// Whether a video is known to have captions, but none in this language.
fn has_others(tracks: &[TrackInfo], language: &LanguageTag) -> bool {
    let is_listed =
        |track: &TrackInfo| track.kind != TrackKind::Translated && track.language != LanguageTag::unknown();
    tracks.iter().any(is_listed) && best_track(tracks, &TrackSelector::Language(language.clone())).is_none()
}

/// Page of a video that is not transcribed yet, with the button if this visitor can use it.
async fn not_yet(app: &AppState, video: &VideoId, request: &WatchRequest) -> Response {
    let context = &request.context;
    let offer = offer(app, &VideoLink::Video(video.clone()), request).await;
    let why = match (&offer, app.lookup.transcripts().has_supplier(video.platform())) {
        (Some(_), _) => match &request.options.language {
            Some(tag) => context.fill("missing.why_language", &[("language", &tag.english_name())]),
            None => context.text("missing.why").to_owned(),
        },
        (None, true) => context.text("missing.why_key").to_owned(),
        (None, false) => context.fill("missing.why_source", &[("platform", video.platform().name())]),
    };
    let query = request.options.whole_parameters();
    let page = no_transcript::video(context, video, &query, &MissingReason::NotYet(why), offer.as_ref());
    html(StatusCode::OK, page, no_transcript::policy(offer.as_ref()))
}

/// Offer to transcribe; `None` for translations, and if the platform or visitors are not served.
async fn offer(app: &AppState, link: &VideoLink, request: &WatchRequest) -> Option<TranscribeOffer> {
    let (platform, name) = match link {
        VideoLink::Video(video) => (video.platform(), video.id().to_owned()),
        VideoLink::Short(link) => (link.platform(), link.name()),
    };
    if request.options.translated
        || !app.visitors.can_fetch()
        || !app.lookup.transcripts().has_supplier(platform)
    {
        return None;
    }
    let per_day = app.lookup.options().visitor_per_day;
    let cookie = cookie(&request.headers, VISITOR_COOKIE);
    let left = app.visitors.remaining(cookie.as_deref(), request.client).await;
    // The button checks the allowance again.
    let left = left.inspect_err(|error| tracing::warn!(%error, "allowance read failed")).unwrap_or(per_day);
    // Each press of the button has an address: requests without one have used nothing, so this is the visitor's limit.
    let own = app.visitors.remaining(cookie.as_deref(), None);
    let is_network_spent = left == 0 && own.await.is_ok_and(|own| own > 0);
    let principal = session::principal(app, &request.headers).await;
    Some(TranscribeOffer {
        base: own_address(&name),
        query: request.context.with_language(&request.options.query()),
        per_day,
        left,
        is_network_spent,
        free_credits: app.accounts.options().plans.free.credits,
        is_signed_in: principal.is_ok_and(|principal| principal.is_some()),
    })
}
