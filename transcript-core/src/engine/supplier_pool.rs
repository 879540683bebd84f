//! The suppliers of each platform in order, with their circuit breakers and concurrency limits.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    EngineOptions, QueueOwner,
    circuit_breaker::{
        BreakerDecision, BreakerEvent, BreakerPermit, BreakerTransition, CircuitBreaker, HealthSignal,
        cooldown_error,
    },
    fair_queue::{FairQueue, QueueFull, QueuePermit},
    load::{LoadCounts, LoadGuard, SupplierLoad},
    observer::SupplierCall,
    supply::most_significant,
};
use crate::{
    archive::Absence,
    supplier::{Supplier, SupplierInfo, SupplierKind, SupplyError, SupplyOutput, SupplyReason},
    time::Timestamp,
    video::{Platform, VideoId},
};

/// When a refused caller retries before any call has ended.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(10);
/// Bounds of the time after which a refused caller retries.
const BUSY_RETRY_MIN: Duration = Duration::from_secs(1);
const BUSY_RETRY_MAX: Duration = Duration::from_secs(120);

/// Permit to call a supplier; drop releases it.
#[derive(Debug)]
pub(super) struct SupplierPermit {
    /// `None` for a supplier without a limit.
    _permit: Option<QueuePermit<QueueOwner>>,
    _active: LoadGuard,
}

/// The suppliers of each platform, in order.
#[derive(Default)]
pub(super) struct SupplierPool {
    platforms: HashMap<Platform, Vec<SupplierSlot>>,
}

/// A supplier of one platform.
#[derive(Debug)]
pub(super) struct SupplierSlot {
    pub(super) name: String,
    pub(super) kind: SupplierKind,
    pub(super) supplier: Arc<dyn Supplier>,
    platform: Platform,
    breaker: Mutex<CircuitBreaker>,
    /// The permits of the supplier, shared by its platforms; `None` without a limit.
    permits: Option<Arc<FairQueue<QueueOwner>>>,
    /// The load counters, shared by its platforms.
    counts: Arc<LoadCounts>,
}

impl SupplierPool {
    /// Adds each supplier to its platform, in this order.
    pub(super) fn new(
        list: Vec<(Platform, Arc<dyn Supplier>)>,
        concurrency: &HashMap<String, u32>,
        options: &EngineOptions,
    ) -> Self {
        let waiting_max = options.waiting_fetches as usize;
        let permits: HashMap<&String, Arc<FairQueue<QueueOwner>>> = concurrency
            .iter()
            .map(|(name, count)| (name, Arc::new(FairQueue::new(*count as usize, waiting_max))))
            .collect();
        let mut platforms: HashMap<Platform, Vec<SupplierSlot>> = HashMap::new();
        let mut counts: HashMap<String, Arc<LoadCounts>> = HashMap::new();
        for (platform, supplier) in list {
            let SupplierInfo { name, kind, .. } = supplier.info();
            let permits = permits.get(&name).map(Arc::clone);
            let breaker = Mutex::new(CircuitBreaker::new(options.breaker));
            let counts = Arc::clone(counts.entry(name.clone()).or_default());
            let slot = SupplierSlot { name, kind, supplier, platform, breaker, permits, counts };
            platforms.entry(platform).or_default().push(slot);
        }
        Self { platforms }
    }

    /// The suppliers of a platform, in order.
    pub(super) fn for_platform(&self, platform: Platform) -> &[SupplierSlot] {
        self.platforms.get(&platform).map_or(&[], Vec::as_slice)
    }

    /// When this owner may retry if the platform's first supplier with a closed breaker would refuse it now.
    ///
    /// Counts the refusal. `None` if it would not be refused.
    pub(super) fn refuses(&self, platform: Platform, owner: &QueueOwner, now: Timestamp) -> Option<Duration> {
        let slot = self.for_platform(platform).iter().find(|slot| slot.check(now).is_ok())?;
        let is_full = slot.permits.as_ref().is_some_and(|permits| permits.is_full_for(owner));
        is_full.then(|| {
            slot.counts.count_refused();
            slot.retry_after()
        })
    }

    /// The failure of a fetch while the breakers of all suppliers of a platform are open, with the shortest wait.
    ///
    /// `None` if one may be called, or there is none.
    pub(super) fn cooldown_of_all(&self, platform: Platform, now: Timestamp) -> Option<SupplyError> {
        let slots = self.for_platform(platform);
        let failures: Option<Vec<SupplyError>> = slots.iter().map(|slot| slot.check(now).err()).collect();
        let failures = failures?;
        let wait = failures.iter().filter_map(SupplyError::retry_after).min()?;
        Some(most_significant(failures).with_retry_after(wait))
    }

