//! Detection of requests from other Verbatim servers.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use transcript_core::{
    headers::X_VERBATIM_HOP,
    ids::KeyId,
    lookup::VideoReference,
    video::{VideoId, VideoLink},
};
use verbatim::Verbatim;

use crate::api::{LookupQuery, TRANSCRIPT_PATH, bearer};

/// Registers the video of a peer request until its response is complete.
/// Only requests with a valid key count: only they fetch, and anonymous headers must not suppress this server's own
/// requests.
pub(crate) async fn register_peer_request(
    State(verbatim): State<Verbatim>,
    request: Request,
    next: Next,
) -> Response {
    let is_hop = request.headers().contains_key(X_VERBATIM_HOP) && request.uri().path() == TRANSCRIPT_PATH;
    let video = if is_hop { video(request.uri().query().unwrap_or_default()) } else { None };
    let credential = video.as_ref().and_then(|_| bearer(request.headers()));
    let key = key_id(&verbatim, credential).await;
    let _guard = video.zip(key).map(|(video, key)| verbatim.peer_requests().register(video, &key));
    next.run(request).await
}

/// Id of a key. If it cannot be read, the key cannot fetch either.
async fn key_id(verbatim: &Verbatim, credential: Option<String>) -> Option<KeyId> {
    verbatim.lookup().keys().id(&credential?).await.ok().flatten()
}

/// Video of a lookup query. Peers send the video's own address.
fn video(query: &str) -> Option<VideoId> {
    match LookupQuery::parse(query).ok()?.reference {
        VideoReference::Url(url) => match VideoLink::parse(&url).ok()? {
            VideoLink::Video(video) => Some(video),
            VideoLink::Short(_) => None,
        },
        VideoReference::Id(_) => None,
    }
}
