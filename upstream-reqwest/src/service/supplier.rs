//! A Verbatim server as a supplier.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;
use tokio::time::{Instant, sleep, timeout_at};
use transcript_core::{
    Error, Result,
    directory::api_key::ApiKind,
    headers::X_VERBATIM_HOP,
    service::{SERVICE_SUPPLIER, ServiceLookup},
    supplier::{
        Supplier, SupplierInfo, SupplierKind, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason,
        SupplyRequest,
    },
    time::Clock,
    transcript::TrackKind,
    video::Platform,
};

use super::{
    PeerRequests, ServiceClient, ServiceOptions,
    api::ServiceCall,
    call_error::CallError,
    classify::{SupplyDecision, classify_response, supply_error},
    lookup::lookup,
};
use crate::deadline::call_end;

/// The stage that is reported to waiters.
const STAGE: &str = "asking a server";

/// Another Verbatim server as a supplier named `verbatim-service`, for all four platforms.
///
/// It calls the lookup API with a key of that server, which fetches videos that it has not archived and charges the
/// key. A transcript keeps its original source, and what that server sends of its language, kind, words and video. A
/// failure has the reason that the server sent.
pub struct ServiceSupplier {
    client: ServiceClient,
    clock: Arc<dyn Clock>,
    peer_requests: PeerRequests,
}

impl ServiceSupplier {
    /// Creates the supplier.
    ///
    /// Deadlines refer to `clock`; `peer_requests` holds the videos that other servers request from this one.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, or the key is not one of the lookup API.
    pub fn new(options: &ServiceOptions, clock: Arc<dyn Clock>, peer_requests: PeerRequests) -> Result<Self> {
        let client = ServiceClient::new(options)?;
        match options.api_key.as_deref() {
            None => Err(Error::invalid(
                "service.api_key is missing: create a key on the server (POST /api/keys, or verbatim keys create)",
            )),
            Some(key) if key.starts_with(ApiKind::V1.prefix()) => Err(Error::invalid(
                "service.api_key is a key of the v1 API: use one of the lookup API, which begins with vbk_",
            )),
            Some(_) => Ok(Self { client, clock, peer_requests }),
        }
    }

    async fn poll(
        &self,
        call: &ServiceCall,
        request: &SupplyRequest,
        deadline: Instant,
    ) -> std::result::Result<SupplyDecision, SupplyError> {
        let response = timeout_at(deadline, self.client.api.execute(call)).await;
        let answer = response.unwrap_or(Err(CallError::Timeout)).and_then(super::api::ServiceResponse::read);
        Ok(classify_response(answer.map_err(|error| supply_error(&error))?, request, self.clock.now()))
    }
}

transcript_core::debug_fields!(ServiceSupplier |this| { host: this.client.api.host() });

#[async_trait]
impl Supplier for ServiceSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo {
            name: SERVICE_SUPPLIER.to_owned(),
            platforms: Platform::ALL.to_vec(),
            kind: SupplierKind::Remote,
        }
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> std::result::Result<SupplyOutput, SupplyError> {
        let deadline = call_end(self.clock.as_ref(), request.deadline);
        let lookup_request = ServiceLookup {
            language: request.selector.language().cloned(),
            translated: request.selector.takes(TrackKind::Translated),
            // A server that does not know the parameters ignores them.
            words: true,
            description: true,
            ..ServiceLookup::url(request.video.address())
        };
        let mut call = lookup(&lookup_request, None, None);
        call.headers.insert(X_VERBATIM_HOP, HeaderValue::from_static("1"));
        let mut last_failure = None;
        loop {
            if monitor.is_cancelled() {
                return Err(SupplyError::new(
                    SupplyReason::Cancelled,
                    "No waiter is left for the transcript.",
                ));
            }
            if self.peer_requests.is_requested(&request.video) {
                // Also checked between two polls: the other server may be waiting for this one.
                return Err(last_failure.unwrap_or_else(request_loop));
            }
            monitor.report_progress(STAGE, 0, 0);
            match self.poll(&call, &request, deadline).await? {
                SupplyDecision::Supplied(supplied) => return Ok(supplied),
                SupplyDecision::Failed(failure) => {
                    tracing::debug!(video = %request.video, error = %failure, "other server returned no transcript");
                    return Err(failure);
                }
                SupplyDecision::Later(wait, failure) if Instant::now() + wait >= deadline => {
                    return Err(failure);
                }
                SupplyDecision::Later(wait, failure) => {
                    last_failure = Some(failure);
                    sleep(wait).await;
                }
            }
        }
    }
}

fn request_loop() -> SupplyError {
    let message =
        "Another Verbatim server requests this video here, so the request is not forwarded to a third one.";
    SupplyError::declined(SupplyReason::Unreachable, message)
}
