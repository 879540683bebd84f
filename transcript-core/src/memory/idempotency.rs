//! The in-memory idempotency store.

use std::collections::HashMap;

use async_trait::async_trait;

use super::SharedState;
use crate::{
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredResponse},
    error::{Error, Result},
    ids::Holder,
    time::Timestamp,
};

/// The most keys without a lease.
const KEYS_MAX: usize = 10_000;

/// An in-memory [`IdempotencyStore`]. A clone is the same store.
///
/// Of more than 10,000 keys it drops the one that would be deleted next and has no lease.
#[derive(Clone, Debug, Default)]
pub struct MemoryIdempotencyStore {
    attempts: SharedState<HashMap<String, IdempotencyRecord>>,
}

/// The last attempt under a key, and its response.
#[derive(Debug)]
struct IdempotencyRecord {
    attempt: IdempotencyAttempt,
    response: Option<StoredResponse>,
}

impl IdempotencyRecord {
    fn is_leased(&self, now: Timestamp) -> bool {
        self.response.is_none() && self.attempt.lease_until > now
    }
}

#[async_trait]
impl IdempotencyStore for MemoryIdempotencyStore {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        let mut attempts = self.attempts.lock();
        attempts.retain(|_, record| record.attempt.keep_until > attempt.now);
        if let Some(record) = attempts.get_mut(&attempt.key) {
            if record.attempt.fingerprint != attempt.fingerprint {
                return Ok(IdempotencyState::Mismatch);
            }
            if let Some(response) = &record.response {
                return Ok(IdempotencyState::Completed(response.clone()));
            }
            if record.attempt.holder != attempt.holder && record.is_leased(attempt.now) {
                record.attempt.lease_until = attempt.end_of_other(record.attempt.lease_until);
                return Ok(IdempotencyState::InProgress);
            }
        } else if attempts.len() >= KEYS_MAX {
            let unleased = attempts.values().filter(|record| !record.is_leased(attempt.now));
            let oldest = unleased.min_by_key(|record| record.attempt.keep_until);
            if let Some(key) = oldest.map(|record| record.attempt.key.clone()) {
                attempts.remove(&key);
            }
        }
        attempts.insert(attempt.key.clone(), IdempotencyRecord { attempt, response: None });
        Ok(IdempotencyState::New)
    }

    async fn complete(&self, key: &str, holder: &Holder, response: StoredResponse) -> Result<()> {
        let mut attempts = self.attempts.lock();
        match attempts.get_mut(key).filter(|record| record.attempt.holder == *holder) {
            Some(record) => {
                record.response.get_or_insert(response);
                Ok(())
            }
            None => Err(Error::conflict(
                "the lease of this request was lost: another caller holds it, or it expired",
            )),
        }
    }

    async fn release(&self, key: &str, holder: &Holder) -> Result<()> {
        let mut attempts = self.attempts.lock();
        if attempts
            .get(key)
            .is_some_and(|record| record.attempt.holder == *holder && record.response.is_none())
        {
            attempts.remove(key);
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::idempotency_conformance!(Arc::new(super::MemoryIdempotencyStore::default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: usize) -> IdempotencyAttempt {
        let now = Timestamp::from_millis(number as i64);
        IdempotencyAttempt {
            key: format!("k{number}"),
            fingerprint: Vec::new(),
            holder: Holder::new("h"),
            now,
            lease_until: Timestamp::from_millis(1_000_000),
            keep_until: Timestamp::from_millis(number as i64 + 2_000_000),
        }
    }

    #[tokio::test]
    async fn idempotency_store_full_drops_oldest_key_without_lease() {
        let store = MemoryIdempotencyStore::default();
        let has = |number: usize| store.attempts.lock().contains_key(&format!("k{number}"));
        let holder = Holder::new("h");
        for number in 0..KEYS_MAX + 2 {
            store.begin(attempt(number)).await.unwrap();
            // The first one is still in progress.
            if number > 0 {
                store
                    .complete(&format!("k{number}"), &holder, StoredResponse::json(200, Vec::new()))
                    .await
                    .unwrap();
            }
        }
        assert_eq!(store.attempts.lock().len(), KEYS_MAX);
        assert_eq!([0, 1, 2, 3, KEYS_MAX + 1].map(has), [true, false, false, true, true]);
        // A key that is stored is begun again without dropping another.
        store.begin(attempt(0)).await.unwrap();
        assert!(has(3));
    }
}
