//! Timeouts and retry limits of the engine.

use std::time::Duration;

use super::BreakerPolicy;
use crate::retry::StorePolicy;

/// The engine's settings. Callers validate durations that come from outside.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long a caller waits for a new transcript before "still transcribing" (`limits.wait`).
    pub wait_timeout: Duration,
    /// Timeout of a whole fetch.
    pub work_timeout: Duration,
    /// How long a lease and a hold last without renewal.
    pub lease: Duration,
    /// How often running work renews them.
    pub heartbeat: Duration,
    /// How often the lease of another worker is polled.
    pub lease_poll: Duration,
    /// Timeout of one store call.
    pub store_timeout: Duration,
    /// How long absences are valid.
    pub absence: AbsencePolicy,
    /// When the circuit breaker of a failing supplier opens.
    pub breaker: BreakerPolicy,
    /// How many fetches may wait for each supplier (`limits.fetches`); a further one is [`super::FetchOutcome::Busy`].
    pub waiting_fetches: u32,
    /// Whether an unpaid fetch goes on after its last waiter has disconnected. A paid fetch always does.
    pub detach_unpaid: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            wait_timeout: Duration::from_secs(25),
            work_timeout: Duration::from_secs(30 * 60),
            lease: Duration::from_secs(60),
            heartbeat: Duration::from_secs(20),
            lease_poll: Duration::from_millis(250),
            store_timeout: Duration::from_secs(5),
            absence: AbsencePolicy::default(),
            breaker: BreakerPolicy::default(),
            waiting_fetches: 1_000,
            detach_unpaid: true,
        }
    }
}

impl EngineOptions {
    /// For store calls that a caller waits for: the caller must get the store's failure before its own timeout.
    pub(crate) fn request_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout / 2, total: self.store_timeout }
    }

    /// For data that must not be lost: as long as a lease lasts.
    pub(crate) fn lease_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout, total: self.lease }
    }
}

/// How long absences are valid (decision 0004).
#[derive(Clone, Copy, Debug)]
pub struct AbsencePolicy {
    /// No captions, no speech, or not in the requested language (`absence.no_captions`).
    pub no_captions: Duration,
    /// Private, removed, blocked in this region, or behind a payment (`absence.gone`).
    pub gone: Duration,
    /// Conditions that may change soon: age or login walls, members only, live now (`absence.login`).
    pub login: Duration,
}

impl Default for AbsencePolicy {
    fn default() -> Self {
        Self {
            no_captions: Duration::from_secs(6 * 3600),
            gone: Duration::from_secs(24 * 3600),
            login: Duration::from_secs(15 * 60),
        }
    }
}
