//! One attempt at a post's captions.

use http::StatusCode;
use transcript_core::{
    supplier::{Ask, Supplied},
    transcript::Segment,
};
use url::Url;

use super::{
    NAME, guest::GuestPass, media::Post, options::XOptions, playlist, request, sound, syndication, tweet,
};
use crate::{
    http::Answer,
    social::{Errand, Media, MediaAddress, Refusal, Track, Tracks, Words, read, supplied},
};

/// Asks for the post, for the playlist of its video, and for the captions that answer.
pub(super) async fn supply(
    errand: &mut Errand<'_>,
    ask: &Ask,
    options: &XOptions,
    pass: &GuestPass,
) -> Result<Supplied, Refusal> {
    errand.stage("tracks", 0, 2);
    let post = fetch_post(errand, ask, options, pass).await?;
    errand.stage("tracks", 1, 2);
    // Captions are told of in the playlist only.
    let playlist = post.playlist.as_deref().and_then(|address| Url::parse(address).ok());
    let playlist = playlist.ok_or(Refusal::NoCaptions)?;
    let answer = file(errand, playlist.clone()).await?;
    let tracks = playlist::tracks(&String::from_utf8_lossy(&answer.body))?;
    let tracks = tracks.0.into_iter().filter_map(|track| absolute(&playlist, track)).collect();
    supplied(errand, &Captions, ask, NAME, &post.details, &Tracks(tracks)).await
}

/// Asks for the post, and takes from it where the sound is: in every file of the video.
pub(super) async fn media(
    errand: &mut Errand<'_>,
    ask: &Ask,
    options: &XOptions,
    pass: &GuestPass,
) -> Result<Media, Refusal> {
    let post = fetch_post(errand, ask, options, pass).await?;
    let address = |(bitrate, address): &(u64, String)| {
        let address = MediaAddress::at("https://video.twimg.com/", address)?;
        Some(MediaAddress { bitrate: Some(*bitrate), ..address })
    };
    let mut addresses: Vec<_> = post.files.iter().filter_map(address).collect();
    // One file is one request, and its parts are hundreds: they are asked for only where there is no file.
    if addresses.is_empty()
        && let Some(playlist) = post.playlist.as_deref().and_then(|address| Url::parse(address).ok())
    {
        addresses.push(in_parts(errand, playlist).await?);
    }
    Media::found(errand, ask, post.details, addresses, request::VIDEO, &request::file_headers())
}

/// The smallest sound that a playlist names, in its parts.
async fn in_parts(errand: &mut Errand<'_>, playlist: Url) -> Result<MediaAddress, Refusal> {
    let none = || Refusal::Unreadable("the playlist of its sound names no address".to_owned());
    let master = list(errand, playlist.clone()).await?;
    let (base, parts) = match sound::smallest(&master)? {
        Some(address) => {
            let address = playlist.join(&address).map_err(|_| none())?;
            let parts = list(errand, address.clone()).await?;
            (address, parts)
        }
        None => (playlist, master),
    };
    let parts = sound::parts(&parts)?.into_iter().map(|part| base.join(part).map_err(|_| none()));
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?.into_iter();
    let first = parts.next().ok_or_else(none)?;
    Ok(MediaAddress::in_parts(first, parts.collect()))
}

/// A playlist of a video's sound.
async fn list(errand: &mut Errand<'_>, url: Url) -> Result<String, Refusal> {
    let answer = errand.follow(&request::file(url), |_| None).await?;
    match answer.status {
        StatusCode::OK => Ok(String::from_utf8_lossy(&answer.body).into_owned()),
        status => Err(Refusal::Unreadable(format!("the playlist of its sound has HTTP {}", status.as_u16()))),
    }
}

/// A track with its addresses made absolute.
fn absolute(base: &Url, track: Track) -> Option<Track> {
    let addresses = track.addresses.iter().map(|address| base.join(address).map(String::from));
    Some(Track { addresses: addresses.collect::<Result<_, _>>().ok()?, ..track })
}

