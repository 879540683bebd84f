//! The retry loop of store calls and upstream requests, the renewal of leases, and the timeout of a single store call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::error::{Error, ErrorKind, Result, Retry};

/// The longest pause between two tries of a store call, whatever the error requests.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Pauses between tries of a store call: 50, 100, 200, … ms.
const STORE_BACKOFF: Backoff = Backoff { first: Duration::from_millis(50), max: STORE_PAUSE_MAX };

/// The longest wait: 30 years, for callers that want no limit.
const WAIT_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The end of a wait that begins now.
#[expect(
    clippy::disallowed_methods,
    reason = "waits use tokio's clock, as its timers do, and tests pause it"
)]
pub fn deadline_after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now + WAIT_MAX)
}

/// Whether a deadline has passed.
pub(crate) fn is_over(deadline: Instant) -> bool {
    deadline <= deadline_after(Duration::ZERO)
}

/// Pauses that double with every try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Backoff {
    /// The pause after try number `attempt`, counted from 0, times `jitter`, which is from 0 to 1.
    pub fn pause(&self, attempt: u32, jitter: f64) -> Duration {
        let factor = 1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max).mul_f64(jitter)
    }
}

/// How often a call is tried, and the pauses between the tries.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The most tries; at least 1.
    pub tries: u32,
    /// A pause that would not end before this time ends the tries; `None` without a limit.
    pub deadline: Option<Instant>,
    /// The pauses, where an error does not name one.
    pub backoff: Backoff,
}

/// Tries a call until it succeeds, `judge` forbids a further try, or the policy ends.
///
/// - `call` gets the number of the try, counted from 0, and limits its own time. It may be repeated with an unknown
///   outcome, so it must be idempotent.
/// - `judge` gets the number of the failed try and its error. A pause that it names is kept as it is.
/// - `jitter` returns a factor from 0 to 1 for each pause of the backoff.
///
/// # Errors
/// The last error.
pub async fn retry<T, E, F>(
    policy: RetryPolicy,
    jitter: impl Fn() -> f64,
    mut judge: impl FnMut(u32, &E) -> Retry,
    mut call: impl FnMut(u32) -> F,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut attempt = 0;
    loop {
        let error = match call(attempt).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if policy.tries <= attempt.saturating_add(1) {
            return Err(error);
        }
        let pause = match judge(attempt, &error) {
            Retry::Never => return Err(error),
            Retry::Backoff => policy.backoff.pause(attempt, jitter()),
            Retry::After(pause) => pause,
        };
        if policy.deadline.is_some_and(|deadline| deadline <= deadline_after(pause)) {
            return Err(error);
        }
        sleep(pause).await;
        attempt = attempt.saturating_add(1);
    }
}

/// Timeouts of a store call that is idempotent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StorePolicy {
    /// Timeout of one try.
    pub(crate) attempt: Duration,
    /// Timeout of all tries and the pauses between them.
    pub(crate) total: Duration,
}

/// Tries a store call until it succeeds, fails permanently, or the time is over.
pub(crate) async fn retry_store<T, F>(policy: StorePolicy, mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = deadline_after(policy.total);
    let retries = RetryPolicy { tries: u32::MAX, deadline: Some(deadline), backoff: STORE_BACKOFF };
    let mut last = None;
    let judge = |_, error: &Error| {
        // The error of a try that the deadline cut short says less than the one before it.
        if is_over(deadline) {
            return Retry::Never;
        }
        last = Some(error.clone());
        match error.retry() {
            Retry::After(pause) => Retry::After(pause.min(STORE_PAUSE_MAX)),
            other => other,
        }
    };
    // One timer for each try: its own end or that of the whole call, whichever is earlier.
    let attempt = |_| {
        let end = deadline.min(deadline_after(policy.attempt));
        let tried = timeout_at(end, call());
        async move { tried.await.unwrap_or_else(|_| Err(timed_out())) }
    };
    let result = retry(retries, || 1.0, judge, attempt).await;
    let was_cut_short = |error: &Error| error.retry() != Retry::Never && is_over(deadline);
    result.map_err(|error| last.filter(|_| was_cut_short(&error)).unwrap_or(error))
}

