//! `/api/v1/verify`: the link of a verification mail, and the button on its page.
//!
//! Mail scanners open links before people do, with any method and header. So a GET never redeems a token for a browser,
//! and never replaces the key of an existing account; only the POST of the button does.

use std::borrow::Cow;

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{CONTENT_TYPE, VARY},
};
use maud::Markup;
use transcript_core::{
    accounts::{IssuedAccountKey, VerifyOutcome},
    wire::v1::VerifyResponse,
};

use super::{
    BodyFields, V1ErrorResponse,
    body::{BODY_MAX, bytes},
};
use crate::{
    http::{ClientAddress, json},
    page::{self, PagePolicy},
    routes::{
        AppState,
        html::{self, wants_page},
        query::parameter,
    },
};

/// The link: a page with a button for browsers; other clients get the key of a new account at once.
pub(crate) async fn open(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let token = match token(parameter(uri.query().unwrap_or_default(), "token")) {
        Ok(token) => token,
        Err(denial) => return answer(&headers, Err(denial)),
    };
    match wants_page(&headers) {
        true => vary_by_accept(html_page(StatusCode::OK, page::verify::confirm(&token))),
        false => answer(&headers, redeem(&app, &token, false, client).await),
    }
}

/// The button, or a program's confirmation: the token is in a form, in JSON, or in the query.
pub(crate) async fn confirm(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        let body = bytes(body, BODY_MAX).await?;
        let token = request_token(&parts.headers, &parts.uri, &body)?;
        redeem(&app, &token, true, client).await
    };
    answer(&parts.headers, outcome.await)
}

async fn redeem(
    app: &AppState,
    token: &str,
    confirmed: bool,
    client: ClientAddress,
) -> Result<IssuedAccountKey, V1ErrorResponse> {
    match app.accounts.verify(token, confirmed, Some(client.0)).await? {
        VerifyOutcome::Issued(issued) => Ok(issued),
        VerifyOutcome::NeedsConfirmation => Err(V1ErrorResponse::new(
            StatusCode::CONFLICT,
            "This address has an account with an API key. To replace the key, open the link in a browser and \
             press the button, or send the same request as POST.",
        )),
    }
}

fn answer(headers: &HeaderMap, outcome: Result<IssuedAccountKey, V1ErrorResponse>) -> Response {
    let response = match (outcome, wants_page(headers)) {
        (Ok(issued), false) => json(StatusCode::OK, &VerifyResponse::from(&issued)),
        (Ok(issued), true) => html_page(StatusCode::OK, page::verify::issued(&VerifyResponse::from(&issued))),
        (Err(denial), false) => denial.into_response(),
        (Err(denial), true) => {
            let (status, page) = (denial.status(), page::verify::refused(denial.message()));
            // Keeps the headers of the error, such as `Retry-After`.
            let mut response = denial.into_response();
            let page = html_page(status, page);
            let (head, body) = page.into_parts();
            response.headers_mut().extend(head.headers);
            *response.body_mut() = body;
            response
        }
    };
    vary_by_accept(response)
}

fn html_page(status: StatusCode, page: Markup) -> Response {
    html::html(status, page, html::CacheMode::Never, PagePolicy::Form)
}

fn vary_by_accept(mut response: Response) -> Response {
    response.headers_mut().append(VARY, HeaderValue::from_static("accept"));
    response
}

fn token<E: Into<V1ErrorResponse>>(
    value: Result<Option<Cow<'_, str>>, E>,
) -> Result<String, V1ErrorResponse> {
    let missing = || V1ErrorResponse::bad("token", "it is missing: open the whole link of the mail");
    let token = value.map_err(Into::into)?.filter(|token| !token.is_empty());
    token.map(Cow::into_owned).ok_or_else(missing)
}

fn request_token(headers: &HeaderMap, uri: &Uri, body: &[u8]) -> Result<String, V1ErrorResponse> {
    if body.is_empty() {
        return token(parameter(uri.query().unwrap_or_default(), "token"));
    }
    let is_form = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    match std::str::from_utf8(body) {
        Ok(form) if is_form => token(parameter(form, "token")),
        _ => BodyFields::parse(headers, body, &["token"])?.text("token").map(str::to_owned),
    }
}

/// The `q` of a media range in thousandths; 0 if invalid.
pub(crate) fn weight(parameters: &str) -> u32 {
    let q = parameters.split(';').find_map(|one| {
        let (name, value) = one.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    match q.map(str::parse::<f32>) {
        None => 1_000,
        Some(Ok(q)) if (0.0..=1.0).contains(&q) => (q * 1_000.0) as u32,
        Some(_) => 0,
    }
}
