//! A stand-in for Stripe that remembers: what is opened can be paid, renewed, refunded and disputed, and each
//! of that makes the events that Stripe would send, signed as Stripe signs them.
//!
//! What it is asked and what it answers is held against Stripe's own description by the tests beside it.

mod books;
mod deeds;
mod money;
mod server;

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
pub(crate) use server::Exchange;

use books::Books;

/// The key that this Stripe accepts.
pub(crate) const KEY: &str = "sk_test_verbatim";
/// What it signs events with.
pub(crate) const SECRET: &str = "whsec_verbatim";

/// What the server and the test share.
#[derive(Debug, Default)]
struct Shared {
    books: Mutex<Books>,
    exchanges: Mutex<Vec<Exchange>>,
    /// Whether every request is answered with 503.
    is_away: AtomicBool,
}

/// The stand-in. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Stripe {
    url: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

/// An event as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Such as `invoice.paid`.
    pub(crate) kind: String,
    /// The body, byte by byte.
    pub(crate) body: String,
}

impl Event {
    fn new(kind: &str, object: &Value) -> Self {
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

    /// Its signature now.
    pub(crate) fn signature(&self) -> String {
        sign(&self.body, SECRET, now_s())
    }
}

/// The header of a body that was signed at a moment.
pub(crate) fn sign(body: &str, secret: &str, moment: i64) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length is accepted");
    let bytes = mac.chain_update(format!("{moment}.{body}")).finalize().into_bytes();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={moment},v1={digits}")
}

/// Now, in seconds.
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Stripe {
    /// A Stripe without customers.
    pub(crate) async fn start() -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (address, server) = server::start(Arc::clone(&shared)).await?;
        Ok(Self { url: format!("http://{address}"), shared, _server: server })
    }

    /// Where it is, for `stripe.api_url`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Everything that it was asked, and what it answered.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets every request fail, or none.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.shared.is_away.store(is_away, Ordering::Relaxed);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.shared.books()
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
