//! Retries of a call to a server: where they are safe and may help.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    Retry,
    retry::{Backoff, RetryPolicy, deadline_after, retry},
    service::{ServiceError, ServiceErrorKind},
};

use super::{IdempotencyKey, call_error::CallError};
use crate::http::{pause, retry_policy};

/// Pauses before a retry after 409: the original request is still running.
const CONFLICT_BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(16) };
/// How long a call waits, from the first 409, for its request whose response was lost.
///
/// By default a server works on an answer of chat for up to 85 s, also without its client, and a request that ended
/// with its process blocks its key for 60 s.
const CONFLICT_WAIT: Duration = Duration::from_secs(120);

/// Whether a request may be retried when its result is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RetrySafety {
    /// It changes nothing, or nothing more when it is repeated.
    Free,
    /// The server recognizes a repetition by this key.
    Keyed(IdempotencyKey),
    /// A repetition may execute it twice.
    Never,
}

impl RetrySafety {
    /// The error of a call, with its idempotency key if a request of the call may have taken effect.
    pub(super) fn service_error(&self, error: CallError) -> ServiceError {
        let is_unknown = error.is_outcome_unknown();
        let error = ServiceError::from(error);
        match self {
            Self::Keyed(key) if is_unknown => with_key(error, key),
            Self::Keyed(_) | Self::Free | Self::Never => error,
        }
    }

    /// The last error of a call of which a request was lost.
    ///
    /// A later rejection, such as that of a proxy, does not say how the lost request ended: it gets the idempotency
    /// key.
    fn error_after_loss(&self, error: CallError) -> CallError {
        match (self, error) {
            (Self::Keyed(key), CallError::Rejected(rejection)) if !is_missing(&rejection) => {
                CallError::Rejected(Box::new(with_key(*rejection, key)))
            }
            (_, error) => error,
        }
    }
}

/// How often calls are repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRetries {
    /// Number of retries after a transient error.
    pub(super) count: u32,
    /// The longest `Retry-After` that is waited for.
    pub(super) named_wait_max: Duration,
}

impl CallRetries {
    /// Sends a request, with retries where they are safe and may help.
    ///
    /// A repetition does not count while the server reports that a request of this call, whose response was lost, still
    /// runs. It does so for [`CONFLICT_WAIT`]; the last repetition begins before its end, with its own `count` retries.
    ///
    /// # Errors
    /// The last error; a rejection has the idempotency key if a request of the call was lost.
    pub(super) async fn run<T, F>(
        self,
        safety: &RetrySafety,
        send: impl Fn() -> F + Send + Sync,
    ) -> Result<T, CallError>
    where
        T: Send,
        F: Future<Output = Result<T, CallError>> + Send,
    {
        let is_lost = AtomicBool::new(false);
        let mut deadline: Option<Instant> = None;
        let judge = |attempt, error: &CallError| {
            if !is_running(error, &is_lost) {
                return Retry::Never;
            }
            let pause = CONFLICT_BACKOFF.pause(attempt, 1.0);
            let deadline = *deadline.get_or_insert_with(|| deadline_after(CONFLICT_WAIT));
            if deadline_after(pause) < deadline { Retry::After(pause) } else { Retry::Never }
        };
        let policy = RetryPolicy { tries: u32::MAX, deadline: None, backoff: CONFLICT_BACKOFF };
        let result = retry(policy, || 1.0, judge, |_| self.send(safety, &is_lost, &send)).await;
        let is_lost = is_lost.load(Ordering::Relaxed);
        result.map_err(|error| if is_lost { safety.error_after_loss(error) } else { error })
    }

    /// Sends a request, with `count` retries. A 409 of a lost request of this call ends them.
    async fn send<T, F>(
        self,
        safety: &RetrySafety,
        is_lost: &AtomicBool,
        send: &(impl Fn() -> F + Sync),
    ) -> Result<T, CallError>
    where
        T: Send,
        F: Future<Output = Result<T, CallError>> + Send,
    {
        let is_keyed = matches!(safety, RetrySafety::Keyed(_));
        let judge = |attempt, error: &CallError| {
            if is_running(error, is_lost) {
                Retry::Never
            } else {
                self.retry_after_error(safety, attempt, error)
            }
        };
        let attempt = |_| async {
            send().await.inspect_err(|error| {
                if is_keyed && error.is_outcome_unknown() {
                    is_lost.store(true, Ordering::Relaxed);
                }
            })
        };
        retry(retry_policy(self.count), rand::random, judge, attempt).await
    }

