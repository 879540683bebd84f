//! A stateful fake of Stripe: its objects can be paid, renewed, refunded and disputed, and each action
//! returns the events that Stripe would send, with Stripe's signatures.
//!
//! The tests of `super::real` compare its requests and responses with Stripe's OpenAPI description.

mod actions;
mod money;
mod server;
mod state;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use anyhow::Result;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::task::JoinSet;

pub(crate) use money::MONTH_S;
pub(crate) use server::FakeExchange;

use state::StripeState;

/// The API key that the fake accepts.
pub(crate) const KEY: &str = "sk_test_verbatim";
/// The secret of webhook signatures.
pub(crate) const SECRET: &str = "whsec_verbatim";

/// State shared by the server and the test.
#[derive(Debug, Default)]
struct FakeStripeShared {
    state: Mutex<StripeState>,
    exchanges: Mutex<Vec<FakeExchange>>,
    /// Whether every request gets a 503 response.
    is_away: AtomicBool,
}

/// The fake. Drop stops its server.
#[derive(Debug)]
pub(crate) struct FakeStripe {
    url: String,
    shared: Arc<FakeStripeShared>,
    _server: JoinSet<()>,
}

/// A webhook event.
#[derive(Clone, Debug)]
pub(crate) struct FakeEvent {
    /// Such as `invoice.paid`.
    pub(crate) kind: String,
    /// The exact body.
    pub(crate) body: String,
}

impl FakeEvent {
    /// An event of this kind about an object.
    pub(crate) fn new(kind: &str, object: &Value) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let event = json!({
            "id": format!("evt_{number:06}"),
            "object": "event",
            "api_version": "2026-08-26.dahlia",
            "created": now_s(),
            "data": { "object": object },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": null, "idempotency_key": null },
            "type": kind,
        });
        Self { kind: kind.to_owned(), body: serde_json::to_string_pretty(&event).unwrap_or_default() }
    }

    /// The signature header with the current time.
    pub(crate) fn signature(&self) -> String {
        sign(&self.body, SECRET, now_s())
    }
}

/// The signature header of a body at a time.
pub(crate) fn sign(body: &str, secret: &str, at_s: i64) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
    let bytes = mac.chain_update(format!("{at_s}.{body}")).finalize().into_bytes();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at_s},v1={digits}")
}

/// The current time in seconds.
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl FakeStripe {
    /// Starts a fake without customers.
    pub(crate) async fn start() -> Result<Self> {
        let shared = Arc::new(FakeStripeShared::default());
        let (address, server) = server::start(Arc::clone(&shared)).await?;
        Ok(Self { url: format!("http://{address}"), shared, _server: server })
    }

    /// The base URL, for `stripe.api_url`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// All requests with their responses.
    pub(crate) fn exchanges(&self) -> Vec<FakeExchange> {
        self.shared.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes every request fail, or none.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.shared.is_away.store(is_away, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, StripeState> {
        self.shared.state()
    }
}

impl FakeStripeShared {
    fn state(&self) -> MutexGuard<'_, StripeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
