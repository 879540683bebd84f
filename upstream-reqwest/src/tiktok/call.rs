//! One attempt at a post's captions.

use http::StatusCode;
use transcript_core::{
    supplier::{Ask, Supplied},
    transcript::Segment,
};

use super::{NAME, media, page, request, signals, state, subtitles};
use crate::{
    http::{Answer, HttpFault},
    social::{Errand, Media, Refusal, Track, Words, json::field, read, stops, supplied},
};

/// Asks for the page, then for the captions of the tracks that answer.
pub(super) async fn supply(errand: &mut Errand<'_>, ask: &Ask) -> Result<Supplied, Refusal> {
    errand.stage("tracks", 0, 1);
    let detail = fetch_page(errand, ask).await?;
    let post = state::post(state::interpret(&detail, &ask.video)?)?;
    supplied(errand, &Captions, ask, NAME, &post.details, &post.tracks).await
}

/// Asks for the page, and takes from it where the sound is.
pub(super) async fn media(errand: &mut Errand<'_>, ask: &Ask) -> Result<Media, Refusal> {
    let detail = fetch_page(errand, ask).await?;
    let item = state::interpret(&detail, &ask.video)?;
    let video = field(item, "video");
    let addresses = media::addresses(video);
    if addresses.is_empty() && state::is_slide_show(item) {
        return Err(Refusal::NoVideo);
    }
    let info = field(video, "claInfo");
    let found =
        Media::found(errand, ask, state::details(item), addresses, request::FILES, &request::file_headers())?;
    // The platform's word that there is sound says nothing of speech.
    Ok(Media {
        language: subtitles::original_language(info),
        has_audio: field(info, "hasOriginalAudio").as_bool(),
        ..found
    })
}

/// What the post's page says of it.
async fn fetch_page(errand: &mut Errand<'_>, ask: &Ask) -> Result<serde_json::Value, Refusal> {
    let request = request::page(&ask.video);
    let request = request.ok_or_else(|| Refusal::Unreadable("the post has no address".to_owned()))?;
    let answer = errand.follow(&request, signals::detour).await?;
    match answer.status {
        StatusCode::OK => page::detail(&answer.body),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(Refusal::Forbidden(status.as_u16()))
        }
        // A page with a status of its own may still say why.
        status => match page::detail(&answer.body) {
            Err(Refusal::Shell | Refusal::Unreadable(_)) => {
                Err(Refusal::Unreadable(format!("it has the status HTTP {}", status.as_u16())))
            }
            told => told,
        },
    }
}

/// Fetches the words of TikTok's tracks.
struct Captions;

impl Words for Captions {
    async fn words(&self, errand: &mut Errand<'_>, track: &Track) -> Result<Vec<Segment>, Refusal> {
        let mut told = Refusal::UnreadableCaptions("they have no address".to_owned());
        for address in &track.addresses {
            let Some(request) = request::captions(address) else { continue };
            match errand.follow(&request, signals::detour).await {
                Ok(answer) => match words_of(&answer) {
                    Err(refusal @ Refusal::UnreadableCaptions(_)) => told = refusal,
                    result => return result,
                },
                // The address is not TikTok's, or its host is out of order: the next one may do.
                Err(Refusal::Fault(fault)) if !stops(&fault) && !matches!(fault, HttpFault::Throttled(_)) => {
                    told = Refusal::Fault(fault);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Err(told)
    }
}

/// The words of a caption answer. What it is called does not count: TikTok calls it a video.
fn words_of(answer: &Answer) -> Result<Vec<Segment>, Refusal> {
    match answer.status {
        StatusCode::OK => read(&answer.body),
        // The address is signed for a while, and for those who saw the page.
        status => {
            Err(Refusal::UnreadableCaptions(format!("their address answers with HTTP {}", status.as_u16())))
        }
    }
}
