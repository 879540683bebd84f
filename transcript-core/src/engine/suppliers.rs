//! The suppliers of each platform, in the order in which they are asked; how well each is, and how many videos it
//! works on at once.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    health::{Admission, Breaker, Change, HealthPolicy, Let, SupplierHealth, Verdict, resting},
    load::{Counted, Counts, SupplierLoad},
    observer::Asked,
};
use crate::{
    archive::Absence,
    supplier::{Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason},
    time::Timestamp,
    video::{Platform, VideoId},
};

/// A place at a supplier. It is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// None at one that has no bound.
    _permit: Option<OwnedSemaphorePermit>,
    _at_work: Counted,
}

/// The suppliers of each platform, in order.
#[derive(Default)]
pub(super) struct Suppliers {
    platforms: HashMap<Platform, Vec<Seat>>,
}

/// A supplier of one platform.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) kind: SupplierKind,
    pub(super) supplier: Arc<dyn Supplier>,
    platform: Platform,
    breaker: Mutex<Breaker>,
    /// The places of the supplier, shared by its platforms; none where nobody bounded them.
    places: Option<Arc<Semaphore>>,
    /// Shared likewise.
    counts: Arc<Counts>,
}

impl Suppliers {
    /// Gives each supplier its seat behind those that its platform has, in this order.
    pub(super) fn new(
        list: Vec<(Platform, Arc<dyn Supplier>)>,
        at_once: &HashMap<String, u32>,
        health: HealthPolicy,
    ) -> Self {
        let places: HashMap<&String, Arc<Semaphore>> =
            at_once.iter().map(|(name, count)| (name, Arc::new(Semaphore::new(*count as usize)))).collect();
        let mut platforms: HashMap<Platform, Vec<Seat>> = HashMap::new();
        let mut counts: HashMap<String, Arc<Counts>> = HashMap::new();
        for (platform, supplier) in list {
            let SupplierCard { name, kind, .. } = supplier.card();
            let places = places.get(&name).map(Arc::clone);
            let breaker = Mutex::new(Breaker::new(health));
            let counts = Arc::clone(counts.entry(name.clone()).or_default());
            let seat = Seat { name, kind, supplier, platform, breaker, places, counts };
            platforms.entry(platform).or_default().push(seat);
        }
        Self { platforms }
    }

    /// The suppliers of a platform, in order.
    pub(super) fn of(&self, platform: Platform) -> &[Seat] {
        self.platforms.get(&platform).map_or(&[], Vec::as_slice)
    }

    /// The names of a platform's suppliers, in order.
    pub(super) fn names(&self, platform: Platform) -> Vec<String> {
        self.of(platform).iter().map(|seat| seat.name.clone()).collect()
    }

    /// How much there is to do for each supplier, by name.
    pub(super) fn load(&self) -> Vec<SupplierLoad> {
        let each = self.platforms.values().flatten().map(|seat| (seat.name.as_str(), &seat.counts));
        let by_name: BTreeMap<&str, &Arc<Counts>> = each.collect();
        by_name.into_iter().map(|(name, counts)| counts.of(name)).collect()
    }

    /// Whether a supplier of the platform was not configured yet when an absence was learnt.
    pub(super) fn void(&self, absence: &Absence) -> bool {
        self.of(absence.video.platform()).iter().any(|seat| !absence.asked.contains(&seat.name))
    }
}

impl fmt::Debug for Suppliers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |platform: &Platform| (*platform, self.names(*platform));
        f.debug_map().entries(self.platforms.keys().map(names)).finish()
    }
}

