//! Other servers that ask this one.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use transcript_core::{
    ids::KeyId,
    lookup::Reference,
    video::{VideoId, VideoLink},
};
use verbatim::{Verbatim, service::HOP};

use super::{bearer::bearer, query::LookupQuery};
use crate::bodies;

/// Notes the video that another server asks for, as long as it is answered. Only a caller with a key has anything
/// fetched: what strangers say keeps nobody from asking on.
pub(crate) async fn asked_by_server(
    State(verbatim): State<Verbatim>,
    request: Request,
    next: Next,
) -> Response {
    let is_hop = request.headers().contains_key(HOP) && request.uri().path() == bodies::PATH;
    let video = if is_hop { video(request.uri().query().unwrap_or_default()) } else { None };
    let credential = video.as_ref().and_then(|_| bearer(request.headers()));
    let key = key_id(&verbatim, credential).await;
    let _asked = video.zip(key).map(|(video, key)| verbatim.asked_by_servers().note(video, &key));
    next.run(request).await
}

/// Which key it is. Where that cannot be found out, nothing will be fetched with it either.
async fn key_id(verbatim: &Verbatim, credential: Option<String>) -> Option<KeyId> {
    verbatim.lookup().key_id(&credential?).await.ok().flatten()
}

/// The video that a look-up's query names. Servers ask by a video's own address.
fn video(query: &str) -> Option<VideoId> {
    match LookupQuery::read(query).ok()?.reference {
        Reference::Url(url) => match VideoLink::parse(&url).ok()? {
            VideoLink::Video(video) => Some(video),
            VideoLink::Short(_) => None,
        },
        Reference::Id(_) => None,
    }
}
