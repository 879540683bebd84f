//! The in-memory idempotency store.

use std::collections::HashMap;

use async_trait::async_trait;

use super::SharedState;
use crate::{
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredResponse},
    error::{Error, Result},
    ids::Holder,
};

/// An in-memory [`IdempotencyStore`]. A clone is the same store.
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
            if record.attempt.holder != attempt.holder && record.attempt.lease_until > attempt.now {
                record.attempt.lease_until = attempt.end_of_other(record.attempt.lease_until);
                return Ok(IdempotencyState::InProgress);
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
