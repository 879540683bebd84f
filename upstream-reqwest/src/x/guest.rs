//! The pass with which a guest may ask: shared by all look-ups, because X gives them out sparingly.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

use super::{request, signals};
use crate::{
    http::HttpFault,
    social::{Errand, Refusal},
};

/// How long a pass is used. X takes one for some three hours.
const LIFETIME: Duration = Duration::from_secs(150 * 60);
/// The longest pass, in bytes: 19 digits are usual.
const LENGTH_MAX: usize = 64;

/// The pass in use.
#[derive(Debug, Default)]
pub(super) struct GuestPass {
    current: Mutex<Option<Pass>>,
}

#[derive(Clone)]
struct Pass {
    token: String,
    since: Instant,
}

#[derive(Deserialize)]
struct Activated {
    guest_token: Option<String>,
}

impl GuestPass {
    /// The pass in use, or a new one where there is none. Whoever asks while another look-up is getting one
    /// waits for that one.
    pub(super) async fn token(&self, errand: &mut Errand<'_>) -> Result<String, Refusal> {
        let Ok(mut current) = timeout_at(errand.deadline(), self.current.lock()).await else {
            return Err(Refusal::Fault(HttpFault::Timeout));
        };
        if let Some(pass) = current.as_ref().filter(|pass| pass.since.elapsed() < LIFETIME) {
            return Ok(pass.token.clone());
        }
        let token = activate(errand).await?;
        *current = Some(Pass { token: token.clone(), since: Instant::now() });
        Ok(token)
    }

    /// Gives up a pass that X no longer takes, unless another look-up has done so already.
    pub(super) async fn forget(&self, token: &str) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|pass| pass.token == token) {
            *current = None;
        }
    }
}

async fn activate(errand: &mut Errand<'_>) -> Result<String, Refusal> {
    let answer = errand.send_once(&request::activate()).await?;
    if let Some(refusal) = signals::errors(&answer.body) {
        return Err(refusal);
    }
    match answer.status {
        StatusCode::OK => {}
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(Refusal::Forbidden(status.as_u16()));
        }
        status => {
            return Err(Refusal::Unreadable(format!("it gives no guest's pass (HTTP {})", status.as_u16())));
        }
    }
    let activated: Option<Activated> = serde_json::from_slice(&answer.body).ok();
    let token = activated.and_then(|activated| activated.guest_token);
    let is_plain = |token: &String| {
        (1..=LENGTH_MAX).contains(&token.len()) && token.bytes().all(|c| c.is_ascii_alphanumeric())
    };
    token.filter(is_plain).ok_or_else(|| Refusal::Unreadable("it gives no guest's pass".to_owned()))
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("since", &self.since).finish_non_exhaustive()
    }
}
