//! `POST /api/v1/register`: queues a mail; the response is the same for every address.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use transcript_core::wire::v1::RegisterResponse;

use super::{BodyFields, V1ErrorResponse};
use crate::{
    http::{ClientAddress, json},
    routes::AppState,
};

/// Response to every valid request, so that it does not reveal whether the address has an account.
const MESSAGE: &str = "Check your mailbox: the link in the mail creates your API key. If there is no mail \
                       within a few minutes, look into the spam folder.";

/// Queues the verification mail of an address.
pub(crate) async fn register(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, V1ErrorResponse> {
    let (parts, body) = request.into_parts();
    let fields = BodyFields::read(&parts.headers, body, &["email"]).await?;
    app.accounts.register(fields.text("email")?, Some(client.0)).await?;
    Ok(json(StatusCode::OK, &RegisterResponse { success: true, message: MESSAGE.to_owned() }))
}
