//! One attempt to fetch a post's captions.

use http::StatusCode;
#[cfg(feature = "ytdlp")]
use tokio::time::Instant;
use transcript_core::{
    captions::{self, CaptionFormat},
    supplier::{SupplyOutput, SupplyRequest},
    transcript::Segment,
};
use url::Url;

use super::{
    NAME, audio, guest_token::GuestTokenCache, media::XPost, options::XOptions, playlist, request,
    syndication, tweet,
};
#[cfg(feature = "ytdlp")]
use crate::http::EgressSession;
use crate::{
    http::HttpResponse,
    social::{
        Media, MediaAddress, PlatformSession, Retries, SocialFailure, SocialTrack, SocialTracks,
        TrackFetcher, read, supplied,
    },
};

/// Fetches the post, the playlist of its video, and the captions for the selector.
pub(super) async fn supply(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
    options: &XOptions,
    guest_tokens: &GuestTokenCache,
) -> Result<SupplyOutput, SocialFailure> {
    session.stage("tracks", 0, 2);
    let post = fetch_post(session, request, options, guest_tokens).await?;
    session.stage("tracks", 1, 2);
    // Only the playlist lists the captions.
    let playlist = post.playlist.as_deref().and_then(|address| Url::parse(address).ok());
    let playlist = playlist.ok_or(SocialFailure::NoCaptions)?;
    let tracks = playlist::tracks(&into_text(file(session, playlist.clone()).await?))?;
    let tracks = tracks.0.into_iter().filter_map(|track| absolute(&playlist, track)).collect();
    supplied(session, &XFetch, request, NAME, &post.details, &SocialTracks(tracks)).await
}

/// Fetches the post and lists its video files, all of which contain the audio.
pub(super) async fn media(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
    options: &XOptions,
    guest_tokens: &GuestTokenCache,
) -> Result<Media, SocialFailure> {
    let post = fetch_post(session, request, options, guest_tokens).await?;
    let address = |(bitrate, address): &(u64, String)| {
        let address = MediaAddress::at("https://video.twimg.com/", address)?;
        Some(MediaAddress { bitrate: Some(*bitrate), ..address })
    };
    let mut addresses: Vec<_> = post.files.iter().filter_map(address).collect();
    // A file takes one request, its parts take hundreds: they are used only if there is no file.
    if addresses.is_empty()
        && let Some(playlist) = post.playlist.as_deref().and_then(|address| Url::parse(address).ok())
    {
        addresses.push(fetch_audio_parts(session, playlist, post.details.duration_ms).await?);
    }
    Media::found(session, request, post.details, addresses, request::VIDEO, &request::file_headers())
}

/// The smallest audio in a playlist, as parts.
async fn fetch_audio_parts(
    session: &mut PlatformSession<'_>,
    playlist: Url,
    duration_ms: Option<u64>,
) -> Result<MediaAddress, SocialFailure> {
    let none = || SocialFailure::Unreadable("the playlist of its audio names no URL".to_owned());
    let master = list(session, playlist.clone()).await?;
    let (base, parts) = match audio::smallest(&master)? {
        Some(address) => {
            let address = playlist.join(&address).map_err(|_| none())?;
            let parts = list(session, address.clone()).await?;
            (address, parts)
        }
        None => (playlist, master),
    };
    let paths = audio::parts(&parts)?;
    if let Some(stated_ms) = duration_ms {
        audio::check_length(&parts, stated_ms)?;
    }
    let parts = paths.into_iter().map(|part| base.join(part).map_err(|_| none()));
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?.into_iter();
    let first = parts.next().ok_or_else(none)?;
    Ok(MediaAddress::in_parts(first, parts.collect()))
}

/// Fetches a playlist of a video's audio.
async fn list(session: &mut PlatformSession<'_>, url: Url) -> Result<String, SocialFailure> {
    let response = session.follow(&request::file(url), |_| None).await?;
    match response.status {
        StatusCode::OK => Ok(into_text(response)),
        status => Err(SocialFailure::Unreadable(format!(
            "the playlist of its audio returned HTTP {}",
            status.as_u16()
        ))),
    }
}

/// A track with absolute URLs.
fn absolute(base: &Url, track: SocialTrack) -> Option<SocialTrack> {
    let addresses = track.addresses.iter().map(|address| base.join(address).map(String::from));
    Some(SocialTrack { addresses: addresses.collect::<Result<_, _>>().ok()?, ..track })
}

/// Fetches the post as a guest of X's own pages and, if that fails, from the syndication service.
///
/// The guest request is sent once, because the service is the faster retry. The service lacks posts and media that
/// exist: if it fails too, or has nothing, the guest request is repeated after a failure that passes. Any other failure
/// is returned.
async fn fetch_post(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
    options: &XOptions,
    guest_tokens: &GuestTokenCache,
) -> Result<XPost, SocialFailure> {
    let failure = match as_guest(session, request, options, guest_tokens, Retries::No).await {
        Err(failure) if !failure.is_about_the_post() && failure != SocialFailure::Cancelled => failure,
        result => return result,
    };
    tracing::debug!(video = %request.video, ?failure, "X guest request failed");
    let has_nothing = match syndicated(session, request).await {
        Ok(Some(post)) => return Ok(post),
        Ok(None) => true,
        Err(other) if other.is_about_the_post() || other == SocialFailure::Cancelled => return Err(other),
        Err(_) => false,
    };
    if !failure.is_passing() {
        return Err(if has_nothing { SocialFailure::Unserved(Box::new(failure)) } else { failure });
    }
    match as_guest(session, request, options, guest_tokens, Retries::Yes).await {
        Err(last) if !last.is_about_the_post() && last != SocialFailure::Cancelled => Err(failure),
        result => result,
    }
}