    /// Whether and when a call is retried.
    fn retry_after_error(self, safety: &RetrySafety, attempt: u32, error: &CallError) -> Retry {
        if *safety == RetrySafety::Never {
            return Retry::Never;
        }
        if error.kind() == Some(ServiceErrorKind::Conflict) {
            // An earlier call with the caller's key is still running: repeat it with the same key.
            return match safety {
                RetrySafety::Keyed(_) => Retry::After(CONFLICT_BACKOFF.pause(attempt, 1.0)),
                RetrySafety::Free | RetrySafety::Never => Retry::Never,
            };
        }
        if !error.is_transient() {
            return Retry::Never;
        }
        match error.retry_after() {
            Some(named) if named > self.named_wait_max => Retry::Never,
            Some(named) => Retry::After(named + pause(0, rand::random())),
            // A rate limit without a `Retry-After`: a retry would make it worse.
            None if error.kind() == Some(ServiceErrorKind::RateLimited) => Retry::Never,
            None => Retry::Backoff,
        }
    }
}

/// Whether a lost request of this call is still running.
fn is_running(error: &CallError, is_lost: &AtomicBool) -> bool {
    error.kind() == Some(ServiceErrorKind::Conflict) && is_lost.load(Ordering::Relaxed)
}

fn with_key(error: ServiceError, key: &IdempotencyKey) -> ServiceError {
    ServiceError { idempotency_key: Some(key.as_str().into()), ..error }
}

/// Whether the server found no transcript, which charges nothing. A proxy names no reason.
fn is_missing(rejection: &ServiceError) -> bool {
    rejection.kind == ServiceErrorKind::NotFound && rejection.meta.failure_detail.is_some()
}

#[cfg(test)]
mod tests {
    use std::{future, sync::atomic::AtomicUsize};

    use super::*;

    fn keyed() -> RetrySafety {
        RetrySafety::Keyed(IdempotencyKey::random())
    }

    fn rejected(status: u16) -> CallError {
        CallError::Rejected(Box::new(ServiceError::rejected(status, "No.")))
    }

    /// The error of a call whose attempts end like this, the number of its attempts, and the whole seconds it took.
    async fn run(
        count: u32,
        safety: &RetrySafety,
        attempt: impl Fn(usize) -> Result<(), CallError> + Send + Sync,
    ) -> (Option<CallError>, usize, u64) {
        let (sent, start) = (AtomicUsize::new(0), deadline_after(Duration::ZERO));
        let retries = CallRetries { count, named_wait_max: Duration::from_secs(10) };
        let send = || future::ready(attempt(sent.fetch_add(1, Ordering::Relaxed)));
        let mut error = retries.run(safety, send).await.err();
        if let Some(CallError::Rejected(rejection)) = &mut error {
            rejection.idempotency_key = None;
        }
        (error, sent.into_inner(), start.elapsed().as_secs())
    }

    /// The error of a call with two retries whose attempts end like this, the last one again and again.
    async fn error_of(safety: &RetrySafety, attempts: &[CallError]) -> ServiceError {
        let sent = AtomicUsize::new(0);
        let send = || {
            let attempt = sent.fetch_add(1, Ordering::Relaxed).min(attempts.len() - 1);
            future::ready(Err::<(), _>(attempts[attempt].clone()))
        };
        let retries = CallRetries { count: 2, named_wait_max: Duration::from_secs(10) };
        safety.service_error(retries.run(safety, send).await.unwrap_err())
    }

    /// A rejection of a server that names the reason.
    fn reasoned(status: u16, detail: &str) -> CallError {
        let mut error = ServiceError::rejected(status, "No.");
        error.meta.failure_detail = Some(detail.to_owned());
        CallError::Rejected(Box::new(error))
    }

