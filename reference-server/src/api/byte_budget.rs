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

/// Memory budget of large bodies, shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    units: Arc<Semaphore>,
    units_max: u32,
}

/// Part of a [`ByteBudget`]. Drop returns it.
#[derive(Debug)]
pub(crate) struct ReservedBytes {
    _units: OwnedSemaphorePermit,
}

impl ByteBudget {
    /// Creates a budget of this many bytes, rounded up to whole KiB.
    pub(crate) fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES as u64)).unwrap_or(u32::MAX).max(1);
        Self { units: Arc::new(Semaphore::new(units as usize)), units_max: units }
    }

    /// Reserves memory, and waits for it shortly. More than the whole budget counts as the whole budget.
    ///
    /// # Errors
    /// 503 if the memory does not become free in time.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<ReservedBytes, ProblemResponse> {
        let acquired = Arc::clone(&self.units).acquire_many_owned(self.units(bytes));
        match tokio::time::timeout(WAIT_MAX, acquired).await {
            Ok(Ok(units)) => Ok(ReservedBytes { _units: units }),
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

    /// Reserves memory that is in use already, without a wait.
    ///
    /// # Errors
    /// 503 if the memory is not free.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Result<ReservedBytes, ProblemResponse> {
        let units = Arc::clone(&self.units).try_acquire_many_owned(self.units(bytes));
        units.map(|units| ReservedBytes { _units: units }).map_err(|_| exhausted())
    }

    /// Reserves what is left for a response that must be sent, because it was paid.
    pub(crate) fn reserve_available(&self, bytes: usize) -> Option<ReservedBytes> {
        let available = self.units.available_permits().saturating_mul(UNIT_BYTES);
        self.try_reserve(bytes.min(available)).ok()
    }

    /// Returns the reserved bytes and the size of the budget.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let max = u64::from(self.units_max);
        let available = self.units.available_permits() as u64;
        (max.saturating_sub(available) * UNIT_BYTES as u64, max * UNIT_BYTES as u64)
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units_max)
    }
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
}
