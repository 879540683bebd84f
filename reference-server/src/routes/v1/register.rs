//! `POST /api/v1/register`: a mail is queued, and everybody gets the same answer.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use transcript_core::wire::v1::Registered;

use super::{Denial, Fields};
use crate::{
    http::{ClientAddress, json},
    routes::App,
};

/// What everybody is told, whether or not the address has an account.
const MESSAGE: &str = "Please look into your mailbox: the link in our mail gives you an API key. If there is no mail \
                       within a few minutes, look into the spam folder.";

/// Queues the verification mail of an address.
pub(crate) async fn register(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, Denial> {
    let (parts, body) = request.into_parts();
    let fields = Fields::read(&parts.headers, body, &["email"]).await?;
    app.accounts.register(fields.text("email")?, Some(client.0)).await?;
    Ok(json(StatusCode::OK, &Registered { success: true, message: MESSAGE.to_owned() }))
}