    #[tokio::test(start_paused = true)]
    async fn lost_request_is_awaited_without_counting_conflicts() {
        for lost in [CallError::Timeout, CallError::CutOff, rejected(504)] {
            let (error, attempts, seconds) = run(2, &keyed(), |attempt| match attempt {
                0 => Err(lost.clone()),
                1..=5 => Err(rejected(409)),
                _ => Ok(()),
            })
            .await;
            // 1 + 2 + 4 + 8 + 16 s.
            assert_eq!((error, attempts, seconds), (None, 7, 31), "{lost}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lost_request_wait_is_bounded() {
        let lost_first = |attempt: usize| Err(if attempt == 0 { CallError::Timeout } else { rejected(409) });
        // The pauses of 1, 2, 4, 8 and six times 16 s end before 120 s.
        assert_eq!(run(2, &keyed(), lost_first).await, (Some(rejected(409)), 12, 111));
        // Lost and running in turn: the wait begins with the first 409, and its end ends the call.
        let in_turn =
            |attempt: usize| Err(if attempt.is_multiple_of(2) { CallError::Timeout } else { rejected(409) });
        let (error, _, seconds) = run(2, &keyed(), in_turn).await;
        assert!(error == Some(rejected(409)) && seconds <= 121, "{error:?} after {seconds} s");
        // A server that is lost again has the retries of a call.
        let stopped = |attempt: usize| Err(if attempt == 1 { rejected(409) } else { CallError::Timeout });
        let (error, attempts, _) = run(2, &keyed(), stopped).await;
        assert_eq!((error, attempts), (Some(CallError::Timeout), 5));
    }

    #[tokio::test(start_paused = true)]
    async fn conflict_without_lost_request_uses_up_retry() {
        let conflict = |_: usize| Err(rejected(409));
        assert_eq!(run(2, &keyed(), conflict).await, (Some(rejected(409)), 3, 3));
        assert_eq!(run(0, &keyed(), conflict).await.1, 1);
        for safety in [RetrySafety::Free, RetrySafety::Never] {
            assert_eq!(run(2, &safety, conflict).await.1, 1, "{safety:?}");
            let lost = |attempt: usize| Err(if attempt == 0 { CallError::Timeout } else { rejected(409) });
            assert!(run(2, &safety, lost).await.1 <= 2, "{safety:?}");
        }
        assert_eq!(run(0, &keyed(), |_| Err(CallError::Timeout)).await, (Some(CallError::Timeout), 1, 0));
        // The server ended the request itself, and says why.
        let ended =
            |attempt: usize| Err(if attempt == 0 { reasoned(500, "still_working") } else { rejected(409) });
        assert_eq!(run(2, &keyed(), ended).await.1, 3);
    }

    #[test]
    fn error_without_known_outcome_has_idempotency_key() {
        let key = IdempotencyKey::random();
        let safety = RetrySafety::Keyed(key.clone());
        let unreadable = CallError::Unreadable("it is not text");
        for error in [CallError::Timeout, CallError::CutOff, CallError::TooLarge, unreadable, rejected(502)] {
            let error = safety.service_error(error);
            assert_eq!(error.idempotency_key.as_deref(), Some(key.as_str()), "{error:?}");
        }
        for error in [CallError::Invalid("no"), rejected(400), rejected(402), rejected(404)] {
            assert_eq!(safety.service_error(error.clone()).idempotency_key, None, "{error}");
        }
        assert_eq!(RetrySafety::Free.service_error(CallError::Timeout).idempotency_key, None);
    }

    #[tokio::test(start_paused = true)]
    async fn lost_request_key_survives_later_rejection() {
        let key = IdempotencyKey::random();
        let safety = RetrySafety::Keyed(key.clone());
        let rejections = [302, 401, 403, 404, 409, 429].map(rejected);
        for last in rejections.into_iter().chain([reasoned(500, "storage")]) {
            for lost in [CallError::Timeout, CallError::CutOff, rejected(502)] {
                let error = error_of(&safety, &[lost.clone(), last.clone()]).await;
                assert_eq!(error.idempotency_key.as_deref(), Some(key.as_str()), "{lost} {last}");
            }
            // No request was lost.
            assert_eq!(error_of(&safety, std::slice::from_ref(&last)).await.idempotency_key, None, "{last}");
            let free = error_of(&RetrySafety::Free, &[CallError::Timeout, last.clone()]).await;
            assert_eq!(free.idempotency_key, None, "{last}");
        }
        // The last attempt is lost.
        let error = error_of(&safety, &[reasoned(500, "busy"), rejected(409), CallError::Timeout]).await;
        assert_eq!(error.idempotency_key.as_deref(), Some(key.as_str()));
        // The server found no transcript for this key.
        let missing = error_of(&safety, &[CallError::Timeout, reasoned(404, "private")]).await;
        assert_eq!(missing.idempotency_key, None);
    }
}
