//! Memory budget of large bodies.
//!
//! Small bodies are bounded by the number of connections and never touch the budget. A reservation is part of the bytes
//! that it counts, so it ends when the last of them is sent or dropped, wherever they wait.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ProblemResponse;

/// Longest wait for a part of the budget.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Unit of the budget, in bytes: a semaphore counts to 32 bits.
const UNIT_BYTES: usize = 1024;
/// Largest response that is sent without a reservation, in bytes.
pub(crate) const UNRESERVED_RESPONSE_BYTES: usize = 64 * 1024;

/// Sentence of a 503.
pub(crate) const BUSY: &str =
    "The server is sending or receiving too many large bodies. Retry in a few seconds.";

/// Memory budget of large bodies. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    open: BudgetPart,
    /// Used when the open part is exhausted.
    kept: Option<BudgetPart>,
}

/// Part of a budget: a reservation is in one part.
#[derive(Clone, Debug)]
struct BudgetPart {
    units: Arc<Semaphore>,
    units_max: u32,
}

/// Part of a [`ByteBudget`]. Drop returns it.
#[derive(Debug)]
pub(crate) struct ReservedBytes {
    units: OwnedSemaphorePermit,
    /// Units of the whole part.
    units_max: u32,
}

impl BudgetPart {
    fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES as u64)).unwrap_or(u32::MAX).max(1);
        Self { units: Arc::new(Semaphore::new(units as usize)), units_max: units }
    }

    fn units(&self, bytes: usize) -> u32 {
        units(bytes, self.units_max)
    }

    fn with(&self, units: OwnedSemaphorePermit) -> ReservedBytes {
        ReservedBytes { units, units_max: self.units_max }
    }

    fn try_reserve(&self, bytes: usize) -> Option<ReservedBytes> {
        let units = Arc::clone(&self.units).try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(self.with(units))
    }

    fn available_bytes(&self) -> usize {
        self.units.available_permits().saturating_mul(UNIT_BYTES)
    }
}

impl ByteBudget {
    /// Creates a budget of this many bytes, rounded up to whole KiB.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { open: BudgetPart::new(bytes), kept: None }
    }

    /// Returns this budget with a further part of this many bytes, which only the returned value uses.
    pub(crate) fn with_kept(&self, bytes: u64) -> Self {
        Self { open: self.open.clone(), kept: Some(BudgetPart::new(bytes)) }
    }

    /// Reserves memory, and waits for it shortly. More than a whole part counts as the whole part.
    ///
    /// # Errors
    /// 503 if the memory does not become free in time.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<ReservedBytes, ProblemResponse> {
        if let Ok(reserved) = self.try_reserve(bytes) {
            return Ok(reserved);
        }
        // The open part may be in use for minutes.
        let part = self.kept.as_ref().unwrap_or(&self.open);
        let acquired = Arc::clone(&part.units).acquire_many_owned(part.units(bytes));
        match tokio::time::timeout(WAIT_MAX, acquired).await {
            Ok(Ok(units)) => Ok(part.with(units)),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(exhausted()),
        }
    }

    /// Reserves memory for a response of this length; `None` for a small response.
    ///
    /// # Errors
    /// As for [`ByteBudget::reserve`].
    pub(crate) async fn reserve_response(
        &self,
        bytes: usize,
    ) -> Result<Option<ReservedBytes>, ProblemResponse> {
        match bytes > UNRESERVED_RESPONSE_BYTES {
            true => self.reserve(bytes).await.map(Some),
            false => Ok(None),
        }
    }

    /// Adjusts the reservation of a response to its length, which was not known before; `None` for a small response.
    ///
    /// The response is to be sent even if the reservation cannot grow to its length.
    pub(crate) fn adjust(&self, reserved: Option<ReservedBytes>, bytes: usize) -> Option<ReservedBytes> {
        match reserved {
            _ if bytes <= UNRESERVED_RESPONSE_BYTES => None,
            Some(reserved) => Some(reserved.resized(bytes)),
            None => self.try_reserve(bytes).ok(),
        }
    }

    /// Adjusts a reservation as [`ByteBudget::adjust`] does.
    ///
    /// # Errors
    /// 503 if the response is longer than its reservation, and the memory is not free.
    pub(crate) fn try_adjust(
        &self,
        reserved: Option<ReservedBytes>,
        bytes: usize,
    ) -> Result<Option<ReservedBytes>, ProblemResponse> {
        let adjusted = self.adjust(reserved, bytes);
        let is_enough =
            bytes <= UNRESERVED_RESPONSE_BYTES || adjusted.as_ref().is_some_and(|all| all.covers(bytes));
        if is_enough { Ok(adjusted) } else { Err(exhausted()) }
    }

    /// Reserves memory that is in use already, without a wait.
    ///
    /// # Errors
    /// 503 if the memory is not free.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Result<ReservedBytes, ProblemResponse> {
        self.parts().find_map(|part| part.try_reserve(bytes)).ok_or_else(exhausted)
    }

    /// Reserves what is left for a response that must be sent, because it was paid.
    pub(crate) fn reserve_available(&self, bytes: usize) -> Option<ReservedBytes> {
        let part = self.kept.as_ref().unwrap_or(&self.open);
        let reserved = self.try_reserve(bytes).ok();
        reserved.or_else(|| part.try_reserve(bytes.min(part.available_bytes())))
    }

    /// Builds a response that takes about this many bytes: a small one on this thread, a large one on a blocking thread
    /// and within the budget.
    ///
    /// # Errors
    /// 503 if the memory does not become free in time, 500 if the work panics.
    pub(crate) async fn build<T: Send + 'static>(
        &self,
        bytes: usize,
        build: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Option<ReservedBytes>), ProblemResponse> {
        match bytes > UNRESERVED_RESPONSE_BYTES {
            true => self.build_elsewhere(bytes, build).await,
            false => Ok((build(), None)),
        }
    }

    /// As [`ByteBudget::build`], but always on a blocking thread.
    ///
    /// # Errors
    /// As for [`ByteBudget::build`].
    pub(crate) async fn build_elsewhere<T: Send + 'static>(
        &self,
        bytes: usize,
        build: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Option<ReservedBytes>), ProblemResponse> {
        let reserved = self.reserve_response(bytes).await?;
        // The work goes on if the caller disconnects, so it has the memory. The panic hook logs a panic.
        let work = move || (build(), reserved);
        tokio::task::spawn_blocking(work).await.map_err(|_| ProblemResponse::fault())
    }

    /// The bytes of a built response with its reservation, which is adjusted to their length.
    pub(crate) fn sent_bytes(&self, mut bytes: Vec<u8>, reserved: Option<ReservedBytes>) -> Bytes {
        bytes.shrink_to_fit();
        let reserved = self.adjust(reserved, bytes.len());
        BudgetedBytes::new(bytes, reserved).into_bytes()
    }

    /// Whether a response of this length could be reserved now.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = |part: &BudgetPart| part.units.available_permits() >= part.units(bytes) as usize;
        bytes <= UNRESERVED_RESPONSE_BYTES || self.parts().any(fits)
    }

    /// Returns the reserved bytes and the size of the budget.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let max: u64 = self.parts().map(|part| u64::from(part.units_max)).sum();
        let available: u64 = self.parts().map(|part| part.units.available_permits() as u64).sum();
        (max.saturating_sub(available) * UNIT_BYTES as u64, max * UNIT_BYTES as u64)
    }

    fn parts(&self) -> impl Iterator<Item = &BudgetPart> {
        std::iter::once(&self.open).chain(&self.kept)
    }
}

