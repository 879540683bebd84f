//! A receiver of webhooks.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::sync::mpsc;
use transcript_core::{
    Timestamp,
    accounts::webhooks::{SIGNATURE_TOLERANCE, SignatureError, verify_signature},
};

use crate::service::fake::{FakeReply, FakeService, SeenRequest};

/// Timeout of a webhook: longer than the lease of a killed server.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(90);

/// A call of the receiver.
#[derive(Debug)]
pub(super) struct WebhookCall(SeenRequest);

impl WebhookCall {
    pub(super) fn path(&self) -> &str {
        self.0.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(super) fn event(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.0.body)?)
    }

    fn signature(&self) -> &str {
        self.0.header("verbatim-signature").unwrap_or_default()
    }

    /// The number of signatures.
    pub(super) fn signatures(&self) -> usize {
        self.signature().matches(",v1=").count()
    }

    /// Verifies the signature with this secret.
    pub(super) fn verify(&self, secret: &str) -> Result<(), SignatureError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let secrets = [secret.to_owned()];
        verify_signature(Some(self.signature()), &self.0.body, &secrets, now, SIGNATURE_TOLERANCE)
    }
}

/// A receiver on this machine, which replies to each call as a function of its number decides.
pub(super) struct WebhookReceiver {
    pub(super) url: String,
    calls: mpsc::UnboundedReceiver<WebhookCall>,
    _service: FakeService,
}

impl WebhookReceiver {
    pub(super) async fn start(reply: impl Fn(usize) -> FakeReply + Send + Sync + 'static) -> Result<Self> {
        let (sender, calls) = mpsc::unbounded_channel();
        let service = FakeService::start(move |request, number| {
            // The test may have ended.
            let _ = sender.send(WebhookCall(request.clone()));
            reply(number)
        })
        .await?;
        Ok(Self { url: format!("{}/hook", service.url), calls, _service: service })
    }

    /// Waits for the next call.
    pub(super) async fn next(&mut self) -> Result<WebhookCall> {
        let call = tokio::time::timeout(WEBHOOK_TIMEOUT, self.calls.recv()).await;
        call.context("no webhook arrived")?.context("the receiver has ended")
    }

    /// The calls that were not read.
    pub(super) fn rest(&mut self) -> Vec<WebhookCall> {
        std::iter::from_fn(|| self.calls.try_recv().ok()).collect()
    }
}
