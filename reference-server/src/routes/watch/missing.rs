//! Watch pages of videos without a transcript.

use axum::response::Response;
use http::StatusCode;
use transcript_core::{
    engine::NoTranscript,
    lookup::{Availability, FailureReason, LookupResponse},
    transcript::{LanguageTag, TrackInfo, TrackKind, TrackSelector, best_track},
    video::{ShortLink, VideoId, VideoLink},
};

use super::{PageOptions, WatchRequest, html, question::archived, transcribe::VISITOR_COOKIE};
use crate::{
    api::cookie,
    page::{
        NextSteps, PagePolicy,
        no_transcript::{self, MissingReason, TranscribeOffer},
        transcript::{own_address, title},
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
    let has_supplier = app.lookup.transcripts().has_supplier(link.platform());
    let next = match &offer {
        Some(offer) => offer.next,
        None if is_open && has_supplier => account_steps(app, request).await,
        None => NextSteps::default(),
    };
    let page = no_transcript::short_link(&request.context, link, &query, (offer.as_ref(), next));
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
    match &answer.availability {
        Availability::Unavailable(none) if none.lacks_language() => {
            let language = request.options.language.clone().unwrap_or_else(LanguageTag::unknown);
            other_languages(app, video, &language, &answer.languages, request).await
        }
        Availability::Unavailable(NoTranscript { reason, detail, .. }) => match (detail.as_deref(), reason) {
            (Some("withdrawn"), _) => page_for(StatusCode::OK, &MissingReason::Withdrawn),
            // The button fetches captions, never a translation.
            (_, FailureReason::NeedsVerification) if request.options.translated => {
                match &request.options.language {
                    Some(language) if has_others(&answer.languages, language) => {
                        other_languages(app, video, language, &answer.languages, request).await
                    }
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

/// Page of a video that has no transcript in a language.
async fn other_languages(
    app: &AppState,
    video: &VideoId,
    language: &LanguageTag,
    tracks: &[TrackInfo],
    request: &WatchRequest,
) -> Response {
    // Another track may be archived, and its title known.
    let other = archived(app, video, &PageOptions::default()).await.ok().flatten();
    let title = other.as_ref().and_then(|other| title(&other.transcript));
    let query = request.options.whole_parameters();
    let rest =
        PageOptions { language: None, translated: false, ..request.options.clone() }.whole_parameters();
    let (context, queries) = (&request.context, (query.as_str(), rest.as_str()));
    let page = no_transcript::other_languages(context, video, queries, (title, language), tracks);
    html(StatusCode::OK, page, PagePolicy::Static)
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
    let (why, next) = match (&offer, app.lookup.transcripts().has_supplier(video.platform())) {
        (Some(offer), _) => match &request.options.language {
            Some(tag) => {
                (context.fill("missing.why_language", &[("language", &tag.english_name())]), offer.next)
            }
            None => (context.text("missing.why").to_owned(), offer.next),
        },
        (None, true) => (context.text("missing.why_key").to_owned(), account_steps(app, request).await),
        // An account does not help.
        (None, false) => {
            let why = context.fill("missing.why_source", &[("platform", video.platform().name())]);
            (why, NextSteps::default())
        }
    };
    let query = request.options.whole_parameters();
    let reason = MissingReason::NotYet(why, next);
    let page = no_transcript::video(context, video, &query, &reason, offer.as_ref());
    html(StatusCode::OK, page, no_transcript::policy(offer.as_ref()))
}

/// What a visitor can do with an account.
async fn account_steps(app: &AppState, request: &WatchRequest) -> NextSteps {
    let principal = session::principal(app, &request.headers).await;
    NextSteps {
        free_credits: Some(app.accounts.options().plans.free.credits),
        is_signed_in: principal.is_ok_and(|principal| principal.is_some()),
    }
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
    Some(TranscribeOffer {
        base: own_address(&name),
        query: request.context.with_language(&request.options.query()),
        per_day,
        left,
        is_network_spent,
        next: account_steps(app, request).await,
    })
}