impl Seat {
    /// Whether the supplier may be asked now, as far as can be told without asking.
    ///
    /// # Errors
    /// Why not, while it rests.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), SupplyError> {
        match self.breaker().rests(now) {
            Some((reason, left)) => Err(resting(&self.name, self.platform, reason, left)),
            None => Ok(()),
        }
    }

    /// A place at the supplier, once those who came before have theirs. Whoever no longer waits leaves the line.
    pub(super) async fn place(&self) -> Place {
        let permit = match &self.places {
            Some(places) => {
                let _waiting = self.counts.wait();
                // The semaphore is never closed.
                Arc::clone(places).acquire_owned().await.ok()
            }
            None => None,
        };
        Place { _permit: permit, _at_work: self.counts.work() }
    }

    /// What everybody should hear of a turn to it.
    pub(super) fn asked(&self, answer: &Result<Supplied, SupplyError>, took: Duration) -> Asked {
        Asked {
            supplier: self.name.clone(),
            platform: self.platform,
            failure: answer.as_ref().err().map(|failure| failure.reason().clone()),
            was_asked: answer.as_ref().err().is_none_or(SupplyError::was_asked),
            took,
        }
    }

    /// Begins to ask.
    ///
    /// # Errors
    /// As [`Seat::check`].
    pub(super) fn begin<'a>(&'a self, video: &'a VideoId, now: Timestamp) -> Result<Asking<'a>, SupplyError> {
        match self.breaker().admit(now) {
            Admission::Open(given) => Ok(Asking { seat: self, video, given, is_over: false }),
            Admission::Resting(reason, left) => Err(resting(&self.name, self.platform, reason, left)),
        }
    }

    /// The failure of whoever waited for a place for as long as it was of use.
    pub(super) fn busy(&self) -> SupplyError {
        let message = format!(
            "The source {} was busy with other videos for too long: please ask again in a moment.",
            self.name
        );
        SupplyError::unasked(SupplyReason::Timeout, message)
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        // The state is whole at every moment, and nothing is awaited while it is locked.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A supplier is being asked about a video.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    seat: &'a Seat,
    video: &'a VideoId,
    given: Let,
    is_over: bool,
}

impl Asking<'_> {
    /// Learns from what the supplier answered. Returns what everybody should hear of its health.
    pub(super) fn end(
        mut self,
        answer: &Result<Supplied, SupplyError>,
        now: Timestamp,
    ) -> Option<SupplierHealth> {
        self.is_over = true;
        let change = self.seat.breaker().learn(self.video, Verdict::of(answer), self.given, now)?;
        let rest = match change {
            Change::Rests(rest) => Some(rest),
            Change::Recovers => None,
        };
        Some(SupplierHealth { supplier: self.seat.name.clone(), platform: self.seat.platform, rest })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // Nobody waited for the end of the trial: the next one may try.
        if self.given.is_trial && !self.is_over {
            self.seat.breaker().abandon(self.given);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::supplier::{Ask, Watcher};

    #[derive(Debug)]
    struct Mute;

    #[async_trait]
    impl Supplier for Mute {
        fn card(&self) -> SupplierCard {
            let platforms = Platform::ALL.to_vec();
            SupplierCard { name: "mute".to_owned(), platforms, kind: SupplierKind::Captions }
        }

        async fn supply(&self, _: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
            std::future::pending().await
        }
    }

    fn failed() -> Result<Supplied, SupplyError> {
        Err(SupplyError::new(SupplyReason::Timeout, "It took too long."))
    }

    #[test]
    fn a_trial_that_nobody_waits_for_any_more_keeps_nobody_out() {
        let list = [Platform::Reels, Platform::Microblog].map(|platform| (platform, Arc::new(Mute) as _));
        let health = HealthPolicy { failures: 1, ..HealthPolicy::default() };
        let suppliers = Suppliers::new(list.into(), &HashMap::new(), health);
        let seat = &suppliers.of(Platform::Reels)[0];
        let video = VideoId::new(Platform::Reels, "DdG4RIxIPyf").unwrap();
        let now = Timestamp::from_millis(0);
        let told = seat.begin(&video, now).unwrap().end(&failed(), now).unwrap();
        assert_eq!((told.supplier.as_str(), told.platform), ("mute", Platform::Reels));
        assert!(seat.check(now).is_err() && seat.begin(&video, now).is_err());
        let later = now.plus(Duration::from_secs(30));
        let trial = seat.begin(&video, later).unwrap();
        assert!(seat.check(later).is_err() && seat.begin(&video, later).is_err(), "one at a time");
        drop(trial);
        assert!(seat.check(later).is_ok() && seat.begin(&video, later).is_ok());
        // The other platform is asked as ever.
        assert!(suppliers.of(Platform::Microblog)[0].check(now).is_ok());
    }
}
