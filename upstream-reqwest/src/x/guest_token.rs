//! The guest token: shared by all lookups, because X issues few of them.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

use super::{classify, request};
use crate::{
    http::HttpError,
    json::parse,
    social::{PlatformSession, Retries, SocialFailure},
};

/// How long a token is used. X accepts one for about three hours.
const LIFETIME: Duration = Duration::from_secs(150 * 60);
/// Maximum length of a token in bytes: 19 digits are usual.
const LENGTH_MAX: usize = 64;

/// Cache of the current token.
#[derive(Debug, Default)]
pub(super) struct GuestTokenCache {
    current: Mutex<Option<GuestToken>>,
}

#[derive(Clone)]
struct GuestToken {
    token: String,
    since: Instant,
}

#[derive(Deserialize)]
struct GuestActivation {
    guest_token: Option<String>,
}

impl GuestTokenCache {
    /// The current token, or a new one if there is none. Concurrent lookups wait for the same
    /// activation.
    pub(super) async fn token(
        &self,
        session: &mut PlatformSession<'_>,
        retries: Retries,
    ) -> Result<String, SocialFailure> {
        let Ok(mut current) = timeout_at(session.deadline(), self.current.lock()).await else {
            return Err(SocialFailure::Transport(HttpError::Timeout));
        };
        if let Some(entry) = current.as_ref().filter(|entry| entry.since.elapsed() < LIFETIME) {
            return Ok(entry.token.clone());
        }
        let token = activate(session, retries).await?;
        *current = Some(GuestToken { token: token.clone(), since: Instant::now() });
        Ok(token)
    }

    /// Removes a token that X rejected, unless another lookup has replaced it.
    pub(super) async fn invalidate(&self, token: &str) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|entry| entry.token == token) {
            *current = None;
        }
    }
}

async fn activate(session: &mut PlatformSession<'_>, retries: Retries) -> Result<String, SocialFailure> {
    let response = session.send_as_guest(&request::activate(), retries).await?;
    if let Some(failure) = classify::errors(&response.body) {
        return Err(failure);
    }
    match response.status {
        StatusCode::OK => {}
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(SocialFailure::Forbidden(status.as_u16()));
        }
        status => {
            return Err(SocialFailure::Unreadable(format!(
                "it returned no guest token (HTTP {})",
                status.as_u16()
            )));
        }
    }
    let activated: Option<GuestActivation> = parse(&response.body).ok();
    let token = activated.and_then(|activated| activated.guest_token);
    let is_plain = |token: &String| {
        (1..=LENGTH_MAX).contains(&token.len()) && token.bytes().all(|c| c.is_ascii_alphanumeric())
    };
    token.filter(is_plain).ok_or_else(|| SocialFailure::Unreadable("it returned no guest token".to_owned()))
}

transcript_core::debug_fields!(GuestToken { since });
