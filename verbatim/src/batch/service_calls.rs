//! Calls of a service: a batch waits while a server refuses them or cannot fetch.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{self, MutexGuard},
    time::{Instant, sleep_until},
};
use transcript_core::engine::FailureReason;

use super::{ATTEMPTS_MAX, Batch, POLL_FIRST};
use crate::service::{ServiceErrorKind, ServiceResult};

/// The calls of a batch that wait.
#[derive(Debug, Default)]
pub(super) struct ServiceCalls {
    /// Held by the first of them.
    first: sync::Mutex<()>,
    /// The end of the last pause.
    resumes_at: Mutex<Option<Instant>>,
}

/// How a service responded to a call.
enum ServiceResponse {
    /// With a transcript, or with a reason that a retry meets again.
    Answered,
    /// It rejected the call for now, or an attempt to fetch failed.
    Refused { is_attempt: bool, retry_after: Option<Duration> },
    /// With an error that concerns neither the load nor the video.
    Failed,
}

impl Batch {
    /// Calls a service, and again after waits while it refuses calls or cannot fetch.
    ///
    /// After a refusal with a time to retry, the batch starts no call until then, and then one after another up to a
    /// success. Without a success it waits as long as [`Batch::new`]'s `max_wait`. A video that the service cannot
    /// fetch is called for three times at most. `reason` is the failure reason of a reply. A call whose outcome is
    /// unknown is not repeated: see [`ServiceError::idempotency_key`](crate::service::ServiceError::idempotency_key).
    ///
    /// All calls of a batch are of one service. Poll it on a Tokio runtime.
    ///
    /// # Errors
    /// Those of `call`.
    ///
    /// # Cancellation
    /// As `call`.
    pub async fn call_service<T, F>(
        &self,
        call: impl Fn() -> F,
        reason: impl Fn(&T) -> Option<&str>,
    ) -> ServiceResult<T>
    where
        F: Future<Output = ServiceResult<T>>,
    {
        let mut attempts = 0;
        loop {
            let _alone = self.admit_call().await;
            let result = call().await;
            match classify(&result, &reason) {
                ServiceResponse::Answered => self.end_wait(None),
                ServiceResponse::Refused { is_attempt, retry_after } => {
                    attempts += u32::from(is_attempt);
                    if attempts < ATTEMPTS_MAX && retry_after.is_some_and(|wait| self.pause_calls(wait)) {
                        continue;
                    }
                }
                ServiceResponse::Failed => {}
            }
            return result;
        }
    }

    /// Waits for the end of a pause. Without a success since then, no other call starts while the permit is held.
    async fn admit_call(&self) -> Option<MutexGuard<'_, ()>> {
        let first = self.service.first.lock().await;
        let resumes_at = || *self.service.resumes_at.lock().unwrap_or_else(PoisonError::into_inner);
        // A call that still runs may extend the pause.
        while let Some(end) = resumes_at().filter(|end| *end > Instant::now()) {
            sleep_until(end).await;
        }
        let waiting_since = self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner);
        waiting_since.contains_key(&None).then_some(first)
    }

    /// Lets all calls wait for this time; `false` if that is longer than the longest wait.
    fn pause_calls(&self, retry_after: Duration) -> bool {
        let wait = retry_after.max(POLL_FIRST);
        let Some(retry_at) = self.time_within(None, wait, Instant::now()) else { return false };
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(wait_ms, "batch waits for a service");
        let mut resumes_at = self.service.resumes_at.lock().unwrap_or_else(PoisonError::into_inner);
        *resumes_at = (*resumes_at).max(Some(retry_at));
        true
    }
}

