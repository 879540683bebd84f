//! `POST /api/v1/register`: queues a mail; the response is the same for every address.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::{Value, json};
use transcript_core::wire::v1::{RegisterRequest, RegisterResponse};

use super::{
    BodyFields,
    body::BODY_MAX,
    document::{self, DocumentOptions, examples},
};
use crate::{
    api::{ClientAddress, V1ErrorResponse, json},
    state::AppState,
};

/// Response to every valid request, so that it does not reveal whether the address has an account.
const MESSAGE: &str = "Check your inbox: the link in the email creates your API key. If there is no email \
                       within a few minutes, look into the spam folder.";

/// Queues the verification email of an address.
pub(crate) async fn register(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, V1ErrorResponse> {
    let (parts, body) = request.into_parts();
    let fields = BodyFields::read(&parts.headers, body, &app.body_budget, &["email"]).await?;
    app.accounts.keys.register(fields.text("email")?, Some(client.0)).await?;
    Ok(json(StatusCode::OK, &RegisterResponse { success: true, message: MESSAGE.to_owned() }))
}

/// Operation in the `OpenAPI` document.
pub(crate) fn operation(_: &DocumentOptions<'_>) -> Value {
    let mut responses = json!({
        "200": document::answer(
            "The mail is queued. The response is the same for addresses with and without an account.",
            document::json_body::<RegisterResponse>(json!({ "mailed": document::example("Always the same", examples::registered()) })),
            [],
        ),
        "400": document::denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid.",
            &[
                ("missing", "body: it is missing: send JSON such as {\"email\": …}"),
                ("address", "email: give an email address such as name@example.org"),
            ],
            [],
        ),
        "403": document::foreign_page(true),
        "429": document::too_many(
            "Too many registrations came from this network.",
            "Too many registrations came from your network: please try again in 60 minutes.",
        ),
        "500": document::fault()
    });
    document::body_denials(&mut responses, BODY_MAX);
    let (name, vary) = document::vary("origin");
    for response in responses.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        response["headers"][name] = vary.clone();
    }
    json!({
        "operationId": "registerAccount",
        "tags": ["accounts"],
        "summary": "Create an account, or request a new key for one",
        "description": "Sends an email with a verification link to the address. If the address has an account, the \
                        link issues a new key: the credits stay, and all earlier keys of the account stop working. \
                        After several emails within an hour no more are sent to the address; the response is the same.",
        "security": [],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes; unknown fields are rejected."),
            "required": true,
            "content": document::json_body::<RegisterRequest>(json!({
                "address": document::example("An email address", examples::register())
            }))
        },
        "responses": responses
    })
}