/// As [`retry_store`], also after failures that last until their cause ends, such as a full disk.
///
/// For work that must not be lost, and that no caller waits for.
pub(crate) async fn retry_store_persistently<T, F>(policy: StorePolicy, call: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let transient = |error: Error| Error::new(error.kind(), Retry::Backoff, error.message());
    let attempt = move || {
        let tried = call();
        async move { tried.await.map_err(|error| if is_store_failure(&error) { transient(error) } else { error }) }
    };
    retry_store(policy, attempt).await
}

/// Whether the store failed, and not the request.
pub(crate) fn is_store_failure(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unsupported)
}

/// Whether a try of a call may have an effect that is not known, now or later.
#[derive(Clone, Debug, Default)]
pub(crate) struct EffectFlag(Arc<AtomicBool>);

impl EffectFlag {
    /// Makes a try. It sets the flag unless it returns, with success or an error that had no effect.
    pub(crate) async fn watch<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        // A try that is cut short is dropped at the wait: the flag stays set.
        let before = self.0.swap(true, Ordering::Relaxed);
        let result = call.await;
        if result.as_ref().map_or_else(Error::has_no_effect, |_| true) {
            self.0.store(before, Ordering::Relaxed);
        }
        result
    }
}

/// Makes a call that charges, so that its outcome must be known: one try, then `retries` if that failed.
///
/// `retries` passes each try to [`EffectFlag::watch`]. The flag of the result is whether the outcome is certain. It is
/// not after a failed try that may still take effect in a slow store.
///
/// # Errors
/// The last one, if all tries certainly had no effect.
pub(crate) async fn retry_uncertain<T, F>(
    first_try: impl Future<Output = Result<T>>,
    retries: impl FnOnce(EffectFlag) -> F,
) -> Result<(Result<T>, bool)>
where
    F: Future<Output = Result<T>>,
{
    let effect = EffectFlag::default();
    let mut result = effect.watch(first_try).await;
    if result.as_ref().is_err_and(|error| error.retry() != Retry::Never) {
        result = retries(effect.clone()).await;
    }
    match (result, effect.0.load(Ordering::Relaxed)) {
        (Err(error), false) => Err(error),
        (result, is_uncertain) => Ok((result, !is_uncertain)),
    }
}

/// The error of a store call that did not end in time.
pub(crate) fn timed_out() -> Error {
    Error::unavailable("the store did not respond in time")
}

/// Makes one store call for at most `limit`, because a store may never respond.
///
/// # Errors
/// That of the call; [`ErrorKind::Unavailable`] at the limit.
pub async fn with_timeout<T>(limit: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(limit, call).await.unwrap_or_else(|_| Err(timed_out()))
}

