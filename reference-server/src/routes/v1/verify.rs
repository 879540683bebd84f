//! `/api/v1/verify`: the link of a verification email, and the button on its page.
//!
//! Mail scanners open links before people do, with any method and header. So a GET never redeems a token for a browser
//! or of a link that a page requested, and never replaces the key of an existing account; only the POST of the button
//! does.

use std::borrow::Cow;

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{RETRY_AFTER, VARY},
    request::Parts,
};
use maud::Markup;
use serde_json::{Value, json};
use transcript_core::{
    accounts::{IssuedAccountKey, OpenedSession, VerifyOutcome},
    wire::v1::VerifyResponse,
};

use super::{
    BodyFields,
    body::BODY_MAX,
    document::{self, DocumentOptions, examples, parameters},
};
use crate::{
    api::{ClientAddress, V1ErrorResponse, is_form, json, parameter, read_body, wants_page},
    page::{self, PageContext, PagePolicy, context::LANGUAGE_PARAMETER},
    routes::{
        account::{
            own_referrer,
            session::{clear_next, device, is_own_form, next, set_cookie},
            sign_in::end_other_session,
        },
        html,
    },
    state::AppState,
};

/// The request headers that a response depends on.
const VARIES_BY: &str = "accept, accept-language";
/// The response to a program that opens the link of a page.
const PAGE_LINK: &str = "This link was requested on a page. To use it, open it in a browser and press the button, or \
                         send the same request as POST.";

/// The link: a page with a button for browsers; other clients get the key of a new account at once, unless a page
/// requested the link.
pub(crate) async fn open(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let token = match token(parameter(uri.query().unwrap_or_default(), "token")) {
        Ok(token) => token,
        Err(denial) => return answer(&app, &context, &headers, false, Err(denial)),
    };
    match wants_page(&headers) {
        true => {
            let page = page::verify::confirm(&context, &token, &app.accounts.sessions.form_token());
            vary_by_accept(html_page(StatusCode::OK, page, PagePolicy::Form))
        }
        false if is_page_link(&uri) => {
            let denial = V1ErrorResponse::new(StatusCode::CONFLICT, PAGE_LINK);
            answer(&app, &context, &headers, false, Err(denial))
        }
        false => answer(&app, &context, &headers, false, redeem(&app, &token, "", false, client).await),
    }
}

/// Whether a page requested the mail with this link: then the link names the language of the page.
fn is_page_link(uri: &Uri) -> bool {
    !matches!(parameter(uri.query().unwrap_or_default(), LANGUAGE_PARAMETER), Ok(None))
}

/// The button, or a program's confirmation: the token is in a form, in JSON, or in the query.
pub(crate) async fn confirm(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        let body = read_body(&parts.headers, body, BODY_MAX, &app.body_budget).await?;
        let token = request_token(&parts.headers, &parts.uri, &body)?;
        redeem(&app, &token, &form_text(&parts.headers, &body), true, client).await
    };
    let outcome = outcome.await;
    let opened = match &outcome {
        Ok(issued) => open_session(&app, &parts, issued).await,
        Err(_) => None,
    };
    let mut response = answer(&app, &context, &parts.headers, opened.is_some(), outcome);
    if let Some(opened) = opened {
        let base_url = &app.lookup.options().base_url;
        set_cookie(&mut response, &opened, base_url);
        clear_next(&mut response, &parts.headers, base_url);
    }
    response
}

/// Signs in the browser whose visitor has just proved the email address. The key is shown whether or not it succeeds.
async fn open_session(app: &AppState, head: &Parts, issued: &IssuedAccountKey) -> Option<OpenedSession> {
    if !wants_page(&head.headers) || !is_own_form(head, &app.lookup.options().base_url) {
        return None;
    }
    let opened = app.accounts.sessions.open(&issued.account, &device(&head.headers)).await.ok()?;
    end_other_session(app, &head.headers, &opened.session.id).await;
    Some(opened)
}

async fn redeem(
    app: &AppState,
    token: &str,
    form: &str,
    confirmed: bool,
    client: ClientAddress,
) -> Result<IssuedAccountKey, V1ErrorResponse> {
    match app.accounts.keys.verify_form(token, form, confirmed, Some(client.0)).await? {
        VerifyOutcome::Issued(issued) => Ok(issued),
        VerifyOutcome::NeedsConfirmation => Err(V1ErrorResponse::new(
            StatusCode::CONFLICT,
            "This address has an account with an API key. To replace the key, open the link in a browser and \
             press the button, or send the same request as POST.",
        )),
    }
}