impl ReservedBytes {
    /// The reservation with another size, or as it is if it grows and the memory is not free.
    fn resized(mut self, bytes: usize) -> Self {
        let held = u32::try_from(self.units.num_permits()).unwrap_or(u32::MAX);
        let units = units(bytes, self.units_max);
        match units.checked_sub(held) {
            Some(missing) => {
                if let Ok(more) = Arc::clone(self.units.semaphore()).try_acquire_many_owned(missing) {
                    self.units.merge(more);
                }
            }
            None => drop(self.units.split(held.abs_diff(units) as usize)),
        }
        self
    }

    /// Whether it has all memory of this many bytes.
    fn covers(&self, bytes: usize) -> bool {
        self.units.num_permits() >= units(bytes, self.units_max) as usize
    }
}

/// Units of this many bytes. More than a whole part, of `units_max` units, counts as the whole part.
fn units(bytes: usize, units_max: u32) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(units_max)
}

fn exhausted() -> ProblemResponse {
    ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, BUSY)
}

/// Bytes with the reservation that counts them.
pub(crate) struct BudgetedBytes<T> {
    bytes: T,
    reserved: Option<ReservedBytes>,
}

impl<T> BudgetedBytes<T> {
    /// Joins bytes and their reservation; `None` for a small body.
    pub(crate) fn new(bytes: T, reserved: Option<ReservedBytes>) -> Self {
        Self { bytes, reserved }
    }

    /// Returns the bytes and their reservation, which the caller drops after the bytes.
    pub(crate) fn into_parts(self) -> (T, Option<ReservedBytes>) {
        (self.bytes, self.reserved)
    }
}