fn classify<T>(result: &ServiceResult<T>, reason: impl Fn(&T) -> Option<&str>) -> ServiceResponse {
    let refused = |is_attempt, retry_after| ServiceResponse::Refused { is_attempt, retry_after };
    let error = match result {
        Ok(reply) => {
            return match reason(&reply.body).and_then(FailureReason::from_wire) {
                Some(FailureReason::RateLimited | FailureReason::FetchError) => {
                    refused(true, reply.meta.retry_after)
                }
                _ => ServiceResponse::Answered,
            };
        }
        Err(error) => error,
    };
    let detail = error.reason.map(FailureReason::as_str).or(error.meta.failure_detail.as_deref());
    match (error.kind, error.status, detail) {
        // The call may be charged, and is free of cost only with its key.
        _ if error.idempotency_key.is_some() => ServiceResponse::Failed,
        (ServiceErrorKind::RateLimited, ..) => refused(false, error.retry_after()),
        (ServiceErrorKind::NotFound, ..) => ServiceResponse::Answered,
        // The v1 API: wrong settings of a source, or a failed fetch.
        (_, Some(500), Some(detail)) if detail == FailureReason::ConfigError.as_str() => {
            ServiceResponse::Answered
        }
        (_, Some(500), Some(_)) => refused(true, error.retry_after()),
        _ => ServiceResponse::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use tokio::task::JoinSet;

    use super::*;
    use crate::service::{ResponseMeta, ServiceError, ServiceReply};

    type Reply = ServiceResult<Option<&'static str>>;

    fn reply(reason: Option<&'static str>, retry_after: Option<u64>) -> Reply {
        let retry_after = retry_after.map(Duration::from_secs);
        Ok(ServiceReply { body: reason, meta: ResponseMeta { retry_after, ..ResponseMeta::default() } })
    }

    fn rejected(status: u16, retry_after: Option<u64>) -> ServiceError {
        ServiceError::rejected(status, "No.").with_retry_after(retry_after.map(Duration::from_secs))
    }

    fn limited(retry_after: u64) -> Reply {
        Err(rejected(429, Some(retry_after)))
    }

    fn throttled(retry_after: u64) -> Reply {
        reply(Some("rate_limited"), Some(retry_after))
    }

    fn failed(status: u16, detail: &str, retry_after: Option<u64>) -> Reply {
        let mut error = rejected(status, retry_after);
        error.meta.failure_detail = Some(detail.to_owned());
        Err(error)
    }

    /// A server with these responses, and then with transcripts. Each takes a second.
    #[derive(Default)]
    struct FakeServer {
        responses: Mutex<VecDeque<Reply>>,
        running: AtomicUsize,
        /// The second of each start, and the number of calls that run then.
        starts: Mutex<Vec<(u64, usize)>>,
    }

    impl FakeServer {
        async fn respond(&self, started_at: Instant) -> Reply {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.starts.lock().unwrap().push((started_at.elapsed().as_secs(), running));
            let response = self.responses.lock().unwrap().pop_front();
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            response.unwrap_or_else(|| reply(None, None))
        }
    }

    /// The results of concurrent calls, and the second and the running calls at the start of each request.
    async fn run(
        batch: &Batch,
        calls: usize,
        responses: impl IntoIterator<Item = Reply>,
    ) -> (Vec<Reply>, Vec<(u64, usize)>) {
        let server = Arc::new(FakeServer {
            responses: Mutex::new(responses.into_iter().collect()),
            ..FakeServer::default()
        });
        let (mut tasks, started_at) = (JoinSet::new(), Instant::now());
        for _ in 0..calls {
            let (batch, server) = (batch.clone(), Arc::clone(&server));
            tasks.spawn(
                async move { batch.call_service(|| server.respond(started_at), |reason| *reason).await },
            );
        }
        let results = tasks.join_all().await;
        let starts = server.starts.lock().unwrap().clone();
        (results, starts)
    }

    #[tokio::test(start_paused = true)]
    async fn service_refusal_pauses_calls_until_one_succeeds() {
        let (results, starts) = run(&Batch::default(), 4, [limited(10), limited(20), limited(5)]).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        // All four start, three are refused until 21 s, and a success of the fourth has ended the wait.
        assert_eq!(starts, [(0, 1), (0, 2), (0, 3), (0, 4), (21, 1), (21, 2), (21, 3)]);
        let (results, starts) = run(&Batch::default(), 3, (0..5).map(|_| limited(10))).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        // One call at a time after each pause, and the others after the success of one.
        assert_eq!(starts[3..], [(11, 1), (22, 1), (33, 1), (34, 1), (34, 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn service_fetch_is_tried_three_times() {
        for failure in
            [throttled(10), failed(500, "still_working", Some(10)), failed(500, "a_later_detail", Some(10))]
        {
            let batch = Batch::default();
            let (results, starts) = run(&batch, 1, vec![failure.clone(); 9]).await;
            assert_eq!((results, starts.len()), (vec![failure.clone()], 3));
            // Rate limits do not count.
            let (results, starts) = run(&batch, 1, [limited(1), failure, limited(1), limited(1)]).await;
            assert_eq!((results, starts.len()), (vec![reply(None, None)], 5));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn service_wait_without_success_is_bounded() {
        let batch = Batch::new(Duration::from_secs(25));
        let (results, starts) = run(&batch, 2, (0..99).map(|_| limited(10))).await;
        assert_eq!(results, [limited(10), limited(10)]);
        assert_eq!(starts, [(0, 1), (0, 2), (11, 1), (22, 1), (23, 1)]);
        let never = Batch::new(Duration::ZERO);
        assert_eq!(run(&never, 1, [limited(0)]).await, (vec![limited(0)], vec![(0, 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn service_response_that_stays_is_not_awaited() {
        let mut unknown = rejected(429, Some(1));
        unknown.idempotency_key = Some("key".into());
        for response in [
            Err(unknown),
            Err(rejected(429, None)),
            Err(rejected(401, Some(1))),
            Err(rejected(500, Some(1))),
            reply(Some("fetch_error"), None),
            reply(Some("no_captions"), Some(1)),
            failed(404, "private", Some(1)),
            failed(500, "config_error", Some(1)),
        ] {
            let (results, starts) = run(&Batch::default(), 1, [response.clone()]).await;
            assert_eq!((results, starts.len()), (vec![response], 1));
        }
    }
}