async fn as_guest(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
    options: &XOptions,
    guest_tokens: &GuestTokenCache,
    retries: Retries,
) -> Result<XPost, SocialFailure> {
    let mut is_first = true;
    loop {
        let token = guest_tokens.token(session, retries).await?;
        let response =
            session.send_as_guest(&request::post(&request.video, &token, options), retries).await?;
        match classify_response(&response, request) {
            // The token expired early: retry once with a new one.
            Err(SocialFailure::Forbidden(_)) if is_first => guest_tokens.invalidate(&token).await,
            result => return result,
        }
        is_first = false;
    }
}

/// Interprets the response to a guest. Failures are JSON under any status.
fn classify_response(response: &HttpResponse, request: &SupplyRequest) -> Result<XPost, SocialFailure> {
    match (tweet::interpret(&response.body, &request.video), response.status) {
        (Err(SocialFailure::Unreadable(_)), status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
            Err(SocialFailure::Forbidden(status.as_u16()))
        }
        (Err(SocialFailure::Unreadable(_)), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => {
            Err(SocialFailure::Stale("x.query_id"))
        }
        (Ok(_) | Err(SocialFailure::Unreadable(_)), status) if !status.is_success() => {
            Err(SocialFailure::Unreadable(format!("it returned HTTP {}", status.as_u16())))
        }
        (result, _) => result,
    }
}

/// Fetches the post from the syndication service; `None` if that has nothing about it, or none of its media.
async fn syndicated(
    session: &mut PlatformSession<'_>,
    request: &SupplyRequest,
) -> Result<Option<XPost>, SocialFailure> {
    let response = session.send(&request::syndicated(&request.video)).await?;
    match response.status {
        StatusCode::OK => syndication::interpret(&response.body, &request.video),
        StatusCode::NOT_FOUND => Ok(None),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(SocialFailure::Forbidden(status.as_u16()))
        }
        status => Err(SocialFailure::Unreadable(format!("it returned HTTP {}", status.as_u16()))),
    }
}

/// Fetches a file from the video host.
async fn file(session: &mut PlatformSession<'_>, url: Url) -> Result<HttpResponse, SocialFailure> {
    check_status(session.follow(&request::file(url), |_| None).await?)
}

fn check_status(response: HttpResponse) -> Result<HttpResponse, SocialFailure> {
    match response.status {
        StatusCode::OK => Ok(response),
        status => {
            Err(SocialFailure::UnreadableCaptions(format!("their URL returned HTTP {}", status.as_u16())))
        }
    }
}

/// Checks captions that another program fetches: if their URL is that of a playlist, it must be whole.
#[cfg(feature = "ytdlp")]
pub(crate) async fn check_playlist(
    session: &mut EgressSession,
    url: Url,
    deadline: Instant,
) -> Result<(), SocialFailure> {
    let response = session.send(&request::file(url), deadline).await.map_err(SocialFailure::Transport)?;
    let text = into_text(check_status(response)?);
    match playlist::lines(&text) {
        Some(_) => playlist::check_captions(&text),
        None => Ok(()),
    }
}

/// The text of a playlist. Its bytes are not in memory while what it lists is requested.
fn into_text(response: HttpResponse) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// Fetches the captions of X's tracks: a playlist and its parts.
struct XFetch;

impl TrackFetcher for XFetch {
    async fn fetch_segments(
        &self,
        session: &mut PlatformSession<'_>,
        track: &SocialTrack,
    ) -> Result<Vec<Segment>, SocialFailure> {
        let none = || SocialFailure::UnreadableCaptions("they have no URL".to_owned());
        let address =
            track.addresses.first().and_then(|address| Url::parse(address).ok()).ok_or_else(none)?;
        let list = into_text(file(session, address.clone()).await?);
        let (mut whole, mut time_base) = (Vec::new(), None);
        let parts = playlist::parts(&list)?;
        let is_split = parts.len() > 1;
        for part in parts {
            let url = address.join(part).map_err(|_| none())?;
            let body = file(session, url).await?.body;
            if !is_split {
                return read(&body);
            }
            // In the joined text an empty body, a page or UTF-16 would be a gap that no reader notices.
            let is_utf16 = matches!(body.first(), Some(0xFE | 0xFF));
            if is_utf16 || captions::sniff(&body) != Some(CaptionFormat::WebVtt) {
                return Err(SocialFailure::UnreadableCaptions("a part of them is not WebVTT".to_owned()));
            }
            if let Some(own) = timestamp_map(&body)
                && time_base.get_or_insert_with(|| own.to_vec()).as_slice() != own
            {
                return Err(SocialFailure::UnreadableCaptions("their parts differ in time base".to_owned()));
            }
            if whole.len() + body.len() > captions::BODY_BYTES_MAX {
                return Err(SocialFailure::UnreadableCaptions("they are too long".to_owned()));
            }
            // Each part has its own header, and its first cue may repeat the last one of the previous part. The last
            // part gets no line end: without one its last line may be cut.
            if !whole.is_empty() {
                whole.extend_from_slice(b"\n\n");
            }
            whole.extend_from_slice(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body));
        }
        read(&whole)
    }
}

/// The time base of a part with cues, which the parser ignores: empty if none is stated.
fn timestamp_map(part: &[u8]) -> Option<&[u8]> {
    memchr::memmem::find(part, b"-->")?;
    let mut lines = part.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    Some(lines.find(|line| line.starts_with(b"X-TIMESTAMP-MAP")).unwrap_or_default())
}