    /// The names of a platform's suppliers, in order.
    pub(super) fn names(&self, platform: Platform) -> Vec<String> {
        self.for_platform(platform).iter().map(|slot| slot.name.clone()).collect()
    }

    /// The load of each supplier, by name.
    pub(super) fn load(&self) -> Vec<SupplierLoad> {
        let each = self.platforms.values().flatten().map(|slot| (slot.name.as_str(), &slot.counts));
        let by_name: BTreeMap<&str, &Arc<LoadCounts>> = each.collect();
        by_name.into_iter().map(|(name, counts)| counts.snapshot(name)).collect()
    }

    /// Whether a supplier of the platform was configured after the absence was stored.
    pub(super) fn is_void(&self, absence: &Absence) -> bool {
        self.for_platform(absence.video.platform())
            .iter()
            .any(|slot| !absence.suppliers_tried.contains(&slot.name))
    }
}

impl fmt::Debug for SupplierPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |platform: &Platform| (*platform, self.names(*platform));
        f.debug_map().entries(self.platforms.keys().map(names)).finish()
    }
}

impl SupplierSlot {
    /// Checks that the supplier's breaker permits a call now, without starting one.
    ///
    /// # Errors
    /// The cooldown error while the breaker is open.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), SupplyError> {
        match self.breaker().remaining_cooldown(now) {
            Some((reason, left)) => Err(cooldown_error(&self.name, self.platform, reason, left)),
            None => Ok(()),
        }
    }

    /// Waits for a permit, in fair turns. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`QueueFull`] if too many wait, also later if another owner takes the place.
    pub(super) async fn acquire(&self, owner: &QueueOwner) -> Result<SupplierPermit, QueueFull> {
        let permit = match &self.permits {
            Some(permits) => {
                let _waiting = self.counts.track_queued();
                Some(permits.acquire(owner).await.inspect_err(|QueueFull| self.counts.count_refused())?)
            }
            None => None,
        };
        Ok(SupplierPermit { _permit: permit, _active: self.counts.track_active() })
    }

    /// When a refused caller retries: all that wait now have had their turn then, if calls take as long as before.
    pub(super) fn retry_after(&self) -> Duration {
        let rounds = self.permits.as_ref().map_or(1, |permits| permits.rounds());
        let estimate = self.counts.mean_call().map(|mean| mean.saturating_mul(rounds));
        estimate.map_or(BUSY_RETRY_AFTER, |time| time.clamp(BUSY_RETRY_MIN, BUSY_RETRY_MAX))
    }

    pub(super) fn record_call(&self, took: Duration) {
        self.counts.record_call(took);
    }

    /// The observer's record of a call, which succeeded or failed with `failure`.
    pub(super) fn call_record(&self, failure: Option<&SupplyError>, elapsed: Duration) -> SupplierCall {
        SupplierCall {
            supplier: self.name.clone(),
            platform: self.platform,
            failure: failure.map(|failure| failure.reason().clone()),
            attempted: failure.is_none_or(SupplyError::was_attempted),
            elapsed,
        }
    }

    /// Starts a call.
    ///
    /// # Errors
    /// As [`SupplierSlot::check`].
    pub(super) fn begin<'a>(
        &'a self,
        video: &'a VideoId,
        now: Timestamp,
    ) -> Result<CallGuard<'a>, SupplyError> {
        match self.breaker().admit(now) {
            BreakerDecision::Permitted(permit) => {
                Ok(CallGuard { slot: self, video, permit, is_ended: false })
            }
            BreakerDecision::Open(reason, left) => {
                Err(cooldown_error(&self.name, self.platform, reason, left))
            }
        }
    }

    /// The error when no permit was available in time.
    pub(super) fn busy_error(&self) -> SupplyError {
        let message = format!(
            "The source {} was busy with other videos for too long. Try again in a moment.",
            self.name
        );
        SupplyError::before_request(SupplyReason::Timeout, message)
    }

    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        // The state is consistent after every statement, and nothing is awaited under the lock.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A supplier call that is running.
#[derive(Debug)]
pub(super) struct CallGuard<'a> {
    slot: &'a SupplierSlot,
    video: &'a VideoId,
    permit: BreakerPermit,
    is_ended: bool,
}