/// Renews a hold or a lease at an interval, until `has_ended` returns `true` for the result of a renewal.
///
/// A failed renewal is repeated after a tenth of the interval: only two more intervals fit into the life of a lease.
pub(crate) async fn keep_renewed<T, F>(
    interval: Duration,
    store_timeout: Duration,
    renew: impl Fn() -> F,
    has_ended: impl Fn(&Result<T>) -> bool,
) where
    F: Future<Output = Result<T>>,
{
    let mut pause = interval;
    loop {
        sleep(pause).await;
        let renewed = with_timeout(store_timeout, renew()).await;
        if has_ended(&renewed) {
            return;
        }
        pause = if renewed.is_err() { interval / 10 } else { interval };
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        sync::atomic::AtomicU32,
    };

    use super::*;

    const POLICY: StorePolicy =
        StorePolicy { attempt: Duration::from_millis(2_500), total: Duration::from_secs(5) };

    /// The calls of a store that fails with `error`, and the milliseconds until the last error.
    async fn failing(error: Error) -> (u32, u128) {
        let (calls, started) = (AtomicU32::new(0), deadline_after(Duration::ZERO));
        let call = || {
            calls.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<(), _>(error.clone()))
        };
        retry_store(POLICY, call).await.unwrap_err();
        (calls.into_inner(), started.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn retry_pauses_double_until_total() {
        // 50 + 100 + 200 + 400 + 800 + 1,600 ms; the next pause of 2 s would end after 5 s.
        assert_eq!(failing(Error::unavailable("busy")).await, (7, 3_150));
        assert_eq!(failing(Error::invalid("wrong")).await, (1, 0));
        let later = Error::new(ErrorKind::Unavailable, Retry::After(Duration::from_secs(60)), "later");
        // A named pause of a store is cut to 2 s.
        assert_eq!(failing(later).await, (3, 4_000));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_silent_call_ends_at_total_with_last_error() {
        let (calls, started) = (Cell::new(0), deadline_after(Duration::ZERO));
        let silent = || {
            calls.set(calls.get() + 1);
            std::future::pending::<Result<()>>()
        };
        let error = retry_store(POLICY, silent).await.unwrap_err();
        assert_eq!((calls.get(), started.elapsed().as_secs()), (2, 5));
        assert_eq!(error.message(), "the store did not respond in time");
        // The second try never ends: the first one says why.
        let first = Cell::new(true);
        let call = || {
            let is_first = first.replace(false);
            async move {
                match is_first {
                    true => Err::<(), _>(Error::unavailable("the disk is full")),
                    false => std::future::pending().await,
                }
            }
        };
        let whole = StorePolicy { attempt: POLICY.total, ..POLICY };
        assert_eq!(retry_store(whole, call).await.unwrap_err().message(), "the disk is full");
    }

    #[tokio::test(start_paused = true)]
    async fn retry_permanent_store_failure_is_retried_only_persistently() {
        let full = || Error::new(ErrorKind::Unavailable, Retry::Never, "the disk is full");
        assert_eq!(failing(full()).await, (1, 0));
        let tries = Cell::new(0);
        let call = || {
            tries.set(tries.get() + 1);
            std::future::ready(if tries.get() < 4 { Err(full()) } else { Ok(()) })
        };
        retry_store_persistently(POLICY, call).await.unwrap();
        assert_eq!(tries.get(), 4);
        let invalid = || std::future::ready(Err::<(), _>(Error::invalid("wrong")));
        assert!(retry_store_persistently(POLICY, invalid).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn retry_jitter_shortens_backoff_and_not_named_pauses() {
        let later = Retry::After(Duration::from_secs(9));
        for (verdict, limit_s, expect_tries, expect_ms) in [
            (Retry::Backoff, None, 3, 25 + 50),
            (later, None, 3, 18_000),
            (later, Some(10), 2, 9_000),
            (Retry::Never, None, 1, 0),
        ] {
            let (started, tries) = (deadline_after(Duration::ZERO), Cell::new(0));
            let deadline = limit_s.map(|limit_s| started + Duration::from_secs(limit_s));
            let policy = RetryPolicy { tries: 3, deadline, backoff: STORE_BACKOFF };
            let call = |attempt| {
                tries.set(attempt + 1);
                std::future::ready(Err::<(), _>("busy"))
            };
            retry(policy, || 0.5, |_, _| verdict, call).await.unwrap_err();
            assert_eq!(
                (tries.get(), started.elapsed().as_millis()),
                (expect_tries, expect_ms),
                "{verdict:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_that_failed_is_repeated_soon_until_lease_ends() {
        let (times, started) = (RefCell::new(Vec::new()), deadline_after(Duration::ZERO));
        let renew = || {
            let mut times = times.borrow_mut();
            times.push(started.elapsed().as_secs());
            let call = times.len();
            async move {
                match call {
                    2 => Err(Error::unavailable("busy")),
                    3 => std::future::pending().await,
                    call => Ok(call < 6),
                }
            }
        };
        let has_ended = |renewed: &Result<bool>| matches!(renewed, Ok(false));
        keep_renewed(Duration::from_secs(20), Duration::from_secs(5), renew, has_ended).await;
        // The third call is silent for 5 s.
        assert_eq!(times.into_inner(), [20, 40, 42, 49, 69, 89]);
    }

    #[test]
    fn backoff_grows_to_longest_pause() {
        let pause = |attempt| STORE_BACKOFF.pause(attempt, 1.0).as_millis();
        assert_eq!([0, 1, 5, 6, 99, u32::MAX].map(pause), [50, 100, 1_600, 2_000, 2_000, 2_000]);
        assert_eq!(STORE_BACKOFF.pause(3, 0.0), Duration::ZERO);
    }
}
