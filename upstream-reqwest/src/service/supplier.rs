//! A Verbatim server as a supplier.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use tokio::time::{Instant, sleep, timeout_at};
use transcript_core::{
    Error, Result,
    directory::key::Surface,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
    video::Platform,
};

use super::{
    AskedByServers, HOP, LookupRequest, ServiceClient, ServiceError, ServiceOptions,
    api::Call,
    judgement::{Judged, failed, judge},
    lookup::lookup,
};

/// The supplier's name.
pub const SERVICE_SUPPLIER: &str = "verbatim-service";
/// The stage that whoever waits hears of.
const STAGE: &str = "asking a server";
/// How long before the caller's deadline it gives up.
const MARGIN: Duration = Duration::from_millis(250);

/// Another Verbatim server as a supplier named `verbatim-service`, for all four platforms.
///
/// It asks Surface A with a key of that server, which fetches what it has not archived and bills the key. What
/// comes back has its true source, and its language and kind as far as that server tells them. A failure has the
/// reason that the server gave.
pub struct ServiceSupplier {
    client: ServiceClient,
    clock: Arc<dyn Clock>,
    asked: AskedByServers,
}

impl ServiceSupplier {
    /// The supplier. The clock is the one that deadlines are given by; `asked` is where this server notes which
    /// videos others ask it for.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, or there is no key of Surface A among them.
    pub fn new(options: &ServiceOptions, clock: Arc<dyn Clock>, asked: AskedByServers) -> Result<Self> {
        let client = ServiceClient::new(options)?;
        match options.api_key.as_deref() {
            None => Err(Error::invalid(
                "service.api_key is missing: make a key of the server (POST /api/keys, or verbatim keys create there)",
            )),
            Some(key) if key.starts_with(Surface::Account.prefix()) => Err(Error::invalid(
                "service.api_key is a key of the v1 API: give one of the look-up API, which begins with vbk_",
            )),
            Some(_) => Ok(Self { client, clock, asked }),
        }
    }

    async fn ask(
        &self,
        call: &Call,
        ask: &Ask,
        deadline: Instant,
    ) -> std::result::Result<Judged, SupplyError> {
        let asking = timeout_at(deadline, self.client.api.ask(call)).await;
        let answer = asking.unwrap_or(Err(ServiceError::Timeout)).and_then(super::api::Answer::read);
        Ok(judge(answer.map_err(|error| failed(&error))?, ask, self.clock.now()))
    }
}

impl fmt::Debug for ServiceSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSupplier").field("host", &self.client.api.host()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Supplier for ServiceSupplier {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: SERVICE_SUPPLIER.to_owned(),
            platforms: Platform::ALL.to_vec(),
            kind: SupplierKind::Remote,
        }
    }

    async fn supply(
        &self,
        ask: Ask,
        watcher: Arc<dyn Watcher>,
    ) -> std::result::Result<Supplied, SupplyError> {
        let left = ask.deadline.since(self.clock.now());
        let deadline = Instant::now() + left.saturating_sub(MARGIN);
        let mut call = lookup(&LookupRequest::url(ask.video.address()), None);
        call.headers.insert(HeaderName::from_static(HOP), HeaderValue::from_static("1"));
        let mut told = None;
        loop {
            if watcher.cancelled() {
                return Err(SupplyError::new(
                    SupplyReason::Cancelled,
                    "Nobody waits for the transcript any more.",
                ));
            }
            if self.asked.is_asked(&ask.video) {
                // Also between two questions: a server that waits for us is not waited for.
                return Err(told.unwrap_or_else(in_a_circle));
            }
            watcher.stage(STAGE, 0, 0);
            match self.ask(&call, &ask, deadline).await? {
                Judged::Supplied(supplied) => return Ok(supplied),
                Judged::Failed(failure) => {
                    tracing::debug!(video = %ask.video, error = %failure, "no transcript from the other server");
                    return Err(failure);
                }
                Judged::Later(wait, failure) if Instant::now() + wait >= deadline => return Err(failure),
                Judged::Later(wait, failure) => {
                    told = Some(failure);
                    sleep(wait).await;
                }
            }
        }
    }
}

fn in_a_circle() -> SupplyError {
    let message = "Another Verbatim server asks this one for the video, so this one asks no third one.";
    SupplyError::declined(SupplyReason::Unreachable, message)
}
