//! `/api/v1/verify`: the link in a verification mail, and the button on its page.
//!
//! Programs open the links in mails before people do, with any method and header they like. So a GET redeems
//! nothing for a browser, and nothing that could end a live key for anybody; only the button does, which is a
//! POST.

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
    accounts::{NewAccountKey, Verification},
    wire::v1::Verified,
};

use super::{
    Denial, Fields,
    body::{BODY_MAX, bytes},
};
use crate::{
    http::{ClientAddress, json},
    page::{self, May},
    routes::{
        App,
        html::{self, wants_page},
        query::parameter,
    },
};

/// The link: a page with a button for a browser; a program gets the key of a new account at once.
pub(crate) async fn open(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let token = match token(parameter(uri.query().unwrap_or_default(), "token")) {
        Ok(token) => token,
        Err(denial) => return answer(&headers, Err(denial)),
    };
    match wants_page(&headers) {
        true => varying(shown(StatusCode::OK, page::verify::ask(&token))),
        false => answer(&headers, redeem(&app, &token, false, client).await),
    }
}

/// The button, or a program that was told to confirm: the token comes as a form, as JSON, or in the query.
pub(crate) async fn confirm(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        let body = bytes(body, BODY_MAX).await?;
        let token = sent_token(&parts.headers, &parts.uri, &body)?;
        redeem(&app, &token, true, client).await
    };
    answer(&parts.headers, outcome.await)
}

async fn redeem(
    app: &App,
    token: &str,
    confirmed: bool,
    client: ClientAddress,
) -> Result<NewAccountKey, Denial> {
    match app.accounts.verify(token, confirmed, Some(client.0)).await? {
        Verification::Issued(issued) => Ok(issued),
        Verification::NeedsConfirmation => Err(Denial::new(
            StatusCode::CONFLICT,
            "This address has an account, and a new API key would end the one that it has. If you want that, open \
             the link in a browser and press the button, or send the same request as POST.",
        )),
    }
}

fn answer(headers: &HeaderMap, outcome: Result<NewAccountKey, Denial>) -> Response {
    let response = match (outcome, wants_page(headers)) {
        (Ok(issued), false) => json(StatusCode::OK, &Verified::from(&issued)),
        (Ok(issued), true) => shown(StatusCode::OK, page::verify::issued(&Verified::from(&issued))),
        (Err(denial), false) => denial.into_response(),
        (Err(denial), true) => {
            let (status, page) = (denial.status(), page::verify::refused(denial.message()));
            // Its headers say when to come back.
            let mut response = denial.into_response();
            let page = shown(status, page);
            let (head, body) = page.into_parts();
            response.headers_mut().extend(head.headers);
            *response.body_mut() = body;
            response
        }
    };
    varying(response)
}

fn shown(status: StatusCode, page: Markup) -> Response {
    html::html(status, page, html::Keep::Never, May::Send)
}

fn varying(mut response: Response) -> Response {
    response.headers_mut().append(VARY, HeaderValue::from_static("accept"));
    response
}

fn token<E: Into<Denial>>(given: Result<Option<Cow<'_, str>>, E>) -> Result<String, Denial> {
    let missing = || Denial::bad("token", "it is missing: open the whole link of the mail");
    let token = given.map_err(Into::into)?.filter(|token| !token.is_empty());
    token.map(Cow::into_owned).ok_or_else(missing)
}

fn sent_token(headers: &HeaderMap, uri: &Uri, body: &[u8]) -> Result<String, Denial> {
    if body.is_empty() {
        return token(parameter(uri.query().unwrap_or_default(), "token"));
    }
    let is_form = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    match std::str::from_utf8(body) {
        Ok(form) if is_form => token(parameter(form, "token")),
        _ => Fields::of(headers, body, &["token"])?.text("token").map(str::to_owned),
    }
}

/// The `q` of a media range in thousandths; what cannot be read weighs nothing.
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