/// What X says of the post: as a guest of its own pages and, where these don't say it, as other sites' pages
/// are told.
async fn fetch_post(
    errand: &mut Errand<'_>,
    ask: &Ask,
    options: &XOptions,
    pass: &GuestPass,
) -> Result<Post, Refusal> {
    let refusal = match as_guest(errand, ask, options, pass).await {
        Err(refusal) if !refusal.is_about_the_post() && refusal != Refusal::Cancelled => refusal,
        result => return result,
    };
    tracing::debug!(video = %ask.video, ?refusal, "X did not answer a guest");
    match syndicated(errand, ask).await {
        Err(other) if !other.is_about_the_post() => Err(refusal),
        result => result,
    }
}

async fn as_guest(
    errand: &mut Errand<'_>,
    ask: &Ask,
    options: &XOptions,
    pass: &GuestPass,
) -> Result<Post, Refusal> {
    let mut is_first = true;
    loop {
        let token = pass.token(errand).await?;
        let answer = errand.send_once(&request::post(&ask.video, &token, options)).await?;
        match judge(&answer, ask) {
            // The pass has run out before its time: once, another may do.
            Err(Refusal::Forbidden(_)) if is_first => pass.forget(&token).await,
            result => return result,
        }
        is_first = false;
    }
}

/// What an answer to a guest means. Failures come as JSON under any status.
fn judge(answer: &Answer, ask: &Ask) -> Result<Post, Refusal> {
    match (tweet::interpret(&answer.body, &ask.video), answer.status) {
        (Err(Refusal::Unreadable(_)), status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
            Err(Refusal::Forbidden(status.as_u16()))
        }
        (Err(Refusal::Unreadable(_)), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => {
            Err(Refusal::Stale("x.query_id"))
        }
        (Ok(_) | Err(Refusal::Unreadable(_)), status) if !status.is_success() => {
            Err(Refusal::Unreadable(format!("it has the status HTTP {}", status.as_u16())))
        }
        (result, _) => result,
    }
}

async fn syndicated(errand: &mut Errand<'_>, ask: &Ask) -> Result<Post, Refusal> {
    let answer = errand.send(&request::syndicated(&ask.video)).await?;
    match answer.status {
        StatusCode::OK => syndication::interpret(&answer.body, &ask.video),
        StatusCode::NOT_FOUND => Err(Refusal::Gone),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(Refusal::Forbidden(status.as_u16()))
        }
        status => Err(Refusal::Unreadable(format!("it has the status HTTP {}", status.as_u16()))),
    }
}

/// A file of the video's host.
async fn file(errand: &mut Errand<'_>, url: Url) -> Result<Answer, Refusal> {
    let answer = errand.follow(&request::file(url), |_| None).await?;
    match answer.status {
        StatusCode::OK => Ok(answer),
        status => {
            Err(Refusal::UnreadableCaptions(format!("their address answers with HTTP {}", status.as_u16())))
        }
    }
}

/// Fetches the words of X's tracks: a playlist, and the parts that it names.
struct Captions;

impl Words for Captions {
    async fn words(&self, errand: &mut Errand<'_>, track: &Track) -> Result<Vec<Segment>, Refusal> {
        let none = || Refusal::UnreadableCaptions("they have no address".to_owned());
        let address =
            track.addresses.first().and_then(|address| Url::parse(address).ok()).ok_or_else(none)?;
        let list = file(errand, address.clone()).await?;
        let list = String::from_utf8_lossy(&list.body).into_owned();
        let mut whole = Vec::new();
        for part in playlist::parts(&list)? {
            let url = address.join(part).map_err(|_| none())?;
            let body = file(errand, url).await?.body;
            if whole.len() + body.len() > transcript_core::captions::BODY_BYTES_MAX {
                return Err(Refusal::UnreadableCaptions("they are too long".to_owned()));
            }
            // Each part begins as a file of its own; where one ends, its last cue may be said again.
            whole.extend_from_slice(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body));
            whole.extend_from_slice(b"\n\n");
        }
        read(&whole)
    }
}