impl<T: AsRef<[u8]> + Send + 'static> BudgetedBytes<T> {
    /// Returns the bytes, whose last clone drops the reservation.
    pub(crate) fn into_bytes(self) -> Bytes
    where
        Bytes: From<T>,
    {
        match self.reserved {
            Some(_) => Bytes::from_owner(self),
            None => Bytes::from(self.bytes),
        }
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for BudgetedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<T: AsRef<[u8]>> Deref for BudgetedBytes<T> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<T: AsRef<[u8]>> fmt::Debug for BudgetedBytes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetedBytes").field("length", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn budget_exhausted_returns_503_until_bytes_are_dropped() {
        let budget = ByteBudget::new(300 * 1024);
        let one = budget.reserve_response(200 * 1024).await.unwrap();
        assert!(one.is_some());
        assert!(budget.reserve_response(UNRESERVED_RESPONSE_BYTES).await.unwrap().is_none());
        let refused = budget.reserve(200 * 1024).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(budget.try_reserve(101 * 1024).is_err());
        assert!(budget.reserve_available(200 * 1024).is_some());
        let sent = BudgetedBytes::new(Vec::from(*b"sent"), one).into_bytes();
        let in_queue = sent.clone();
        drop(sent);
        assert!(budget.try_reserve(200 * 1024).is_err());
        drop(in_queue);
        // More than the budget is the whole budget.
        let all = budget.try_reserve(1 << 40).unwrap();
        assert!(budget.try_reserve(1).is_err());
        drop(all);
    }

    #[tokio::test(start_paused = true)]
    async fn response_is_built_after_its_memory_is_reserved() {
        let budget = ByteBudget::new(300 * 1024);
        let large = UNRESERVED_RESPONSE_BYTES + 1;
        let all = budget.try_reserve(1 << 40).unwrap();
        let refused = budget.build(large, || panic!("it is built without memory")).await;
        assert_eq!(refused.map(|((), _)| ()).unwrap_err().status(), StatusCode::SERVICE_UNAVAILABLE);
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        let (small, reserved) = budget.build(UNRESERVED_RESPONSE_BYTES, thread).await.unwrap();
        assert!(small == here && reserved.is_none());
        drop(all);
        let (other, reserved) = budget.build(200 * 1024, thread).await.unwrap();
        assert!(other != here);
        assert_eq!(budget.usage().0, 200 * 1024);
        let bytes = budget.sent_bytes(vec![0; large], reserved);
        assert_eq!(budget.usage().0, 65 * 1024);
        drop(bytes);
        assert_eq!(budget.usage().0, 0);
        let failed = budget.build(large, || panic!("a defect")).await;
        assert_eq!(failed.map(|((), _)| ()).unwrap_err().status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(budget.usage().0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn budget_kept_part_is_used_by_its_owner_only() {
        let open = ByteBudget::new(300 * 1024);
        let owner = open.with_kept(100 * 1024);
        let most = open.reserve(1 << 40).await.unwrap();
        assert!(open.reserve(1).await.is_err() && !open.has_room(UNRESERVED_RESPONSE_BYTES + 1));
        assert!(open.has_room(UNRESERVED_RESPONSE_BYTES) && owner.has_room(UNRESERVED_RESPONSE_BYTES + 1));
        let kept = owner.reserve(90 * 1024).await.unwrap();
        assert_eq!(owner.usage(), (390 * 1024, 400 * 1024));
        assert!(owner.try_reserve(11 * 1024).is_err());
        let left = owner.reserve_available(90 * 1024).unwrap();
        assert_eq!(owner.usage().0, 400 * 1024);
        drop((most, kept, left));
        // The open part comes first.
        let first = owner.try_reserve(1024).unwrap();
        assert_eq!(open.usage().0, 1024);
        drop(first);
    }

    #[tokio::test(start_paused = true)]
    async fn reservation_is_adjusted_to_length_of_response() {
        let budget = ByteBudget::new(300 * 1024);
        let adjust = |reserved, kib: usize| budget.adjust(reserved, kib * 1024);
        let all = budget.reserve_response(1 << 40).await.unwrap();
        // A response above the whole budget.
        let all = adjust(all, 900);
        assert_eq!(budget.usage().0, 300 * 1024);
        let less = adjust(all, 200);
        assert_eq!(budget.usage().0, 200 * 1024);
        let more = adjust(less, 250);
        assert_eq!(budget.usage().0, 250 * 1024);
        // What is not free is missing.
        assert!(adjust(None, 65).is_none());
        assert!(adjust(more, 64).is_none());
        let single = adjust(None, 65);
        assert_eq!(budget.usage().0, 65 * 1024);
        let other = budget.try_reserve(200 * 1024).unwrap();
        let single = adjust(single, 101);
        assert_eq!(budget.usage().0, 265 * 1024);
        let single = budget.try_adjust(single, 100 * 1024).unwrap();
        assert_eq!(budget.usage().0, 300 * 1024);
        let refused = budget.try_adjust(single, 101 * 1024).unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(budget.try_adjust(None, 64 * 1024).unwrap().is_none());
        drop(other);
        assert_eq!(budget.usage().0, 0);
    }
}