impl CallGuard<'_> {
    /// Records the result of the call. Returns the breaker event, if the breaker changed.
    pub(super) fn end(
        mut self,
        answer: &Result<SupplyOutput, SupplyError>,
        now: Timestamp,
    ) -> Option<BreakerEvent> {
        self.is_ended = true;
        let change =
            self.slot.breaker().record(self.video, HealthSignal::from_result(answer), self.permit, now)?;
        let cooldown = match change {
            BreakerTransition::Opened(cooldown) => Some(cooldown),
            BreakerTransition::Closed => None,
        };
        Some(BreakerEvent { supplier: self.slot.name.clone(), platform: self.slot.platform, cooldown })
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        // The trial ended without a result: the next call may be a trial.
        if self.permit.is_trial && !self.is_ended {
            self.slot.breaker().abandon(self.permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{
        engine::BreakerPolicy,
        supplier::{SupplyMonitor, SupplyRequest},
    };

    #[derive(Debug)]
    struct SilentSupplier;

    #[async_trait]
    impl Supplier for SilentSupplier {
        fn info(&self) -> SupplierInfo {
            SupplierInfo::captions("mute", &Platform::ALL)
        }

        async fn supply(
            &self,
            _: SupplyRequest,
            _: Arc<dyn SupplyMonitor>,
        ) -> Result<SupplyOutput, SupplyError> {
            std::future::pending().await
        }
    }

    fn failed() -> Result<SupplyOutput, SupplyError> {
        Err(SupplyError::new(SupplyReason::Timeout, "It took too long."))
    }

    #[test]
    fn breaker_dropped_trial_admits_next_call() {
        let list =
            [Platform::Instagram, Platform::X].map(|platform| (platform, Arc::new(SilentSupplier) as _));
        let breaker = BreakerPolicy { failures: 1, ..BreakerPolicy::default() };
        let options = EngineOptions { breaker, ..EngineOptions::default() };
        let suppliers = SupplierPool::new(list.into(), &HashMap::new(), &options);
        let slot = &suppliers.for_platform(Platform::Instagram)[0];
        let video = VideoId::new(Platform::Instagram, "DdG4RIxIPyf").unwrap();
        let now = Timestamp::from_millis(0);
        let event = slot.begin(&video, now).unwrap().end(&failed(), now).unwrap();
        assert_eq!((event.supplier.as_str(), event.platform), ("mute", Platform::Instagram));
        assert!(slot.check(now).is_err() && slot.begin(&video, now).is_err());
        let later = now.plus(Duration::from_secs(30));
        let trial = slot.begin(&video, later).unwrap();
        assert!(slot.check(later).is_err() && slot.begin(&video, later).is_err(), "one at a time");
        drop(trial);
        assert!(slot.check(later).is_ok() && slot.begin(&video, later).is_ok());
        // The breaker of the other platform stays closed.
        assert!(suppliers.for_platform(Platform::X)[0].check(now).is_ok());
    }

    #[test]
    fn platform_is_paused_while_all_its_breakers_are_open() {
        let list = [Platform::X, Platform::X].map(|platform| (platform, Arc::new(SilentSupplier) as _));
        let breaker = BreakerPolicy { failures: 1, ..BreakerPolicy::default() };
        let options = EngineOptions { breaker, ..EngineOptions::default() };
        let suppliers = SupplierPool::new(list.into(), &HashMap::new(), &options);
        let video = VideoId::new(Platform::X, "20").unwrap();
        let (now, later) = (Timestamp::from_millis(0), Timestamp::from_millis(10_000));
        let cooldown = |platform, now| suppliers.cooldown_of_all(platform, now);
        assert_eq!(cooldown(Platform::X, now), None);
        for (slot, at) in suppliers.for_platform(Platform::X).iter().zip([now, later]) {
            assert_eq!(cooldown(Platform::X, later), None, "one may be called");
            slot.begin(&video, at).unwrap().end(&failed(), at).unwrap();
        }
        let paused = cooldown(Platform::X, later).unwrap();
        assert_eq!((paused.retry_after(), paused.was_attempted()), (Some(Duration::from_secs(20)), false));
        assert_eq!(
            cooldown(Platform::X, now.plus(Duration::from_secs(30))),
            None,
            "the first cooldown has ended"
        );
        assert_eq!(cooldown(Platform::Instagram, later), None, "it has no suppliers");
    }
}