/// The key, or why there is none, with a link to the page that the visitor wanted to see.
fn answer(
    app: &AppState,
    context: &PageContext,
    headers: &HeaderMap,
    is_signed_in: bool,
    outcome: Result<IssuedAccountKey, V1ErrorResponse>,
) -> Response {
    let base_url = &app.lookup.options().base_url;
    let next = next(headers, base_url);
    let response = match (outcome, wants_page(headers)) {
        (Ok(issued), false) => json(StatusCode::OK, &VerifyResponse::from(&issued)),
        (Ok(issued), true) => {
            let next = next.as_deref().filter(|_| is_signed_in);
            let page = page::verify::issued(context, &VerifyResponse::from(&issued), base_url, next);
            html_page(StatusCode::OK, page, PagePolicy::Script)
        }
        (Err(denial), false) => denial.into_response(),
        (Err(denial), true) => {
            let status = denial.status();
            // Keeps the headers of the error, such as `Retry-After`.
            let mut response = denial.into_response();
            let wait = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
            let page = page::verify::refused(context, (status, wait), next.as_deref());
            let page = html_page(status, page, PagePolicy::Form);
            let (head, body) = page.into_parts();
            response.headers_mut().extend(head.headers);
            *response.body_mut() = body;
            response
        }
    };
    vary_by_accept(response)
}

fn html_page(status: StatusCode, page: Markup, policy: PagePolicy) -> Response {
    own_referrer(html::html(status, page, html::CacheMode::Never, policy))
}

fn vary_by_accept(mut response: Response) -> Response {
    response.headers_mut().insert(VARY, HeaderValue::from_static(VARIES_BY));
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
    match sent_form(headers, body) {
        Some(form) => token(parameter(form, "token")),
        None => BodyFields::parse(headers, body, &["token"])?.text("token").map(str::to_owned),
    }
}

/// The random text of the page with the button; empty in requests of programs.
fn form_text(headers: &HeaderMap, body: &[u8]) -> String {
    let text = sent_form(headers, body).and_then(|form| parameter(form, "form").ok().flatten());
    text.map(Cow::into_owned).unwrap_or_default()
}

fn sent_form<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(body).ok().filter(|_| is_form(headers))
}

/// Operation of GET in the `OpenAPI` document.
pub(crate) fn open_operation(_: &DocumentOptions<'_>) -> Value {
    let mut responses = verification("Get your API key");
    responses["409"] = document::denial(
        409,
        "The address has an account, whose key would stop working, or a page requested the link: use POST. Nothing \
         was changed.",
        &[
            (
                "known",
                "This address has an account with an API key. To replace the key, open the link in a browser and \
                 press the button, or send the same request as POST.",
            ),
            ("page", PAGE_LINK),
        ],
        [document::vary(VARIES_BY)],
    );
    json!({
        "operationId": "openVerificationLink",
        "tags": ["accounts"],
        "summary": "Open the link of a verification email",
        "description": "Creates the account of a new address and returns its key. If Accept prefers HTML, the response \
                        is a page with a button that sends the POST. If the address has an account, or a page \
                        requested the link, nothing changes, whatever Accept says: mail scanners open links, too.",
        "security": [],
        "parameters": [parameters::token()],
        "responses": responses
    })
}

/// Operation of POST in the `OpenAPI` document.
pub(crate) fn confirm_operation(_: &DocumentOptions<'_>) -> Value {
    let mut responses = verification("Your API key");
    document::body_denials(&mut responses, BODY_MAX);
    for status in ["408", "413", "415"] {
        responses[status] = with_page(responses[status].take());
    }
    let mut token = parameters::token();
    token["required"] = false.into();
    token["description"] = "The verification token, in a request without a body.".into();
    json!({
        "operationId": "confirmVerification",
        "tags": ["accounts"],
        "summary": "Redeem the token of a verification email",
        "description": "Sent by the button of the page. Creates the account of the address, or issues a new key for \
                        its account, which invalidates all earlier ones. The token is in a form, in JSON, or, \
                        without a body, in the query.",
        "security": [],
        "parameters": [token],
        "requestBody": {
            "description": format!("The token, unless it is in the query. At most {BODY_MAX} bytes."),
            "required": false,
            "content": {
                "application/x-www-form-urlencoded": parameters::token_form(),
                "application/json": parameters::token_body()
            }
        },
        "responses": responses
    })
}

/// An error response that is a page for browsers.
fn with_page(mut response: Value) -> Value {
    let (name, vary) = document::vary(VARIES_BY);
    response["content"]["text/html"] = document::page_body("No API key");
    response["headers"][name] = vary;
    response
}

/// Responses of both ways to redeem a token: JSON for programs, a page for browsers.
fn verification(shown: &str) -> Value {
    let mut content = document::json_body::<VerifyResponse>(
        json!({ "issued": document::example("A new account", examples::verified()) }),
    );
    content["text/html"] = document::page_body(shown);
    let too_many = document::too_many(
        "Too many verification links were opened from this network.",
        "Too many verification links were opened from your network: please try again in 1 minute.",
    );
    let mut fault = with_page(document::fault());
    // A defect may end the request before its form is known.
    fault["headers"]["Vary"]["required"] = false.into();
    let invalid = "token: this verification link is invalid, was used, or is older than 24 hours; POST \
                   /api/v1/register sends a new one";
    json!({
        "200": document::answer("The new key, shown only once; a page for browsers.", content, [document::vary(VARIES_BY)]),
        "400": with_page(document::denial(
            400,
            "The token is missing or invalid. Unknown, used and expired tokens get the same response.",
            &[("token", invalid)],
            [],
        )),
        "429": with_page(too_many),
        "500": fault
    })
}
