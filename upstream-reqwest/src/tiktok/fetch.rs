//! One attempt to fetch a post's captions.

use http::StatusCode;
use transcript_core::{
    supplier::{SupplyOutput, SupplyRequest},
    transcript::Segment,
};

use super::{NAME, classify, media, page, request, state, subtitles};
use crate::{
    http::{HttpError, HttpRequest, HttpResponse},
    json::field,
    social::{Media, PlatformSession, SocialFailure, SocialTrack, TrackFetcher, read, stops, supplied},
};

/// Fetches the page, then the captions for the selector.
pub(super) async fn supply(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
) -> Result<SupplyOutput, SocialFailure> {
    session.stage("tracks", 0, 1);
    let detail = fetch_page(session, request).await?;
    let post = state::post(state::interpret(&detail, &request.video)?)?;
    supplied(session, &TikTokFetch, request, NAME, &post.details, &post.tracks).await
}

/// Fetches the page and finds the audio in it.
pub(super) async fn media(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
) -> Result<Media, SocialFailure> {
    let detail = fetch_page(session, request).await?;
    let item = state::interpret(&detail, &request.video)?;
    let video = field(item, "video");
    let addresses = media::addresses(video);
    if addresses.is_empty() && state::is_slide_show(item) {
        return Err(SocialFailure::NoVideo);
    }
    let info = field(video, "claInfo");
    let found = Media::found(
        session,
        request,
        state::details(item),
        addresses,
        request::FILES,
        &request::file_headers(),
    )?;
    // The platform states that audio exists, which does not mean speech.
    Ok(Media {
        language: subtitles::original_language(info),
        has_audio: field(info, "hasOriginalAudio").as_bool(),
        ..found
    })
}

/// The post's data in its page. TikTok sometimes sends a page without it, and the next one has it.
async fn fetch_page(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
) -> Result<serde_json::Value, SocialFailure> {
    let request = request::page(&request.video);
    let request = request.ok_or_else(|| SocialFailure::Unreadable("the post has no URL".to_owned()))?;
    let mut attempt = 0;
    loop {
        match fetch_page_once(session, &request).await {
            Err(SocialFailure::EmptyPage) if session.wait_to_retry(attempt).await => attempt += 1,
            result => return result,
        }
    }
}

async fn fetch_page_once(
    session: &mut PlatformSession<'_>,
    request: &HttpRequest,
) -> Result<serde_json::Value, SocialFailure> {
    let response = session.follow(request, classify::classify_redirect).await?;
    match response.status {
        StatusCode::OK => page::detail(&response.body),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(SocialFailure::Forbidden(status.as_u16()))
        }
        // A page with an error status may still contain the reason.
        status => match page::detail(&response.body) {
            Err(SocialFailure::EmptyPage | SocialFailure::Unreadable(_)) => {
                Err(SocialFailure::Unreadable(format!("it returned HTTP {}", status.as_u16())))
            }
            result => result,
        },
    }
}

/// Fetches the captions of TikTok's tracks.
struct TikTokFetch;

impl TrackFetcher for TikTokFetch {
    async fn fetch_segments(
        &self,
        session: &mut PlatformSession<'_>,
        track: &SocialTrack,
    ) -> Result<Vec<Segment>, SocialFailure> {
        let mut last_failure = SocialFailure::UnreadableCaptions("they have no URL".to_owned());
        for address in &track.addresses {
            let Some(request) = request::captions(address) else { continue };
            match session.follow(&request, classify::classify_redirect).await {
                Ok(response) => match parse_captions(&response) {
                    Err(
                        failure @ (SocialFailure::UnreadableCaptions(_)
                        | SocialFailure::IncompleteCaptions(_)),
                    ) => last_failure = failure,
                    result => return result,
                },
                // The URL is on another host, or its host is failing: try the next one.
                Err(SocialFailure::Transport(fault))
                    if !stops(&fault) && !matches!(fault, HttpError::Throttled(_)) =>
                {
                    last_failure = SocialFailure::Transport(fault);
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(last_failure)
    }
}

/// The segments in a caption response. Its content type is ignored: TikTok declares it as video.
fn parse_captions(response: &HttpResponse) -> Result<Vec<Segment>, SocialFailure> {
    match response.status {
        StatusCode::OK => read(&response.body),
        // The signed URL expires, and is bound to the client that loaded the page.
        status => {
            Err(SocialFailure::UnreadableCaptions(format!("their URL returned HTTP {}", status.as_u16())))
        }
    }
}
