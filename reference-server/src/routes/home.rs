//! `GET /`: the front page with its link form; `GET /assets/…`: files of the pages; `GET /favicon.ico`.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, VARY},
};
use transcript_core::video::{LinkErrorKind, VideoLink};

use super::{
    docs::CachedDocument,
    html::{CacheMode, html},
};
use crate::{
    api::{ContentEncoding, PathName, ProblemResponse, parameter, path_name},
    page::{
        PageContext, assets,
        home::{LinkFormError, POLICY, home},
        moment::moment_of_link,
    },
};

/// Front page; with a link, a redirect to the video's watch page.
pub(super) async fn show(
    State(document): State<Arc<CachedDocument>>,
    context: PageContext,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let app = &document.app;
    let free_per_day = app.visitors.can_fetch().then(|| app.lookup.options().visitor_per_day);
    let home = |error: Option<&LinkFormError<'_>>| home(&context, free_per_day, error);
    let invalid = |link: &str, kind| {
        let why = context.text(problem_message(kind));
        let page = home(Some(&LinkFormError { link, why }));
        html(StatusCode::BAD_REQUEST, page, CacheMode::Never, POLICY)
    };
    let link = match parameter(uri.query().unwrap_or_default(), "url") {
        Ok(link) => link,
        Err(_) => return invalid("", LinkErrorKind::NotALink),
    };
    let link = link.as_deref().map(str::trim).filter(|link| !link.is_empty());
    let Some(link) = link else {
        return document.page("", POLICY, &context, (&method, &headers), || Some(home(None)));
    };
    let moment = moment_of_link(link).map(|moment_ms| format!("?t={}", moment_ms / 1000)).unwrap_or_default();
    let moment = context.with_language(&moment);
    let language = context.with_language("");
    let page = match VideoLink::parse(link) {
        Ok(VideoLink::Video(video)) => format!("watch/{video}{moment}"),
        Ok(VideoLink::Short(link)) => format!("watch/{}/{}{language}", link.platform(), link.name()),
        Err(error) => return invalid(link, error.problem()),
    };
    let mut response = html(StatusCode::SEE_OTHER, home(None), CacheMode::Never, POLICY);
    // Ids and short link names contain URL-safe characters only.
    let location = HeaderValue::try_from(page).unwrap_or(HeaderValue::from_static("./"));
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Why a link names no video, as a message of the pages.
fn problem_message(kind: LinkErrorKind) -> &'static str {
    match kind {
        LinkErrorKind::TooLong => "link.too_long",
        LinkErrorKind::UnknownHost => "link.unknown_host",
        LinkErrorKind::UnsafeAuthority => "link.unsafe",
        LinkErrorKind::MalformedId => "link.malformed",
        LinkErrorKind::NotAVideo => "link.not_a_video",
        // The other kinds are those of lists.
        _ => "link.not_a_link",
    }
}

/// Redirect to the icon: programs that read no page of the site request this address. The next version may have
/// another icon.
pub(super) async fn favicon() -> Response {
    let location = format!("assets/{}", assets::ICON.name);
    (StatusCode::FOUND, [(LOCATION, location.as_str()), (CACHE_CONTROL, "no-cache")]).into_response()
}

/// Asset of the pages. Its name contains a digest of its content, so it never changes.
pub(super) async fn asset(path: PathName, headers: HeaderMap) -> Result<Response, ProblemResponse> {
    let asset = assets::named(&path_name(path)).ok_or_else(|| {
        ProblemResponse::new(StatusCode::NOT_FOUND, "There is no such file in this version.")
    })?;
    let encoding = ContentEncoding::negotiate(&headers).unwrap_or(ContentEncoding::Identity);
    let mut response = Body::from(asset.bytes(encoding)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding.header() {
        headers.insert(CONTENT_ENCODING, encoding);
    }
    Ok(response)
}
