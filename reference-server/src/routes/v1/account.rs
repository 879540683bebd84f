//! `GET /api/v1/me` and `POST /api/v1/rotate-key`.

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use transcript_core::{
    accounts::Route,
    wire::v1::{KeyRotated, Me},
};

use super::{
    Denial,
    door::{enter, out, reply},
};
use crate::routes::App;

/// The account of the caller.
pub(crate) async fn me(State(app): State<App>, headers: HeaderMap) -> Response {
    let visit = match enter(&app, Route::Me, &headers, Vec::new()).await {
        Ok(visit) => visit,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let profile = app.accounts.me(visit).await.map_err(Denial::from);
    out(rate, profile.map(|profile| reply(StatusCode::OK, &Me::from(&profile))))
}

/// Replaces the caller's key. A body is not looked at: there is nothing to say.
pub(crate) async fn rotate_key(State(app): State<App>, headers: HeaderMap) -> Response {
    let visit = match enter(&app, Route::RotateKey, &headers, Vec::new()).await {
        Ok(visit) => visit,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let key = app.accounts.rotate(visit).await.map_err(Denial::from);
    out(rate, key.map(|key| reply(StatusCode::OK, &KeyRotated::from(&key))))
}
