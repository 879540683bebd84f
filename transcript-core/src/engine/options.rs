//! How patient the engine is.

use std::time::Duration;

use super::HealthPolicy;

/// The engine's settings; every duration is bounded by whoever reads them from outside.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long a caller waits for a new transcript before "still transcribing" (`limits.wait`).
    pub wait: Duration,
    /// How long a fetch may take in all; what takes longer has failed.
    pub work: Duration,
    /// How long a lease and a hold last unless they are renewed.
    pub lease: Duration,
    /// How often running work renews them.
    pub heartbeat: Duration,
    /// How often another worker's fetch is looked after.
    pub poll: Duration,
    /// How long one call of a store may take; what takes longer has failed.
    pub store: Duration,
    /// For how long an absence is remembered.
    pub absence: AbsencePolicy,
    /// When a supplier that keeps failing rests.
    pub health: HealthPolicy,
    /// Whether a fetch that nobody pays for goes on when nobody waits for it any more. One that is paid for
    /// always does.
    pub outlives: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(25),
            work: Duration::from_secs(30 * 60),
            lease: Duration::from_secs(60),
            heartbeat: Duration::from_secs(20),
            poll: Duration::from_millis(250),
            store: Duration::from_secs(5),
            absence: AbsencePolicy::default(),
            health: HealthPolicy::default(),
            outlives: true,
        }
    }
}

/// For how long it is remembered that a video has nothing (design: absence).
#[derive(Clone, Copy, Debug)]
pub struct AbsencePolicy {
    /// No captions, no speech, or not in the wished language (`absence.no_captions`).
    pub no_captions: Duration,
    /// Private, removed, barred from our region, or to be paid for (`absence.gone`).
    pub gone: Duration,
    /// What may change soon: age or login walls, members only, live now (`absence.login`).
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
