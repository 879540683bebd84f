//! Timeouts and retry limits of the engine.

use std::time::Duration;

use super::BreakerPolicy;
use crate::retry::StorePolicy;

/// The engine's settings. Callers validate durations that come from outside.
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct EngineOptions {
    /// How long a caller waits for a new transcript before "still transcribing" (`limits.wait`).
    #[default(Duration::from_secs(25))]
    pub wait_timeout: Duration,
    /// Timeout of a whole fetch.
    #[default(Duration::from_secs(30 * 60))]
    pub work_timeout: Duration,
    /// How long the lease of a fetch lasts without renewal: so long a fetch that died with its process blocks its
    /// video. At most [`LEASE_MAX`](crate::time::LEASE_MAX), as `hold`.
    #[default(Duration::from_secs(15))]
    pub lease: Duration,
    /// How often a running fetch renews its lease.
    #[default(Duration::from_secs(5))]
    pub lease_heartbeat: Duration,
    /// How long holds and idempotency leases last without renewal.
    #[default(Duration::from_secs(60))]
    pub hold: Duration,
    /// How often running work renews them.
    #[default(Duration::from_secs(20))]
    pub hold_heartbeat: Duration,
    /// How often the lease of another worker is polled.
    #[default(Duration::from_millis(250))]
    pub lease_poll: Duration,
    /// Timeout of one store call.
    #[default(Duration::from_secs(5))]
    pub store_timeout: Duration,
    /// How long absences are valid.
    pub absence: AbsencePolicy,
    /// When the circuit breaker of a failing supplier opens.
    pub breaker: BreakerPolicy,
    /// How many fetches may wait for each supplier (`limits.fetches`); a further one is [`super::FetchOutcome::Busy`].
    #[default(1_000)]
    pub waiting_fetches: u32,
    /// Whether an unpaid fetch goes on after its last waiter has disconnected. A paid fetch always does.
    #[default(true)]
    pub detach_unpaid: bool,
}

impl EngineOptions {
    /// For store calls that a caller waits for: the caller must get the store's failure before its own timeout.
    pub(crate) fn request_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout / 2, total: self.store_timeout }
    }

    /// For data that must not be lost: as long as a hold lasts.
    pub(crate) fn hold_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout, total: self.hold }
    }
}

/// How long absences are valid (decision 0004).
#[derive(Clone, Copy, Debug, smart_default::SmartDefault)]
pub struct AbsencePolicy {
    /// No captions, no speech, or not in the requested language (`absence.no_captions`).
    #[default(Duration::from_secs(6 * 3600))]
    pub no_captions: Duration,
    /// Private, removed, blocked in this region, or behind a payment (`absence.gone`).
    #[default(Duration::from_secs(24 * 3600))]
    pub gone: Duration,
    /// Conditions that may change soon: age or login walls, members only, live now (`absence.login`).
    #[default(Duration::from_secs(15 * 60))]
    pub login: Duration,
}
