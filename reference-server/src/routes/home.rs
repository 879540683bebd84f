//! `GET /`: the front page, whose field leads to a video's page; and `GET /assets/…`, what pages load.

use axum::{
    body::Body,
    extract::Path,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, VARY},
};
use transcript_core::video::VideoLink;

use super::{
    html::{Keep, html},
    query::parameter,
};
use crate::{
    bodies::Encoding,
    http::Refusal,
    page::{
        assets,
        home::{MAY, Wrong, home},
    },
};

/// The front page; with a link, the way to its video's page.
pub(super) async fn show(uri: Uri) -> Response {
    let given = match parameter(uri.query().unwrap_or_default(), "url") {
        Ok(given) => given,
        Err(refusal) => {
            let wrong = Wrong { link: "", why: refusal.detail() };
            return html(StatusCode::BAD_REQUEST, home(Some(&wrong)), Keep::Never, MAY);
        }
    };
    let link = given.as_deref().map(str::trim).filter(|link| !link.is_empty());
    let Some(link) = link else { return html(StatusCode::OK, home(None), Keep::WhileTrue, MAY) };
    let page = match VideoLink::parse(link) {
        Ok(VideoLink::Video(video)) => format!("watch/{video}"),
        Ok(VideoLink::Short(link)) => format!("watch/{}/{}", link.platform(), link.name()),
        Err(error) => {
            let why = error.to_string();
            let wrong = Wrong { link, why: &why };
            return html(StatusCode::BAD_REQUEST, home(Some(&wrong)), Keep::Never, MAY);
        }
    };
    let mut response = html(StatusCode::SEE_OTHER, home(None), Keep::Never, MAY);
    // Ids and names of short links are letters, digits and a few signs that addresses have.
    let location = HeaderValue::try_from(page).unwrap_or(HeaderValue::from_static("./"));
    response.headers_mut().insert(LOCATION, location);
    response
}

/// A file that pages load. Its name has a digest of its content, so it is the same for ever.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let asset = assets::named(&name)
        .ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "There is no such file in this version."))?;
    let encoding = Encoding::chosen(&headers).unwrap_or(Encoding::Identity);
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
